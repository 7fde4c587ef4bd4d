"""What each look at a series says about each number, from the rows of units that results store.

New units at each look are independent samples; units that are measured again are compared with
themselves. Which of both it is must follow from the data or from ids: see `Units`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ombud.audits.compare import place_of_metric, stored_rows, units_of
from ombud.audits.load import load_metrics
from ombud.audits.result import MetricInfo, Result
from ombud.audits.run_folder import read_groups
from ombud.data.groups import Grouping
from ombud.errors import ResultError
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.changes import has_changes
from ombud.stats.estimate import Estimate
from ombud.stats.sequential import (
    Residuals,
    count_residuals,
    mean_residuals,
    paired_residuals,
    summary_residuals,
)
from ombud.stats.statistics import Floats, Mean, OfSums, Quantile, Statistic

Key = tuple[str, str, str, str, str]
"""Metric, system, label, group, and what the number is against."""

_STEP = 1e-6


@dataclass(frozen=True, eq=False)
class Units:
    """Which units of a metric on a system the looks share."""

    rows: tuple[Rows | None, ...]  # one a look
    codes: tuple[NDArray[np.int64], ...]  # one a look: the same unit has the same code
    again: bool  # whether units are measured again


@dataclass(frozen=True, eq=False)
class Followed:
    """The residuals of every number, and what must be known beside them."""

    residuals: Mapping[Key, Residuals]  # from the look where a number starts
    paired: bool
    remarks: tuple[str, ...]


def follow(
    looks: Sequence[Result],
    names: Sequence[str],
    numbers: Sequence[Mapping[Key, Estimate]],
    *,
    same_units: bool,
    starts: Mapping[Key, int],
) -> Followed:
    """Return the residuals of the numbers that the first look has.

    Parameters
    ----------
    looks, names
        Results in their order, the reference first, and what they are called.
    numbers
        The estimates of each look that are followed.
    same_units
        Whether equal ids are the same units although the data differs.
    starts
        The look from which a number is followed anew, after its alarm was acknowledged.
    """
    found: dict[Key, Residuals] = {}
    remarks: list[str] = []
    paired = True
    stored = all(result.folder is not None for result in looks)
    if not stored:
        remarks.append(
            "results that are not stored have no rows: the looks count as independent samples, "
            "from the values and intervals of the estimates"
        )
        _check_unstored(looks, names)
        paired = False
    for index, info in enumerate(looks[0].metrics):
        keys = [key for key in numbers[0] if key[0] == info.title]
        if not keys:
            continue
        (metric,) = load_metrics((info.spec,))
        if not has_changes(metric):
            remarks.append(f"{info.title} is computed over all groups; its groups are followed")
            continue
        places = [place_of_metric(result, info) for result in looks]
        remarks += [
            f"{name} has no {info.title} with the options of {names[0]} and was not compared"
            for name, place in zip(names, places, strict=True)
            if place is None
        ]
        groups = [read_groups(r.folder, _of(metric)) if r.folder else None for r in looks]
        for system in dict.fromkeys(key[1] for key in keys):
            own = [key for key in keys if key[1] == system]
            absent = [name for r, name in zip(looks, names, strict=True) if system not in r.systems]
            remarks += [f"{name} has no system {system}" for name in absent]
            if not stored:
                for key in own:
                    found[key] = _of_estimates(numbers, key, starts.get(key, 0))
                continue
            units = _units(looks, names, info, index, places, metric, system, same_units, remarks)
            paired &= units.again
            for key in own:
                values = _values(metric.statistic, units, groups, key, numbers[0][key])
                if values is None:
                    about = ", ".join(part for part in key[:4] if part)
                    remarks.append(f"{about}: no sum over units, so it is not followed")
                    continue
                found[key] = _residuals(values, units, starts.get(key, 0))
    return Followed(found, paired, tuple(remarks))


def _of(metric: Metric) -> Literal["user", "text"]:
    return "text" if metric.of == "moderator" else "user"


def _check_unstored(looks: Sequence[Result], names: Sequence[str]) -> None:
    """Refuse the same units without their rows: they are no independent samples."""
    known: dict[str, str] = {}
    for result, name in zip(looks, names, strict=True):
        data = str(result.provenance.get("data"))
        if data in known and data != "None":
            raise ResultError(
                f"{known[data]} and {name} are on the same data; only stored results have the rows "
                "that pairs need: give run() a folder"
            )
        known[data] = name


def _units(
    looks: Sequence[Result],
    names: Sequence[str],
    info: MetricInfo,
    index: int,
    places: Sequence[int | None],
    metric: Metric,
    system: str,
    same_units: bool,
    remarks: list[str],
) -> Units:
    """Return the rows of each look, and which units are the same.

    Raises
    ------
    ResultError
        If the data differs and only some ids are equal, so that nobody knows which units are.
    """
    rows = [
        None if place is None or system not in result.systems
        else stored_rows(result, place, system, info.unit)
        for result, place in zip(looks, places, strict=True)
    ]  # fmt: skip
    data = [units_of(result, metric) for result in looks]
    ids = [np.array([]) if r is None else r.ids for r in rows]
    if not same_units and len(set(data)) > 1:
        _check_mixed(ids, data, names, remarks)
    seen: dict[Any, int] = {}
    codes = []
    for part, source in zip(ids, data, strict=True):
        about = "" if same_units else source
        listed = [seen.setdefault((about, one), len(seen)) for one in part.tolist()]
        codes.append(np.array(listed, dtype=np.int64))
    again = len(seen) < sum(len(part) for part in codes)
    if not again and len(looks) > 1 and not same_units:
        remarks.append(
            "looks are on other data than the reference and count as independent samples: what "
            "differs between the samples is among the changes"
        )
    if again:
        known: set[int] = set()
        for name, part in zip(names, codes, strict=True):
            if known and len(part) and known.isdisjoint(part.tolist()):
                remarks.append(f"{name} shares no unit with earlier looks: nothing is compared")
            known.update(part.tolist())
    return Units(tuple(rows), tuple(codes), again)


def _check_mixed(
    ids: Sequence[NDArray[Any]], data: Sequence[str], names: Sequence[str], remarks: list[str]
) -> None:
    """Refuse ids that are in looks on other data, unless all looks have the same ids.

    Where some looks share units and others do not, the noise of those that share is in common.
    """
    sets = [set(part.tolist()) for part in ids]
    seen: dict[Any, str] = {}
    overlapping = []
    for name, part, source in zip(names, sets, data, strict=True):
        if any(seen.get(one, source) != source for one in part):
            overlapping.append(name)
        seen |= dict.fromkeys(part, source)
    if not overlapping:
        return
    if len(set(data)) == len(data) and all(part == sets[0] for part in sets):
        remarks.append(
            "every result is on other data with the same ids: taken for new units "
            "(--same-units pairs them)"
        )
        return
    raise ResultError(
        f"{overlapping[0]} has ids of earlier results, but is on other data: are those the same "
        "users or texts? If they are, say so with --same-units, or watch(..., same_units=True); if "
        "not, give each sample ids of its own"
    )


def _of_estimates(numbers: Sequence[Mapping[Key, Estimate]], key: Key, start: int) -> Residuals:
    """Return residuals from estimates: of counts where they are counts, else of intervals."""
    same = [one.get(key) for one in numbers[start:]]
    n = np.array([0 if e is None or e.value is None else e.n for e in same], dtype=np.float64)
    events = [
        e is None or e.value is None or (
            e.kind == "level" and e.events is not None and abs(e.value * e.n - e.events) < 1e-6
        )
        for e in same
    ]  # fmt: skip
    if all(events):
        counts = [0 if e is None or e.value is None else int(e.events or 0) for e in same]
        made = count_residuals(np.array(counts, dtype=np.float64), n)
    else:
        value, error = (np.array(part) for part in zip(*map(_spread, same), strict=True))
        made = summary_residuals(value, error, n)
    return made


def _spread(estimate: Estimate | None) -> tuple[float, float]:
    if estimate is None or estimate.value is None or estimate.interval is None:
        return np.nan, np.nan
    width = float(ndtri((1 + estimate.level) / 2))
    return estimate.value, (estimate.interval[1] - estimate.interval[0]) / 2 / width


def _values(
    statistic: Statistic, units: Units, groups: Sequence[Grouping | None], key: Key, about: Estimate
) -> list[tuple[NDArray[np.int64], Floats]] | None:
    """Return for each look the rows that count, and a value of each whose mean is followed.

    The mean over the units of a look is the statistic, to first order around the first look. For
    a ratio of a group to all texts (or to those outside), it is that ratio. A quantile is followed
    as the share of units above that of the first look.
    """
    _, _, label, group, _ = key
    ratio = about.kind == "ratio"
    cut: list[tuple[NDArray[np.int64], Floats, NDArray[np.bool_]] | None] = []
    for rows, grouping in zip(units.rows, groups, strict=True):
        if rows is None or label not in rows.labels:
            cut.append(None)
            continue
        column = rows.labels.index(label)
        cube = np.stack([rows.columns[c][:, column] for c in statistic.columns], axis=1)
        inside = np.full(len(cube), not group)
        if group and grouping is not None and group in grouping.names:
            inside = grouping.aligned(rows.ids)[:, grouping.names.index(group)]
        counted = ~np.isnan(cube).any(axis=1)
        if group and not ratio:
            counted &= inside
        cut.append((np.flatnonzero(counted), cube[counted].astype(float), inside[counted]))
    first = next((one for one in cut if one is not None and len(one[0])), None)
    if first is None:
        return None
    made = _linear(statistic, first[1], first[2], ratio, outside=about.against != "all texts")
    if made is None:
        return None
    empty = (np.zeros(0, dtype=np.int64), np.zeros(0))
    return [empty if one is None else (one[0], made(one[1], one[2])) for one in cut]


def _linear(
    statistic: Statistic, cube: Floats, inside: NDArray[np.bool_], ratio: bool, *, outside: bool
) -> Any:
    """Return the function from units to values whose mean is the statistic, to first order."""
    if isinstance(statistic, Quantile) and not ratio:
        middle = statistic.point(cube)
        return lambda rows, inside: (rows[:, 0] > middle).astype(float)
    if not isinstance(statistic, OfSums):
        return None
    if not ratio:
        return _influence(statistic, cube)
    other = ~inside if outside else np.ones(len(inside), dtype=bool)
    if not inside.any() or not other.any():
        return None
    values = [statistic.point(cube[part]) for part in (inside, other)]
    if not np.isfinite(values).all() or not values[1] > 0:
        return None
    quotient, shares = values[0] / values[1], (inside.mean(), other.mean())
    one, two = (_influence(statistic, cube[part]) for part in (inside, other))

    def apply(rows: Floats, inside: NDArray[np.bool_]) -> Floats:
        rest = ~inside if outside else np.ones(len(inside), dtype=bool)
        own = np.where(inside, one(rows, inside) - values[0], 0.0) / shares[0]
        others = np.where(rest, two(rows, inside) - values[1], 0.0) / shares[1]
        return np.asarray(quotient + (own - quotient * others) / values[1])

    return apply


def _influence(statistic: OfSums, cube: Floats) -> Any:
    if isinstance(statistic, Mean):
        return lambda rows, inside: rows[:, 0]
    means = np.append(statistic.terms_of(cube).mean(axis=0), 1.0)
    value = float(statistic.evaluate(means))
    steps = _STEP * np.maximum(np.abs(means), _STEP)
    slopes = np.array([
        float(statistic.evaluate(means + step) - statistic.evaluate(means - step)) / (2 * size)
        for step, size in zip(np.diag(steps), steps, strict=True)
    ][:-1])  # fmt: skip
    return lambda rows, inside: value + (statistic.terms_of(rows) - means[:-1]) @ slopes


def _residuals(
    values: list[tuple[NDArray[np.int64], Floats]], units: Units, start: int
) -> Residuals:
    kept = values[start:]
    clusters = [None if r is None else r.clusters for r in units.rows][start:]
    if units.again:
        return _panel(kept, units.codes[start:], clusters)
    if all(part is None for part in clusters):
        return mean_residuals([y for _, y in kept])
    # One value a cluster: its sum beside that of as many average units.
    made, size, middle = [], 0.0, 0.0
    for (place, y), part in zip(kept, clusters, strict=True):
        if not len(y):
            made.append(y)
            continue
        _, code = np.unique(part[place] if part is not None else place, return_inverse=True)
        if not size:
            size, middle = len(y) / (code.max() + 1), float(y.mean())
        made.append(middle + np.bincount(code, y - middle) / size)
    return mean_residuals(made)


def _panel(
    values: list[tuple[NDArray[np.int64], Floats]],
    codes: Sequence[NDArray[np.int64]],
    clusters: Sequence[NDArray[np.int32] | None],
) -> Residuals:
    """Return the residuals of units x looks; a unit's cluster is that of its first look."""
    chosen = [code[place] for code, (place, _) in zip(codes, values, strict=True)]
    every, first = np.unique(np.concatenate(chosen), return_index=True)
    panel = np.full((len(every), len(values)), np.nan)
    for look, (code, (_, y)) in enumerate(zip(chosen, values, strict=True)):
        panel[np.searchsorted(every, code), look] = y
    if all(part is None for part in clusters):
        return paired_residuals(panel)
    shared = np.concatenate([
        place if part is None else part[place]
        for part, (place, _) in zip(clusters, values, strict=True)
    ])  # fmt: skip
    return paired_residuals(panel, np.unique(shared[first], return_inverse=True)[1])
