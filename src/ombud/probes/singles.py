"""All single edits of a history at once: what each item can reach by one of them, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ombud.probes.edits import EditSpace, History, Singles
from ombud.probes.models.base import WhiteBox

_CELLS = 2**18


@dataclass(frozen=True, eq=False)
class SingleReach:
    """The best single edit for each item of the catalogue.

    Parameters
    ----------
    singles
        The edits; the indices below point into them, -1 for no edit.
    log_probability, edit
        The greatest log-probability of each item, and the edit that gives it; None without beta.
    margin, margin_edit
        The greatest margin of each item over the k-th best of the others, and its edit. Zero or
        more: the item is in the list of k (on a tie, the lower code is).
    edits
        How many edits were enumerated; all that are permitted.
    """

    singles: Singles
    log_probability: NDArray[np.float32] | None
    edit: NDArray[np.int32] | None
    margin: NDArray[np.float32]
    margin_edit: NDArray[np.int32]
    edits: int


def _seen(history: History, n_items: int, exclude_seen: bool) -> NDArray[np.bool_]:
    seen = np.zeros(n_items, bool)
    if exclude_seen:
        seen[history.items] = True
    return seen


def single_reach(
    box: WhiteBox,
    space: EditSpace,
    *,
    k: int = 10,
    beta: float | None = None,
    exclude_seen: bool = True,
    shown: NDArray[np.int32] | None = None,
) -> SingleReach:
    """Enumerate all single edits and return what each item of the catalogue can reach.

    With seen items left out, an edit that rates the target takes it out of the list, so no target
    is reached by rating it; otherwise use `EditSpace.without_rating` and one call for each target.

    Parameters
    ----------
    box, space
        The model and the permitted edits; a budget of 0 leaves only today's scores.
    k
        Length of the list.
    beta
        Inverse temperature of the softmax, or None.
    exclude_seen
        Whether items of the edited history are left out.
    shown
        Today's list, when edits must be realistic.
    """
    from ombud.probes import _kernels

    history, n_items = space.history, space.n_items
    singles = space.singles(shown=shown)
    if space.budget == 0:
        singles = singles.take(np.empty(0, np.int64))
    seen = _seen(history, n_items, exclude_seen)
    depth = min(k, n_items - 1)
    adds = np.isnan(singles.before) & exclude_seen
    removes = np.isnan(singles.after) & exclude_seen
    best = np.full(n_items, -np.inf, np.float32)
    margin = np.full(n_items, -np.inf, np.float32)
    arg, margin_arg = np.full(n_items, -1, np.int32), np.full(n_items, -1, np.int32)
    rows = max(8, _CELLS // n_items)

    def keep(block: NDArray[np.float32], part: slice, first: int) -> None:
        count = len(block)
        top, last, after = (np.empty(count, np.float32) for _ in range(3))
        nobody = np.zeros(count, bool)
        items = singles.items[part] if first >= 0 else np.zeros(count, np.int32)
        added, removed = (adds[part], removes[part]) if first >= 0 else (nobody, nobody)
        _kernels.thresholds(block, seen, items, added, removed, depth, top, last, after)
        shift = np.zeros(count, np.float32)
        if beta is not None:
            peak = np.where(np.isfinite(top), top, 0).astype(np.float32)
            raised = np.exp((block - peak[:, None]) * np.float32(beta))
            total = raised.sum(axis=1)
            shift = np.float32(beta) * peak + np.log(np.where(total > 0, total, 1))
        _kernels.scan(
            block, np.float32(beta or 0.0), shift.astype(np.float32), last, after, first,
            best, arg, margin, margin_arg,
        )  # fmt: skip

    keep(box.scores([history]).astype(np.float32), slice(0, 1), -1)
    for part, block in box.blocks(history, singles, rows):
        keep(block, part, part.start)
    return SingleReach(
        singles,
        best if beta is not None else None,
        arg if beta is not None else None,
        margin,
        margin_arg,
        len(singles),
    )
