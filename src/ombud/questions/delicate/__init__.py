"""Delicate text: which of it is found, which is missed, and what sways the finder."""

from ombud.questions.delicate.answer import delicate_answer
from ombud.questions.delicate.base_rates import BaseRates, precision_at_base_rate
from ombud.questions.delicate.bias import BiasTests
from ombud.questions.delicate.detection import Confusion, confusion, precision_recall_curve
from ombud.questions.delicate.error_terms import ErrorTerms, standout_terms
from ombud.questions.delicate.metrics import Accuracy, F1Score, FlagShare, Precision, Recall
from ombud.questions.delicate.preset import DelicateOptions, DelicatePreset
from ombud.questions.delicate.recovery import recover_counts
from ombud.questions.delicate.repeats import DecisionStability
from ombud.questions.delicate.section import (
    bias_tests,
    detection_base_rates,
    detection_comparison,
    detection_errors,
    detection_groups,
    detection_ratings,
    detection_stability,
)
from ombud.questions.delicate.side_by_side import DetectorComparison
from ombud.questions.delicate.three_labels import RatingLabels

__all__ = [
    "Accuracy",
    "BaseRates",
    "BiasTests",
    "Confusion",
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
    "confusion",
    "delicate_answer",
    "detection_base_rates",
    "detection_comparison",
    "detection_errors",
    "detection_groups",
    "detection_ratings",
    "detection_stability",
    "precision_at_base_rate",
    "precision_recall_curve",
    "recover_counts",
    "standout_terms",
]
