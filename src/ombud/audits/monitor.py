"""A series of results: each number against that of a reference, with a stated false-alarm rate.

The chart of a number shows each result beside limits around the reference: beyond them, chance
alone would bring a number only so often. The rate is that of the whole result, all its numbers
together: with 0.01 and nothing changed, about one result in a hundred alarms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ombud.audits.compare import compare, differing_units
from ombud.audits.load import load_metrics
from ombud.audits.result import Result
from ombud.errors import ResultError
from ombud.stats.estimate import Estimate
from ombud.stats.multiplicity import adjust

_Key = tuple[str, str, str, str, str]


class Point(NamedTuple):
    """One result in a chart."""

    result: str  # the name of the result
    # The number and its interval, as the result tells them.
    value: float | None
    interval: tuple[float, float] | None
    # Where the number would be expected if nothing had changed, given how many numbers are looked
    # at; None where it cannot be said.
    low: float | None
    high: float | None
    # How surprising the change from the reference is, corrected over all numbers of the result.
    p: float | None
    alarm: bool  # whether it is beyond what chance brings


@dataclass(frozen=True)
class ControlChart:
    """One number over the results, in their order."""

    # What the number is of.
    metric: str
    system: str
    label: str
    group: str
    against: str
    kind: str  # a level, or a ratio
    points: tuple[Point, ...]  # one for each result; the first is the reference

    @property
    def alarms(self) -> tuple[Point, ...]:
        """The results in which the number is beyond what chance brings."""
        return tuple(point for point in self.points if point.alarm)


@dataclass(frozen=True)
class Watch:
    """A series of results."""

    names: tuple[str, ...]  # the results in their order; the first is the reference
    # One for each number; those that alarm in the last result first.
    charts: tuple[ControlChart, ...]
    false_alarms: float  # the share of results that would alarm if nothing changed
    numbers: int  # how many numbers of the last result were compared
    paired: bool  # whether all results are on the same texts or users
    remarks: tuple[str, ...] = ()  # what must be known beside the charts

    @property
    def alarms(self) -> tuple[ControlChart, ...]:
        """The charts in which the last result alarms."""
        return tuple(chart for chart in self.charts if chart.points[-1].alarm)


def results_in(folder: Path | str) -> tuple[Result, ...]:
    """Return the finished results in a folder, in the order in which they were finished.

    Raises
    ------
    ResultError
        If there is no such folder, or fewer than two results in it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ResultError(f"there is no folder {folder}")
    if (folder / "provenance.json").exists():
        raise ResultError(f"{folder} is one result; name the folder that holds several")
    found = sorted(path.parent for path in folder.glob("*/provenance.json"))
    if len(found) < 2:
        raise ResultError(
            f"{folder} holds {len(found)} finished results; a series needs two or more. Store "
            f"each run beside the others: ombud run plan.toml --folder {folder / 'monday'}"
        )
    loaded = [Result.load(path) for path in found]
    order = sorted(
        range(len(loaded)), key=lambda i: (str(loaded[i].provenance.get("finished")), found[i].name)
    )
    return tuple(loaded[i] for i in order)


def watch(
    results: Sequence[Result] | Path | str,
    *,
    false_alarms: float = 0.01,
    reference: str = "",
    same_units: bool = False,
) -> Watch:
    """Return a control chart of each number over a series of results.

    Each result is compared with the reference, so that slow changes add up and are seen too. On
    the same texts or users the comparison is paired (as in `compare`); on others it takes both
    intervals as those of independent samples. P-values are corrected over all numbers of a result
    (Holm), so the stated rate is that of a whole result.

    Parameters
    ----------
    results
        A folder of result folders, or results in their order.
    false_alarms
        The share of results that may alarm although nothing changed.
    reference
        The name of the result's folder to compare with; default, the first.
    same_units
        As in `compare`.

    Raises
    ------
    ResultError
        If there are fewer than two results, the reference is not there, or nothing is comparable.
    """
    if not 0 < false_alarms < 1:
        raise ResultError(f"the rate of false alarms is {false_alarms}; 0 to 1 is expected")
    loaded = results_in(results) if isinstance(results, Path | str) else tuple(results)
    if len(loaded) < 2:
        raise ResultError(f"{len(loaded)} results are no series; two or more are needed")
    names = [_name(result, place) for place, result in enumerate(loaded)]
    if len(set(names)) < len(names):
        names = [f"{place + 1}: {name}" for place, name in enumerate(names)]
    first = 0
    if reference:
        if reference not in names:
            known = ", ".join(names)
            raise ResultError(f"no result is called {reference!r}; there are: {known}")
        first = names.index(reference)
    later = [place for place in range(len(loaded)) if place > first]
    if not later:
        raise ResultError(f"{reference!r} is the last result: nothing comes after it")
    points: dict[_Key, list[Point]] = {
        key: [Point(names[first], e.value, e.interval, None, None, None, False)]
        for key, e in _numbers(loaded[first]).items()
    }
    if not points:
        raise ResultError(f"{names[first]} has no number that could be followed")
    remarks: list[str] = []
    paired = True
    for place in later:
        result = loaded[place]
        pairs = same_units or not _on_other_data(loaded[first], result)
        paired &= pairs
        if pairs:
            changes, told = _paired(loaded[first], result, same_units=same_units)
            remarks += told
        else:
            changes = _unpaired(loaded[first], result)
        _add(points, result, names[place], changes, false_alarms)
    if not paired:
        remarks.append(
            "some results are on other data than the reference: those are compared as independent "
            "samples, and what differs between the samples is among the changes"
        )
    charts = [ControlChart(*_about(loaded[first], key), tuple(p)) for key, p in points.items()]
    charts.sort(key=lambda c: (not c.points[-1].alarm, not c.alarms, c.points[-1].p or 1.0))
    numbers = sum(chart.points[-1].p is not None for chart in charts)
    if not numbers:
        raise ResultError("no number of the last result can be compared with the reference")
    shown = tuple(names[place] for place in (first, *later))
    return Watch(shown, tuple(charts), false_alarms, numbers, paired, tuple(dict.fromkeys(remarks)))


