"""What a person could be shown if data were different: edits, budgets, and what they attain."""

from ombud.probes.blackbox.http import HttpHistorySystem
from ombud.probes.blackbox.questions import QueryBudget
from ombud.probes.blackbox.reach import BlackBoxReachability
from ombud.probes.blackbox.systems import FunctionSystem
from ombud.probes.distances import Jaccard, Kendall, RankBiased
from ombud.probes.edits import Edit, EditSpace, History
from ombud.probes.escape import DriftIn, Escape
from ombud.probes.others import OtherUsers
from ombud.probes.reachability import Reachability
from ombud.probes.retraining import StabilityPlan
from ombud.probes.stability import Stability, stability
from ombud.probes.stability_estimates import stability_estimates
from ombud.probes.summaries import reach_summary
from ombud.probes.training import FunctionTrainer, ModelTrainer

__all__ = [
    "BlackBoxReachability",
    "DriftIn",
    "Edit",
    "EditSpace",
    "Escape",
    "FunctionSystem",
    "FunctionTrainer",
    "History",
    "HttpHistorySystem",
    "Jaccard",
    "Kendall",
    "ModelTrainer",
    "OtherUsers",
    "QueryBudget",
    "RankBiased",
    "Reachability",
    "Stability",
    "StabilityPlan",
    "reach_summary",
    "stability",
    "stability_estimates",
]
