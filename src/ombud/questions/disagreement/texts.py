"""Text audits where raters agree, where they do not, and against soft labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.rates import FalsePositiveRate
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.stats.statistics import RatioOfSums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.decisions import Decisions
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine.estimator import Settings


KEY = "rater-agreement"
RATES = {"false-positive-rate": "false-positive rate", "recall": "share flagged of what should be"}
AGREE, DISPUTE = "raters=agree", "raters=disagree"


def agreed(texts: Texts, share: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which texts their raters agree about, and which have the two votes that takes.

    Examples
    --------
    >>> texts = Texts.from_frame({"text": ["a", "b", "c"], "yes": [4, 2, 1], "no": [1, 2, 0]})
    >>> [found.tolist() for found in agreed(texts, 0.8)]
    [[True, False, False], [True, True, False]]
    """
    assert texts.yes is not None and texts.no is not None  # the analysis has checked
    votes = texts.yes + texts.no
    voted = votes >= 2
    return voted & (np.maximum(texts.yes, texts.no) >= share * votes), voted


@dataclass(frozen=True)
class _Soft(Metric):
    """A rate in which a text counts by the share of its raters."""

    name: str
    registered_name: ClassVar[str] = "soft-rate"
    of: ClassVar[Literal["moderator"]] = "moderator"
    statistic: ClassVar[RatioOfSums] = RatioOfSums()

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.name

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Rows are made by the analysis."""
        raise NotImplementedError


@analysis("rater-agreement")
@dataclass(frozen=True)
class RaterAgreement(Analysis):
    r"""A text audit where raters agree, where they disagree, and against soft labels.

    With `yes` and `no` votes beside the texts, for every moderator: how often it flags texts that
    should not be flagged (and texts that should), on all texts, on those whose raters agree, and on
    those whose raters do not; on texts whose raters agree also by group; and against soft labels,
    where a text with p of its raters for flagging counts 1 - p as one that should not be flagged:

    .. math:: \frac{\sum_t (1 - p_t) [\text{flagged}]}{\sum_t (1 - p_t)}, \quad
              \frac{\sum_t p_t [\text{flagged}]}{\sum_t p_t}.

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: where no such text was decided.
    - **Does not capture**: who the raters are; a minority that is always outvoted disappears where
      only agreement counts. Without votes nothing is computed, and that is said.

    Parameters
    ----------
    share
        Raters agree when so large a share of them, of two or more, is of one opinion: all of them.
    """

    share: float = 1.0

    def __post_init__(self) -> None:
        if not 0.5 < self.share <= 1:
            raise PlanError(f"share is {self.share}; it must be above 0.5 and at most 1")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the rates of every moderator, by agreement and against soft labels."""
        data, outputs, settings = context.data, context.outputs, context.settings
        texts = data.texts
        if texts is None:
            raise PlanError("rater-agreement needs texts; the data has none")
        if texts.yes is None or texts.no is None:
            reason = "there are no votes of raters (columns yes and no) to see who disagrees"
            gone = Exclusion(KEY, "texts", len(texts), reason, len(texts))
            return AnalysisResult(exclusions=(gone,))
        alike, voted = agreed(texts, self.share)
        n = int(np.count_nonzero(voted))
        apart = proportion(
            int(np.count_nonzero(voted & ~alike)), n,
            metric="texts whose raters disagree", key=f"{KEY}/disputed-share", unit="text",
            level=settings.level,
        )  # fmt: skip
        found = [apart]
        decisions = decisions_in(outputs, KEY)
        raters = Grouping.from_values(
            texts.ids[voted], {"raters": np.where(alike, "agree", "disagree")[voted]}
        )
        for name, wanted in (("false-positive-rate", 0), ("recall", 1)):
            truth = np.where(texts.truth == wanted, 0, -1).astype(np.int8)
            found += self._by_raters(name, truth, raters, data, decisions, settings)
            sure = np.where(alike, truth, -1).astype(np.int8)
            if data.text_groups is not None:
                found += self._by_group(name, sure, data, decisions, settings)
        found += self._soft(data, decisions, settings)
        lost = len(texts) - n
        reason = "they have fewer than two votes, so nobody can be seen to disagree"
        return AnalysisResult(
            tuple(found),
            exclusions=(Exclusion(KEY, "texts", lost, reason, len(texts)),) if lost else (),
        )

    def _by_raters(
        self,
        name: str,
        truth: NDArray[np.int8],
        raters: Grouping,
        data: Dataset,
        decisions: Mapping[str, Decisions],
        settings: Settings,
    ) -> list[Estimate]:
        rows = _rows(truth, data, decisions)
        if not rows:
            return [_none(name, system) for system in decisions]
        made = estimate_metric(FalsePositiveRate(), rows, raters, settings)
        # The gap of those who disagree is that of those who agree with the other sign.
        return [
            e.replace(metric=RATES[name], key=f"{KEY}/{name}")
            for e in made
            if e.kind == "level" or e.group != DISPUTE
        ]

    def _by_group(
        self,
        name: str,
        truth: NDArray[np.int8],
        data: Dataset,
        decisions: Mapping[str, Decisions],
        settings: Settings,
    ) -> list[Estimate]:
        rows = _rows(truth, data, decisions)
        made = (
            estimate_metric(FalsePositiveRate(), rows, data.text_groups, settings) if rows else []
        )
        return [
            e.replace(metric=f"{RATES[name]} where raters agree", key=f"{KEY}/{name}/agreed")
            for e in made
            if e.group
        ]

    def _soft(
        self, data: Dataset, decisions: Mapping[str, Decisions], settings: Settings
    ) -> list[Estimate]:
        texts = data.texts
        assert texts is not None and texts.yes is not None and texts.no is not None
        votes = texts.yes + texts.no
        share = texts.yes / np.maximum(votes, 1)
        flagged = _rows(np.where(votes > 0, 0, -1).astype(np.int8), data, decisions)
        found: list[Estimate] = []
        for name, weight in (("false-positive-rate", 1 - share), ("recall", share)):
            rows = {}
            for system, one in flagged.items():
                at = weight[Vocabulary(texts.ids).codes(one.ids)][:, None]
                columns = {"numerator": one.columns["value"] * at, "denominator": at}
                rows[system] = replace(one, columns=columns)
            if rows:
                title = f"{RATES[name]}, soft labels"
                made = estimate_metric(_Soft(title), rows, None, settings)
                found += [e.replace(key=f"{KEY}/{name}/soft") for e in made]
        return found


def _rows(
    truth: NDArray[np.int8], data: Dataset, decisions: Mapping[str, Decisions]
) -> dict[str, Rows]:
    """Return whether each text of a kind was flagged; nothing where there is no such text."""
    assert data.texts is not None  # the analysis has checked
    if not np.any(truth == 0):
        return {}
    about = replace(data, texts=replace(data.texts, truth=truth))
    metric = FalsePositiveRate()
    return {name: metric.measure(one, about) for name, one in decisions.items()}


def _none(name: str, system: str) -> Estimate:
    return Estimate.undefined(
        metric=RATES[name],
        key=f"{KEY}/{name}",
        reason_code="no-units",
        reason="no such text",
        n=0,
        unit="text",
        system=system,
    )
