"""Amplification@k and everything it is made of."""

from ombud.metrics.amplification.history import History, history_matrix, top_quartile
from ombud.metrics.amplification.metric import Amplification, UserAmplification
from ombud.metrics.amplification.options import Form, RatioOfMeans, Votes, Weighting
from ombud.metrics.amplification.tally import Smoothing, UnknownLabels

__all__ = [
    "Amplification",
    "Form",
    "History",
    "RatioOfMeans",
    "Smoothing",
    "UnknownLabels",
    "UserAmplification",
    "Votes",
    "Weighting",
    "history_matrix",
    "top_quartile",
]
