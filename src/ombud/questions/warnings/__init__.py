"""Warnings: do recommenders show more sensitive content than people's own histories hold?"""

from ombud.questions.warnings.again import AccuracyOfEveryone, SecondTraining
from ombud.questions.warnings.amplification import Amplification, UserAmplification
from ombud.questions.warnings.avoidance import AvoidLeak
from ombud.questions.warnings.distribution import Distribution
from ombud.questions.warnings.popularity import PopularityShift
from ombud.questions.warnings.preference import UserPreference
from ombud.questions.warnings.preset import WarningsOptions, WarningsPreset
from ombud.questions.warnings.report import warnings
from ombud.questions.warnings.section import (
    warnings_accuracy,
    warnings_amplification,
    warnings_label_counts,
    warnings_labels,
    warnings_remedies,
)

__all__ = [
    "AccuracyOfEveryone",
    "Amplification",
    "AvoidLeak",
    "Distribution",
    "PopularityShift",
    "SecondTraining",
    "UserAmplification",
    "UserPreference",
    "WarningsOptions",
    "WarningsPreset",
    "warnings",
    "warnings_accuracy",
    "warnings_amplification",
    "warnings_label_counts",
    "warnings_labels",
    "warnings_remedies",
]
