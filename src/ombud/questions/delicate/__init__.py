"""Delicate text: which of it is found, which is missed, and what sways the finder."""

from ombud.questions.delicate.base_rates import BaseRates
from ombud.questions.delicate.bias import BiasTests
from ombud.questions.delicate.comparison import DetectorComparison
from ombud.questions.delicate.error_terms import ErrorTerms
from ombud.questions.delicate.metrics import Accuracy, F1Score, FlagShare, Precision, Recall
from ombud.questions.delicate.preset import DelicateOptions, DelicatePreset
from ombud.questions.delicate.repeats import DecisionStability
from ombud.questions.delicate.three_labels import RatingLabels

__all__ = [
    "Accuracy",
    "BaseRates",
    "BiasTests",
    "DecisionStability",
    "DelicateOptions",
    "DelicatePreset",
    "DetectorComparison",
    "ErrorTerms",
    "F1Score",
    "FlagShare",
    "Precision",
    "RatingLabels",
    "Recall",
]
