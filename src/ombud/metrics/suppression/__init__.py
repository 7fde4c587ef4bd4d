"""Suppression: whose acceptable speech is flagged, and how much more than everyone's."""

from ombud.metrics.suppression.base import OUTSIDE, WHOLE
from ombud.metrics.suppression.pooled import PooledSuppression
from ombud.metrics.suppression.rates import FalsePositiveRate, UndecidedShare
from ombud.metrics.suppression.ratio import Suppression
from ombud.metrics.suppression.scores import MedianScore
from ombud.metrics.suppression.worst import WorstSuppression

__all__ = [
    "OUTSIDE",
    "WHOLE",
    "FalsePositiveRate",
    "MedianScore",
    "PooledSuppression",
    "Suppression",
    "UndecidedShare",
    "WorstSuppression",
]
