"""Delicate text: how well it is detected, where detectors err, and how they compare."""

from ombud.questions.delicate.comparison import (
    comparison_estimates,
    paired_f1_estimate,
    stability_estimates,
)
from ombud.questions.delicate.detection import (
    Confusion,
    confusion,
    detection_estimates,
    group_estimates,
    precision_at_base_rate,
    precision_recall_curve,
)
from ombud.questions.delicate.errors import error_rates, standout_terms
from ombud.questions.delicate.recovery import recover_counts

__all__ = [
    "Confusion",
    "comparison_estimates",
    "confusion",
    "detection_estimates",
    "error_rates",
    "group_estimates",
    "paired_f1_estimate",
    "precision_at_base_rate",
    "precision_recall_curve",
    "recover_counts",
    "stability_estimates",
    "standout_terms",
]
