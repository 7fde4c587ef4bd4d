"""Metrics: what is measured on each user or text, and how one number is made of many."""

from ombud.metrics.amplification import Amplification, UserAmplification
from ombud.metrics.avoidance import AvoidLeak
from ombud.metrics.base import Metric, Outputs, Rows, spec_of
from ombud.metrics.calibration import Miscalibration
from ombud.metrics.engine import Settings, estimate_metric
from ombud.metrics.shares import HistoryShare, LabelShare, ShareGap, label_share

__all__ = [
    "Amplification",
    "AvoidLeak",
    "HistoryShare",
    "LabelShare",
    "Metric",
    "Miscalibration",
    "Outputs",
    "Rows",
    "Settings",
    "ShareGap",
    "UserAmplification",
    "estimate_metric",
    "label_share",
    "spec_of",
]
