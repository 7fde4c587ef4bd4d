"""What a person could be shown if data were different: edits, budgets, and what they attain."""

from ombud.probes.blackbox import (
    AskedModel,
    BlackBoxReachability,
    FunctionSystem,
    HistorySystem,
    HttpHistorySystem,
    Questions,
)
from ombud.probes.budget import BudgetSpentError, QueryBudget
from ombud.probes.consistency import Consistency, consistency
from ombud.probes.edits import EDIT_KINDS, Edit, EditKind, Edits, EditSpace, History
from ombud.probes.escape import DriftIn, Escape
from ombud.probes.reachability import Reach, Reachability
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
    "AskedModel",
    "BlackBoxReachability",
    "Bracket",
    "BudgetSpentError",
    "Chance",
    "Consistency",
    "DriftIn",
    "Edit",
    "EditKind",
    "EditSpace",
    "Edits",
    "Escape",
    "Fewest",
    "FunctionSystem",
    "Functional",
    "History",
    "HistorySystem",
    "HttpHistorySystem",
    "Outcome",
    "OutcomeOf",
    "Policy",
    "QueryBudget",
    "Questions",
    "Reach",
    "Reachability",
    "Recipe",
    "TreatmentSpace",
    "consistency",
]
