"""One engine for every metric: intervals, groups, gaps and corrected comparisons.

All systems, labels and groups of a metric are resampled together, on the same users or texts. So
a gap is never read off two separate intervals, and two systems are compared on the same people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.metrics.base import Metric, Rows, key_of
from ombud.metrics.engine.comparisons import OUTSIDE, WHOLE
from ombud.metrics.engine.estimator import Beside, Correction, MetricEstimator, Settings
from ombud.metrics.engine.label_uncertainty import add_shared
from ombud.metrics.engine.layout import Against, Layout, aligned, all_units, sums_beside
from ombud.metrics.engine.paired import SharedUnits, on_shared_units
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Replicates, Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate, ReasonCode
from ombud.stats.multiplicity import adjust
from ombud.stats.ranks import resample_by_pattern
from ombud.stats.statistics import Floats

REST = "everyone else whose group is known"
"""What a group is compared with: the other units for which its attribute is known."""


def estimate_metric(
    metric: Metric,
    rows: Mapping[str, Rows],
    groups: Grouping | None = None,
    settings: Settings | None = None,
    repeats: Sequence[Mapping[str, Rows]] = (),
) -> list[Estimate]:
    """Return every estimate of one metric: levels, gaps between groups, gaps between systems.

    Parameters
    ----------
    metric
        The metric.
    rows
        What it measured, by system. Systems are compared on the units they share.
    groups
        Groups of units; each is also compared with the rest of its attribute.
    settings
        How uncertainty is computed.
    repeats
        What it measured in further repeats, with other splits and trainings: numbers are then means
        over repeats, and intervals hold the chance of repeats too (`metrics.engine.repeated`).
    """
    chosen = settings = settings or Settings()
    systems = tuple(rows)
    first = rows[systems[0]]
    labels = first.labels
    every = (rows, *repeats)
    units = all_units([part[s].ids for part in every for s in systems])
    wanted = metric.comparisons
    layout = Layout.of(systems, labels, groups, wanted.groups)
    if len(units) == 0:
        return nothing_measured(metric, rows, layout)
    members = None if groups is None else groups.aligned(units.ids)
    sampled = [
        [
            Sample(values, metric.statistic)
            for name in systems
            for values in aligned(part[name], units, metric.statistic.columns).swapaxes(0, 1)
        ]
        for part in every
    ]
    samples = sampled[0]
    columns = None if members is None else layout.columns(members)
    clusters = _clusters(rows, units)

    def draw(some: Sequence[Sample], columns: NDArray[np.bool_] | None = None) -> Replicates:
        # Only `resample` draws the same units whatever their values: repeats must keep in step.
        by_pattern = wanted.by_pattern and not repeats
        return (resample_by_pattern if by_pattern else resample)(
            some,
            groups=columns,
            clusters=clusters,
            replicates=chosen.replicates,
            rng=generator(chosen.seed, "bootstrap", metric.seed_name),
        )

    replicates = draw(samples, columns)
    points = [replicates.point]
    alone = replicates.draws[:, :, 0].copy()
    if repeats:
        parts = [replicates, *(draw(some, columns) for some in sampled[1:])]
        points = [part.point for part in parts]
        alone = np.mean([part.draws[:, :, 0] for part in parts], axis=0)
        rng = generator(settings.seed, "repeats", metric.seed_name)
        replicates = over_repeats(parts, settings.level, rng)
        samples = list(replicates.samples)
        if settings.interval == "bca":
            settings = replace(settings, interval="expanded")
    shared = [rows[name].shared for name in systems]
    if any(one is not None for one in shared):
        rng = generator(settings.seed, "shared", metric.seed_name)
        add_shared(replicates, shared, units, columns, rng)
    common = np.nan_to_num(replicates.draws[:, :, 0] - alone)
    pairs = SharedUnits()
    if wanted.systems:
        pairs = on_shared_units(samples, layout, draw, common)
    within = np.ones((len(units), 1), dtype=np.bool_) if columns is None else columns
    beside = Beside.mean(
        [_beside(part, units, within, some) for part, some in zip(every, sampled, strict=True)]
    )
    maker = MetricEstimator(
        metric, first.unit, rows, replicates, layout, settings, pairs, tuple(points), beside
    )
    return estimates_of(maker, groups, None if members is None else layout.overlap(members))


def _beside(
    rows: Mapping[str, Rows],
    units: Vocabulary,
    columns: NDArray[np.bool_],
    samples: Sequence[Sample],
) -> Beside:
    """Return what rows tell beside the number, of everyone and of each group."""
    known = np.stack([~np.isnan(sample.values).any(axis=1) for sample in samples], axis=1)
    counts = columns.T.astype(np.float64) @ known.astype(np.float64)
    return Beside.of(sums_beside(rows, units, columns, known), counts)


def estimates_of(
    maker: MetricEstimator, groups: Grouping | None, overlap: NDArray[np.integer[Any]] | None
) -> list[Estimate]:
    """Return every estimate that is made of replicates, with corrected p-values.

    Of the members of `groups` nothing is asked. `overlap` is groups x groups: how many of the
    measured units are in both.
    """
    metric, layout, settings = maker.metric, maker.layout, maker.settings
    systems, labels, wanted = layout.systems, layout.labels, metric.comparisons
    cells = [(s, w) for s in range(len(systems)) for w in range(len(labels))]
    families: list[list[Estimate]] = []
    if wanted.levels:
        families.append([maker.level(s, w, 0) for s, w in cells])
        families.append(
            [maker.level(s, w, 1 + g) for s, w in cells for g in range(len(layout.groups))]
        )
    compared = _compared(groups, overlap, wanted.groups)
    families.append(
        [maker.group_contrast(s, w, g, other) for s, w in cells for g, other in compared.items()]
    )
    if wanted.levels and wanted.groups == "rest" and groups is not None:
        attributes = _attributes(groups, compared)
        families.append(
            [maker.attribute_gap(s, w, a, some) for s, w in cells for a, some in attributes.items()]
        )
    if wanted.systems:
        families.append([maker.system_gap(a, b, w) for a, b, w in layout.pairs()])
    corrected = [e for family in families for e in correct(family, settings.correction)]
    if wanted.summary is not None:
        corrected += [e for s, w in cells for e in wanted.summary(maker, s, w)]
    return corrected


def correct(estimates: Sequence[Estimate], correction: Correction) -> list[Estimate]:
    """Return the estimates with p-values adjusted over those that were, or could have been, tested.

    Whether a small group is tested hangs on its events; left out of the count, the groups that
    happen to have many would be corrected over too few. So those count with a p-value of 1.
    A p-value that was raised to what its replicates can tell is corrected from what the test gave;
    the corrected one is not below it.
    """
    hidden = [bool(e.details.get("few_events")) for e in estimates]
    if any(hidden):
        counted = [
            e.replace(p_value=1.0) if h else e for e, h in zip(estimates, hidden, strict=True)
        ]
        adjusted_all = _adjusted(counted, correction)
        return [e if h else a for e, h, a in zip(estimates, hidden, adjusted_all, strict=True)]
    return _adjusted(estimates, correction)


def _adjusted(estimates: Sequence[Estimate], correction: Correction) -> list[Estimate]:
    tested = [e for e in estimates if e.p_value is not None]
    if not tested or correction == "none":
        return list(estimates)
    given = [e.p_value if e.p_tail is None else e.p_tail for e in tested]
    adjusted = iter(adjust(np.array(given, dtype=np.float64), correction))
    text = f"{correction} over {len(tested)}"
    return [
        e
        if e.p_value is None
        else e.replace(p_adjusted=max(float(next(adjusted)), e.p_value), correction=text)
        for e in estimates
    ]


def nothing_measured(metric: Metric, rows: Mapping[str, Rows], layout: Layout) -> list[Estimate]:
    """Return estimates that say that there was no unit to measure, and why if that is known."""
    made = []
    for system in layout.systems:
        some = rows[system]
        none: tuple[ReasonCode, str] = ("no-units", f"no {some.unit} could be measured")
        for label in some.labels:
            code, reason = some.why_undefined(label) or none
            made.append(
                Estimate.undefined(
                    reason_code=code, metric=metric.title, key=key_of(metric), reason=reason, n=0,
                    unit=some.unit, system=system, label=label,
                )
            )  # fmt: skip
    return made


def _compared(
    groups: Grouping | None, overlap: NDArray[np.integer[Any]] | None, against: Against
) -> dict[int, str]:
    """Return the groups to compare, and the words for what they are compared with.

    Two groups that share out an attribute between them make one comparison, not two.
    """
    if groups is None or overlap is None or against is None:
        return {}
    if against != "rest":
        return dict.fromkeys(range(len(groups.names)), WHOLE if against == "whole" else OUTSIDE)
    text: dict[int, str] = {}
    for g, attribute in enumerate(groups.attributes):
        same = [h for h, other in enumerate(groups.attributes) if other == attribute]
        if len(same) == 2 and not overlap[same[0], same[1]]:
            if g == same[0]:
                text[g] = groups.names[same[1]]
        elif len(same) > 1:
            text[g] = REST
    return text


def _attributes(groups: Grouping, compared: Mapping[int, str]) -> dict[str, list[int]]:
    """Return the groups of each attribute; the gap of two that share it out is made already."""
    of: dict[str, list[int]] = {}
    for g, attribute in enumerate(groups.attributes):
        of.setdefault(attribute, []).append(g)
    return {
        attribute: some
        for attribute, some in of.items()
        if len(some) > 1 and all(compared.get(g) == REST for g in some)
    }


def _clusters(rows: Mapping[str, Rows], units: Vocabulary) -> NDArray[np.int32] | None:
    if all(r.clusters is None for r in rows.values()):
        return None
    clusters = np.full(len(units), -1, dtype=np.int32)
    for r in rows.values():
        if r.clusters is not None:
            clusters[units.codes(r.ids)] = r.clusters
    return clusters


# Replicates of audits that were repeated: with other splits and other trainings.


def over_repeats(parts: Sequence[Replicates], level: float, rng: np.random.Generator) -> Replicates:
    r"""Return the mean over repeats, with the chance of users and of repeats in its replicates.

    Repeats resample the same users in step, so that the mean of their replicates has the variance
    that comes of users. With :math:`\theta_r` the number of repeat r of R, each replicate is then
    moved by :math:`\sum_r z_r (\theta_r - \bar\theta) / \sqrt{R (R - 1)}` with independent standard
    normal :math:`z_r`, the same for all systems, labels and groups: the variance of a mean over
    repeats, added as the law of total variance has it. Few repeats say little about their own
    spread, so the move is stretched by what Student's t with R - 1 degrees of freedom is wider than
    the normal at the level of the interval.

    `parts` are the replicates of each repeat, over the same units, resampled in step.
    """
    count = len(parts)
    points = np.stack([part.point for part in parts])
    mean = points.mean(axis=0)
    draws = np.mean([part.draws for part in parts], axis=0)
    tail = (1 + level) / 2
    stretch = float(stdtrit(count - 1, tail) / ndtri(tail))
    weights = rng.standard_normal((len(draws), count)) * stretch / np.sqrt(count * (count - 1))
    moves = weights @ (points - mean).reshape(count, -1)
    draws += moves.reshape(len(draws), *mean.shape)
    first = parts[0]
    samples = tuple(
        Sample(_mean_of([part.samples[s].values for part in parts]), sample.statistic)
        for s, sample in enumerate(first.samples)
    )
    n = np.max([part.n for part in parts], axis=0)
    return Replicates(samples, first.design, mean, draws, n)


def _mean_of(values: Sequence[Floats]) -> Floats:
    """Return the mean over repeats in which a unit was measured; NaN where in none."""
    stacked = np.stack(values)
    known = ~np.isnan(stacked)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, stacked, 0.0).sum(axis=0) / known.sum(axis=0))
