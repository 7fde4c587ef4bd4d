"""Identity groups of texts, as an audit uses them."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.taxonomy.terms import ATTRIBUTES, TermList, load_terms, read_terms
from ombud.text.folding import detect_languages
from ombud.text.grammar import ENGLISH
from ombud.text.identity import IdentityTags, TagMode, default_terms, tag_identities

# Presets, counts and regressions all ask for the tags of one audit's texts.
_tags: WeakKeyDictionary[Texts, dict[tuple[Any, ...], IdentityTags]] = WeakKeyDictionary()


def terms_of(terms: str = "", path: Path | str = "", mode: str = "whole-word") -> TermList:
    """Return a term list that comes with ombud, or that of a file; by default that of the mode."""
    return read_terms(path) if path else load_terms(terms or default_terms(mode))


def tags_of(
    data: Dataset, terms: TermList, mode: TagMode, punctuation: Mapping[str, str] | None = None
) -> IdentityTags:
    """Return which identities each text names; the same texts are tagged once.

    `punctuation` are, in published mode, for some data sets the characters that become spaces.
    """
    texts: Texts = data.need("texts", "identity tagging")
    known = _tags.setdefault(texts, {})
    special = dict(punctuation or {}) if mode == "published" else {}
    key = (tuple(terms.terms), mode, tuple(sorted(special.items())))
    if key not in known:
        made = tag_identities(texts.texts, terms, mode=mode)
        if special:
            made = _with_punctuation(made, data, special)
        known[key] = made
    return known[key]


def _with_punctuation(tags: IdentityTags, data: Dataset, special: dict[str, str]) -> IdentityTags:
    """Return the tags with those of some data sets made with other punctuation."""
    texts: Texts = data.need("texts", "identity tagging")
    sets = texts.sets
    if sets is None:
        sets = np.full(len(texts), data.card.name, dtype=object)
    there = {str(name) for name in sets}
    unknown = sorted(set(special) - there)
    if unknown:
        told = ", ".join(sorted(there))
        raise PlanError(f"punctuation names the data set {unknown[0]!r}; there are: {told}")
    members, subs, slurs = tags.membership.copy(), tags.sub_membership.copy(), tags.has_slur.copy()
    hits: Any = tags.hits.tolil()
    for name, characters in special.items():
        rows = np.flatnonzero(sets == name)
        some = tag_identities(
            texts.texts[rows], tags.terms, mode="published", punctuation=characters
        )
        members[rows], subs[rows], slurs[rows] = some.membership, some.sub_membership, some.has_slur
        hits[rows] = some.hits
    return replace(tags, membership=members, sub_membership=subs, has_slur=slurs, hits=hits.tocsr())


def identity_groups(
    data: Dataset,
    terms: TermList,
    mode: TagMode,
    smallest: int | None = None,
    *,
    punctuation: Mapping[str, str] | None = None,
    sub_identities: bool = False,
) -> Grouping:
    """Return the groups that texts name: as their source states them, else by term lists.

    A data set whose source states groups keeps them; texts of the others are tagged.

    Parameters
    ----------
    data
        Has texts.
    terms
        The term list.
    mode
        How terms are matched.
    smallest
        Also pairs of groups of two attributes, when at least so many texts name both; None for
        no pairs.
    punctuation
        As in `tags_of`.
    sub_identities
        Whether each sub-identity, such as ``women/female``, is a group of its own too.
    """
    texts: Texts = data.need("texts", "identity tagging")
    tags = tags_of(data, terms, mode, punctuation)
    attributes = tuple(ATTRIBUTES.get(group, group) for group in tags.groups)
    names, members = tags.groups, tags.membership
    stated = stated_texts(data)
    if data.text_groups is not None and stated.any():
        given = data.text_groups.aligned(texts.ids)
        more = [g for g in data.text_groups.names if g not in names]
        names = (*names, *more)
        attributes = (*attributes, *(_attribute(data.text_groups, g) for g in more))
        joined = np.zeros((len(texts), len(names)), dtype=bool)
        joined[:, : members.shape[1]] = members & ~stated[:, None]
        for g, name in enumerate(data.text_groups.names):
            joined[:, names.index(name)] |= given[:, g]
        members = joined
    if sub_identities:
        pairs = [pair for pair in tags.sub_identities if pair[0] != pair[1]]
        places = [tags.sub_identities.index(pair) for pair in pairs]
        names = (*names, *(f"{group}/{sub}" for group, sub in pairs))
        attributes = (*attributes, *(f"sub-identity of {group}" for group, _ in pairs))
        members = np.concatenate([members, tags.sub_membership[:, places]], axis=1)
    groups = Grouping(Vocabulary(np.asarray(texts.ids)), names, members, attributes)
    return groups if smallest is None else groups.with_intersections(minimum=smallest)


@dataclass(frozen=True)
class IdentityTagger:
    """Finds the identity groups that texts name, a few texts at a time.

    Examples
    --------
    >>> tagger = IdentityTagger(terms_of("terms-identity@2"))
    >>> [tagger.names[g] for g in np.flatnonzero(tagger.tag(["two sisters", "the sea"])[0])]
    ['women']
    """

    terms: TermList  # the term list
    mode: TagMode = "whole-word"  # how terms are matched
    sub_identities: bool = False  # as in `identity_groups`

    @cached_property
    def _none(self) -> Grouping:
        return self._groups([])

    @property
    def names(self) -> tuple[str, ...]:
        """The groups."""
        return self._none.names

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute of each group."""
        return self._none.attributes

    def tag(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return texts x groups."""
        return self._groups(texts).members

    def _groups(self, texts: Sequence[str]) -> Grouping:
        count = len(texts)
        whole = np.fromiter(texts, dtype=object, count=count)
        data = Dataset(texts=Texts(np.arange(count), whole, np.full(count, -1, dtype=np.int8)))
        return identity_groups(data, self.terms, self.mode, sub_identities=self.sub_identities)


def _attribute(groups: Grouping, name: str) -> str:
    return groups.attributes[groups.names.index(name)]


STATED = "groups_stated_by"
"""The fact of a card that says which data sets state groups themselves, one name a line."""


def stated_texts(data: Dataset) -> NDArray[np.bool_]:
    """Return which texts are of a data set whose source states groups."""
    texts: Texts = data.need("texts", "identity tagging")
    if data.text_groups is None:
        return np.zeros(len(texts), dtype=bool)
    told = data.card.facts.get(STATED)
    if texts.sets is None:
        return np.full(len(texts), told != "")
    if told is None:
        named = data.text_groups.aligned(texts.ids).any(axis=1)
        names = np.unique(texts.sets[named].astype(str))
    else:
        names = np.array(str(told).split("\n"))
    return np.isin(texts.sets.astype(str), names)


def with_stated(data: Dataset) -> Dataset:
    """Return the data with a card that says which data sets state groups themselves."""
    texts: Texts = data.need("texts", "identity tagging")
    stated = stated_texts(data)
    if texts.sets is None:
        told = data.card.name if stated.any() else ""
    else:
        told = "\n".join(np.unique(texts.sets[stated].astype(str)).tolist())
    facts = {**data.card.facts, STATED: told}
    return replace(data, card=data.card.model_copy(update={"facts": facts}))


_LOOKED_AT = 2000
_MANY = 0.1


def other_languages(texts: Texts, language: str = "en") -> tuple[Exclusion, ...]:
    """Return a notice of texts that are not in the language of the term lists.

    By the column ``language``; without one, by detection in up to 2,000 texts, and only where a
    tenth of them or more are in another language. Without the package ``py3langid``, a text of five
    words or more is in another language if it has none of the commonest English words.
    """
    given, of = texts.languages, len(texts)
    how = ""
    if given is None:
        if not of:
            return ()
        some = np.unique(np.linspace(0, of - 1, min(of, _LOOKED_AT)).astype(np.int64))
        sample, of = [str(text) for text in texts.texts[some]], len(some)
        if importlib.util.find_spec("py3langid") is not None:
            given = detect_languages(sample)
        else:
            words = [re.findall(r"\w+", text.lower()) for text in sample]
            english = [len(one) < 5 or not ENGLISH["common"].isdisjoint(one) for one in words]
            given = np.where(english, language, "unknown").astype(object)
        sampled = f" in a sample of {of:,} of {len(texts):,} texts" if of < len(texts) else ""
        how = f", as detected{sampled}"
    codes = [str(code).casefold().replace("_", "-").split("-")[0] for code in given if code]
    counts = Counter(code for code in codes if code != language)
    other = sum(counts.values())
    if not other or (how and other < _MANY * of):
        return ()
    told = ", ".join(f"{code} {count:,}" for code, count in counts.most_common(5))
    reason = (
        f"they are not in the language of the term lists ({language}){how}: {told}; groups that "
        "they name are missed"
    )
    return (Exclusion("texts", "texts", other, reason, of, "warning/other-language"),)
