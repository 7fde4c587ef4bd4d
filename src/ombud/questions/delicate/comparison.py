"""Detectors side by side on the same texts, with paired tests; and decisions asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ombud.questions.delicate.detection import (
    detection_estimates,
    f1_rows,
)
from ombud.stats import Estimate, OfSums, estimate, holm, mcnemar, paired_counts, proportion

__all__ = ["comparison_estimates", "paired_f1_estimate", "stability_estimates"]

Floats = NDArray[np.float64]


def _difference(tp1: Floats, w1: Floats, tp2: Floats, w2: Floats, weight: Floats) -> Floats:
    with np.errstate(all="ignore"):
        return np.asarray(2 * tp1 / (2 * tp1 + w1) - 2 * tp2 / (2 * tp2 + w2))


def paired_f1_estimate(
    first: ArrayLike,
    second: ArrayLike,
    truth: ArrayLike,
    *,
    rng: np.random.Generator,
    clusters: ArrayLike | None = None,
    replicates: int = 2000,
    **about: Any,
) -> Estimate:
    """Estimate F1 of one detector minus F1 of another on the same texts.

    BCa bootstrap of texts (or clusters), both detectors in the same draw. The p-value is McNemar's
    mid-p of right against wrong decisions, which is not a test of F1 itself: it asks whether one
    of the two is right more often. Texts that either did not decide are left out. Undefined when
    one of the two F1 is.

    Parameters
    ----------
    first, second
        Decisions of the two: 1, 0, NaN.
    truth
        Labels.
    rng, clusters, replicates
        Of the bootstrap.
    about
        Fields of the estimate.

    Examples
    --------
    >>> truth = [1, 1, 1, 0, 0, 0] * 10
    >>> one, two = [1, 1, 1, 0, 0, 1] * 10, [1, 0, 0, 0, 0, 0] * 10
    >>> found = paired_f1_estimate(one, two, truth, rng=np.random.default_rng(0))
    >>> round(found.value, 4)
    0.3571
    """
    rows = np.column_stack((f1_rows(first, truth), f1_rows(second, truth)))
    known = ~np.isnan(rows).any(axis=1)
    right = [np.where(known, 1 - rows[:, column], np.nan) for column in (1, 3)]
    fields: dict[str, Any] = {
        "metric": "F1 difference",
        "key": "delicate/f1-difference",
        "unit": "text",
        "kind": "gap",
        "null": 0.0,
    } | about
    sums = rows[known].sum(axis=0)
    if 2 * sums[0] + sums[1] == 0 or 2 * sums[2] + sums[3] == 0:
        reason = "F1 of one of the two is undefined"
        return Estimate.undefined(reason=reason, n=int(known.sum()), **fields)
    statistic = OfSums(("tp", "wrong", "other tp", "other wrong"), _difference)
    found = estimate(rows, statistic, rng=rng, clusters=clusters, replicates=replicates, **fields)
    counts = paired_counts(*right)
    details = {"only first right": int(counts.first), "only second right": int(counts.second)}
    return found.replace(
        p_value=float(mcnemar(counts.first, counts.second)),
        details={**found.details, **details, "test": "McNemar mid-p"},
    )


def comparison_estimates(
    decisions: Mapping[str, ArrayLike],
    truth: ArrayLike,
    *,
    reference: str,
    rng: np.random.Generator,
    tuned_here: frozenset[str] | set[str] = frozenset(),
    clusters: ArrayLike | None = None,
    **about: Any,
) -> tuple[Estimate, ...]:
    """Estimate precision, recall and F1 of several detectors, and their differences to one.

    The rows of the paper's Table 5 for any list of detectors. The p-values of the differences are
    corrected with Holm's method.

    Parameters
    ----------
    decisions
        Decisions of each detector on the same texts.
    truth
        Labels.
    reference
        The detector that the others are compared with.
    rng, clusters
        Of the bootstrap.
    tuned_here
        Detectors whose threshold was chosen on these texts (#).
    about
        Fields of the estimates.
    """
    if reference not in decisions:
        raise ValueError(f"{reference!r} is not among {', '.join(decisions)}")
    result: list[Estimate] = []
    gaps: list[Estimate] = []
    for name, flags in decisions.items():
        marked = name in tuned_here
        result += detection_estimates(
            flags,
            truth,
            rng=rng,
            clusters=clusters,
            tuned_here=marked,
            **(about | {"system": name}),
        )
        if name != reference:
            gap = paired_f1_estimate(
                flags,
                decisions[reference],
                truth,
                rng=rng,
                clusters=clusters,
                **(about | {"system": name, "against": reference}),
            )
            either = marked or reference in tuned_here
            gaps.append(gap.replace(details={**gap.details, "tuned on these texts": either}))
    tested = [gap.p_value for gap in gaps if gap.p_value is not None]
    if tested:
        adjusted = holm(tested)
        fixed = iter(adjusted)
        correction = f"Holm over {len(tested)}"
        gaps = [
            gap
            if gap.p_value is None
            else gap.replace(p_adjusted=float(next(fixed)), correction=correction)
            for gap in gaps
        ]
    return (*result, *gaps)


def stability_estimates(decisions: ArrayLike, **about: Any) -> tuple[Estimate, ...]:
    """Estimate how often a detector decides otherwise when it is asked again.

    The share of texts whose decisions are not all equal (Wilson; unit: the text), and the largest
    standard deviation of any text's decisions, which is a maximum and has no interval. With few
    repeats, changes are missed. Undefined without texts that were asked about at least twice.

    Parameters
    ----------
    decisions
        Texts x repeats: 1, 0, NaN where there was no decision.
    about
        Fields of the estimates.

    Examples
    --------
    >>> found = stability_estimates([[1, 1, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]])
    >>> round(found[0].value, 3), found[1].value
    (0.333, 0.5)
    """
    values = np.asarray(decisions, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"decisions have {values.ndim} dimensions; expected texts x repeats")
    known = ~np.isnan(values)
    asked = known.sum(axis=1) >= 2
    fields: dict[str, Any] = {"unit": "text"} | about
    names: tuple[dict[str, Any], ...] = (
        {"metric": "texts decided both ways when asked again", "key": "delicate/unstable"},
        {"metric": "largest standard deviation of a text's decisions", "key": "delicate/repeat-sd"},
    )
    if not asked.any():
        reason = "no text was asked about twice"
        return tuple(Estimate.undefined(reason=reason, n=0, **fields, **name) for name in names)
    some, there = values[asked], known[asked]
    share = np.where(there, some, 0).sum(axis=1) / there.sum(axis=1)
    changed = (share > 0) & (share < 1)
    spread = np.sqrt(share * (1 - share))
    n = int(asked.sum())
    details = {"texts": n, "repeats": int(there.sum(axis=1).min()), "changed": int(changed.sum())}
    return (
        proportion(int(changed.sum()), n, details=details, **names[0], **fields),
        Estimate(
            value=float(spread.max()),
            interval=None,
            method="none: the largest of many has no interval here",
            n=n,
            details=details,
            **names[1],
            **fields,
        ),
    )
