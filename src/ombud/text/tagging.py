"""Identity groups of texts, as an audit uses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.taxonomy.terms import TermList, load_terms, read_terms
from ombud.text.identity import IdentityTags, TagMode, tag_identities

__all__ = ["ATTRIBUTES", "identity_groups", "tags_of", "terms_of", "texts_of"]

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


# Presets, counts and regressions all ask for the tags of one audit's texts.
_tags: WeakKeyDictionary[Texts, dict[tuple[Any, ...], IdentityTags]] = WeakKeyDictionary()


def texts_of(data: Dataset, what: str) -> Texts:
    """Return the texts of a data set, or say that there are none."""
    if data.texts is None:
        raise PlanError(f"{what} needs texts; the data has none")
    return data.texts


def terms_of(terms: str, path: Path | str = "") -> TermList:
    """Return a term list that comes with ombud, or that of a file."""
    return read_terms(path) if path else load_terms(terms)


def tags_of(data: Dataset, terms: TermList, mode: TagMode) -> IdentityTags:
    """Return which identities each text names; the same texts are tagged once."""
    texts = texts_of(data, "identity tagging")
    known = _tags.setdefault(texts, {})
    key = (tuple(terms.terms), mode)
    if key not in known:
        known[key] = tag_identities(texts.texts, terms, mode=mode)
    return known[key]


def identity_groups(
    data: Dataset, terms: TermList, mode: TagMode, smallest: int | None = None
) -> Grouping:
    """Return the groups that texts name, by term lists.

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
    """
    texts = texts_of(data, "identity tagging")
    tags = tags_of(data, terms, mode)
    attributes = tuple(ATTRIBUTES.get(group, group) for group in tags.groups)
    groups = Grouping(Vocabulary(np.asarray(texts.ids)), tags.groups, tags.membership, attributes)
    return groups if smallest is None else groups.with_intersections(minimum=smallest)
