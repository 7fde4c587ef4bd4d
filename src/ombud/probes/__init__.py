"""What a person could be shown if data were different: edits, budgets, and what they attain."""

from ombud.probes.attainable import Attainable, intra_list_diversity
from ombud.probes.blackbox import (
    AskedModel,
    BlackBoxReachability,
    Fields,
    FieldSystem,
    FunctionSystem,
    HistorySystem,
    HttpHistorySystem,
    Questions,
)
from ombud.probes.blackbox.questions import BudgetSpentError, QueryBudget
from ombud.probes.categories import over_categorisation, reach_groups
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
from ombud.probes.escape import DriftIn, Escape
from ombud.probes.influence import Influence, Prediction, influence_of, predict
from ombud.probes.noise_floor import NoiseFloor, expected_maximum
from ombud.probes.others import SWAP_KINDS, OtherUsers, SwapKind, UserSwap, swapped
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
from ombud.probes.retraining import StabilityPlan
from ombud.probes.sampling import StratifiedSample, quantile_groups, stratified_sample
from ombud.probes.stability import Stability, StabilityResult, stability
from ombud.probes.stability_estimates import stability_estimates
from ombud.probes.summaries import ReachTable, attainable_summary, reach_summary
from ombud.probes.training import (
    ExpectedChange,
    FunctionTrainer,
    ListChange,
    ModelTrainer,
    ProbabilityChange,
    Trainer,
)

__all__ = [
    "EDIT_KINDS",
    "SWAP_KINDS",
    "AskedModel",
    "Attainable",
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
    "ExpectedChange",
    "Fewest",
    "FieldSystem",
    "Fields",
    "FirstItem",
    "FunctionSystem",
    "FunctionTrainer",
    "Functional",
    "History",
    "HistorySystem",
    "HttpHistorySystem",
    "Influence",
    "Jaccard",
    "Kendall",
    "LabelShare",
    "ListChange",
    "ListDistance",
    "ModelTrainer",
    "NoiseFloor",
    "OtherUsers",
    "Outcome",
    "OutcomeOf",
    "Policy",
    "Prediction",
    "ProbabilityChange",
    "QueryBudget",
    "Questions",
    "RankBiased",
    "Reach",
    "ReachTable",
    "Reachability",
    "Recipe",
    "Stability",
    "StabilityPlan",
    "StabilityResult",
    "StratifiedSample",
    "SwapKind",
    "Trainer",
    "TreatmentSpace",
    "UserSwap",
    "attainable_summary",
    "check_distance",
    "consistency",
    "distance_of",
    "expected_maximum",
    "influence_of",
    "intra_list_diversity",
    "over_categorisation",
    "predict",
    "quantile_groups",
    "reach_groups",
    "reach_summary",
    "stability",
    "stability_estimates",
    "stratified_sample",
    "swapped",
]
