"""What a person could be shown if data were different: edits, budgets, and what they attain."""

from ombud.probes.budget import BudgetSpentError, QueryBudget
from ombud.probes.edits import EDIT_KINDS, Edit, EditKind, Edits, EditSpace, History
from ombud.probes.recipe import (
    Bracket,
    Chance,
    Consistency,
    Fewest,
    Functional,
    Outcome,
    OutcomeOf,
    Policy,
    Recipe,
    TreatmentSpace,
    consistency,
)

__all__ = [
    "EDIT_KINDS",
    "Bracket",
    "BudgetSpentError",
    "Chance",
    "Consistency",
    "Edit",
    "EditKind",
    "EditSpace",
    "Edits",
    "Fewest",
    "Functional",
    "History",
    "Outcome",
    "OutcomeOf",
    "Policy",
    "QueryBudget",
    "Recipe",
    "TreatmentSpace",
    "consistency",
]
