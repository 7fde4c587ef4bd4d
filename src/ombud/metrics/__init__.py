"""Metrics: what is measured on each user or text, and how one number is made of many.

Metrics that answer one question only stand in its folder of `ombud.questions`; every registered
metric whose class has a name of its own, those of plugins too, can be imported from here by it.
"""

from typing import Any

from ombud import registry
from ombud.metrics.accuracy.held_out import Relevance
from ombud.metrics.accuracy.ranking import F1, MRR, NDCG, HitRate, Precision, Recall
from ombud.metrics.accuracy.ratings import MAE, RMSE
from ombud.metrics.base import Metric, Outputs, Rows, spec_of
from ombud.metrics.calibration import Miscalibration
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.exposure import Coverage, DistinctShare, Gini
from ombud.metrics.rates import FalsePositiveRate, MedianScore, UndecidedShare
from ombud.metrics.shares import HistoryShare, LabelShare, ShareGap

__all__ = [
    "F1",
    "MAE",
    "MRR",
    "NDCG",
    "RMSE",
    "Coverage",
    "DistinctShare",
    "FalsePositiveRate",
    "Gini",
    "HistoryShare",
    "HitRate",
    "LabelShare",
    "MedianScore",
    "Metric",
    "Miscalibration",
    "Outputs",
    "Precision",
    "Recall",
    "Relevance",
    "Rows",
    "Settings",
    "ShareGap",
    "UndecidedShare",
    "estimate_metric",
    "spec_of",
]


def __getattr__(name: str) -> Any:
    """Return a metric that is registered elsewhere, such as `Suppression`."""
    known = () if name.startswith("_") else registry.names("metric")
    found = [made for one in known if (made := registry.get("metric", one)).__name__ == name]
    if len(found) == 1:
        return found[0]
    where = " and ".join(made.__module__ for made in found)
    fault = f"; {where} have one each" if found else ""
    raise AttributeError(f"module 'ombud.metrics' has no attribute {name!r}{fault}")


def __dir__() -> list[str]:
    """Return what stands here and every other registered metric."""
    known = [registry.get("metric", name).__name__ for name in registry.names("metric")]
    return sorted({*__all__, *(name for name in known if known.count(name) == 1)})
