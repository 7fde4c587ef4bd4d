"""Groups of texts: topic, severity, explicitness, length, source, set and risk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.questions.delicate.risk_ratings import HIGHEST_RISK
from ombud.taxonomy.dictionary import Dictionary, load_dictionary, read_dictionary
from ombud.taxonomy.model import load_crosswalk
from ombud.text.matching import TermMatcher, as_texts

GroupKind = Literal[
    "topic", "coarse-topic", "severity", "explicit", "length", "source", "set", "language", "risk"
]
ALL_KINDS: tuple[GroupKind, ...] = get_args(GroupKind)

LENGTHS = ((-1, 50, "up to 50 words"), (50, 200, "51 to 200 words"), (200, None, "over 200 words"))
"""Bands of length, in words: above the first, up to the second."""

Members = dict[str, NDArray[np.bool_]]


def dictionary_of(name: str = "delicate@1", path: Path | str = "") -> Dictionary:
    """Return the dictionary that comes with ombud, with a file of one's own added."""
    own = load_dictionary(name)
    return own.extended(read_dictionary(path)) if path else own


def text_groups(
    texts: Texts,
    kinds: Sequence[GroupKind],
    dictionary: Dictionary,
    risk: NDArray[np.int8] | None = None,
) -> Grouping:
    """Return the groups of texts that are not empty.

    A text counts in each of its topics; texts without any term are a group of their own.

    Parameters
    ----------
    texts
        The texts.
    kinds
        Which groups.
    dictionary
        Terms with topic and severity.
    risk
        The risk class of each text, -1 where there is none.
    """
    members: dict[GroupKind, Members] = {}
    if {"topic", "coarse-topic", "severity", "explicit"} & set(kinds):
        members |= _by_terms(texts, dictionary)
    words = np.array([len(text.split()) for text in as_texts(texts.texts)])
    members["length"] = {
        name: (words > low) & (words <= (np.inf if high is None else high))
        for low, high, name in LENGTHS
    }
    columns_of: tuple[tuple[GroupKind, NDArray[np.object_] | None], ...] = (
        ("source", texts.families), ("set", texts.sets), ("language", texts.languages),
    )  # fmt: skip
    for column_kind, column in columns_of:
        if column is not None:
            named = sorted({str(name) for name in column if name is not None})
            members[column_kind] = {name: column == name for name in named}
    if risk is not None:
        members["risk"] = {str(k): risk == k for k in range(HIGHEST_RISK + 1)}
    names, attributes, columns = [], [], []
    for kind in kinds:
        for name, inside in members.get(kind, {}).items():
            if inside.any():
                names.append(f"{kind}={name}")
                attributes.append(str(kind))
                columns.append(np.asarray(inside, dtype=bool))
    table = np.array(columns, dtype=bool).T.reshape(len(texts), len(names))
    return Grouping(Vocabulary(np.asarray(texts.ids)), tuple(names), table, tuple(attributes))


def _by_terms(texts: Texts, dictionary: Dictionary) -> dict[GroupKind, Members]:
    """Return groups by topic, coarse topic, severity and explicitness."""
    terms = dictionary.terms
    found = TermMatcher([term.text for term in terms], suffixes=("", "s", "es")).match(
        as_texts(texts.texts)
    )
    none = ~np.isin(np.arange(len(texts)), found.text_index)

    def group(values: Sequence[str], order: Sequence[str]) -> Members:
        code = {name: k for k, name in enumerate(order)}
        of = np.array([code.get(value, -1) for value in values], dtype=np.int64)[found.term_index]
        table = np.zeros((len(texts), len(order)), dtype=bool)
        table[found.text_index[of >= 0], of[of >= 0]] = True
        return {name: table[:, k] for k, name in enumerate(order)}

    topics = group([term.topic for term in terms], dictionary.topics)
    coarse: Members = {}
    nobody = np.zeros(len(texts), dtype=bool)
    for fine, broad, relation in load_crosswalk("delicate@1", "delicate-coarse@1").rows:
        if fine in topics and relation in ("exact", "broader"):
            coarse[broad] = coarse.get(broad, nobody) | topics[fine]
    return {
        "topic": topics | {"no term": none},
        "coarse-topic": coarse | {"no term": none},
        "severity": group([term.severity for term in terms], dictionary.scale),
        "explicit": {"a term": ~none, "no term": none},
    }
