"""What changed between two measurements of the same units: everyone's, each group's, each label's.

Both measurements are resampled together, and only units that both measured count: so a change is
paired, and what the choice of units has in common cancels out.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.comparisons import WHOLE
from ombud.metrics.engine.estimate import correct
from ombud.metrics.engine.estimator import MetricEstimator, Settings
from ombud.metrics.engine.few_events import RatioPolicy, counts_of
from ombud.metrics.engine.layout import Layout
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import ResampledStatistic, Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.paired import mcnemar, paired_counts, paired_proportion_estimate
from ombud.stats.permutation import sign_flip_test
from ombud.stats.ranks import resample_by_pattern
from ombud.stats.statistics import Mean

BEFORE = "before"
"""What a change is against."""

_EXACT = 13
"""With so many clusters that changed or fewer, all their signs are tried."""


def has_changes(metric: Metric) -> bool:
    """Whether a metric has numbers of single parts; the largest of all groups, say, has none."""
    wanted = metric.comparisons
    return wanted.levels or wanted.groups in ("whole", "outside")


def estimate_changes(
    metric: Metric,
    before: Rows,
    after: Rows,
    groups: Grouping | None,
    settings: Settings,
    *,
    exact: bool = False,
) -> list[Estimate]:
    """Return the change of everyone's number and of each group's, for each label of both.

    A level changes by a difference (or a ratio, as the metric contrasts). A ratio of a group to the
    whole changes by a ratio of ratios; its details separate the group's own change from that of
    the whole, and it stands only where the group's own rate changed beyond chance. Flags of
    texts that stand alone have McNemar's mid-p and
    Newcombe's paired interval; texts that share clusters the bootstrap over clusters, with a
    test of the signs of the clusters' changes.

    Parameters
    ----------
    metric
        What was measured.
    before, after
        Rows of one system at two times, or of two versions.
    groups
        Groups of the units.
    settings
        How uncertainty is computed.
    exact
        Whether flags are tested by McNemar's exact p, which stays below its level, or by mid-p.

    Examples
    --------
    >>> from ombud.metrics import FalsePositiveRate
    >>> ids, one = np.arange(40), np.ones((40, 1))
    >>> rows = [Rows("text", ids, {"value": one * (ids[:, None] < k)}) for k in (4, 12)]
    >>> (change,) = estimate_changes(FalsePositiveRate(), *rows, None, Settings())
    >>> round(change.value, 2), round(change.p_value, 4)
    (0.2, 0.0039)
    """
    labels = tuple(label for label in after.labels if label in before.labels)
    units = np.intersect1d(after.ids, before.ids)
    if not len(units) or not labels:
        return []
    cubes = [_cut(rows, units, labels, metric.statistic.columns) for rows in (after, before)]
    lost = np.isnan(cubes[0]).any(axis=2) | np.isnan(cubes[1]).any(axis=2)
    for cube in cubes:
        cube[lost] = np.nan
    samples = [
        Sample(cube[:, place, :], metric.statistic)
        for cube in cubes
        for place in range(len(labels))
    ]
    clusters = None
    if after.clusters is not None:
        clusters = after.clusters[Vocabulary(after.ids).codes(units)]
    names = () if groups is None else groups.names
    inside = np.zeros((len(units), 0), bool) if groups is None else groups.aligned(units)
    columns = np.concatenate([np.ones((len(units), 1), bool), inside, ~inside], axis=1)
    draw = resample_by_pattern if metric.comparisons.by_pattern else resample
    replicates = draw(
        samples,
        groups=columns,
        clusters=clusters,
        replicates=settings.replicates,
        rng=generator(settings.seed, "bootstrap", metric.seed_name),
    )
    rows = {"after": _bare(after), BEFORE: _bare(before)}
    layout = Layout.of(("after", BEFORE), labels, groups, metric.comparisons.groups)
    maker = MetricEstimator(metric, after.unit, rows, replicates, layout, settings)
    places = range(len(labels))
    if metric.comparisons.levels:
        everyone = [_told(_level(maker, label, 0, exact)) for label in places]
        parts = [(label, 1 + g) for label in places for g in range(len(names))]
        each = [_told(_level(maker, label, column, exact)) for label, column in parts]
        return [*correct(everyone, settings.correction), *correct(each, settings.correction)]
    if metric.comparisons.groups not in ("whole", "outside"):
        return []
    each = [_told(_ratio(maker, label, g, exact)) for label in places for g in range(len(names))]
    return correct(each, settings.correction)


def _told(change: Estimate) -> Estimate:
    """Return the change; where no unit changed there is no spread, and nothing to be found."""
    none = 1.0 if change.kind == "ratio" else 0.0
    if change.p_value is not None or change.value != none:
        return change
    return change.replace(p_value=1.0, null=none, note="nothing changed")


def _cut(
    rows: Rows, units: NDArray[np.generic], labels: tuple[str, ...], columns: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return units x labels x columns."""
    index = Vocabulary(rows.ids).codes(units)
    places = [rows.labels.index(label) for label in labels]
    return np.stack([rows.columns[c][index][:, places] for c in columns], axis=2).astype(float)


def _bare(rows: Rows) -> Rows:
    """Return the rows without what is told beside the numbers of one measurement."""
    return Rows(rows.unit, rows.ids, rows.columns, rows.labels, rows.clusters)


