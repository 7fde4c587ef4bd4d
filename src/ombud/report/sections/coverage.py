"""What special sections show or answer, so that the general ones need not repeat it."""

from __future__ import annotations

from collections.abc import Callable

from ombud.audits.result import Result
from ombud.report.findings import EstimateSet, families

__all__ = [
    "answered_elsewhere",
    "answers",
    "drawn_elsewhere",
    "draws",
    "left_to_general",
    "withheld",
    "withholds",
]

Claim = Callable[[Result], frozenset[str]]
Says = Callable[[Result], bool]

_claims: list[Claim] = []
_withheld: list[Claim] = []
_answers: list[Says] = []


def draws(claim: Claim) -> Claim:
    """Register a function that returns the titles of the metrics which its section shows.

    Groups compared by these metrics are still told by the general sections.
    """
    _claims.append(claim)
    return claim


def withholds(claim: Claim) -> Claim:
    """Register a function that returns the titles of metrics which are no answer to anything.

    The general answer and pictures leave them out, groups too; the numbers have them all the same.
    """
    _withheld.append(claim)
    return claim


def answers(says: Says) -> Says:
    """Register a function that tells whether its section answers the question of a result."""
    _answers.append(says)
    return says


def drawn_elsewhere(result: Result) -> frozenset[str]:
    """Return the titles of all metrics of a result that special sections show."""
    return frozenset().union(*(claim(result) for claim in _claims))


def withheld(result: Result) -> frozenset[str]:
    """Return the titles of all metrics that the general answer and pictures leave out."""
    return frozenset().union(*(claim(result) for claim in _withheld))


def answered_elsewhere(result: Result) -> bool:
    """Return whether a special section answers the question of a result."""
    return any(says(result) for says in _answers)


def left_to_general(result: Result) -> list[EstimateSet]:
    """Return the families of estimates that the general answer and pictures are about."""
    elsewhere, out = drawn_elsewhere(result), withheld(result)
    return [
        family
        for family in families(result)
        if family.metric.title not in out
        and (
            family.metric.title not in elsewhere
            or (family.kind in {"group", "group contrast"} and any(family.systems))
        )
    ]
