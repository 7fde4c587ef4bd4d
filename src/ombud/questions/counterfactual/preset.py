"""The counterfactual audit: what could people be shown, and what moves it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ombud.audits.plan import Plan
from ombud.audits.presets import Preset
from ombud.errors import PlanError
from ombud.probes import EDIT_KINDS, EditKind, SwapKind
from ombud.questions.counterfactual.analyses import PARTS, DistanceName, PartName
from ombud.registry import preset


class CounterfactualOptions(BaseModel):
    """What the preset can be asked for, under ``[options]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parts: tuple[PartName, ...] = Field(default=PARTS, min_length=1)
    k: int = Field(default=10, ge=1)
    users: int = Field(default=40, ge=2)
    targets: int = Field(default=100, ge=2)
    budget: int = Field(default=1, ge=0)
    beta: float = Field(default=0.0, ge=0)
    labels: tuple[str, ...] = ()
    most_labels: int = Field(default=4, ge=1)
    permitted: int = Field(default=0, ge=0)
    rate_labelled: bool = False
    unknown: Literal["no", "yes"] | None = None
    escape_budget: int = Field(default=3, ge=1)
    at_risk: int = Field(default=30, ge=1)
    looked_at: int = Field(default=300, ge=1)
    random: int = Field(default=10, ge=0)
    tries: int = Field(default=50, ge=1)
    values: Literal["ends", "all"] = "ends"
    realistic: int = Field(default=0, ge=0)
    kinds: tuple[EditKind, ...] = Field(default=EDIT_KINDS, min_length=1)
    editable: tuple[int | str, ...] = ()
    sets: tuple[str, ...] = ()
    retrained: int = Field(default=5, ge=0)
    retrained_users: int = Field(default=0, ge=0)
    moved: int = Field(default=20, ge=1)
    others: int = Field(default=1, ge=1)
    treatments: tuple[SwapKind, ...] = Field(default=("removed",), min_length=1)
    shortlist: int = Field(default=1, ge=0)
    random_treatments: int = Field(default=10, ge=0)
    noise_runs: int = Field(default=5, ge=0)
    distances: tuple[DistanceName, ...] = ()
    by_group: bool = False
    people: int = Field(default=3, ge=0)
    black_box: tuple[str, ...] = ()
    queries: int = Field(default=1000, ge=10)
    parallel: int = Field(default=1, ge=1)
    services: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    sandbox: bool = False


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

    Options
    -------
    parts
        ``reach``, ``escape``, ``drift-in``, ``diversity`` and ``stability``; escape and drift-in
        need labels.
    k, users, targets, budget, beta
        Length of lists; how many users and items reach is asked about; edits it permits; how
        sharply a random system draws (0 for a fixed list).
    labels, most_labels, permitted, rate_labelled, unknown
        Labels to escape from (default, the most frequent in lists), how many may stay in the list,
        whether edits may rate labelled items (which then leave the list as seen),
        and whether an unknown label counts as ``yes`` (``no`` is the older name of ``unlabeled =
        "no"`` under ``[data]``). An item either carries a label here or does not: unknown labels
        that the plan does not declare count as *no*, and the result says how many there are.
    escape_budget, at_risk, looked_at, random
        Edits that escape permits; how many users at risk are wanted, and how many users are looked
        at for them; random edits tried beside.
    tries
        Edits tried at each step towards a more diverse list.
    values, realistic, kinds, editable
        ``ends`` or ``all`` values of the scale; 0 for any item, else only what stands in so many
        places of the list; which of ``add``, ``change``, ``remove``; ids of the items whose entries
        may change (default, all).
    sets
        Labels and columns of the table of items (such as genres): sets of which any item counts.
    retrained, retrained_users
        How many witnesses of each kind are run again on a retrained model; how many users' reach
        is asked under *retrained*, where the model's training has a closed form.
    moved, others, treatments, shortlist, random_treatments, noise_runs, distances, by_group
        Of stability: users, other users who differ, how they do, trainings of each kind, how lists
        are compared, and whether each group of users is treated apart.
    people
        How many people the report has a page for.
    black_box, queries, parallel, services, sandbox
        Systems and services that are asked through their lists alone, how often, and how many
        questions at a time.
    """

    options: ClassVar[type[BaseModel]] = CounterfactualOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with metrics and the analysis filled in."""
        options = _options(plan)
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


def _options(plan: Plan) -> CounterfactualOptions:
    try:
        return CounterfactualOptions.model_validate(plan.options)
    except ValidationError as error:
        faults = [f"  - options.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        known = ", ".join(CounterfactualOptions.model_fields)
        head = f"preset 'counterfactual' (its options are {known}):"
        raise PlanError("\n".join([head, *faults])) from None
