"""Systems of which only the answers are known."""

from ombud.probes.blackbox.http import HttpHistorySystem
from ombud.probes.blackbox.questions import Questions
from ombud.probes.blackbox.reach import BlackBoxReach, BlackBoxReachability, same_answers
from ombud.probes.blackbox.systems import (
    AskedModel,
    Fields,
    FieldSystem,
    FunctionSystem,
    HistorySystem,
)

__all__ = [
    "AskedModel",
    "BlackBoxReach",
    "BlackBoxReachability",
    "FieldSystem",
    "Fields",
    "FunctionSystem",
    "HistorySystem",
    "HttpHistorySystem",
    "Questions",
    "same_answers",
]
