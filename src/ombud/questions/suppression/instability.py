"""How often a moderator answers otherwise when it is asked again about the same text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.metrics.base import Outputs, Rows
from ombud.metrics.engine.text_rows import TextMetric, by_part
from ombud.registry import metric

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


@metric("decision-instability")
@dataclass(frozen=True)
class DecisionInstability(TextMetric):
    r"""Probability that two answers about the same text differ, over texts asked repeatedly.

    .. math:: 1 - \sum_o \frac{k_o (k_o - 1)}{m (m - 1)}

    for a text with m answers, of which :math:`k_o` have the outcome o: flagged, allowed or refused.
    Errors and answers that cannot be read are no answers. Where a decision is a matter of luck, a
    rate measured once is one of many that could have come out, and a person's appeal is a lottery.

    - **Unit of resampling**: the text, or what texts share (a template, a show).
    - **Undefined**: when no text has two answers; ask with ``run = { repeats = 3 }``, or record a
      column `repeat`.
    - **Does not capture**: which of the answers is right, or changes over a longer time.

    Parameters
    ----------
    families
        Whether each family of texts, and each data set, is also measured alone.
    """

    event: ClassVar[str] = "answered otherwise"

    @property
    def title(self) -> str:
        """The name as printed."""
        return "decision instability"

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return how likely two answers about each text differ."""
        if not isinstance(outputs, Decisions):
            raise PlanError("decision instability is measured on a moderator's decisions")
        if data.texts is None:
            raise PlanError("decision instability needs texts; the data has none")
        texts = data.texts
        place = Vocabulary(texts.ids).codes(outputs.ids)
        answered = outputs.outcomes <= Outcome.REFUSED
        counts = np.zeros((len(texts), 3))
        here = answered & (place >= 0)
        np.add.at(counts, (place[here], outputs.outcomes[here]), 1)
        total = counts.sum(axis=1)
        kept = total >= 2
        some, m = counts[kept], total[kept]
        with np.errstate(all="ignore"):
            differ = 1 - (some * (some - 1)).sum(axis=1) / (m * (m - 1))
        exclusions = []
        lacking = int(np.count_nonzero(~kept))
        if lacking:
            reason = "they have fewer than two answers"
            exclusions.append(Exclusion("texts", "texts", lacking, reason, len(texts)))
        clusters = None if texts.clusters is None else texts.clusters[kept]
        labels: tuple[str, ...] = ("",)
        values = differ[:, None]
        if self.families:
            labels, values = by_part(texts, kept, values)
        return Rows(
            unit="text" if clusters is None else "cluster",
            ids=np.asarray(texts.ids)[kept],
            columns={"value": values},
            labels=labels,
            clusters=clusters,
            exclusions=tuple(exclusions),
            events=values > 0,
        )
