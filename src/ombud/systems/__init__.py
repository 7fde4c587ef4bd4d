"""Recommenders and moderators, live or recorded."""

from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.labelling import labels_from_texts
from ombud.systems.own import OwnModerator, OwnRecommender
from ombud.systems.recorded import RecordedDecisions, RecordedRecommendations

__all__ = [
    "Moderator",
    "OwnModerator",
    "OwnRecommender",
    "Progress",
    "Recommender",
    "RecordedDecisions",
    "RecordedRecommendations",
    "labels_from_texts",
]
