"""Whether the mix of labels in a list is the mix of the user's own history."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import ListMetric, Outputs, Rows
from ombud.metrics.history import History, Weighting, history_matrix, places
from ombud.registry import metric
from ombud.stats.statistics import Floats, Mean


def item_mixes(labels: Labels) -> sparse.csr_array:
    """Return (items + 1) x (labels + 1): how each item's weight is divided among its labels.

    An item with m labels gives each 1/m; an item that is not known to carry any gives all of its
    weight to the last column, "none of them". The last row is any item without labels.
    """
    yes = labels.states == LabelState.YES.value
    count = yes.sum(axis=1)
    mix = np.zeros((len(yes) + 1, yes.shape[1] + 1), dtype=np.float32)
    mix[:-1, :-1] = yes / np.maximum(count, 1)[:, None]
    mix[:-1, -1] = count == 0
    mix[-1, -1] = 1.0
    return sparse.csr_array(mix)


def divergence(target: Floats, found: Floats, alpha: float = 0.01) -> Floats:
    r"""Return Steck's divergence of each row.

    .. math:: \sum_w p_w \log \frac{p_w}{(1 - \alpha) q_w + \alpha p_w}

    with p the target and q what was found; NaN where either row has no weight.

    Examples
    --------
    >>> p = np.array([[0.5, 0.5], [0.5, 0.5]])
    >>> divergence(p, np.array([[0.5, 0.5], [1.0, 0.0]])).round(4).tolist()
    [0.0, 1.9585]
    """
    mixed = (1 - alpha) * found + alpha * target
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(target > 0, target * np.log(target / mixed), 0.0)
    empty = (target.sum(axis=1) == 0) | (found.sum(axis=1) == 0)
    return np.where(empty, np.nan, np.maximum(terms.sum(axis=1), 0.0))


@metric("miscalibration")
@dataclass(frozen=True)
class Miscalibration(ListMetric):
    r"""How far the mix of labels in a list is from the mix in the user's own history.

    With :math:`p(w | u)` the mix of the history and :math:`q(w | u)` that of the first k places,

    .. math:: \frac{1}{|U|} \sum_u \sum_w p(w|u)
              \log \frac{p(w|u)}{(1 - \alpha)\, q(w|u) + \alpha\, p(w|u)}.

    An item with m labels counts 1/m for each of them; items not known to carry any label make a
    category of their own (or are left out). 0 means the same mix; the largest possible value is
    :math:`-\log \alpha`.

    - **Unit of resampling**: the user.
    - **Undefined**: for users without a list or a history, and (``none="leave-out"``) without a
      labelled item in either; such users are counted.
    - **Does not capture**: the direction. Too little of a label and too much of it both count;
      a short list cannot match any mix closely, so small values of k give larger values even
      by chance. Unknown labels count as *no*.

    Parameters
    ----------
    k
        How many places of each list count.
    history
        ``relevant``: the user's own top quartile of ratings; ``all``: all interactions.
    weighting
        ``share``: all places alike; ``exposure``: place r counts 1 / log2(r + 1).
    none
        ``category``: items without a label are one more category. ``leave-out``: they do not
        count.
    alpha
        How much of the history is mixed into the list, so that a missing label does not make
        the divergence infinite.

    References
    ----------
    Steck (2018), Calibrated recommendations, RecSys.
    """

    k: int = 100
    history: History = "relevant"
    weighting: Weighting = "share"
    none: Literal["category", "leave-out"] = "category"
    alpha: float = 0.01

    registered_name: ClassVar[str]
    null: ClassVar[float | None] = None
    contrast: ClassVar[Literal["difference"]] = "difference"
    statistic: ClassVar[Mean] = Mean()

    @property
    def reads_ratings(self) -> bool:
        """Whether what counts depends on ratings."""
        return self.history == "relevant"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.alpha < 1:
            raise PlanError(f"alpha is {self.alpha}; it must be between 0 and 1")

    @property
    def title(self) -> str:
        """The name as printed."""
        text: list[str] = [self.weighting] if self.weighting != "share" else []
        text += ["labelled items only"] if self.none == "leave-out" else []
        text += ["whole history"] if self.history == "all" else []
        return f"miscalibration@{self.k}" + (f" ({', '.join(text)})" if text else "")

    def block_fault(self, tables: Collection[str]) -> str:
        """Return nothing: a user's row depends on that user alone."""
        del tables
        return ""

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return the divergence of each user."""
        if data.interactions is None or data.labels is None:
            raise PlanError("miscalibration needs interactions and labels")
        if not isinstance(outputs, Recommendations):
            raise PlanError("miscalibration measures recommendations, not decisions")
        interactions, labels = data.interactions, data.labels
        lists = outputs.top(self.k)
        users = interactions.users.codes(outputs.users)
        kept = (users >= 0) & (lists.lengths > 0)
        mixes = item_mixes(labels)
        codes = lists.in_catalogue(labels.items)[kept]
        weights = np.ones(codes.shape[1])
        if self.weighting == "exposure":
            weights = 1 / np.log2(np.arange(codes.shape[1]) + 2)
        result = self._mix(places(codes, len(labels.items), weights), mixes)
        past = history_matrix(interactions, self.history, users[kept], labels.items)
        values = divergence(self._mix(past, mixes), result, self.alpha)
        lacking = len(outputs) - int(np.count_nonzero(~np.isnan(values)))
        reason = "no list, no history, or (none='leave-out') no labelled item in one of them"
        gone = (Exclusion("miscalibration", "users", lacking, reason, len(outputs)),)
        return Rows(
            unit="user",
            ids=np.asarray(outputs.users)[kept],
            columns={"value": values[:, None]},
            exclusions=gone if lacking else (),
        )

    def _mix(self, lists: Any, mixes: sparse.csr_array) -> NDArray[np.float64]:
        result = np.asarray((lists @ mixes).todense(), dtype=np.float64)
        if self.none == "leave-out":
            result = result[:, :-1]
        whole = result.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(result, whole, out=np.zeros_like(result), where=whole > 0))
