"""The words of a taxonomy for its ids: what a reader sees of labels and groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import polars as pl

from ombud.audits.result import Result
from ombud.errors import OmbudError
from ombud.stats.estimate import Estimate
from ombud.taxonomy import load_taxonomy, taxonomy_names

_IDENTITY = "identity="
_TAXONOMIES = {"topic": "delicate@1", "coarse-topic": "delicate-coarse@1"}


@dataclass(frozen=True)
class Titles:
    """Words for ids; what is in no taxonomy keeps its name.

    Parameters
    ----------
    labels, groups
        Titles by id.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)

    def label(self, name: str) -> str:
        """Return the title of a label."""
        return self.labels.get(name, name)

    def group(self, name: str) -> str:
        """Return the title of a group; of an intersection, that of each part."""
        if name in self.groups:
            return self.groups[name]
        parts = name.split(" & ")
        known = len(parts) > 1 and all(part in self.groups for part in parts)
        return " and ".join(self.groups[part] for part in parts) if known else name


def titles_of(result: Result) -> Titles:
    """Return the words for the labels and groups of a result.

    The data's card says which taxonomy its labels are of; without that, it is the one that has
    them all. Groups are those of the taxonomy that has them all; of any other ``identity=NAME``
    the name is what a reader sees, and of ``topic=ID`` the topic has its title.
    """
    labels = frozenset(e.label for e in result.estimates if e.label)
    groups = frozenset(part for e in result.estimates for part in e.group.split(" & ") if part)
    told = result.card.facts.get("taxonomy")
    return Titles(
        _words(labels, told if isinstance(told, str) else ""),
        # Analyses put names of their own there, such as the columns of a regression.
        {g: g.removeprefix(_IDENTITY) for g in groups if g.startswith(_IDENTITY)}
        | _topics(groups)
        | {k: v for k, v in _groups().items() if k in groups},
    )


def value_title(attribute: str, value: str) -> str:
    """Return the title of what a group has of an attribute; the value itself in no taxonomy.

    Examples
    --------
    >>> value_title("topic", "race-ethnicity-origin"), value_title("length", "up to 50 words")
    ('Race, ethnicity, and origin', 'up to 50 words')
    """
    key = _TAXONOMIES.get(attribute)
    return _titles(key).get(value, value) if key else value


def _topics(groups: frozenset[str]) -> dict[str, str]:
    parts = {g: g.partition("=")[::2] for g in groups}
    titles = {g: value_title(*pair) for g, pair in parts.items()}
    return {g: f"{parts[g][0]}={t}" for g, t in titles.items() if t != parts[g][1]}


def in_words(result: Result) -> Result:
    """Return a result whose labels and groups have the words of their taxonomy for names.

    Two ids of the same title keep their ids behind it. Plan, card and provenance stay.
    """
    titles = titles_of(result)
    if not titles.labels and not titles.groups:
        return result
    labels, groups = _distinct(titles.labels), _distinct(titles.groups)
    words = Titles(labels, groups)

    def renamed(e: Estimate) -> Estimate:
        return e.replace(
            label=words.label(e.label), group=words.group(e.group), details=_inside(e, words)
        )

    return replace(
        result,
        estimates=tuple(
            renamed(e) if e.label or e.group or e.details else e for e in result.estimates
        ),  # fmt: skip
        tables={name: _table(table, words) for name, table in result.tables.items()},
    )


def _distinct(titles: Mapping[str, str]) -> dict[str, str]:
    shared = {t for t, n in Counter(titles.values()).items() if n > 1}
    return {k: f"{t} ({k})" if t in shared else t for k, t in titles.items()}


def _inside(e: Estimate, words: Titles) -> Mapping[str, Any]:
    """Return the details of an estimate; a group or a label that they name is put in words."""
    named = {"group": words.group, "label": words.label}
    said = {k: f(e.details[k]) for k, f in named.items() if isinstance(e.details.get(k), str)}
    return {**e.details, **said} if said else e.details


def _table(table: pl.DataFrame, words: Titles) -> pl.DataFrame:
    for column, mapping in (("label", words.labels), ("group", words.groups)):
        if column in table.columns and table.schema[column] == pl.String and mapping:
            table = table.with_columns(pl.col(column).replace(mapping))
    return table


def _words(names: frozenset[str], told: str) -> dict[str, str]:
    if not names:
        return {}
    found = [_titles(key) for key in ((told,) if told else taxonomy_names())]
    holding = [words for words in found if told or names <= set(words)]
    if not holding:
        return {}
    # Where several taxonomies have the ids, only what they call alike is certain.
    first = holding[0]
    return {n: first[n] for n in names if n in first and len({w[n] for w in holding}) == 1}


@lru_cache(maxsize=32)
def _titles(key: str) -> dict[str, str]:
    try:
        taxonomy = load_taxonomy(key)
    except OmbudError:  # a taxonomy of the user's own, which this machine may not have
        return {}
    every = (*taxonomy.parents, *taxonomy.labels)
    return {label.id: label.noun or label.title for label in every}


def _groups() -> dict[str, str]:
    return _titles("identity@1")
