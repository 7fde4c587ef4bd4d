"""Analyses: of the data alone, or of the data and what systems answered."""

from ombud.audits.analyses.base import Analysed, Analysis
from ombud.audits.analyses.distribution import Distribution
from ombud.audits.analyses.drift import Drift
from ombud.audits.analyses.outputs import OutputAnalysis, run_analysis
from ombud.audits.analyses.popularity import PopularityShift, popularity_of, shift_bounds
from ombud.audits.analyses.preference import UserPreference, two_sides
from ombud.audits.analyses.regression import FlagRegression, ScoreRegression
from ombud.audits.analyses.score_spread import ScoreSpread
from ombud.audits.analyses.tag_counts import TagCounts

__all__ = [
    "Analysed",
    "Analysis",
    "Distribution",
    "Drift",
    "FlagRegression",
    "OutputAnalysis",
    "PopularityShift",
    "ScoreRegression",
    "ScoreSpread",
    "TagCounts",
    "UserPreference",
    "popularity_of",
    "run_analysis",
    "shift_bounds",
    "two_sides",
]
