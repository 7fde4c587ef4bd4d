"""How well systems predict what was held out, and how much of the catalogue they show."""

from ombud.metrics.accuracy.held_out import Judged, Relevance, judge
from ombud.metrics.accuracy.ranking import F1, MRR, NDCG, HitRate, Precision, Recall
from ombud.metrics.accuracy.ratings import MAE, RMSE

__all__ = [
    "F1",
    "MAE",
    "MRR",
    "NDCG",
    "RMSE",
    "HitRate",
    "Judged",
    "Precision",
    "Recall",
    "Relevance",
    "judge",
]