def _level(maker: MetricEstimator, label: int, column: int, exact: bool) -> Estimate:
    estimate = maker.system_gap(0, 1, label, column)
    one, other = maker.layout.sample(0, label), maker.layout.sample(1, label)
    point = maker.replicates.point
    details = {"before": float(point[other, column]), "after": float(point[one, column])}
    if np.isnan(list(details.values())).any() or estimate.value is None:
        return estimate
    details = {**estimate.details, **details}
    estimate = estimate.replace(details=details)
    member = maker.replicates.design.member[:, column]
    a, b = (maker.replicates.samples[s].values[member, 0] for s in (one, other))
    if not isinstance(maker.metric.statistic, Mean) or not _are_flags(a, b):
        return estimate
    counts = paired_counts(a, b)
    up, down = int(counts.first), int(counts.second)
    estimate = estimate.replace(details={**details, "up": up, "down": down})
    if maker.replicates.design.order is None:
        paired = paired_proportion_estimate(a, b, metric=estimate.metric, level=estimate.level)
        test: Literal["exact", "mid-p"] = "exact" if exact else "mid-p"
        return estimate.replace(
            interval=paired.interval,
            method=f"{paired.method}; p by McNemar ({test})",
            p_value=float(mcnemar(up, down, test)),
            undefined_replicates=0,
            note="",  # that of the bootstrap, which is not used
        )
    return _by_signs(estimate, a - b, maker.replicates.design.cluster[member], maker)


def _are_flags(*sides: NDArray[np.float64]) -> bool:
    return all(np.all(np.isnan(side) | (side == 0) | (side == 1)) for side in sides)


def _by_signs(
    estimate: Estimate,
    change: NDArray[np.float64],
    clusters: NDArray[np.int64],
    maker: MetricEstimator,
) -> Estimate:
    """Test a change of flags by the signs of the clusters' changes."""
    known = ~np.isnan(change)
    sums = np.bincount(np.unique(clusters[known], return_inverse=True)[1], change[known])
    changed = sums[sums != 0]
    if not len(changed):
        return estimate.replace(p_value=1.0, note="no cluster changed on balance")
    if len(changed) <= _EXACT:
        rng = generator(maker.settings.seed, "signs", maker.metric.seed_name)
        p = float(sign_flip_test(changed, rng=rng).p[0])
    else:
        p = float(2 * ndtr(-abs(changed.sum()) / np.sqrt(np.sum(changed**2))))
    return estimate.replace(p_value=p, note=f"{len(changed):,} clusters changed")


def _ratio(maker: MetricEstimator, label: int, group: int, exact: bool) -> Estimate:
    """Return how a group's ratio to the whole (or to those outside) changed, as a ratio."""
    metric, drawn = maker.metric, maker.replicates
    here = 1 + group
    other = 0 if metric.comparisons.groups == "whole" else maker.layout.rest(group)
    about = maker.about(0, label, here) | {"kind": "ratio", "against": BEFORE}
    n = int(drawn.n[maker.layout.sample(0, label), here])
    sides = [maker.layout.sample(system, label) for system in (0, 1)]
    policy = metric.comparisons.events
    reason = ""
    if n < maker.settings.minimum:
        reason = f"not enough data: {n} {maker.unit}s, at least {maker.settings.minimum} wanted"
    elif policy is not None:
        reasons = [policy.whole_is_too_rare(maker, sample) for sample in sides]
        reason = next(filter(None, reasons), "")
    rates = isinstance(policy, RatioPolicy) and not policy.of_medians
    least = policy.smallest if isinstance(policy, RatioPolicy) else 0
    if not reason and rates:
        seen = [counts_of(maker, sample, here).events for sample in sides]
        if min(seen) < least:
            reason = (
                f"not enough data: {seen[1]:g} texts flagged before and {seen[0]:g} after, "
                f"{least} wanted in both; the rate itself is compared"
            )
    if reason:
        code = "too-few-units" if n < maker.settings.minimum else "too-few-events"
        return Estimate.undefined(
            reason_code=code, metric=metric.title, reason=reason, n=n, **about
        )
    after, before = (drawn.contrast((s, here), (s, other), how="ratio") for s in sides)

    def left() -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
        one, two = after.leave_one_out(), before.leave_one_out()
        if one is None or two is None:
            return None
        with np.errstate(all="ignore"):
            return one[0] / two[0], one[1] | two[1]

    with np.errstate(all="ignore"):
        draws = np.where(before.draws > 0, after.draws / before.draws, np.nan)
        point = after.point / before.point if before.point > 0 else float("nan")
    change = ResampledStatistic(
        point=point, draws=draws, n=n, smallest_n=n, leave_one_out=left, log=True
    )
    of = "texts outside the group" if other else WHOLE
    about["details"] = {"before": before.point, "after": after.point, "of": of}
    few = maker.settings.interval == "bca" and n < 50
    method = "expanded" if few else maker.settings.interval
    found = change.estimate(metric=metric.title, method=method, null=1.0, **about)
    return _by_both_effects(maker, found, label, here, other, exact)


def _by_both_effects(
    maker: MetricEstimator, change: Estimate, label: int, here: int, other: int, exact: bool
) -> Estimate:
    """Return a change of a ratio with the group's own part and that of what it is compared with.

    A ratio moves for every group when the rate of all texts does. It is a change of the group only
    where its own decisions changed beyond chance too, so the larger p-value of both counts.
    """
    one, two = (maker.layout.sample(system, label) for system in (0, 1))
    point = maker.replicates.point
    own, shared = (float(point[one, at] / point[two, at]) for at in (here, other))
    told = {**change.details, "own_change": own, "shared_change": shared}
    change = change.replace(details=told)
    p = _level(maker, label, here, exact).p_value
    if own == 1.0:
        p = 1.0
    if change.p_value is None or p is None:
        return change
    if own == 1.0 and shared != 1.0:
        note = f"the group's own rate did not change; that of {told['of']} is {shared:.3g} times"
    else:
        note = f"the group's own rate is {own:.3g} times, that of {told['of']} {shared:.3g} times"
    return change.replace(
        p_value=max(change.p_value, p), note="; ".join(filter(None, (change.note, note)))
    )
