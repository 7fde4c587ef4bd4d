"""Which systems can be asked about another history, and whether they answer as recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analysis import Context
from ombud.data.exclusions import Exclusion
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError
from ombud.metrics.engine.estimator import Settings
from ombud.probes import History
from ombud.probes.consistency import Consistency, consistency
from ombud.probes.models import open_box
from ombud.probes.outcomes import FrozenOutcome
from ombud.questions.counterfactual.sample import Asked
from ombud.rng import generator
from ombud.stats import Estimate, proportion
from ombud.stats.bootstrap.resample import estimate
from ombud.systems.recommenders.model import Model

WHERE = "counterfactual"
"""Where exclusions of this question are counted."""


def models_in(context: Context) -> tuple[dict[str, Model], list[Exclusion]]:
    """Return the systems that ombud can train and look into; the others are counted."""
    models: dict[str, Model] = {}
    left_out = []
    for name, system in context.systems.items():
        if isinstance(system, Model):
            models[name] = system
            continue
        reason = "it answers for the users it knows; another history cannot be put to it"
        left_out.append(
            Exclusion(WHERE, "systems", 1, reason, len(context.systems), "not-probed", name)
        )
    return models, left_out


@dataclass(frozen=True)
class Checked:
    """Whether a frozen model can be asked, and what the check said.

    Parameters
    ----------
    reason
        Why it cannot be asked; empty if it can.
    estimates
        The share of lists that are as recorded, and how much of each list is.
    """

    reason: str
    estimates: tuple[Estimate, ...] = ()


def check_system(
    name: str,
    model: Model,
    context: Context,
    asked: Asked,
    k: int,
    count: int,
    settings: Settings,
) -> Checked:
    """Ask a frozen model about unchanged histories, twice, and compare with what was recorded.

    A factor model that folds a history in need not give the list that it gives to the user it was
    trained on: every number of policy *frozen* is about the former, and this says how far apart
    they are.
    """
    try:
        open_box(model)
    except AuditedSystemError as error:
        return Checked(str(error))
    recorded = context.outputs[name]
    assert isinstance(recorded, Recommendations)  # it is a recommender
    users = asked.interactions.users
    known = np.isin(users.ids[asked.order], recorded.users)
    rows = asked.order[known][:count]
    now, again = _lists(model, asked, rows, k)
    lists = recorded.for_users(users.ids[rows]).in_catalogue(asked.interactions.items)[:, :k]
    found = consistency(list(lists), now, again)
    if not found.deterministic:
        return Checked("its lists are drawn at random, whatever the history holds")
    return Checked("", _estimates(name, found, list(lists), now, k, settings))


def _lists(
    model: Model, asked: Asked, rows: NDArray[np.int64], k: int
) -> tuple[list[NDArray[np.int32]], list[NDArray[np.int32]]]:
    first, second = [], []
    for row in rows.tolist():
        history = History.of_user(asked.interactions, row)
        one, two = FrozenOutcome(model, history, k, own=row).of([history, history])
        first.append(one.items)
        second.append(two.items)
    return first, second


def _estimates(
    name: str,
    found: Consistency,
    recorded: list[NDArray[np.int32]],
    now: list[NDArray[np.int32]],
    k: int,
    settings: Settings,
) -> tuple[Estimate, ...]:
    """Return the share of lists that are the same, and the mean overlap."""
    about: dict[str, Any] = {
        "unit": "user",
        "system": name,
        "level": settings.level,
        "details": {"policy": "frozen", "k": k},
    }
    same = proportion(
        found.same,
        found.users,
        metric=f"lists as recorded, before any edit (frozen)@{k}",
        key="consistency/same",
        **about,
    )
    shared = [
        float(np.isin(old[old >= 0], new).mean())
        for old, new in zip(recorded, now, strict=True)
        if (old >= 0).any()
    ]
    metric = f"overlap with recorded lists, before any edit (frozen)@{k}"
    about |= {"metric": metric, "key": "consistency/overlap"}
    if not shared:
        return same, Estimate.undefined(
            reason_code="not-measured", reason="no list was recorded", n=0, **about
        )
    rng = generator(settings.seed, "counterfactual", "overlap", name)
    return same, estimate(np.array(shared), replicates=settings.replicates, rng=rng, **about)
