"""Remedies: what could be changed between a recommender and its users, and at what price."""

from ombud.interventions.avoid import AvoidList, UnknownItems, avoid
from ombud.interventions.base import NeedsData, Remedy
from ombud.interventions.calibrate import CalibratedReranker, calibrate

__all__ = [
    "AvoidList",
    "CalibratedReranker",
    "NeedsData",
    "Remedy",
    "UnknownItems",
    "avoid",
    "calibrate",
]
