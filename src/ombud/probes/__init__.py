"""What a person could be shown if data were different: edits, budgets, and what they attain."""

from ombud.probes.budget import BudgetSpentError, QueryBudget
from ombud.probes.consistency import Consistency, consistency
from ombud.probes.distances import (
    FirstItem,
    Jaccard,
    Kendall,
    LabelShare,
    ListDistance,
    RankBiased,
    check_distance,
    distance_of,
)
from ombud.probes.edits import EDIT_KINDS, Edit, EditKind, Edits, EditSpace, History
from ombud.probes.others import SWAP_KINDS, OtherUsers, SwapKind, UserSwap, swapped
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
    "SWAP_KINDS",
    "Bracket",
    "BudgetSpentError",
    "Chance",
    "Consistency",
    "Edit",
    "EditKind",
    "EditSpace",
    "Edits",
    "Fewest",
    "FirstItem",
    "Functional",
    "History",
    "Jaccard",
    "Kendall",
    "LabelShare",
    "ListDistance",
    "OtherUsers",
    "Outcome",
    "OutcomeOf",
    "Policy",
    "QueryBudget",
    "RankBiased",
    "Recipe",
    "SwapKind",
    "TreatmentSpace",
    "UserSwap",
    "check_distance",
    "consistency",
    "distance_of",
    "swapped",
]
