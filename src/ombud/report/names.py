"""Display names: what readers see in place of the keys of systems, labels and groups.

A plan's ``[display]`` wins, then the titles of a taxonomy, then a guess from the key. Raw keys
appear in files and in the table of all numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from ombud.audits.result import Result
from ombud.errors import OmbudError
from ombud.report.display import plural
from ombud.report.model import Name
from ombud.taxonomy import load_taxonomy, taxonomy_names

_IDENTITY = "identity="
_TAXONOMIES = {"topic": "delicate@1", "coarse-topic": "delicate-coarse@1"}
PEOPLE = {
    "woman": "women",
    "man": "men",
    "female": "women",
    "male": "men",
    "nonbinary": "nonbinary people",
    "f": "women",
    "m": "men",
}
"""Nouns for people, by the values of a column of genders."""

_RANGE = re.compile(r"^(\d+)\s*[-\u2013]\s*(\d+)$")


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


@dataclass(frozen=True)
class Names:
    """Words for keys.

    Parameters
    ----------
    systems, labels, groups
        What the plan's ``[display]`` says, by key.
    titles
        Titles of the taxonomy.
    unit
        What is sampled: ``user`` or ``text``.
    """

    systems: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    titles: Titles = field(default_factory=Titles)
    unit: str = "user"

    @classmethod
    def of(cls, result: Result) -> Names:
        """Return the names of a result."""
        texts = any(e.unit in {"text", "cluster"} for e in result.estimates)
        display = result.plan.display
        return cls(
            display.systems, display.labels, display.groups,
            titles=titles_of(result), unit="text" if texts else "user",
        )  # fmt: skip

    def system(self, key: str) -> Name:
        """Return the name of a system."""
        return Name(self.systems.get(key, key))

    def label(self, key: str) -> Name:
        """Return the name of a label."""
        if not key:
            return Name("all texts" if self.unit == "text" else "all labels")
        return Name(self.labels.get(key) or self.titles.label(key))

    def group(self, key: str) -> Name:
        """Return a group in a word or two, for tables and charts: "ages 18 to 24"."""
        if not key:
            return Name("all texts" if self.unit == "text" else "all users")
        return Name(self.groups.get(key) or " and ".join(self._short(k) for k in key.split(" & ")))

    def members(self, key: str) -> Name:
        """Return who is in a group, for sentences: "people aged 18 to 24"."""
        if not key:
            return self.group(key)
        if key in self.groups:
            about = "texts mentioning " if self.unit == "text" else ""
            return Name(f"{about}{self.groups[key]}")
        return Name(" and ".join(self._members(k) for k in key.split(" & ")))

    def attribute(self, key: str) -> str:
        """Return what a group is a value of: "age"."""
        return key.partition("=")[0] if "=" in key else ""

    def _short(self, key: str) -> str:
        if key in self.groups:
            return self.groups[key]
        if key.startswith("identity="):
            return key.removeprefix("identity=")
        if (title := self.titles.group(key)) != key and "=" not in title:
            return _noun(title)
        attribute, value = _value(self.titles.group(key))
        if attribute == "age":
            return f"ages {value}" if " to " in value else f"age {value}"
        return PEOPLE.get(value, value) if attribute in {"gender", "sex"} else value

    def _members(self, key: str) -> str:
        attribute, value = _value(key)
        if self.unit == "text":
            return f"texts mentioning {self._short(key)}"
        if attribute == "age":
            return f"people aged {value}"
        if attribute in {"gender", "sex"} and value in PEOPLE:
            return PEOPLE[value]
        if not attribute:
            return self._short(key)
        return f"{plural(self.unit)} with {attribute.replace('_', ' ')} {value}"


def _value(key: str) -> tuple[str, str]:
    attribute, _, value = key.rpartition("=")
    if found := _RANGE.match(value):
        value = f"{found[1]} to {found[2]}"
    elif value.endswith("+") and value[:-1].isdigit():
        value = f"{value[:-1]} and over"
    return attribute, value


_NOUNS = ("men", "women", "people", "disability", "religions", "s")


def _noun(title: str) -> str:
    """Return the title of an identity as a noun: "LGBT people"."""
    if title.lower().endswith(_NOUNS):
        known = title in {"Muslims", "Jews", "Christians"} or title[:2].isupper()
        return title if known else title[0].lower() + title[1:]
    shown = title.lower() if title in {"White", "Straight"} else title.replace("Non-", "non-")
    return f"{shown} people"


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
    return {label.id: label.title for label in (*taxonomy.parents, *taxonomy.labels)}


def _groups() -> dict[str, str]:
    return _titles("identity@1")
