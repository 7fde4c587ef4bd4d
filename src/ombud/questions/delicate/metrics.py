"""How well a detector finds delicate texts: what is counted, metrics, other base rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.metrics.engine.comparisons import Comparisons, Needs
from ombud.metrics.engine.text_rows import (
    AGREEMENT,
    WITHOUT_DECISIONS,
    agreement,
    cannot_tell,
    contradictions,
    was_flagged,
)
from ombud.questions.delicate.options import DelicateOptions, Share
from ombud.registry import analysis, metric
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import wilson
from ombud.stats.statistics import Floats, OfSums, RatioOfSums, Statistic, WeightedMean

if TYPE_CHECKING:
    from collections.abc import Collection

    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


class Confusion(NamedTuple):
    """Counts of texts: true and false positives, false and true negatives."""

    tp: int
    fp: int
    fn: int
    tn: int


def _known(flags: ArrayLike, truth: ArrayLike) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    flagged = np.asarray(flags, dtype=np.float64)
    labels = np.asarray(truth, dtype=np.float64)
    if flagged.shape != labels.shape:
        raise ValueError(f"{flagged.shape} decisions and {labels.shape} labels; expected as many")
    known = ~np.isnan(flagged) & ~np.isnan(labels) & (labels >= 0)
    return flagged, labels, known


def confusion(flags: ArrayLike, truth: ArrayLike) -> Confusion:
    """Count the four outcomes; texts without a decision (NaN) or label (NaN, -1) are excluded.

    Examples
    --------
    >>> confusion([1, 1, 0, 0, np.nan], [1, 0, 1, 0, 1])
    Confusion(tp=1, fp=1, fn=1, tn=1)
    """
    flagged, labels, known = _known(flags, truth)
    f, t = flagged[known] == 1, labels[known] == 1
    return Confusion(
        int((f & t).sum()), int((f & ~t).sum()), int((~f & t).sum()), int((~f & ~t).sum())
    )


def _f1(tp: Floats, wrong: Floats, weight: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(2 * tp / (2 * tp + wrong))


def f1_statistic() -> OfSums:
    """Return F1 = 2 TP / (2 TP + FP + FN) as a statistic of rows (TP, FP or FN) of 0 and 1."""
    return OfSums(("tp", "wrong"), _f1)


def precision_recall_curve(scores: ArrayLike, truth: ArrayLike) -> pl.DataFrame:
    """Return precision and recall at every threshold (score >= threshold), highest first.

    Texts without score or label are excluded. No interval: a curve is for looking at.

    Examples
    --------
    >>> precision_recall_curve([0.9, 0.8, 0.1], [1, 0, 1]).rows()
    [(0.9, 1.0, 0.5), (0.8, 0.5, 0.5), (0.1, 0.6666666666666666, 1.0)]
    """
    values, labels, known = _known(scores, truth)
    values, labels = values[known], labels[known] == 1
    order = np.argsort(-values, kind="stable")
    ranked, hits = values[order], np.cumsum(labels[order])
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True)) if len(ranked) else order
    found = hits[last]
    with np.errstate(invalid="ignore"):
        recall = found / labels.sum()
    return pl.DataFrame(
        {"threshold": ranked[last], "precision": found / (last + 1), "recall": recall}
    )


@dataclass(frozen=True, eq=False)
class Judged:
    """Texts with a known label and a decision, in the order of the data."""

    index: NDArray[np.int64]  # Their places among the texts of the data
    truth: NDArray[np.bool_]  # Whether each should be flagged
    flagged: Floats  # Whether each was; the share of flags where it was asked about several times
    score: Floats  # The mean score; NaN where there is none
    clusters: NDArray[np.int32] | None  # What texts share, or None
    exclusions: tuple[Exclusion, ...]  # What was excluded

    def __len__(self) -> int:
        return len(self.index)

    @property
    def unit(self) -> str:
        """What is resampled."""
        return "text" if self.clusters is None else "cluster"

    @property
    def independent(self) -> bool:
        """Whether texts stand alone and have one decision each."""
        return self.clusters is None and bool(np.isin(self.flagged, (0.0, 1.0)).all())

    @property
    def counts(self) -> Confusion:
        """The confusion matrix, of whole texts: a text counts as most of its decisions say."""
        return confusion(self.flagged > 0.5, self.truth)


def labelled_texts(data: Dataset, what: str) -> Texts:
    """Return the texts, or say that there are none, or none with a label."""
    texts: Texts = data.need("texts", what)
    if not np.any(texts.truth >= 0):
        raise PlanError(
            f"{what} needs texts whose label is known; give them a column 'label' "
            "(1 = should be flagged), or the preset option 'ratings'"
        )
    return texts


def of_texts(decisions: Decisions, texts: Texts, values: Floats) -> Floats:
    """Return the mean of the values of each text's decisions; NaN where there is none."""
    index = Vocabulary(np.asarray(texts.ids)).codes(decisions.ids)
    counted = (index >= 0) & ~np.isnan(values)
    total = np.bincount(index[counted], weights=values[counted], minlength=len(texts))
    count = np.bincount(index[counted], minlength=len(texts))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.where(count, count, np.nan), dtype=np.float64)


