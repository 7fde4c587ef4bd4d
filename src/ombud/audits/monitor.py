"""A series of results: did a number change, with one rate of false alarms for the whole series.

By default, the chance that any number ever alarms although nothing changed is at most the stated
rate, over all results of the series and all numbers together (`ombud.stats.sequential`). Per
result, each is compared with the reference alone, and the rate is that of one result: with 0.01 and
nothing changed, about one result in a hundred alarms, so a long series alarms sooner or later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from ombud.audits.compare import compare, differing_units
from ombud.audits.load import load_metrics
from ombud.audits.provenance import now
from ombud.audits.result import RESULT_SCHEMA, Result
from ombud.audits.series import Key as _Key
from ombud.audits.series import follow
from ombud.errors import ResultError
from ombud.files import read_json, write_json
from ombud.stats.estimate import Estimate
from ombud.stats.multiplicity import adjust
from ombud.stats.sequential import closed_testing, e_process, evidence, most_likely_change


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
    alarm: bool  # whether it alarms here, or alarmed before and nobody acknowledged it
    # The evidence that the number changed at any look so far: 1 is none. None per result.
    evidence: float | None = None


class Alarm(NamedTuple):
    """When a number alarmed, and what most likely happened."""

    result: str  # the result at which it alarmed
    evidence: float  # of this number, at that result
    since: str | None  # the result at which it most likely changed
    size: float | None  # of the change, as far as it is known in the last result
    interval: tuple[float, float] | None  # of the size: a confidence sequence, given that result


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
    alarm: Alarm | None = None  # the first that nobody acknowledged; None per result

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
    false_alarms: float  # the chance of any alarm if nothing changed; per result, of each
    numbers: int  # how many numbers are followed
    paired: bool  # whether all results are on the same texts or users
    remarks: tuple[str, ...] = ()  # what must be known beside the charts
    per_result: bool = False  # whether the rate of false alarms is that of each result alone
    # The result at which the numbers together alarmed; empty where they did not. Which numbers
    # changed may then still be open.
    together: str = ""

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
    false_alarms: float = 0.05,
    reference: str = "",
    same_units: bool = False,
    per_result: bool = False,
    acknowledged: Mapping[tuple[str, ...], str] = MappingProxyType({}),
) -> Watch:
    """Return whether numbers changed over a series of results, each with a chart.

    The chance of any alarm in the whole series, all numbers together, is at most the stated rate
    while nothing changes. The evidence for a change is mixed over the result at which it may have
    happened and over its size; it is averaged over the numbers, and closed testing names which
    changed. Texts or users that are measured again are compared with themselves; new ones are
    independent samples. An alarm stays until it is acknowledged.

    Parameters
    ----------
    results
        A folder of result folders, or results in their order.
    false_alarms
        The chance of any false alarm, ever; per result, the share of results that may alarm
        although nothing changed.
    reference
        The name of the result's folder to compare with; default, the first.
    same_units
        As in `compare`.
    per_result
        Compare each result with the reference alone. P-values are corrected over the numbers of a
        result (Holm), so the rate is that of one result.
    acknowledged
        For numbers (metric, system, label, group, against) whose alarm is settled, the name of the
        result from which they are followed anew; default, what the folder has (`acknowledge`).

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
    if not per_result:
        if not acknowledged and isinstance(results, Path | str):
            acknowledged = acknowledged_in(Path(results))
        looks = [loaded[place] for place in (first, *later)]
        called = [names[place] for place in (first, *later)]
        return _at_any_time(looks, called, false_alarms, same_units, acknowledged)
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
    notes = tuple(dict.fromkeys(remarks))
    return Watch(shown, tuple(charts), false_alarms, numbers, paired, notes, per_result=True)


ACKNOWLEDGED = "watch.json"
"""Names, in a folder of results, the alarms that someone acknowledged."""


def acknowledged_in(folder: Path) -> dict[tuple[str, ...], str]:
    """Return for each number with an acknowledged alarm the result from which it is followed anew.

    Raises
    ------
    ResultError
        If the file is damaged.
    """
    path = folder / ACKNOWLEDGED
    if not path.exists():
        return {}
    listed = read_json(path).get("acknowledged")
    found: dict[tuple[str, ...], str] = {}
    for one in listed if isinstance(listed, list) else [None]:
        entry = one if isinstance(one, dict) else {}
        number = entry.get("number")
        words = [*number, entry.get("result")] if isinstance(number, list) else []
        if len(words) != 6 or not all(isinstance(word, str) for word in words):
            raise ResultError(f"{path} is damaged: acknowledged must list numbers and results")
        found[tuple(words[:5])] = words[5]
    return found


