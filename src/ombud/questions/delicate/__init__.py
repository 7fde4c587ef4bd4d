"""Delicate text: which of it is found, which is missed, and what sways the finder."""

from ombud.questions.delicate.answer import delicate_answer
from ombud.questions.delicate.base_rates import BaseRates
from ombud.questions.delicate.bias import BiasTests
from ombud.questions.delicate.comparison import DetectorComparison
from ombud.questions.delicate.error_terms import ErrorTerms
from ombud.questions.delicate.metrics import Accuracy, F1Score, FlagShare, Precision, Recall
from ombud.questions.delicate.preset import DelicateOptions, DelicatePreset
from ombud.questions.delicate.repeats import DecisionStability
from ombud.questions.delicate.section import (
    bias_tests,
    detection,
    detection_base_rates,
    detection_errors,
    detection_groups,
    detection_ratings,
    detection_stability,
)
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
    "bias_tests",
    "delicate_answer",
    "detection",
    "detection_base_rates",
    "detection_errors",
    "detection_groups",
    "detection_ratings",
    "detection_stability",
]
