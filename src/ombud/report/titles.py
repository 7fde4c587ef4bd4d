"""The words of a taxonomy for its ids: what a reader sees of labels and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ombud.audits.result import Result
from ombud.errors import OmbudError
from ombud.taxonomy import load_taxonomy, taxonomy_names

__all__ = ["Titles", "titles_of"]


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
    them all. Groups are those of the taxonomy that has them all.
    """
    labels = frozenset(e.label for e in result.estimates if e.label)
    groups = frozenset(part for e in result.estimates for part in e.group.split(" & ") if part)
    told = result.card.facts.get("taxonomy")
    return Titles(
        _words(labels, told if isinstance(told, str) else ""),
        # Analyses put names of their own there, such as the columns of a regression.
        {k: v for k, v in _groups().items() if k in groups},
    )


def _words(names: frozenset[str], told: str) -> dict[str, str]:
    if not names:
        return {}
    for key in (told,) if told else taxonomy_names():
        words = _titles(key)
        if told or names <= set(words):
            return {name: words[name] for name in names if name in words}
    return {}


@lru_cache(maxsize=32)
def _titles(key: str) -> dict[str, str]:
    try:
        taxonomy = load_taxonomy(key)
    except OmbudError:  # a taxonomy of the user's own, which this machine may not have
        return {}
    return {label.id: label.title for label in (*taxonomy.parents, *taxonomy.labels)}


def _groups() -> dict[str, str]:
    return _titles("identity@1")
