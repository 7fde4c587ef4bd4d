"""Display names: what readers see in place of the keys of systems, labels and groups.

A plan's ``[display]`` wins, then the titles of a taxonomy, then a guess from the key. Raw keys
appear in files and in the table of all numbers only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from ombud.audits.result import Result
from ombud.data.exclusions import Exclusion
from ombud.errors import OmbudError
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

_GENDERS = frozenset({"gender", "sex"})
_AGED = "people aged "
_FAMILIES = {"generative-ai": "generative-AI texts", "traditional": "traditional texts"}
_OF_TEXTS = {
    "topic": "texts about {}",
    "coarse-topic": "texts about {}",
    "explicit": "texts with {}",
    "length": "texts of {}",
    "language": "texts in {}",
    "source": "texts from {}",
    "set": "texts of {}",
    "severity": "texts with terms rated {}",
    "risk": "texts of risk {}",
}
"""What texts have in common, where it is not whom they mention."""

_STATEMENT = re.compile(r"^(Someone|An?|The) |\b(is|are|gets?)\b")
_KEY = re.compile(r"\b[a-z][a-z_]*=[\w+-]+")
_QUOTED = re.compile(r"'([^']+)'")
_RANGE = re.compile(r"^(\d+)\s*[-\u2013]\s*(\d+)$")


@dataclass(frozen=True)
class Names:
    """Words for keys."""

    # What the plan's ``[display]`` says, by key.
    systems: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, str] = field(default_factory=dict)
    # Words for other ids, those of taxonomies above all.
    label_titles: Mapping[str, str] = field(default_factory=dict)
    group_titles: Mapping[str, str] = field(default_factory=dict)
    unit: str = "user"  # What is sampled: ``user`` or ``text``

    @classmethod
    def of(cls, result: Result) -> Names:
        """Return the names of a result."""
        texts = any(e.unit in {"text", "cluster"} for e in result.estimates)
        own = result.plan.display
        words = _titles_of(result)
        return cls(own.systems, own.labels, own.groups, *words, unit="text" if texts else "user")

    def system(self, key: str) -> Name:
        """Return the name of a system."""
        return Name(self.systems.get(key, key))

    def label(self, key: str) -> Name:
        """Return the name of a label."""
        if not key:
            return Name("all texts" if self.unit == "text" else "all labels")
        if key in self.labels:
            return Name(self.labels[key])
        title = self.label_titles.get(key, key)
        return Name(title if title == key else _inside(title))

    def group(self, key: str) -> Name:
        """Return a group in a word or two, for tables and charts: "ages 18 to 24"."""
        if not key:
            return Name("all texts" if self.unit == "text" else "all users")
        if key in self.groups:
            return Name(self.groups[key])
        parts = [self._short(part) for part in key.split(" & ")]
        return Name(parts[0] if len(parts) == 1 else f"both {' and '.join(parts)}")

    def members(self, key: str) -> Name:
        """Return who is in a group, for sentences: "people aged 18 to 24"."""
        if not key:
            return self.group(key)
        if self.unit == "text":
            attribute, value = _value(self.group_titles.get(key, key))
            if attribute in _OF_TEXTS and key not in self.groups:
                own = value in _FAMILIES.values()
                return Name(value if own else _OF_TEXTS[attribute].format(value))
            return Name(f"texts mentioning {self.group(key).text}")
        if key in self.groups:
            return Name(self.groups[key])
        # "women aged 18 to 24": an age follows whom it is about.
        parts = sorted(map(self._members, key.split(" & ")), key=lambda m: m.startswith(_AGED))
        first, *rest = parts
        return Name(" ".join([first, *(_further(part) for part in rest)]))

    def in_words(self, text: str) -> str:
        """Return a title or a note with names in place of the keys of groups."""
        return _KEY.sub(lambda found: self.group(found[0]).text, text)

    def exclusion(self, e: Exclusion) -> Exclusion:
        """Return what was excluded where, with names in place of keys."""
        what, comma, label = e.where.removeprefix(f"{e.system}: ").partition(", ")
        of = f"{self.system(e.system)}: " if e.system else ""
        where = self.in_words(f"{of}{what}{comma}{self.label(label) if label else ''}")
        reason = _QUOTED.sub(lambda found: f"\u201c{self.label(found[1])}\u201d", e.reason)
        return replace(e, where=where, reason=self.in_words(reason))

    def attribute(self, key: str) -> str:
        """Return what a group is a value of: "age"."""
        return key.partition("=")[0] if "=" in key else ""

    def _short(self, key: str) -> str:
        if key in self.groups:
            return self.groups[key]
        if (title := self.group_titles.get(key, key)) != key and "=" not in title:
            return title
        attribute, value = _value(title)
        if attribute == "age":
            return f"ages {value}" if " to " in value else f"age {value}"
        return PEOPLE.get(value, value) if attribute in _GENDERS else value

    def _members(self, key: str) -> str:
        attribute, value = _value(key)
        if attribute == "age" and key not in self.groups:
            return f"{_AGED}{value}"
        if not attribute or key in self.groups or (attribute in _GENDERS and value in PEOPLE):
            return self._short(key)
        return f"users with {attribute.replace('_', ' ')} {value}"


def _further(members: str) -> str:
    if members.startswith(_AGED):
        return members.removeprefix("people ")
    own = members.removeprefix("users ")
    return f"{'and' if own != members else 'who are'} {own}"


def _inside(title: str) -> str:
    """Return a title of a taxonomy as it stands inside a sentence; a statement in quotes."""
    if _STATEMENT.search(title):
        return f"\u201c{title}\u201d"
    return title if title[1:2].isupper() or title[1:2] == "." else title[0].lower() + title[1:]


def _value(key: str) -> tuple[str, str]:
    attribute, _, value = key.rpartition("=")
    if found := _RANGE.match(value):
        value = f"{found[1]} to {found[2]}"
    elif value.endswith("+") and value[:-1].isdigit():
        value = f"{value[:-1]} and over"
    return attribute, value.replace("-", " ") if attribute == "severity" else value


def _titles_of(result: Result) -> tuple[dict[str, str], dict[str, str]]:
    """Return the words for the labels and groups of a result.

    The data's card says which taxonomy its labels are of; without that, it is the one that has
    them all. Groups are those of the taxonomy that has them all; of any other ``identity=NAME``
    the name is what a reader sees, and of ``topic=ID`` the topic has its title.
    """
    labels = frozenset(e.label for e in result.estimates if e.label)
    groups = frozenset(part for e in result.estimates for part in e.group.split(" & ") if part)
    told = result.card.facts.get("taxonomy")
    families = {label: kind for label, kind in _FAMILIES.items() if label in labels}
    known = _words(labels, told if isinstance(told, str) else "") or _genders(labels)
    # Analyses put names of their own there, such as the columns of a regression.
    named = {g: v for g in groups for k, v in _FAMILIES.items() if g == f"family: {k}"}
    named |= {g: g.removeprefix(_IDENTITY) for g in groups if g.startswith(_IDENTITY)}
    people = {k: v for k, v in _titles("identity@1").items() if k in groups}
    return families | known, named | _topics(groups) | people


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
    titles = {g: _FAMILIES.get(pair[1]) or value_title(*pair) for g, pair in parts.items()}
    return {g: f"{parts[g][0]}={_inside(t)}" for g, t in titles.items() if t != parts[g][1]}


def _genders(labels: frozenset[str]) -> dict[str, str]:
    """Return nouns where labels are the genders of creators: "women" for ``f``."""
    found = {label: PEOPLE[label.lower()] for label in labels if label.lower() in PEOPLE}
    return found if len(set(found.values())) > 1 else {}


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
