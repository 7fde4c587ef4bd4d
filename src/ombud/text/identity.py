"""Which identity groups a text mentions, by term lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.errors import DataError
from ombud.taxonomy.terms import TermList, load_terms
from ombud.text.context import in_context
from ombud.text.matching import Ints, Matches, TermMatcher, as_texts

# Term matching as the speech-suppression paper's published code does it, for comparison.


PUBLISHED_PUNCTUATION = ".,#-'()"
"""Characters that the published code replaces by a space (only ``.,#`` for OpenAI-1680)."""


def published_pairs(
    texts: Sequence[str], terms: TermList, punctuation: str = PUBLISHED_PUNCTUATION
) -> tuple[Ints, Ints]:
    """Return the text and term indices that the published code would match, each pair once.

    - A spelling that stands several times counts only where it stands last.
    - A few punctuation characters become spaces, then the text is lower-cased.
    - A term matches if it stands between two spaces, as it is or with ``s`` or ``es`` behind it.

    So it misses terms at the start or end of a text, beside other punctuation, and with a hyphen.

    The order of the terms matters; characters of `punctuation` become spaces.
    """
    last = {term.text: index for index, term in enumerate(terms.terms)}
    single: dict[str, list[int]] = {}
    several: dict[str, list[tuple[str, int]]] = {}
    for spelling, index in last.items():
        for suffix in ("", "s", "es"):
            form = spelling.lower() + suffix
            head, space, _ = form.partition(" ")
            if space:
                several.setdefault(head, []).append((f" {form} ", index))
            else:
                single.setdefault(form, []).append(index)
    heads = frozenset((*single, *several))
    spaces = str.maketrans(dict.fromkeys(punctuation, " "))
    rows: list[int] = []
    result: list[int] = []
    for row, text in enumerate(texts):
        text = text.translate(spaces).lower()
        # The first and the last piece have a space on one side only.
        for head in heads.intersection(text.split(" ")[1:-1]):
            hits = {*single.get(head, ())}
            hits.update(index for form, index in several.get(head, ()) if form in text)
            rows += [row] * len(hits)
            result += hits
    pairs = np.unique(
        np.asarray(rows, dtype=np.int64) * len(terms.terms) + np.asarray(result, dtype=np.int64)
    )
    return pairs // len(terms.terms), pairs % len(terms.terms)


TagMode = Literal["whole-word", "published"]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagDifference:
    """How two taggings of the same texts differ in one group (counts of texts)."""

    group: str
    # Texts tagged by both, by the first only, by the second only.
    both: int
    only_first: int
    only_second: int


@dataclass(frozen=True)
class IdentityTags:
    """Identity groups of texts. A text may have several groups or none.

    Parameters
    ----------
    groups
        Names of the columns of `membership`.
    membership
        Texts x groups.
    sub_identities
        ``(group, sub-identity)`` of the columns of `sub_membership`.
    sub_membership
        Texts x sub-identities.
    has_slur
        Whether a term of kind *slur* matched.
    hits
        Texts x terms, Boolean and sparse; columns are ``terms.terms``.
    terms
        The term list.
    mode
        How terms were matched.
    """

    groups: tuple[str, ...]
    membership: Bools = field(repr=False)
    sub_identities: tuple[tuple[str, str], ...] = field(repr=False)
    sub_membership: Bools = field(repr=False)
    has_slur: Bools = field(repr=False)
    hits: sparse.csr_array[Any] = field(repr=False)
    terms: TermList
    mode: TagMode

    def __len__(self) -> int:
        return len(self.membership)

    def of(self, group: str) -> Bools:
        """Return which texts mention `group`."""
        if group not in self.groups:
            raise DataError(
                self.terms.name,
                [f"no group is named {group!r}; there are {', '.join(self.groups)}"],
            )
        return self.membership[:, self.groups.index(group)]

    def columns(self) -> dict[str, Bools]:
        """Return one Boolean column per group, for a data frame or a grouping."""
        return {group: self.of(group) for group in self.groups}

    def counts(self) -> dict[str, int]:
        """Return the number of texts per group."""
        return dict(zip(self.groups, self.membership.sum(axis=0).tolist(), strict=True))

    def with_groups(self, groups: Sequence[str]) -> IdentityTags:
        """Return the tags in columns for these groups; a group without terms has no texts."""
        membership = np.zeros((len(self), len(groups)), dtype=np.bool_)
        for column, group in enumerate(groups):
            if group in self.groups:
                membership[:, column] = self.of(group)
        return replace(self, groups=tuple(groups), membership=membership)

    def compare(self, other: IdentityTags) -> tuple[TagDifference, ...]:
        """Return, group by group, how another tagging of the same texts differs."""
        if len(self) != len(other) or self.groups != other.groups:
            raise DataError(
                "taggings to compare",
                [
                    f"found {len(self)} texts in groups {', '.join(self.groups)} and {len(other)} "
                    f"in {', '.join(other.groups)}; expected the same texts and groups"
                ],
            )
        both = (self.membership & other.membership).sum(axis=0).tolist()
        first = (self.membership & ~other.membership).sum(axis=0).tolist()
        second = (other.membership & ~self.membership).sum(axis=0).tolist()
        return tuple(
            TagDifference(group=group, both=a, only_first=b, only_second=c)
            for group, a, b, c in zip(self.groups, both, first, second, strict=True)
        )


def default_terms(mode: str) -> str:
    """Return the term list that is used where none is named.

    Examples
    --------
    >>> default_terms("whole-word"), default_terms("published")
    ('terms-identity@2', 'terms-identity@1')
    """
    return "terms-identity@1" if mode == "published" else "terms-identity@2"


def tag_identities(
    texts: Iterable[str],
    terms: TermList | None = None,
    *,
    mode: TagMode = "whole-word",
    suffixes: Sequence[str] = ("", "s", "es"),
    punctuation: str = PUBLISHED_PUNCTUATION,
) -> IdentityTags:
    """Tag texts with the identity groups whose terms they contain.

    A term list finds explicit mentions. It does not know who speaks, who is meant, or whether an
    ambiguous word is used in the listed sense: measure it with `tag_quality` against manual labels.

    Parameters
    ----------
    texts
        A list, an array, or a series of any data frame library.
    terms
        The term list; by default ``terms-identity@2``, and ``terms-identity@1`` in published mode.
    mode
        ``"whole-word"``: exact whole words (see `TermMatcher`), and a term that stands under
        several groups counts for all of them. ``"published"``: exactly as the published code of the
        speech-suppression paper (see `ombud.text.identity`), for comparison.
    suffixes
        Endings a term may have, in whole-word mode; by default plurals in *s* and *es*.
    punctuation
        In published mode, characters that become spaces; ``".,#"`` for OpenAI-1680.

    Examples
    --------
    >>> tags = tag_identities(["Two sisters!", "a church", "the sea"])
    >>> [group for group in tags.groups if tags.of(group)[0]]
    ['women']
    >>> tag_identities(["Two sisters!"], mode="published").counts()["women"]
    0
    """
    rows = as_texts(texts)
    listed = load_terms(default_terms(mode)) if terms is None else terms
    shape = (len(rows), len(listed.terms))
    if mode == "published":
        matches = Matches(*published_pairs(rows, listed, punctuation), shape)
    elif mode == "whole-word":
        spellings = [term.text for term in listed.terms]
        matches = TermMatcher(spellings, suffixes=suffixes).match(rows)
        if any(term.context for term in listed.terms):
            named = in_context(rows, listed.terms, matches.text_index, matches.term_index)
            matches = Matches(matches.text_index[named], matches.term_index[named], shape)
    else:
        raise DataError("mode", [f"found {mode!r}; expected 'whole-word' or 'published'"])
    text, term = matches.text_index, matches.term_index
    groups, pairs = listed.groups, listed.sub_identities
    slur = np.asarray([entry.kind == "slur" for entry in listed.terms], dtype=np.bool_)
    has_slur = np.zeros(len(rows), dtype=np.bool_)
    has_slur[text[slur[term]]] = True
    return IdentityTags(
        groups=groups,
        membership=_spread(
            text,
            term,
            [groups.index(entry.group) for entry in listed.terms],
            len(rows),
            len(groups),
        ),
        sub_identities=pairs,
        sub_membership=_spread(
            text,
            term,
            [pairs.index((entry.group, entry.sub_identity)) for entry in listed.terms],
            len(rows),
            len(pairs),
        ),
        has_slur=has_slur,
        hits=matches.to_sparse(),
        terms=listed,
        mode=mode,
    )


def _spread(text: Ints, term: Ints, column: list[int], n_rows: int, n_columns: int) -> Bools:
    members = np.zeros((n_rows, n_columns), dtype=np.bool_)
    members[text, np.asarray(column, dtype=np.int64)[term]] = True
    return members
