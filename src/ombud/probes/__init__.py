"""What a person could be shown if data were different: edits, budgets, and what they attain."""

from ombud.probes.budget import BudgetSpentError, QueryBudget
from ombud.probes.consistency import Consistency, consistency
from ombud.probes.edits import EDIT_KINDS, Edit, EditKind, Edits, EditSpace, History
from ombud.probes.recipe import (
    Bracket,
    Chance,
    Fewest,
    Functional,
    Outcome,
    OutcomeOf,
    Policy,
    Recipe,
    TreatmentSpace,
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