def judged(outputs: Outputs, data: Dataset, what: str = "detection") -> Judged:
    """Return the texts that are labelled and decided; what is excluded is counted."""
    if not isinstance(outputs, Decisions):
        raise PlanError(f"{what} is measured on a moderator's decisions, not on lists of items")
    texts = labelled_texts(data, what)
    flagged = of_texts(outputs, texts, was_flagged(outputs))
    scores = np.where(outputs.answered, outputs.scores.astype(np.float64), np.nan)
    known = texts.truth >= 0
    kept = known & ~np.isnan(flagged)
    exclusions = []
    if (~known).any():
        reason = "whether they should be flagged is not known"
        exclusions.append(Exclusion("texts", "texts", int((~known).sum()), reason, len(texts)))
    lacking = int((known & np.isnan(flagged)).sum())
    if lacking:
        exclusions.append(Exclusion("texts", "texts", lacking, "no decision", int(known.sum())))
    strange = int((Vocabulary(np.asarray(texts.ids)).codes(outputs.ids) < 0).sum())
    if strange:
        reason = "they are about texts that are not in the data"
        exclusions.append(Exclusion("decisions", "decisions", strange, reason, len(outputs)))
    index: NDArray[Any] = np.flatnonzero(kept)
    return Judged(
        index,
        texts.truth[kept] == 1,
        flagged[kept],
        of_texts(outputs, texts, scores)[kept],
        None if texts.clusters is None else texts.clusters[kept],
        tuple(exclusions),
    )


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
        details[""] |= WITHOUT_DECISIONS if outputs.lacks_decisions else {}
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


def precision_at_base_rate(
    counts: Confusion, rate: float, *, level: float = 0.95, **about: Any
) -> Estimate:
    r"""Estimate what precision would be where delicate texts are rarer than in this set.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    The interval is that of the ratio TPR / FPR (from Wilson's intervals of the two, by Donner and
    Zou's rule), carried through the formula. Unit: the text. Undefined without texts of both
    kinds, or when nothing at all is flagged. It takes the errors within each kind as they are
    here; texts met in the wild may be easier or harder.

    `rate` is the share of delicate texts; `about` are fields of the estimate.

    Examples
    --------
    >>> found = precision_at_base_rate(Confusion(tp=80, fp=10, fn=20, tn=90), 0.1)
    >>> round(found.value, 4)
    0.4706
    """
    if not 0 < rate < 1:
        raise ValueError(f"base rate {rate} is not between 0 and 1")
    fields: dict[str, Any] = {
        "metric": f"precision at a base rate of {rate:g}",
        "key": "base-rates/precision",
        "label": f"{rate:g}",
        "unit": "text",
        "level": level,
        "n": sum(counts),
    } | about
    reason = _undefined(counts)
    if reason:
        code = "no-variation" if counts.tp + counts.fp else "too-few-events"
        return Estimate.undefined(reason_code=code, reason=reason, **fields)
    positives, negatives = counts.tp + counts.fn, counts.fp + counts.tn
    true_rate, false_rate = counts.tp / positives, counts.fp / negatives
    value = rate * true_rate / (rate * true_rate + (1 - rate) * false_rate)
    ends = _ratio_interval(counts.tp, positives, counts.fp, negatives, level)
    low, high = (_precision(end, rate) for end in ends)
    return Estimate(
        value=value,
        interval=(min(low, value), max(high, value)),
        method="Wilson, joined by MOVER-R",
        **fields,
    )


