"""Rerankers: what could be changed between a recommender and its users, and at what price."""

from ombud.systems.rerankers.avoid import AvoidList, UnknownItems, avoid
from ombud.systems.rerankers.base import NeedsData, Reranker
from ombud.systems.rerankers.calibrate import CalibratedReranker, calibrate

__all__ = [
    "AvoidList",
    "CalibratedReranker",
    "NeedsData",
    "Reranker",
    "UnknownItems",
    "avoid",
    "calibrate",
]
