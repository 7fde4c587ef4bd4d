"""The counterfactual audit: what could people be shown, and what moves it?"""

from __future__ import annotations

from typing import Any, ClassVar

from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset
from ombud.errors import PlanError
from ombud.questions.counterfactual.analyses import CounterfactualOptions
from ombud.registry import preset


@preset("counterfactual")
class CounterfactualPreset(Preset):
    """Ask what people could be shown, how hard a label is to get away from, and who moves it.

    Reachability and stability of Akpinar, Leqi, Hadfield-Menell and Lipton, *Counterfactual
    Metrics for Auditing Black-Box Recommender Systems for Ethical Concerns*, with escape and
    drift-in beside them, on any interactions and any recommenders that ombud can train. It fills in
    what the plan leaves open:

    - **metrics**: the share of the catalogue that anybody is shown, observed; with labels, also
      the share of each label in lists.
    - **analyses**: ``counterfactual``, with the options below.
    """

    options: ClassVar[type[Options]] = CounterfactualOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with metrics and the analysis filled in."""
        options = CounterfactualOptions(**plan.options)
        if not plan.systems:
            raise PlanError("preset 'counterfactual': name the recommenders under [systems]")
        filled: dict[str, Any] = {}
        if options.unknown == "no":
            if plan.data.unlabeled == "unknown":
                raise PlanError(
                    "preset 'counterfactual': [data] unlabeled is 'unknown', and [options] "
                    "unknown, its older name, is 'no'; remove [options] unknown"
                )
            filled["data"] = plan.data.model_copy(update={"unlabeled": "no"})
        if not plan.metrics:
            asked: list[dict[str, Any]] = [{"name": "coverage", "k": options.k}]
            if {"escape", "drift-in"} & set(options.parts):
                asked.append({"name": "label-share", "k": options.k})
            filled["metrics"] = tuple(asked)
        if not plan.analyses:
            told = options.model_dump(mode="json", exclude_defaults=True)
            filled["analyses"] = ({"name": "counterfactual", **told},)
        if plan.title == type(plan).model_fields["title"].default:
            filled["title"] = "What could people be shown?"
        return plan.model_copy(update=filled)
