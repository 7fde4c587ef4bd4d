"""How well a detector finds delicate texts: precision, recall, F1, accuracy, flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from ombud.data.decisions import Decisions
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.metrics.engine.comparisons import Comparisons, Needs
from ombud.metrics.engine.text_rows import AGREEMENT, agreement, cannot_tell, contradictions
from ombud.questions.delicate.detection import f1_statistic
from ombud.questions.delicate.judged import Judged, judged
from ombud.registry import metric
from ombud.stats.statistics import Floats, RatioOfSums, Statistic, WeightedMean

if TYPE_CHECKING:
    from collections.abc import Collection

    from ombud.data.dataset import Dataset


@dataclass(frozen=True)
class _Detection(Metric):
    """What the metrics of detection share."""

    registered_name: ClassVar[str]
    of: ClassVar[Literal["moderator"]] = "moderator"

    @property
    def statistic(self) -> Statistic:
        """A weighted mean: a text asked about several times counts with its share of flags."""
        return WeightedMean()

    @property
    def comparisons(self) -> Comparisons:
        """Levels, gaps to the texts outside each group, gaps between systems."""
        return Comparisons(groups="outside")

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Return one row for each labelled text that was decided."""
        texts = judged(outputs, data, self.registered_name)
        columns = {name: column[:, None] for name, column in self._columns(texts).items()}
        assert data.texts is not None  # judged has checked
        ids = np.asarray(data.texts.ids)[texts.index]
        counts = texts.counts
        # Not by their short names, which the columns of F1 have.
        details: dict[str, dict[str, Any]]
        details = {"": {f"count of {name}": int(n) for name, n in counts._asdict().items()}}
        assert isinstance(outputs, Decisions)  # judged has checked
        against = {AGREEMENT: agreement(outputs, data.texts)}
        details[""] |= cannot_tell(against, ("",)).get("", {})
        return Rows(
            unit=texts.unit,
            ids=ids.astype(str) if ids.dtype == object and not len(ids) else ids,
            columns=columns,
            clusters=texts.clusters,
            exclusions=(*texts.exclusions, *contradictions(against)),
            details=details,
            events=self._events(texts)[:, None],
        )

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why texts cannot be measured in blocks."""
        del tables
        return (
            "its counts beside the number are made of all texts at once; false-positive-rate and "
            "suppression are measured in blocks"
        )

    def _columns(self, texts: Judged) -> dict[str, Floats]:
        raise NotImplementedError

    def _events(self, texts: Judged) -> Floats:
        """Return how far each text is an event: flagged, unless the metric counts another."""
        return texts.flagged


@metric("detection-f1")
@dataclass(frozen=True)
class F1Score(_Detection):
    r"""F1 of the flagged texts: the harmonic mean of precision and recall.

    .. math:: F_1 = \frac{2\,TP}{2\,TP + FP + FN}

    Refusals, errors and answers that cannot be read are no decisions: they are left out and
    counted. A text that was asked about several times counts with its share of flags.

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: when no text should be flagged and none is.
    - **Does not capture**: texts rightly let through, how severe what is missed is, or how it would
      be at another base rate (see the base-rate table).

    References
    ----------
    Yavnyi et al. (2023), *DeTexD: A Benchmark Dataset for Delicate Text Detection*.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return "F1"

    @property
    def statistic(self) -> Statistic:
        """The F1 of sums."""
        return f1_statistic()

    def _columns(self, texts: Judged) -> dict[str, Floats]:
        # A text asked about several times is partly right and partly wrong.
        right = np.where(texts.truth, texts.flagged, 1 - texts.flagged)
        return {"tp": texts.flagged * texts.truth, "wrong": 1 - right}


@metric("detection-precision")
@dataclass(frozen=True)
class Precision(_Detection):
    r"""Share of the flagged texts that should be flagged.

    .. math:: \frac{TP}{TP + FP}

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: when fewer than 5 texts are flagged.
    - **Does not capture**: what is missed; and it hangs on the base rate, so two data sets are
      compared by the base-rate table, not by this.

    References
    ----------
    Yavnyi et al. (2023), *DeTexD: A Benchmark Dataset for Delicate Text Detection*.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return "precision"

    @property
    def statistic(self) -> Statistic:
        """True flags over flags, so that systems are compared on all texts, flagged or not."""
        return RatioOfSums()

    @property
    def needs(self) -> Needs | None:
        """Some flags."""
        return Needs("denominator", 5, "that are flagged")

    def _columns(self, texts: Judged) -> dict[str, Floats]:
        return {"numerator": texts.flagged * texts.truth, "denominator": texts.flagged}


@metric("detection-recall")
@dataclass(frozen=True)
class Recall(_Detection):
    r"""Share of the texts that should be flagged and are.

    .. math:: \frac{TP}{TP + FN}

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: when no text should be flagged.
    - **Does not capture**: what is flagged wrongly.

    References
    ----------
    Yavnyi et al. (2023), *DeTexD: A Benchmark Dataset for Delicate Text Detection*.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return "recall"

    def _columns(self, texts: Judged) -> dict[str, Floats]:
        value = np.where(texts.truth, texts.flagged, np.nan)
        return {"value": value, "weight": np.ones(len(texts))}

    def _events(self, texts: Judged) -> Floats:
        """Return how far each text is missed: recall rests on what is missed."""
        return 1 - texts.flagged


@metric("detection-accuracy")
@dataclass(frozen=True)
class Accuracy(_Detection):
    r"""Share of texts that are decided as they should be.

    .. math:: \frac{TP + TN}{n}

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: without a labelled text that was decided.
    - **Does not capture**: which way the errors go; where few texts should be flagged, flagging
      none has a high accuracy.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return "accuracy"

    def _columns(self, texts: Judged) -> dict[str, Floats]:
        value = np.where(texts.truth, texts.flagged, 1 - texts.flagged)
        return {"value": value, "weight": np.ones(len(texts))}

    def _events(self, texts: Judged) -> Floats:
        """Return how far each text is decided wrongly."""
        return np.where(texts.truth, 1 - texts.flagged, texts.flagged)


@metric("flag-share")
@dataclass(frozen=True)
class FlagShare(_Detection):
    r"""Share of labelled texts that are flagged, right or wrong; by risk it is the paper's Table 3.

    .. math:: \frac{TP + FP}{n}

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: without a labelled text that was decided.
    - **Does not capture**: whether a flag is right.
    """

    @property
    def title(self) -> str:
        """The name as printed."""
        return "share flagged"

    def _columns(self, texts: Judged) -> dict[str, Floats]:
        return {"value": texts.flagged, "weight": np.ones(len(texts))}
