"""Lists of terms that name identity groups."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

import narwhals as nw

from ombud.errors import DataError
from ombud.files import read_utf8
from ombud.taxonomy.model import load_taxonomy
from ombud.taxonomy.resources import (
    find_versioned,
    parse_commented_csv,
    rows_in_words,
    versioned_keys,
)

TermKind = Literal["neutral", "slur"]
_LONGEST = 200

ATTRIBUTES = {
    "non-white": "race",
    "white": "race",
    "men": "gender",
    "women": "gender",
    "christian": "religion",
    "non-christian": "religion",
    "lgbt": "sexuality",
    "straight": "sexuality",
}
"""The attribute of each of the nine groups; a group of another name is its own attribute."""


@dataclass(frozen=True, slots=True)
class Term:
    """One term of one sub-identity. Its text is kept out of the representation."""

    # What it names.
    group: str
    sub_identity: str
    text: str = field(repr=False)  # The term as spelled at the source
    kind: TermKind = "neutral"  # ``"neutral"`` or ``"slur"`` (slang included)
    context: str = ""  # ``person``: it has other senses, and counts where people are meant


@dataclass(frozen=True)
class TermList:
    """Terms in the order of their file; the order matters to published tagging.

    Parameters
    ----------
    name
        The key, or the file it was read from.
    terms
        The terms. One spelling may stand under several groups.
    taxonomy
        Key of the taxonomy of its groups; empty if they are in none.
    source, licence
        Where the terms come from, and on what terms.

    Examples
    --------
    >>> terms = load_terms("terms-identity@1")
    >>> len(terms.terms), len(terms.groups), terms.groups[0]
    (969, 9, 'non-white')
    """

    name: str
    terms: tuple[Term, ...] = field(repr=False)
    taxonomy: str = ""
    source: str = field(default="", repr=False)
    licence: str = field(default="", repr=False)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups that have a term: in the order of the taxonomy, or else of first appearance."""
        present = dict.fromkeys(term.group for term in self.terms)
        if self.taxonomy:
            order = load_taxonomy(self.taxonomy).parent_ids
            return tuple(group for group in order if group in present)
        return tuple(present)

    @cached_property
    def sub_identities(self) -> tuple[tuple[str, str], ...]:
        """``(group, sub-identity)`` pairs that have a term, by group and first appearance."""
        present = dict.fromkeys((term.group, term.sub_identity) for term in self.terms)
        return tuple(sorted(present, key=lambda pair: self.groups.index(pair[0])))

    def where(self, keep: Callable[[Term], bool]) -> TermList:
        """Return a list of those terms for which `keep` holds, in the same order.

        Examples
        --------
        >>> neutral = load_terms("terms-identity@1").where(lambda term: term.kind == "neutral")
        >>> len(neutral.terms)
        220
        """
        kept = tuple(term for term in self.terms if keep(term))
        return TermList(f"{self.name} (part)", kept, self.taxonomy, self.source, self.licence)


def term_list_names() -> tuple[str, ...]:
    """Return the keys of all term lists that come with the package.

    Examples
    --------
    >>> term_list_names()
    ('terms-identity@1', 'terms-identity@2', 'terms-identity-extended@1', 'terms-jigsaw-bias@1')
    """
    return versioned_keys(".csv")


@cache
def load_terms(key: str) -> TermList:
    """Return a term list that comes with the package.

    Parameters
    ----------
    key
        ``name@version``; a bare name means the newest version.
    """
    full, file = find_versioned(key, ".csv", "term list")
    return _parse_csv(file.read_text(encoding="utf-8"), full)


