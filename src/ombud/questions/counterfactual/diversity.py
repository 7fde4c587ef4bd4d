"""Diversity of lists beside what edits, and a broad history, could attain."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ombud.metrics.engine.estimator import Settings
from ombud.probes.attainable import Attainable, ListMetric, intra_list_diversity
from ombud.probes.edits import History
from ombud.probes.outcomes import FrozenOutcome
from ombud.probes.summaries import attainable_summary
from ombud.questions.counterfactual.kept import Kept
from ombud.questions.counterfactual.part import Part
from ombud.questions.counterfactual.sample import Asked
from ombud.rng import generator
from ombud.systems.recommenders.model import Model

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from ombud.questions.counterfactual.analyses import Counterfactual


_COMPARED = 30


def diversity_of(
    plan: Counterfactual, name: str, model: Model, asked: Asked, settings: Settings, kept: Kept
) -> Part:
    """Return the diversity of lists beside what edits, and a broad history, could attain."""
    part = Part()
    metric = intra_list_diversity(asked.interactions)
    probe = Attainable(k=plan.k, tries=plan.tries, seed=settings.seed)
    rows = asked.order[: plan.moved]
    observed, attained, broad = (np.full(len(rows), np.nan) for _ in range(3))
    questions = 0

    def of_user(row: int) -> tuple[float, float, float, int]:
        found = probe.of(model, asked.space(row, plan.escape_budget), metric, own=row)
        other = _broad(asked, row, metric, settings.seed)
        if other < 0:
            return found.today, found.attained, float("nan"), found.queries
        history = History.of_user(asked.interactions, other)
        (shown,) = FrozenOutcome(model, history, plan.k, own=other).of([history])
        wide = metric(shown.items[shown.items >= 0])
        return found.today, found.attained, wide, found.queries + 1

    for place, row in enumerate(rows.tolist()):
        told = kept(("user", row), partial(of_user, row))
        observed[place], attained[place], broad[place] = told[:3]
        questions += told[3]
    known = ~np.isnan(observed)
    part.estimates += attainable_summary(
        f"intra-list diversity@{plan.k}",
        observed[known],
        attained[known],
        broad=broad[known],
        system=name,
        policy="frozen",
        budget=plan.escape_budget,
        level=settings.level,
        replicates=settings.replicates,
        seed=settings.seed,
    )
    part.cost(name, "diversity", len(rows), questions, 0)
    return part


def _broad(asked: Asked, row: int, metric: ListMetric, seed: int) -> int:
    """Return the user of broadest taste among some of the same activity; -1 if there is none."""
    same = np.flatnonzero(asked.activity == asked.activity[row])
    same = same[same != row]
    if not len(same):
        return -1
    rng = generator(seed, "counterfactual", "broad", str(row))
    some = rng.permutation(same)[:_COMPARED]
    spread = [metric(History.of_user(asked.interactions, int(one)).items) for one in some]
    if np.isnan(spread).all():
        return -1
    return int(some[int(np.nanargmax(spread))])
