"""Two results side by side, on the units they share: what changed, for whom, and what did not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from ombud.audits.load import load_metrics
from ombud.audits.result import MetricInfo, Result
from ombud.audits.run_folder import read_groups
from ombud.data.groups import Grouping
from ombud.errors import ResultError
from ombud.files import inside, read_parquet
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.changes import estimate_changes, has_changes
from ombud.metrics.engine.estimator import Settings
from ombud.stats.estimate import Estimate

_UNITS = {"moderator": ("texts",), "recommender": ("interactions", "test")}
"""The parts of the data that are the units of a metric, by the kind of system it measures."""


@dataclass(frozen=True)
class Comparison:
    """What changed from one result to another."""

    # Every change, by metric, system, label and group; those that stand first, the largest first.
    changes: tuple[Estimate, ...]
    # What must be known beside them: other data, other seeds, what only one result has.
    remarks: tuple[str, ...] = ()

    @property
    def standing(self) -> tuple[Estimate, ...]:
        """The changes that stand after correction for how many were looked at."""
        return tuple(e for e in self.changes if stands(e))

    @property
    def nothing_changed(self) -> bool:
        """Whether not a single number is another one."""
        return all(e.value is None or _size(e) == 0 for e in self.changes)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


def stands(change: Estimate) -> bool:
    """Whether a change is beyond chance, after correction."""
    p = change.p_adjusted if change.p_adjusted is not None else change.p_value
    return p is not None and p < 1 - change.level and _size(change) > 0


def _size(change: Estimate) -> float:
    """Return how far a change is from none: of a ratio, its logarithm."""
    if change.value is None:
        return -1.0
    if change.kind != "ratio":
        return abs(change.value)
    return abs(float(np.log(change.value))) if change.value > 0 else float("inf")


def compare(before: Result, after: Result, *, same_units: bool = False) -> Comparison:
    """Return, for each metric and system of two results, what changed from one to the other.

    The changes are paired: they are computed on the users or texts that both results measured, and
    both are resampled together; everyone's, each group's and each label's (or data set's). So the
    results must be on the same data: ids that happen to be equal are no pairs.

    Parameters
    ----------
    before, after
        Two stored results, such as of two versions of a system.
    same_units
        Say that equal ids are the same users or texts although the data differs, as when people
        went on using a service; it is then said beside the changes.

    Raises
    ------
    ResultError
        If they share no metric and system, or no units, or are on different data.
    """
    for result in (before, after):
        if result.folder is None:
            raise ResultError("only stored results can be compared; give run() a folder")
    remarks: list[str] = []
    changes: list[Estimate] = []
    shared = [
        (i, info)
        for i, info in enumerate(before.metrics)
        if place_of_metric(after, info) is not None
    ]
    systems = [name for name in before.systems if name in after.systems]
    if not shared or not systems:
        raise ResultError(
            "the two results share no metric (with the same options) and system; "
            f"found {[i.title for i in before.metrics]} on {list(before.systems)} "
            f"and {[i.title for i in after.metrics]} on {list(after.systems)}"
        )
    remarks += _only_in_one(before, after)
    settings = Settings(**after.plan.statistics.model_dump(), seed=after.plan.seed)
    kinds: set[str] = set()
    for index, info in shared:
        (metric,) = load_metrics((info.spec,))
        if metric.of not in kinds:
            kinds.add(metric.of)
            remarks += _same_data(before, after, metric, same_units=same_units)
        if not has_changes(metric):
            remarks.append(f"{info.title} is computed over all groups; compare the groups instead")
            continue
        groups = _groups(before, after, metric)
        found: list[Estimate] = []
        place = place_of_metric(after, info)
        assert place is not None
        for system in systems:
            rows = (
                stored_rows(before, index, system, info.unit),
                stored_rows(after, place, system, info.unit),
            )
            if rows[0] is None or rows[1] is None:
                continue
            if not set(rows[0].ids.tolist()) & set(rows[1].ids.tolist()):
                raise ResultError("the two results measured no unit or label in common")
            some = estimate_changes(metric, rows[0], rows[1], groups, settings)
            found += [e.replace(system=system) for e in some]
        changes += sorted(found, key=lambda e: (not stands(e), -_size(e)))
    if not changes:
        raise ResultError("the two results have no number in common that could be compared")
    return Comparison(tuple(changes), tuple(dict.fromkeys(remarks)))


def place_of_metric(result: Result, info: MetricInfo) -> int | None:
    """Return where a result has a metric with the same options; None without it."""
    return next((i for i, one in enumerate(result.metrics) if one.spec == info.spec), None)


def differing_units(before: Result, after: Result, metric: Metric) -> tuple[str, ...]:
    """Return which parts of the data that a metric's units come from are not the same."""
    one, other = (result.provenance.get("parts") for result in (before, after))
    if not isinstance(one, dict) or not isinstance(other, dict):
        same = before.provenance.get("data") == after.provenance.get("data")
        return () if same else ("data",)
    return tuple(name for name in _UNITS[metric.of] if one.get(name) != other.get(name))


