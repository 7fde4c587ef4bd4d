"""What precision becomes where fewer texts should be flagged than in the test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.errors import PlanError
from ombud.questions.delicate.detection import Confusion
from ombud.questions.delicate.judged import Judged, judged
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import wilson
from ombud.stats.statistics import Floats, OfSums

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


def precision_at_base_rate(
    counts: Confusion, rate: float, *, level: float = 0.95, **about: Any
) -> Estimate:
    r"""Estimate what precision would be where delicate texts are rarer than in this set.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    The interval is that of the ratio TPR / FPR (from Wilson's intervals of the two, by Donner and
    Zou's rule), carried through the formula. Unit: the text. Undefined without texts of both
    kinds, or when nothing at all is flagged. It takes the errors within each kind as they are
    here; texts met in the wild may be easier or harder.

    Parameters
    ----------
    counts
        The confusion matrix.
    rate
        The share of delicate texts.
    level
        Coverage of the interval.
    about
        Fields of the estimate.

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
@dataclass(frozen=True)
class BaseRates(Analysis):
    r"""Precision at other base rates than that of the test.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    A benchmark that is one third positive flatters precision: where one text in a thousand should
    be flagged, the same detector may be wrong nearly always.

    - **Unit**: the text (Wilson's intervals, joined), or what texts share (bootstrap).
    - **Undefined**: without positives, without negatives, or when nothing is flagged.
    - **Does not capture**: that texts elsewhere may be harder or easier than these.

    Parameters
    ----------
    rates
        The shares of texts that should be flagged.
    """

    rates: tuple[float, ...] = (0.1, 0.01, 0.001)

    def __post_init__(self) -> None:
        bad = [rate for rate in self.rates if not 0 < rate < 1]
        if bad or not self.rates:
            raise PlanError(f"base-rates: {bad or 'no rates'}; shares between 0 and 1 are expected")

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
