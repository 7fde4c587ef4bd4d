"""Which metrics a special section shows, so that the general pictures need not repeat them."""

from __future__ import annotations

from collections.abc import Callable

from ombud.audits.result import Result

__all__ = ["drawn_elsewhere", "draws"]

Claim = Callable[[Result], frozenset[str]]

_claims: list[Claim] = []


def draws(claim: Claim) -> Claim:
    """Register a function that returns the titles of the metrics which its section shows."""
    _claims.append(claim)
    return claim


def drawn_elsewhere(result: Result) -> frozenset[str]:
    """Return the titles of all metrics of a result that special sections show."""
    return frozenset().union(*(claim(result) for claim in _claims))