def _name(result: Result, place: int) -> str:
    return f"result {place + 1}" if result.folder is None else result.folder.name


def _on_other_data(first: Result, other: Result) -> bool:
    specs = [info.spec for info in first.metrics if info.spec in [i.spec for i in other.metrics]]
    return any(differing_units(first, other, metric) for metric in load_metrics(tuple(specs)))


def _key(estimate: Estimate, against: str = "") -> _Key:
    return (estimate.metric, estimate.system, estimate.label, estimate.group, against)


def _numbers(result: Result) -> dict[_Key, Estimate]:
    """Return what is followed: levels, and ratios of groups where a metric has no levels."""
    systems = set(result.systems)
    measured = {info.title for info in result.metrics}
    with_levels = {e.metric for e in result.estimates if e.kind == "level" and e.metric in measured}
    return {
        _key(e): e
        for e in result.estimates
        if e.metric in measured
        and e.against not in systems
        and (e.kind == "level" if e.metric in with_levels else e.kind == "ratio")
    }


def _about(result: Result, key: _Key) -> tuple[str, str, str, str, str, str]:
    estimate = _numbers(result)[key]
    return (*key[:4], estimate.against, estimate.kind)


def _paired(
    first: Result, result: Result, *, same_units: bool
) -> tuple[dict[_Key, Estimate], tuple[str, ...]]:
    changes = compare(first, result, same_units=same_units)
    return {_key(e): e for e in changes if e.value is not None}, changes.remarks


def _unpaired(first: Result, result: Result) -> dict[_Key, Estimate]:
    """Return changes between independent samples, from the intervals of both."""
    one, other = _numbers(first), _numbers(result)
    changes = {}
    for key in one.keys() & other.keys():
        before, after = one[key], other[key]
        log = before.kind == "ratio"
        earlier, later = _with_error(before, log=log), _with_error(after, log=log)
        if earlier is None or later is None:
            continue
        (a, error_a), (b, error_b) = earlier, later
        error = float(np.hypot(error_a, error_b))
        if not error > 0:
            continue
        z = (b - a) / error
        half = float(ndtri((1 + before.level) / 2)) * error
        ends, value = (b - a - half, b - a + half), b - a
        if log:
            ends, value = (float(np.exp(ends[0])), float(np.exp(ends[1]))), float(np.exp(value))
        changes[key] = Estimate(
            metric=before.metric,
            value=value,
            interval=ends,
            method="independent samples",
            n=min(before.n, after.n),
            kind="ratio" if log else "gap",
            null=1.0 if log else 0.0,
            p_value=float(2 * ndtr(-abs(z))),
        )
    return changes


def _with_error(estimate: Estimate, *, log: bool) -> tuple[float, float] | None:
    """Return a number and its standard error, from its interval; of a ratio, of its logarithm."""
    if estimate.value is None or estimate.interval is None:
        return None
    values = np.array([estimate.value, *estimate.interval])
    if log:
        if not (values > 0).all():
            return None
        values = np.log(values)
    if not np.isfinite(values).all():
        return None
    width = float(ndtri((1 + estimate.level) / 2))
    return float(values[0]), float(values[2] - values[1]) / 2 / width


def _add(
    points: dict[_Key, list[Point]],
    result: Result,
    name: str,
    changes: dict[_Key, Estimate],
    false_alarms: float,
) -> None:
    """Add one result to each chart, its p-values corrected over all numbers."""
    keys = [key for key in points if key in changes and changes[key].p_value is not None]
    # A p-value of a bootstrap is shown no smaller than its replicates bear; the correction over
    # all numbers takes it whole, as it does within a result.
    raw = np.array([_whole_p(changes[key]) for key in keys], dtype=np.float64)
    adjusted = dict(zip(keys, adjust(raw, "holm").tolist(), strict=True)) if keys else {}
    there = _numbers(result)
    for key, series in points.items():
        estimate, p = there.get(key), adjusted.get(key)
        low, high = _limits(series[0], changes.get(key), len(keys), false_alarms)
        series.append(
            Point(
                name,
                None if estimate is None else estimate.value,
                None if estimate is None else estimate.interval,
                low,
                high,
                p,
                p is not None and p < false_alarms,
            )
        )


def _whole_p(change: Estimate) -> float:
    p = change.p_value if change.p_tail is None else change.p_tail
    return 1.0 if p is None else p


def _limits(
    reference: Point, change: Estimate | None, numbers: int, false_alarms: float
) -> tuple[float | None, float | None]:
    """Return where a number may be without an alarm: the change's spread, put at the reference."""
    if change is None or change.interval is None or reference.value is None or not numbers:
        return None, None
    log = change.kind == "ratio"
    ends = np.array(change.interval)
    if log and not (ends > 0).all():
        return None, None
    width = float(ndtri((1 + change.level) / 2))
    error = float(np.diff(np.log(ends) if log else ends)[0]) / 2 / width
    reach = error * float(ndtri(1 - false_alarms / 2 / numbers))
    if log:
        return reference.value * float(np.exp(-reach)), reference.value * float(np.exp(reach))
    return reference.value - reach, reference.value + reach
