"""What a simulated world is made of, before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ombud.errors import PlanError

PLACEHOLDER_IDENTITIES: Mapping[str, tuple[str, ...]] = {
    "beekeepers": ("beekeepers", "people who keep bees"),
    "highlanders": ("highlanders", "people from the highlands"),
    "islanders": ("islanders", "people from the islands"),
    "left-handed people": ("left-handed people", "left-handers"),
    "night workers": ("night workers", "people who work at night"),
    "twins": ("twins", "twin siblings"),
}
"""Identities that generated texts name: placeholders, and the terms for each."""


@dataclass(frozen=True)
class Amplification:
    """A planted effect: a label's share in lists is the history's share times a factor."""

    label: str  # The label, or an identity of creators
    # One factor for all users, or a factor for each group of users; users in none of the groups
    # keep 1, users in several get the product.
    amplify: float | Mapping[str, float]


@dataclass(frozen=True)
class WorldSpec:
    """The sizes of a world, and the effects planted in it.

    Parameters
    ----------
    name
        The world's name, part of every random stream.
    users, items
        How many there are.
    labels
        Names of the labels, kept in alphabetical order.
    depth
        The longest list a planted system gives.
    reserve
        How many items each user would also have met but did not: lists are drawn from them.
    mean_history
        The mean length of a history; lengths are long-tailed.
    min_history
        The shortest history.
    factors
        The dimensions of taste.
    creators
        How many creators there are.
    texts, templates
        How many texts there are, and how many templates they are made from.
    identities
        For each identity group that texts name, its terms.
    ratings
        Whether histories have ratings (0.5 to 5).
    amplifications
        The planted recommenders, by name.
    suppressions
        The planted moderators, by name: for each identity group a factor on the false-positive
        rate of texts that name it.
    misses
        Further planted moderators, by name: for each identity group a factor on the true-positive
        rate of texts that name it.
    """

    name: str
    users: int = 300
    items: int = 300
    labels: tuple[str, ...] = ("blood", "flashing lights", "loud noise", "spiders", "violence")
    depth: int = 20
    reserve: int = 50
    mean_history: float = 35.0
    min_history: int = 5
    factors: int = 6
    creators: int = 120
    texts: int = 600
    templates: int = 60
    identities: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: dict(PLACEHOLDER_IDENTITIES)
    )
    ratings: bool = False
    amplifications: Mapping[str, Amplification] = field(default_factory=dict)
    suppressions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    misses: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", tuple(sorted(self.labels)))
        faults = []
        for field_name in ("users", "items", "depth", "factors", "creators", "texts", "templates"):
            if getattr(self, field_name) < 1:
                faults.append(f"{field_name} is {getattr(self, field_name)}; at least 1 is needed")
        if len(set(self.labels)) != len(self.labels) or not self.labels:
            faults.append(f"labels are {self.labels}; at least one is needed, none twice")
        if not self.identities:
            faults.append("identities is empty; texts must name at least one group")
        if not 1 <= self.min_history <= self.mean_history:
            faults.append(f"min_history is {self.min_history}; 1 to mean_history is expected")
        if self.reserve < self.depth:
            faults.append(f"reserve is {self.reserve}, less than the lists' depth {self.depth}")
        if self.min_history + self.reserve > self.items:
            faults.append(
                f"{self.items} items cannot hold a history of {self.min_history} "
                f"and a reserve of {self.reserve}"
            )
        if faults:
            raise PlanError(f"world {self.name!r}: " + "; ".join(faults))