def acknowledge(folder: Path, series: Watch) -> int:
    """Store that all alarms of a series are settled, and return how many there were.

    Their numbers are followed anew from the last result on. Where the numbers alarm together and
    none is named, all of them are.
    """
    charts = series.alarms or (series.charts if series.together else ())
    path = folder / ACKNOWLEDGED
    before = read_json(path)["acknowledged"] if acknowledged_in(folder) else []
    new = [
        {
            "number": list(_number_of(chart)),
            "result": series.names[-1],
            "alarm": None if chart.alarm is None else chart.alarm._asdict(),
            "time": now(),
        }
        for chart in charts
    ]
    if new:
        write_json(path, {"schema_version": RESULT_SCHEMA, "acknowledged": [*before, *new]})
    return len(new)


def _number_of(chart: ControlChart) -> _Key:
    return (chart.metric, chart.system, chart.label, chart.group, "")


def _at_any_time(
    looks: Sequence[Result],
    names: Sequence[str],
    false_alarms: float,
    same_units: bool,
    acknowledged: Mapping[tuple[str, ...], str],
) -> Watch:
    values = [_numbers(look) for look in looks]
    starts = {
        key: names.index(acknowledged[key]) for key in values[0] if acknowledged.get(key) in names
    }
    count = len(looks)
    about = follow(looks, names, values, same_units=same_units, starts={})
    keys = list(about.residuals)
    if not any(key in value for value in values[1:] for key in keys):
        why = "; ".join(about.remarks) or "no metric, system and unit is in two of them"
        raise ResultError(f"no number of the series can be compared: {why}")
    residuals = dict(about.residuals)
    e = np.ones((len(keys), count))
    for row, key in enumerate(keys):
        e[row] = e_process(evidence(residuals[key]))
    if starts:
        residuals |= follow(looks, names, values, same_units=same_units, starts=starts).residuals
    for row, key in enumerate(keys):
        if key in starts:
            e[row, starts[key] + 1 :] = e_process(evidence(residuals[key]))[1:]
    # A number alarms for itself only after its last acknowledgement.
    named = np.stack([closed_testing(column, false_alarms) for column in e.T], axis=1)
    together = e.mean(axis=0) >= 1 / false_alarms
    for row, key in enumerate(keys):
        named[row, : starts.get(key, 0) + 1] = False
    charts = []
    for row, key in enumerate(keys):
        standing = np.maximum.accumulate(named[row])
        points = tuple(
            Point(names[t], _value(values[t].get(key)), _interval(values[t].get(key)), None, None,
                  None, bool(standing[t]), float(e[row, t]))
            for t in range(count)
        )  # fmt: skip
        alarm = None
        if standing.any():
            start, at = starts.get(key, 0), int(np.argmax(standing))
            part = residuals[key]
            seen = most_likely_change(part, evidence(part), count - 1 - start, _LEVEL)
            since = None if seen is None else names[start + seen.start]
            size, interval = (None, None) if seen is None else (seen.size, seen.interval)
            alarm = Alarm(names[at], float(e[row, at]), since, size, interval)
        charts.append(ControlChart(*_about(looks[0], key), points, alarm))
    last = {id(chart): chart.points[-1].evidence or 0.0 for chart in charts}
    charts.sort(key=lambda c: (c.alarm is None, -last[id(c)]))
    # An alarm of all together is settled by the last acknowledgement.
    unsettled = together & (np.arange(count) > max(starts.values(), default=-1))
    return Watch(
        tuple(names), tuple(charts), false_alarms, len(keys), about.paired,
        tuple(dict.fromkeys(about.remarks)),
        together=names[int(np.argmax(unsettled))] if unsettled.any() else "",
    )  # fmt: skip


_LEVEL = 0.95
"""Of the interval for the size of a change."""


def _value(estimate: Estimate | None) -> float | None:
    return None if estimate is None else estimate.value


def _interval(estimate: Estimate | None) -> tuple[float, float] | None:
    return None if estimate is None else estimate.interval


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
