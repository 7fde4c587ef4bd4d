"""Suppression: whose acceptable speech is flagged, and how much more than everyone's."""

from ombud.questions.suppression.drift import Drift
from ombud.questions.suppression.instability import DecisionInstability
from ombud.questions.suppression.largest import WorstSuppression
from ombud.questions.suppression.migration import Migration
from ombud.questions.suppression.pooled import PooledSuppression
from ombud.questions.suppression.preset import SuppressionOptions, SuppressionPreset
from ombud.questions.suppression.ratio import Suppression
from ombud.questions.suppression.regression import FlagRegression, ScoreRegression
from ombud.questions.suppression.report import suppression
from ombud.questions.suppression.score_spread import ScoreSpread
from ombud.questions.suppression.set_sizes import SetSizes
from ombud.questions.suppression.tag_counts import TagCounts
from ombud.questions.suppression.tag_validation import TagValidation

__all__ = [
    "DecisionInstability",
    "Drift",
    "FlagRegression",
    "Migration",
    "PooledSuppression",
    "ScoreRegression",
    "ScoreSpread",
    "SetSizes",
    "Suppression",
    "SuppressionOptions",
    "SuppressionPreset",
    "TagCounts",
    "TagValidation",
    "WorstSuppression",
    "suppression",
]
