"""Rerankers: what could be changed between a recommender and its users, and at what price."""

from ombud.systems.rerankers.avoid import AvoidList
from ombud.systems.rerankers.balance import BalancedReranker, CreatorReranker
from ombud.systems.rerankers.base import Reranker
from ombud.systems.rerankers.calibrate import CalibratedReranker
from ombud.systems.rerankers.second import NewCreators

__all__ = [
    "AvoidList",
    "BalancedReranker",
    "CalibratedReranker",
    "CreatorReranker",
    "NewCreators",
    "Reranker",
]
