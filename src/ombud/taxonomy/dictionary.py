"""Dictionaries of delicate terms, each tagged with a topic and a severity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from ombud.errors import DataError
from ombud.files import read_utf8
from ombud.taxonomy.model import Taxonomy, load_scale, load_taxonomy
from ombud.taxonomy.resources import (
    data_folder,
    find_versioned,
    parse_commented_csv,
    rows_in_words,
    versioned_keys,
)
from ombud.taxonomy.terms import load_terms, term_fault

_FOLDER = "dictionaries"


@dataclass(frozen=True, slots=True)
class DictionaryTerm:
    """One term under one topic. Its text is kept out of the representation."""

    topic: str  # A label of the dictionary's taxonomy
    severity: str  # A label of the dictionary's scale of severities
    text: str = field(repr=False)  # The term
    origin: str = ""  # Where it comes from, such as ``"paper"`` or the key of an identity list


@dataclass(frozen=True)
class Dictionary:
    """Terms with topic and severity, in the order of their file.

    Examples
    --------
    >>> words = load_dictionary("delicate@1")
    >>> len(words.topics), words.severities
    (17, 'delicate-severity@1')
    """

    name: str  # The key, or the file it was read from
    # The terms. One spelling may stand under several topics.
    terms: tuple[DictionaryTerm, ...] = field(repr=False)
    taxonomy: str = "delicate@1"  # Key of the taxonomy of its topics
    severities: str = "delicate-severity@1"  # Key of the scale of its severities, most severe first
    # Where the terms come from, and on what terms.
    source: str = field(default="", repr=False)
    licence: str = field(default="", repr=False)

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """Topics that have a term, in the order of the taxonomy, then of first appearance."""
        present = dict.fromkeys(term.topic for term in self.terms)
        return _in_order(present, load_taxonomy(self.taxonomy).ids)

    @cached_property
    def scale(self) -> tuple[str, ...]:
        """Severities in order, most severe first."""
        return load_scale(self.severities).ids

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Distinct spellings, in the order of first appearance."""
        return tuple(dict.fromkeys(term.text for term in self.terms))

    @property
    def digest(self) -> str:
        """Hash of all terms with topics and severities: two dictionaries with one digest agree."""
        lines = sorted(f"{t.topic}\x1f{t.severity}\x1f{t.text}" for t in self.terms)
        return sha256("\x1e".join(lines).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def where(self, keep: Callable[[DictionaryTerm], bool]) -> Dictionary:
        """Return a dictionary of those terms for which `keep` holds.

        Examples
        --------
        >>> words = load_dictionary("delicate@1")
        >>> age = words.where(lambda term: term.topic == "age")
        >>> age.topics
        ('age',)
        """
        kept = tuple(term for term in self.terms if keep(term))
        return self._with(f"{self.name} (part)", kept)

    def extended(self, other: Dictionary) -> Dictionary:
        """Return this dictionary with another's terms added.

        Where both have a term under one topic, the severity of `other` counts: so a file of one's
        own corrects what comes with the package.

        Parameters
        ----------
        other
            Terms to add, of the same taxonomy and severities.

        Examples
        --------
        >>> one = Dictionary("a", (DictionaryTerm("age", "offensive", "x"),))
        >>> two = Dictionary("b", (DictionaryTerm("age", "mildly-offensive", "x"),))
        >>> [term.severity for term in one.extended(two).terms]
        ['mildly-offensive']
        """
        if (other.taxonomy, other.severities) != (self.taxonomy, self.severities):
            raise DataError(
                other.name,
                [
                    f"its topics are of {other.taxonomy} and its severities of "
                    f"{other.severities}; expected {self.taxonomy} and {self.severities}"
                ],
            )
        merged = {(term.topic, term.text): term for term in self.terms}
        merged |= {(term.topic, term.text): term for term in other.terms}
        return self._with(f"{self.name} + {other.name}", tuple(merged.values()))

    def _with(self, name: str, terms: tuple[DictionaryTerm, ...]) -> Dictionary:
        return Dictionary(name, terms, self.taxonomy, self.severities, self.source, self.licence)


def _in_order(present: dict[str, None], order: tuple[str, ...]) -> tuple[str, ...]:
    known = tuple(name for name in order if name in present)
    return known + tuple(name for name in present if name not in order)


def dictionary_names() -> tuple[str, ...]:
    """Return the keys of all dictionaries that come with the package.

    Examples
    --------
    >>> dictionary_names()
    ('delicate@1',)
    """
    return versioned_keys(".csv", _FOLDER)


@cache
def load_dictionary(key: str = "delicate") -> Dictionary:
    """Return a dictionary that comes with the package, identity terms included.

    Parameters
    ----------
    key
        ``name@version``; a bare name means the newest version.

    Examples
    --------
    >>> "refugee" in load_dictionary("delicate@1").texts
    True
    """
    full, file = find_versioned(key, ".csv", "dictionary", _FOLDER)
    own = _parse(file.read_text(encoding="utf-8"), full)
    includes = data_folder().joinpath(_FOLDER, f"{full}.includes.csv")
    if not includes.is_file():
        return own
    return _with_lists(own, includes.read_text(encoding="utf-8"), includes.name)


def read_dictionary(path: str | PathLike[str]) -> Dictionary:
    """Read a dictionary of your own from a CSV file, with all its faults in one error.

    Columns are ``topic``, ``severity`` and ``term``, optionally ``origin``. The file may start with
    the lines ``# taxonomy: delicate@1`` and ``# severities: delicate-severity@1``, which are the
    defaults. Join it to what comes with the package by `Dictionary.extended`.

    Parameters
    ----------
    path
        The file.
    """
    file = Path(path)
    return _parse(read_utf8(file), str(file))


def _parse(text: str, place: str) -> Dictionary:
    meta, rows = parse_commented_csv(text, place, ("topic", "severity", "term"))
    taxonomy = load_taxonomy(meta.get("taxonomy") or "delicate@1")
    scale = load_scale(meta.get("severities") or "delicate-severity@1")
    # Faults name rows, never terms: messages end up in logs.
    faults: dict[str, list[int]] = {}
    terms: list[DictionaryTerm] = []
    seen: set[tuple[str, str]] = set()
    for number, row in rows:
        problems = _problems(row, taxonomy, scale)
        key = (row["topic"], row["term"])
        if not problems and key in seen:
            problems.append("the same topic and term stand already above")
        seen.add(key)
        for problem in problems:
            faults.setdefault(problem, []).append(number)
        if not problems:
            origin = row.get("origin") or place
            terms.append(DictionaryTerm(row["topic"], row["severity"], row["term"], origin))
    if not terms and not faults:
        raise DataError(place, ["no terms found; expected at least one row"])
    if faults:
        raise DataError(place, [f"{rows_in_words(at)}: {what}" for what, at in faults.items()])
    return Dictionary(
        place,
        tuple(terms),
        taxonomy.key,
        scale.key,
        meta.get("source", ""),
        meta.get("licence", ""),
    )


def _problems(row: dict[str, Any], taxonomy: Taxonomy, scale: Taxonomy) -> list[str]:
    problems = []
    if row["topic"] not in taxonomy.ids:
        problems.append(f"topic is not one of {taxonomy.key}")
    if row["severity"] not in scale.ids:
        problems.append(f"severity is not one of {', '.join(scale.ids)}")
    fault = term_fault(row["term"])
    return [*problems, fault] if fault else problems


def _with_lists(own: Dictionary, text: str, place: str) -> Dictionary:
    """Add the terms of identity lists that a dictionary names; its own terms count first."""
    columns = ("list", "group", "kind", "topic", "severity")
    _, rows = parse_commented_csv(text, place, columns)
    taken = {(term.topic, term.text) for term in own.terms}
    added: dict[tuple[str, str], DictionaryTerm] = {}
    for _, row in rows:
        for term in load_terms(row["list"]).terms:
            key = (row["topic"], term.text)
            if (term.group, term.kind) == (row["group"], row["kind"]) and key not in taken:
                # A spelling that is neutral and a slur keeps the first row's severity.
                added.setdefault(key, DictionaryTerm(*_tags(row), term.text, row["list"]))
    return Dictionary(
        own.name,
        (*own.terms, *added.values()),
        own.taxonomy,
        own.severities,
        own.source,
        own.licence,
    )


def _tags(row: dict[str, str]) -> tuple[str, str]:
    return row["topic"], row["severity"]
