"""Recommenders that others run: a function, an HTTP service, models of other libraries.

A file of past recommendations is `ombud.systems.recorded.RecordedRecommendations`.
"""

from ombud.systems.recommenders.adapters.http import HttpRecommender
from ombud.systems.recommenders.adapters.peers import (
    ImplicitRecommender,
    LensKitRecommender,
    SurpriseRecommender,
)
from ombud.systems.recommenders.adapters.spark import SparkALS

__all__ = [
    "HttpRecommender",
    "ImplicitRecommender",
    "LensKitRecommender",
    "SparkALS",
    "SurpriseRecommender",
]
