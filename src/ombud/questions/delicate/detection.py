"""How good a detector's decisions are: precision, recall, F1 and what a base rate makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ombud.stats import Estimate, OfSums, estimate, proportion, wilson

__all__ = [
    "Confusion",
    "confusion",
    "detection_estimates",
    "f1_rows",
    "f1_statistic",
    "group_estimates",
    "precision_at_base_rate",
    "precision_recall_curve",
]

Floats = NDArray[np.float64]


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
    """Count the four outcomes; texts without a decision (NaN) or label (NaN, -1) are left out.

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


def f1_rows(flags: ArrayLike, truth: ArrayLike) -> Floats:
    """Return the rows of `f1_statistic`, NaN for texts that are left out."""
    flagged, labels, known = _known(flags, truth)
    rows = np.column_stack((flagged * labels, flagged != labels)).astype(np.float64)
    rows[~known] = np.nan
    return rows


def detection_estimates(
    flags: ArrayLike,
    truth: ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: ArrayLike | None = None,
    tuned_here: bool = False,
    replicates: int = 2000,
    **about: Any,
) -> tuple[Estimate, ...]:
    r"""Estimate precision, recall, F1 and false-positive rate of decisions.

    :math:`F_1 = 2TP / (2TP + FP + FN)`. Unit: the text, or the cluster. Wilson intervals for the
    shares (texts taken as independent), BCa bootstrap for F1. Precision is undefined when nothing
    is flagged, recall when nothing should be. None of them tells how bad an error is, and
    precision holds for the share of delicate texts in this set alone.

    Parameters
    ----------
    flags
        Decisions: 1, 0, NaN for none.
    truth
        Labels: 1, 0, and -1 or NaN for none.
    rng
        Of the bootstrap.
    clusters
        What texts share; for F1.
    tuned_here
        The threshold was chosen on these very texts: marked with # in `details`, since the
        interval does not include that choice.
    replicates
        Of the bootstrap.
    about
        Fields of the estimates, such as `system`.

    Examples
    --------
    >>> flags, truth = [1] * 6 + [0] * 4, [1, 1, 1, 1, 0, 0, 1, 0, 0, 0]
    >>> found = detection_estimates(flags, truth, rng=np.random.default_rng(0))
    >>> [(e.key, round(e.value, 3)) for e in found][:3]
    [('delicate/precision', 0.667), ('delicate/recall', 0.8), ('delicate/f1', 0.727)]
    """
    counts = confusion(flags, truth)
    n = sum(counts)
    details = {**counts._asdict(), "tuned on these texts": tuned_here}
    note = "# threshold chosen on these texts; the interval does not include that" * tuned_here
    about = {"unit": "text", "note": note, "details": details} | about
    shares = (
        ("precision", counts.tp, counts.tp + counts.fp, "nothing is flagged"),
        ("recall", counts.tp, counts.tp + counts.fn, "no text is delicate"),
        ("false-positive rate", counts.fp, counts.fp + counts.tn, "every text is delicate"),
    )
    result = []
    for name, hits, size, reason in shares:
        fields = about | {"metric": name, "key": f"delicate/{name.replace(' ', '-')}"}
        result.append(
            proportion(hits, size, **fields)
            if size
            else Estimate.undefined(reason=reason, n=0, **fields)
        )
    if counts.tp + counts.fp + counts.fn == 0:
        f1 = Estimate.undefined(
            metric="F1",
            reason="nothing is flagged and nothing should be",
            n=n,
            key="delicate/f1",
            **about,
        )
    else:
        f1 = estimate(
            f1_rows(flags, truth),
            f1_statistic(),
            metric="F1",
            rng=rng,
            clusters=clusters,
            replicates=replicates,
            key="delicate/f1",
            **about,
        )
    return (result[0], result[1], f1, result[2])


def group_estimates(
    flags: ArrayLike,
    truth: ArrayLike,
    groups: Mapping[str, ArrayLike],
    *,
    rng: np.random.Generator,
    **about: Any,
) -> tuple[Estimate, ...]:
    """Estimate the same for each of several groups: topics, risk levels, lengths, sources.

    Groups may overlap (a text counts in each of its topics). Intervals are not corrected for the
    number of groups.

    Parameters
    ----------
    flags, truth, rng, about
        As in `detection_estimates`.
    groups
        Name and members (Boolean) of each group.
    """
    flagged, labels = np.asarray(flags, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    result: list[Estimate] = []
    for name, members in groups.items():
        inside = np.asarray(members, dtype=bool)
        result += detection_estimates(
            flagged[inside], labels[inside], rng=rng, **(about | {"group": name})
        )
    return tuple(result)


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


def precision_at_base_rate(
    flags: ArrayLike,
    truth: ArrayLike,
    rates: Sequence[float] = (0.1, 0.01, 0.001),
    *,
    level: float = 0.95,
    **about: Any,
) -> tuple[Estimate, ...]:
    r"""Estimate what precision would be where delicate texts are rarer than in this set.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    The interval is that of the ratio TPR / FPR (from Wilson's intervals of the two, by Donner and
    Zou's rule), carried through the formula. Unit: the text. Undefined without texts of both
    kinds, or when nothing at all is flagged. It takes the errors within each kind as they are
    here; texts met in the wild may be easier or harder.

    Parameters
    ----------
    flags, truth
        As in `detection_estimates`.
    rates
        Shares of delicate texts.
    level
        Coverage of the intervals.
    about
        Fields of the estimates.

    Examples
    --------
    >>> flags, truth = [1] * 80 + [0] * 20 + [1] * 10 + [0] * 90, [1] * 100 + [0] * 100
    >>> found = precision_at_base_rate(flags, truth, rates=(0.1,))[0]
    >>> round(found.value, 4)
    0.4706
    """
    counts = confusion(flags, truth)
    positives, negatives = counts.tp + counts.fn, counts.fp + counts.tn
    result = []
    for rate in rates:
        if not 0 < rate < 1:
            raise ValueError(f"base rate {rate} is not between 0 and 1")
        fields: dict[str, Any] = {
            "metric": f"precision at base rate {rate:g}",
            "key": f"delicate/precision-at-base-rate({rate:g})",
            "unit": "text",
            "level": level,
            "details": {**counts._asdict(), "base rate": rate},
        } | about
        n = sum(counts)
        if not positives or not negatives:
            reason = f"no text is {'delicate' if not positives else 'not delicate'}"
            result.append(Estimate.undefined(reason=reason, n=n, **fields))
            continue
        if not counts.tp + counts.fp:
            result.append(Estimate.undefined(reason="nothing is flagged", n=n, **fields))
            continue
        true_rate, false_rate = counts.tp / positives, counts.fp / negatives
        value = rate * true_rate / (rate * true_rate + (1 - rate) * false_rate)
        ends = _ratio_interval(counts.tp, positives, counts.fp, negatives, level)
        low, high = (_precision(end, rate) for end in ends)
        method = "Wilson, joined by MOVER-R"
        result.append(
            Estimate(
                value=value,
                interval=(min(low, value), max(high, value)),
                method=method,
                n=n,
                **fields,
            )
        )
    return tuple(result)


def _precision(ratio: float, rate: float) -> float:
    return 1.0 if np.isinf(ratio) else rate * ratio / (rate * ratio + 1 - rate)


def precision_recall_curve(scores: ArrayLike, truth: ArrayLike) -> pl.DataFrame:
    """Return precision and recall at every threshold (score >= threshold), highest first.

    Texts without score or label are left out. No interval: a curve is for looking at.

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
