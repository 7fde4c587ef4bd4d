"""Counterfactual: what people could be shown if they, or other people's data, were different."""

from ombud.questions.counterfactual.analyses import Counterfactual, CounterfactualOptions
from ombud.questions.counterfactual.person import counterfactual_people, counterfactual_person
from ombud.questions.counterfactual.preset import CounterfactualPreset
from ombud.questions.counterfactual.report import counterfactual_question
from ombud.questions.counterfactual.section import (
    counterfactual,
    counterfactual_cost,
    counterfactual_reach,
    counterfactual_stability,
    counterfactual_ways,
)

__all__ = [
    "Counterfactual",
    "CounterfactualOptions",
    "CounterfactualPreset",
    "counterfactual",
    "counterfactual_cost",
    "counterfactual_people",
    "counterfactual_person",
    "counterfactual_question",
    "counterfactual_reach",
    "counterfactual_stability",
    "counterfactual_ways",
]