def read_terms(
    source: str | PathLike[str] | Any, *, name: str = "", taxonomy: str = ""
) -> TermList:
    """Read a term list of your own, with all its faults in one error.

    Parameters
    ----------
    source
        A CSV file, or any data frame that narwhals knows, with columns ``group`` and ``term``, and
        optionally ``sub_identity`` (default: the group), ``kind`` (``"neutral"``, the default, or
        ``"slur"``) and ``context`` (``"person"`` for a word that has other senses, such as
        *black*: it counts where the words around it are about people). A file may start with lines
        such as ``# taxonomy: identity@1``, or ``# extends: terms-identity@1`` to add to a list that
        comes with ombud.
    name
        What to call it; by default the file's name.
    taxonomy
        Key of the taxonomy that groups and sub-identities must belong to; by default the one that
        the file names, or none.
    """
    if isinstance(source, str | PathLike):
        file = Path(source)
        return _parse_csv(read_utf8(file), name or file.name, taxonomy)
    frame = nw.from_native(source, eager_only=True)
    index = name or "term list"
    missing = [column for column in ("group", "term") if column not in frame.columns]
    if missing:
        result = ", ".join(frame.columns)
        raise DataError(index, [f"found columns {result}; expected also {', '.join(missing)}"])
    meta = {"taxonomy": taxonomy}
    return _checked(enumerate(frame.iter_rows(named=True), start=1), meta, index)


def _parse_csv(text: str, place: str, taxonomy: str = "") -> TermList:
    meta, rows = parse_commented_csv(text, place, ("group", "term"))
    if taxonomy:
        meta["taxonomy"] = taxonomy
    own = _checked(rows, meta, place)
    if not meta.get("extends"):
        return own
    base = load_terms(meta["extends"])
    known = set(base.terms)
    again = [term for term in own.terms if term in known]
    if again:
        raise DataError(place, [f"{len(again)} terms stand in {base.name} already"])
    return replace(own, terms=(*base.terms, *own.terms))


def _checked(
    rows: Iterable[tuple[int, dict[str, Any]]], meta: dict[str, str], place: str
) -> TermList:
    # Faults name rows, never terms: messages end up in logs.
    faults: dict[str, list[int]] = {}
    terms: list[Term] = []
    seen: set[tuple[str, str, str, str]] = set()
    taxonomy = load_taxonomy(meta["taxonomy"]) if meta.get("taxonomy") else None
    for number, row in rows:
        group, text = row["group"], row["term"]
        sub, kind = row.get("sub_identity") or group, row.get("kind") or "neutral"
        problems = _problems(group, sub, text, kind, row.get("context") or "")
        if not problems:
            if taxonomy is not None and group not in taxonomy.parent_ids:
                problems.append(f"group is not one of {taxonomy.key}")
            elif taxonomy is not None and f"{group}/{sub}" not in taxonomy:
                problems.append(f"sub_identity is not one of its group in {taxonomy.key}")
            key = (group, sub, text, kind)
            if key in seen:
                problems.append("the same group, sub_identity, term and kind stand already above")
            seen.add(key)
        for problem in problems:
            faults.setdefault(problem, []).append(number)
        if not problems:
            context = row.get("context") or ""
            terms.append(Term(group, sub, text, cast(TermKind, kind), context))
    if not terms and not faults:
        raise DataError(place, ["no terms found; expected at least one row"])
    if faults:
        raise DataError(place, [f"{rows_in_words(at)}: {what}" for what, at in faults.items()])
    return TermList(
        name=place,
        terms=tuple(terms),
        taxonomy=taxonomy.key if taxonomy else "",
        source=meta.get("source", ""),
        licence=meta.get("licence", ""),
    )


def _problems(group: Any, sub: Any, text: Any, kind: Any, context: Any) -> list[str]:
    problems = []
    if not isinstance(group, str) or not group.strip():
        problems.append("group is empty; expected the name of a group")
    if not isinstance(sub, str):
        problems.append("sub_identity is not a text")
    if kind not in ("neutral", "slur"):
        problems.append("kind is unknown; expected neutral or slur")
    if context not in ("", "person"):
        problems.append("context is unknown; expected person, or nothing")
    fault = term_fault(text)
    return [*problems, fault] if fault else problems


def term_fault(text: Any) -> str:
    """Say what is wrong with the spelling of a term; empty if nothing is.

    Examples
    --------
    >>> term_fault(" spaced")
    'term starts or ends with a space; remove it'
    """
    if not isinstance(text, str) or not text.strip():
        return "term is empty; expected a word or words"
    if text != text.strip():
        return "term starts or ends with a space; remove it"
    if len(text) > _LONGEST:
        return f"term is longer than {_LONGEST} characters"
    if any(unicodedata.category(char) in {"Cc", "Cs"} for char in text):
        return "term contains a control character or broken Unicode"
    return ""
