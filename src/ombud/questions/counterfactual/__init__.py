"""Counterfactual: what people could be shown if they, or other people's data, were different."""

from ombud.questions.counterfactual.analyses import Counterfactual
from ombud.questions.counterfactual.preset import CounterfactualOptions, CounterfactualPreset

__all__ = [
    "Counterfactual",
    "CounterfactualOptions",
    "CounterfactualPreset",
]