def _undefined(counts: Confusion) -> str:
    if not counts.tp + counts.fn:
        return "no text is delicate"
    if not counts.fp + counts.tn:
        return "no text is not delicate"
    return "" if counts.tp + counts.fp else "nothing is flagged"


def _ratio_interval(first: int, n: int, second: int, m: int, level: float) -> tuple[float, float]:
    """Return an interval of a ratio of two independent shares, from their Wilson intervals.

    Donner and Zou (2012), "Closed-form confidence intervals for functions of the normal mean and
    standard deviation", equation for ratios (MOVER-R).
    """
    p, q = first / n, second / m
    (low1, high1), (low2, high2) = (
        tuple(float(end) for end in wilson(k, size, level)) for k, size in ((first, n), (second, m))
    )
    product = p * q
    under = max(product**2 - low1 * high2 * (2 * p - low1) * (2 * q - high2), 0.0)
    below = high2 * (2 * q - high2)
    low = (product - under**0.5) / below if abs(below) > 1e-15 else low1 / (2 * q)
    over = max(product**2 - high1 * low2 * (2 * p - high1) * (2 * q - low2), 0.0)
    above = low2 * (2 * q - low2)
    high = (product + over**0.5) / above if above > 1e-15 else float("inf")
    return max(low, 0.0), high


def _precision(ratio: float, rate: float) -> float:
    return 1.0 if np.isinf(ratio) else rate * ratio / (rate * ratio + 1 - rate)


def _at(base: float) -> OfSums:
    def combine(tp: Floats, positive: Floats, fp: Floats, weight: Floats) -> Floats:
        hit, false = base * tp / positive, (1 - base) * fp / (weight - positive)
        return hit / (hit + false)

    def terms(values: Floats) -> Floats:
        flagged, truth = values[:, 0], values[:, 1]
        return np.column_stack([flagged * truth, truth, flagged * (1 - truth)])

    return OfSums(("flagged", "truth"), combine, terms)


@analysis("base-rates")
class BaseRates(Options, Analysis):
    r"""Precision at other base rates than that of the test.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    A benchmark that is one third positive flatters precision: where one text in a thousand should
    be flagged, the same detector may be wrong nearly always.

    - **Unit**: the text (Wilson's intervals, joined), or what texts share (bootstrap).
    - **Undefined**: without positives, without negatives, or when nothing is flagged.
    - **Does not capture**: that texts elsewhere may be harder or easier than these.
    """

    rates: tuple[Share, ...] = DelicateOptions.field("base_rates")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the precision of each system at each base rate, and at that of the test."""
        data, outputs, settings = context.data, context.outputs, context.settings
        return AnalysisResult(
            tuple(
                _estimate(judged(some, data, "base-rates"), name, rate, settings)
                for name, some in decisions_in(outputs, "base-rates").items()
                for rate in self.rates
            )
        )


def _estimate(texts: Judged, name: str, rate: float, settings: Settings) -> Estimate:
    here = float(texts.truth.mean()) if len(texts) else 0.0
    plain = precision_at_base_rate(
        texts.counts,
        rate,
        level=settings.level,
        system=name,
        unit=texts.unit,
        details={"base rate": rate, "base rate of the test": here},
    )
    if texts.independent or not texts.truth.any() or texts.truth.all():
        return plain
    drawn = resample(
        [Sample(np.column_stack([texts.flagged, texts.truth]), _at(rate))],
        clusters=texts.clusters,
        replicates=settings.replicates,
        rng=generator(settings.seed, "base rates", name, str(rate)),
    )
    about: dict[str, Any] = {"metric": plain.metric, "key": plain.key, "system": name}
    about["label"] = plain.label
    return drawn.at(0).estimate(
        method=settings.interval, level=settings.level, unit=texts.unit, details=plain.details,
        **about,
    )  # fmt: skip
