"""Delicate text: which of it is found, which is missed, and what sways the finder."""

from ombud.questions.delicate.base_rates import BaseRates, precision_at_base_rate
from ombud.questions.delicate.bias import BiasTests
from ombud.questions.delicate.detection import Confusion, confusion, precision_recall_curve
from ombud.questions.delicate.error_terms import ErrorTerms, standout_terms
from ombud.questions.delicate.head_comparison import HeadComparison
from ombud.questions.delicate.long_texts import LongTexts
from ombud.questions.delicate.metrics import Accuracy, F1Score, FlagShare, Precision, Recall
from ombud.questions.delicate.notions import LabelCrossTable, read_notions
from ombud.questions.delicate.preset import DelicateOptions, DelicatePreset
from ombud.questions.delicate.published import (
    PublishedFigures,
    PublishedRow,
    published_transfer,
    recover_counts,
)
from ombud.questions.delicate.repeats import DecisionStability
from ombud.questions.delicate.report import delicate
from ombud.questions.delicate.seen_texts import SeenTexts
from ombud.questions.delicate.side_by_side import DetectorComparison
from ombud.questions.delicate.three_labels import RatingLabels, class_agreement

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
    "HeadComparison",
    "LabelCrossTable",
    "LongTexts",
    "Precision",
    "PublishedFigures",
    "PublishedRow",
    "RatingLabels",
    "Recall",
    "SeenTexts",
    "class_agreement",
    "confusion",
    "delicate",
    "precision_at_base_rate",
    "precision_recall_curve",
    "published_transfer",
    "read_notions",
    "recover_counts",
    "standout_terms",
]
