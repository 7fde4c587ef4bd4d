"""Display names: what readers see in place of the keys of systems, labels and groups.

A plan's ``[display]`` wins, then the titles of a taxonomy, then a guess from the key. Raw keys
appear in files and in the table of all numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ombud.audits.result import Result
from ombud.report.blocks import Name
from ombud.report.display import plural
from ombud.report.titles import Titles, titles_of

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