def units_of(result: Result, metric: Metric) -> str:
    """Return what identifies the data that a metric's units come from."""
    parts = result.provenance.get("parts")
    if not isinstance(parts, dict):
        return str(result.provenance.get("data"))
    return " ".join(str(parts.get(name)) for name in _UNITS[metric.of])


def _same_data(before: Result, after: Result, metric: Metric, *, same_units: bool) -> list[str]:
    """Refuse other units; return what else differs, in words."""
    differing = differing_units(before, after, metric)
    told = " and ".join(differing)
    verb = "is" if len(differing) == 1 and not told.endswith("s") else "are"
    if differing and not same_units:
        raise ResultError(
            f"{before.folder} and {after.folder} are on different data (their {told} {verb} not "
            "the same), so equal ids may be coincidence and cannot be paired. If they do name the "
            "same users or texts, say so: --same-units, or compare(..., same_units=True)"
        )
    remarks = []
    if differing:
        remarks.append(
            f"the {told} {verb} not the same in both results: changes of the data are among the "
            "changes, and pairs rest on ids alone"
        )
    one, other = (result.provenance.get("parts", {}) for result in (before, after))
    rest = [
        name
        for name in ("labels", "users", "text_groups", "items")
        if one.get(name) != other.get(name) and one and other
    ]
    if rest:
        words = ", ".join(name.replace("_", " ") for name in rest)
        remarks.append(f"not the same in both results: {words}; groups are those of the second")
    if before.plan.seed != after.plan.seed:
        remarks.append(
            f"the seeds differ ({before.plan.seed} and {after.plan.seed}): what a new split or "
            "training changes by chance is in the changes, and not in their intervals"
        )
    return remarks


def _only_in_one(before: Result, after: Result) -> list[str]:
    remarks = []
    for one, other in ((before, after), (after, before)):
        metrics = [i.title for i in one.metrics if place_of_metric(other, i) is None]
        systems = [name for name in one.systems if name not in other.systems]
        for kind, names in (("metrics", metrics), ("systems", systems)):
            if names:
                remarks.append(f"only {one.folder} has the {kind} {', '.join(names)}")
    return remarks


def _groups(before: Result, after: Result, metric: Metric) -> Grouping | None:
    """Return the groups of the second result that the first one has too."""
    assert before.folder is not None
    assert after.folder is not None
    of: Literal["user", "text"] = "text" if metric.of == "moderator" else "user"
    groups, earlier = read_groups(after.folder, of), read_groups(before.folder, of)
    if groups is None or earlier is None:
        return None
    kept = [g for g, name in enumerate(groups.names) if name in earlier.names]
    return Grouping(
        groups.units,
        tuple(groups.names[g] for g in kept),
        groups.members[:, kept],
        tuple(groups.attributes[g] for g in kept),
    )


def stored_rows(result: Result, metric: int, system: str, unit: str) -> Rows | None:
    """Return what a metric measured on a system, as stored; None without it."""
    assert result.folder is not None
    path = inside(result.folder, "rows", f"{metric:02d}", f"{system}.parquet")
    # An audit in blocks has stored a part for each.
    parts = [path] if path.exists() else sorted(path.with_suffix("").glob("*.parquet"))
    if not parts:
        return None
    try:
        return Rows.from_frame(pl.concat(read_parquet(part) for part in parts), unit)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {error}") from None
