"""Analyses of the data alone, before any system is asked."""

from ombud.audits.analyses.base import Analysed, Analysis
from ombud.audits.analyses.distribution import Distribution
from ombud.audits.analyses.popularity import PopularityShift, popularity_of, shift_bounds
from ombud.audits.analyses.preference import UserPreference, two_sides

__all__ = [
    "Analysed",
    "Analysis",
    "Distribution",
    "PopularityShift",
    "UserPreference",
    "popularity_of",
    "shift_bounds",
    "two_sides",
]
