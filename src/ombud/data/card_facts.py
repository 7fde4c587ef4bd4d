"""Counts and densities of a data set, as its card states them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.interactions import Interactions
from ombud.data.kcore import KCore
from ombud.data.labels import Labels, LabelState

Facts = dict[str, int | float | str]


def _spread(counts: NDArray[Any], what: str) -> Facts:
    return {
        f"max_{what}": int(counts.max()),
        f"min_{what}": int(counts.min()),
        f"mean_{what}": float(counts.mean()),
        f"median_{what}": float(np.median(counts)),
        f"sd_{what}": float(counts.std()),
    }


def history_facts(interactions: Interactions, item: str = "item") -> Facts:
    """Return counts, density and spread of interactions.

    `item` is what an item is called: ``"movie"``, ``"work"``.
    """
    matrix = interactions.matrix
    per_item = np.bincount(matrix.indices, minlength=interactions.n_items)
    facts: Facts = {
        f"{item}s": interactions.n_items,
        "users": interactions.n_users,
        "interactions": len(interactions),
        "interaction_density": interactions.density,
    }
    facts |= _spread(np.diff(matrix.indptr), "interactions_per_user")
    kind = "ratings" if interactions.explicit else "interactions"
    facts |= _spread(per_item, f"{kind}_per_{item}")
    if interactions.explicit:
        total = np.bincount(matrix.indices, weights=matrix.data, minlength=interactions.n_items)
        # The published mean rating is the mean over movies, not over ratings.
        facts["mean_rating"] = float(np.mean(total[per_item > 0] / per_item[per_item > 0]))
    return facts


def label_facts(labels: Labels) -> Facts:
    """Return how many pairs of an item and a label are in each state, and the warning density."""
    count = {state: int(np.count_nonzero(labels.states == state)) for state in LabelState}
    pairs = labels.states.size
    facts: Facts = {"labels": len(labels.names), "rule": labels.rule}
    if labels.yes is not None:
        facts |= {
            "clear_yes": count[LabelState.YES],
            "clear_no": count[LabelState.NO],
            "unclear": count[LabelState.DISPUTED],
            "no_votes": count[LabelState.UNKNOWN],
        }
    else:
        facts |= {
            "applied": count[LabelState.YES],
            "absent": count[LabelState.NO],
            "unknown": count[LabelState.UNKNOWN],
        }
    return facts | {"warning_density": count[LabelState.YES] / pairs}


def filter_facts(core: KCore) -> Facts:
    """Return how the filter went."""
    return {
        "filter_minimum": core.minimum,
        "filter_passes": len(core.passes),
        "filter_complete": "yes" if core.complete else "no: a further pass would leave out more",
    }
