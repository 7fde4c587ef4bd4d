"""The counterfactual audit: what could people be shown, and what moves it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset
from ombud.errors import PlanError
from ombud.probes.edits import EDIT_KINDS, EditKind
from ombud.probes.others import SwapKind
from ombud.registry import preset

DistanceName = Literal["jaccard", "rank-biased", "kendall", "first-item", "label-share"]
PartName = Literal["reach", "escape", "drift-in", "diversity", "stability"]
PARTS: tuple[PartName, ...] = ("reach", "escape", "drift-in", "diversity", "stability")
"""What can be asked."""


class CounterfactualOptions(Options):
    """What the counterfactual audit asks, and how much it may spend."""

    registered_name: ClassVar[str] = "preset 'counterfactual'"

    parts: tuple[PartName, ...] = Field(default=PARTS, min_length=1)
    """What to audit: ``reach``, ``escape``, ``drift-in``, ``diversity``, ``stability``. Escape and
    drift-in need labels."""
    k: int = Field(default=10, ge=1)
    """The length of the lists."""
    users: int = Field(default=100, ge=2)
    """The number of users whose reach is audited, sampled over all levels of activity."""
    targets: int = Field(default=50, ge=2)
    """The number of items that each of them may reach, sampled over all levels of popularity."""
    budget: int = Field(default=1, ge=0)
    """The number of edits of a user's own history that reach permits. With 1, every edit is
    tried."""
    drawing: Literal["softmax", "list", "first"] = "softmax"
    """How the probability of being recommended is defined: ``softmax``, the first item is drawn
    with probability proportional to exp(beta score); ``list``, the item is among the first `k`;
    ``first``, it is the first item."""
    beta: float = Field(default=0.0, ge=0)
    """The beta of the softmax; 0 for that of each system, at which the first `k` items have e^6
    times the odds of an average item."""
    frozen: bool = False
    """Whether reach is also reported with the model frozen, as deployed, for the same users and
    targets."""
    seeds: int = Field(default=10, ge=2)
    """The number of trainings, with as many seeds, over which a probability is averaged, for models
    whose training has a seed."""
    choosing_seeds: int = Field(default=3, ge=1)
    """The number of other seeds on which the best candidate is chosen."""
    candidates: int = Field(default=3, ge=1)
    """The number of edits that are trained for, for each user and target, where training has no
    closed form."""
    labels: tuple[str, ...] = ()
    """The labels to escape from; by default, those most frequent in the recorded lists."""
    most_labels: int = Field(default=4, ge=1)
    """The number of labels, where the plan names none."""
    permitted: int = Field(default=0, ge=0)
    """The number of labeled items that may stay in the list."""
    rate_labelled: bool = False
    """Whether edits may rate labeled items, which removes them from the list as seen."""
    unknown: Literal["no", "yes"] | None = None
    """Whether an unknown label counts as ``yes``; ``no`` is the older name of ``unlabeled = "no"``
    under ``[data]``. Where the plan declares nothing, escape and drift-in exclude, and count, users
    whose answer depends on unknown labels."""
    escape_budget: int = Field(default=3, ge=1)
    """The number of edits of a user's own history that escape and drift-in permit."""
    at_risk: int = Field(default=30, ge=1)
    """The number of users wanted whose lists contain the label (or do not, for drift-in)."""
    looked_at: int = Field(default=300, ge=1)
    """The largest number of users that are examined to find them, in random order."""
    random: int = Field(default=10, ge=0)
    """The number of random edits of the same size that are tried for comparison."""
    tries: int = Field(default=50, ge=1)
    """The number of edits tried at each step toward a more diverse list, for `moved` users and
    `escape_budget` edits."""
    values: Literal["ends", "all"] = "all"
    """The ratings an edit may give: ``all``, any of the scale; ``ends``, the lowest or the highest,
    which is a search."""
    realistic: int = Field(default=0, ge=0)
    """0 for edits of any item; otherwise users rate only items among the first so many positions
    of their list."""
    kinds: tuple[EditKind, ...] = Field(default=EDIT_KINDS, min_length=1)
    """The edits that are permitted: ``add``, ``change``, ``remove``."""
    editable: tuple[int | str, ...] = ()
    """The ids of the items whose entries may be edited; all by default."""
    sets: tuple[str, ...] = ()
    """Labels, and columns of the item table such as genres: each label, and each of the most
    frequent values of a column, is a set that counts as reached with any of its items."""
    retrained: int = Field(default=2, ge=0)
    """The number of edits found, of each kind, that are checked on a model retrained on the edited
    data."""
    retrained_users: int | None = Field(default=None, ge=0)
    """The number of users whose reach under retraining is audited: 0 for none; by default `users`,
    and 20 users and 10 targets where training has no closed form."""
    moved: int = Field(default=20, ge=1)
    """The number of users on whose lists stability is measured."""
    others: int = Field(default=1, ge=1)
    """The number of other users whose data changes."""
    treatments: tuple[SwapKind, ...] = Field(default=("removed", "entries"), min_length=1)
    """How the data of those users changes: ``removed``; ``entries``, one entry of each; and
    others."""
    passes: int = Field(default=0, ge=0)
    """0 to train every treatment from the start; otherwise factor models continue for so many
    passes, which is faster and another quantity."""
    stability_seeds: int = Field(default=1, ge=1)
    """The number of seeds over which the distances of stability are averaged."""
    shortlist: int = Field(default=1, ge=0)
    """The number of trainings for each user's most influential others."""
    random_treatments: int = Field(default=10, ge=0)
    """The number of trainings for others drawn at random."""
    noise_runs: int = Field(default=5, ge=0)
    """The number of trainings on unchanged data, to measure noise."""
    distances: tuple[DistanceName, ...] = ()
    """How lists are compared beside 1 - Jaccard, which leads: ``rank-biased``, ``kendall``,
    ``first-item``, ``label-share`` (for each label); with `beta`, distributions are compared
    too."""
    by_group: bool = False
    """Whether each group of users is changed separately, to show which group affects which."""
    people: int = Field(default=3, ge=0)
    """The number of users for whom the report has a page."""
    black_box: tuple[str, ...] = ()
    """Systems that are audited a second time through their lists alone."""
    queries: int = Field(default=1000, ge=10)
    """The number of queries that each of these systems and services may receive."""
    parallel: int = Field(default=1, ge=1)
    """The number of queries that may run at the same time."""
    services: Mapping[str, Mapping[str, Any]] = Field(default_factory=dict)
    """Services behind HTTP that answer a history with a list, by name, with the arguments of
    `ombud.probes.HttpHistorySystem`. ``fields`` of a service lists what edits may change beside
    ratings: by field, the current value and the values permitted."""
    sandbox: bool = False
    """Whether the services are test systems that may be sent edited histories."""

    @model_validator(mode="after")
    def _fit_together(self) -> CounterfactualOptions:
        if "label-share" in self.distances and not {"escape", "drift-in"} & set(self.parts):
            raise ValueError("distances has label-share, but no part asks about labels")
        return self


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
