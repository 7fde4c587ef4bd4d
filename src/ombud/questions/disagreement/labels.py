"""Which labels people dispute, and whether disputed items are recommended more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.exclusions import Exclusion
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.shares import ShareGap
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.resample import estimate
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine.estimator import Settings


DISPUTED = "label-disagreement/disputed-share"
PAIRWISE = "label-disagreement/pairwise"
RECOMMENDED = "label-disagreement/recommended-more"
ANY = "any label"


def pairwise(yes: Floats, no: Floats) -> Floats:
    """Return how often two voters, drawn without putting back, disagree; NaN below two votes.

    Examples
    --------
    >>> pairwise(np.array([1.0, 3.0, 1.0]), np.array([1.0, 1.0, 0.0])).tolist()
    [1.0, 0.5, nan]
    """
    n = yes + no
    pairs = n * (n - 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(n >= 2, yes * no / pairs, np.nan))


def disputed(labels: Labels) -> Labels:
    """Return *disputed* as a label: yes where a pair is disputed, no where it is clear.

    The last label, `ANY`, is disputed where any is, and not where none is and at least one is
    clear. Pairs without votes stay unknown.
    """
    voted = labels.as_stated[:-1]  # what is declared without a vote is not clear by votes
    states = np.select(
        [voted == LabelState.DISPUTED, voted >= 0],
        [np.int8(LabelState.YES), np.int8(LabelState.NO)],
        np.int8(LabelState.UNKNOWN),
    )
    whole = np.select(
        [(states == LabelState.YES).any(axis=1), (states == LabelState.NO).any(axis=1)],
        [np.int8(LabelState.YES), np.int8(LabelState.NO)],
        np.int8(LabelState.UNKNOWN),
    )
    both = np.concatenate([states, whole[:, None]], axis=1).astype(np.int8)
    return Labels(labels.items, (*labels.names, ANY), both, rule="disputed or clear, by votes")


@analysis("label-disagreement")
@dataclass(frozen=True)
class LabelDisagreement(Analysis):
    r"""Which labels people dispute, and whether disputed items are recommended more.

    For each label with votes, over its items with at least two votes:

    - the share of items that are disputed, neither side reaching the threshold;
    - how often two of an item's voters disagree, :math:`2 y n / ((y + n)(y + n - 1))`, averaged
      over items: it hangs on no threshold.

    For each system, the share of disputed items among those of a user's list that were voted on,
    minus the same share in the user's own history.

    - **Unit**: the item for the first two (Wilson's interval, bootstrap), the user for the third.
    - **Undefined**: for labels without an item that has two votes; for systems as in ``share-gap``.
    - **Does not capture**: why people disagree; few votes make a dispute likelier than many, so
      labels with few votes an item look more disputed by the first measure, not by the second.
      Without votes nothing is computed, and that is said.

    Parameters
    ----------
    k
        How many places of each list count.
    """

    k: int = 100

    def __post_init__(self) -> None:
        if self.k < 1:
            raise PlanError(f"k is {self.k}; a list has at least 1 place")

    @property
    def depth(self) -> int:
        """How many places of a list it looks at."""
        return self.k

    def analyze(self, context: Context) -> AnalysisResult:
        """Return disputes by label, and the share of disputed items in lists and histories."""
        data, outputs, settings = context.data, context.outputs, context.settings
        labels = data.labels
        if labels is None:
            raise PlanError("label-disagreement needs labels; the data has none")
        if labels.yes is None or labels.no is None:
            reason = "they were applied, not voted on: nobody can be seen to disagree"
            count = len(labels.names)
            return AnalysisResult(
                exclusions=(Exclusion("label-disagreement", "labels", count, reason, count),)
            )
        yes, no = labels.yes.astype(np.float64), labels.no.astype(np.float64)
        found: list[Estimate] = []
        for place, label in enumerate(labels.names):
            found += _of_label(
                label, yes[:, place], no[:, place], labels.as_stated[:-1, place], settings
            )
        return AnalysisResult(tuple(found + self._recommended(data, labels, outputs, settings)))

    def _recommended(
        self, data: Dataset, labels: Labels, outputs: Mapping[str, Outputs], settings: Settings
    ) -> list[Estimate]:
        lists = {name: one for name, one in outputs.items() if isinstance(one, Recommendations)}
        if not lists or data.interactions is None:
            return []
        metric = ShareGap(k=self.k)
        about = replace(data, labels=disputed(labels))
        rows: dict[str, Rows] = {name: metric.measure(one, about) for name, one in lists.items()}
        title = f"disputed items in lists minus in histories@{self.k}"
        return [
            e.replace(metric=title, key=RECOMMENDED)
            for e in estimate_metric(metric, rows, data.users, settings)
            if not e.key.endswith("/attribute-gap")
        ]


def _of_label(
    label: str, yes: Floats, no: Floats, states: NDArray[np.int8], settings: Settings
) -> list[Estimate]:
    voted = yes + no >= 2
    count = int(np.count_nonzero(voted))
    about: dict[str, Any] = {"label": label, "unit": "item", "level": settings.level}
    if not count:
        reason = "no item has two votes"
        return [
            Estimate.undefined(
                reason_code="no-labels", metric=metric, key=key, reason=reason, n=0, **about
            )
            for metric, key in (("disputed share", DISPUTED), ("two voters disagree", PAIRWISE))
        ]
    details = {"votes_per_item": float((yes + no)[voted].mean()), "items": count}
    open_ = int(np.count_nonzero((states == LabelState.DISPUTED) & voted))
    share = proportion(
        open_, count, metric="disputed share", key=DISPUTED, details=details, **about
    )
    if count < settings.minimum:
        reason = (
            f"not enough data: {count} items with two votes, at least {settings.minimum} wanted"
        )
        undefined = Estimate.undefined(
            reason_code="too-few-units",
            metric="two voters disagree",
            key=PAIRWISE,
            reason=reason,
            n=count,
            **about,
        )
        return [share, undefined]
    apart = estimate(
        pairwise(yes, no)[voted],
        metric="two voters disagree",
        key=PAIRWISE,
        rng=generator(settings.seed, "label-disagreement", label),
        replicates=settings.replicates,
        details=details,
        **about,
    )
    return [share, apart]
