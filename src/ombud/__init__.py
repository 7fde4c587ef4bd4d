"""ombud audits the systems that decide what people see and what people may say.

    Audit(data, systems, metrics, by=groups).run() -> Result -> Report

Names are imported when they are first used, so that `ombud.stats` needs numpy and scipy alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ombud.audits import Audit as Audit
    from ombud.audits import Plan as Plan
    from ombud.audits import Result as Result
    from ombud.audits.quick import audit as audit
    from ombud.audits.verify import verify as verify
    from ombud.data import Card as Card
    from ombud.data import Dataset as Dataset
    from ombud.data import Decisions as Decisions
    from ombud.data import Grouping as Grouping
    from ombud.data import Interactions as Interactions
    from ombud.data import Labels as Labels
    from ombud.data import Recommendations as Recommendations
    from ombud.data import Texts as Texts
    from ombud.errors import OmbudError as OmbudError
    from ombud.metrics import Metric as Metric
    from ombud.report import Report as Report
    from ombud.stats import Estimate as Estimate
    from ombud.systems import Moderator as Moderator
    from ombud.systems import Recommender as Recommender
    from ombud.systems import RecordedDecisions as RecordedDecisions
    from ombud.systems import RecordedRecommendations as RecordedRecommendations
    from ombud.taxonomy import Taxonomy as Taxonomy

_HOMES = {
    "Audit": "audits",
    "audit": "audits.quick",
    "Card": "data",
    "Dataset": "data",
    "Decisions": "data",
    "Estimate": "stats",
    "Grouping": "data",
    "Interactions": "data",
    "Labels": "data",
    "Metric": "metrics",
    "Moderator": "systems",
    "OmbudError": "errors",
    "Plan": "audits",
    "Recommendations": "data",
    "Recommender": "systems",
    "RecordedDecisions": "systems",
    "RecordedRecommendations": "systems",
    "Report": "report",
    "Result": "audits",
    "Taxonomy": "taxonomy",
    "Texts": "data",
    "verify": "audits",
}

__version__ = "0.1.0.dev0"
__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ombud' has no attribute {name!r}")
    return getattr(import_module(f"ombud.{home}"), name)


def __dir__() -> list[str]:
    return __all__
