"""Amplification@k and everything it is made of."""

from ombud.questions.warnings.amplification.metric import Amplification, UserAmplification
from ombud.questions.warnings.amplification.options import Form, RatioOfMeans, Votes
from ombud.questions.warnings.amplification.tally import Smoothing, UnknownLabels

__all__ = [
    "Amplification",
    "Form",
    "RatioOfMeans",
    "Smoothing",
    "UnknownLabels",
    "UserAmplification",
    "Votes",
]
