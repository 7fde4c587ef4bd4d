"""Two results side by side, on the units they share."""

from __future__ import annotations

import polars as pl

from ombud.audits.load import load_metrics
from ombud.audits.result import Result
from ombud.errors import ResultError
from ombud.files import inside, read_parquet
from ombud.metrics.base import Rows
from ombud.metrics.engine import Settings, estimate_metric
from ombud.stats.estimate import Estimate

__all__ = ["compare"]


def compare(before: Result, after: Result) -> tuple[Estimate, ...]:
    """Return, for each metric and system of both results, the change from the first to the second.

    The change is paired: it is computed on the users or texts that both results measured, and
    both results are resampled together.

    Parameters
    ----------
    before, after
        Two stored results, such as of two versions of a system.

    Raises
    ------
    ResultError
        If they share no metric and system, or no units.
    """
    changes: list[Estimate] = []
    for index, info in enumerate(before.metrics):
        matching = [i for i, other in enumerate(after.metrics) if other.spec == info.spec]
        if not matching:
            continue
        (metric,) = load_metrics((info.spec,))
        for system in (name for name in before.systems if name in after.systems):
            rows = {
                "after": _rows(after, matching[0], system, info.unit),
                "before": _rows(before, index, system, info.unit),
            }
            if None in rows.values():
                continue
            shared = _shared({name: r for name, r in rows.items() if r is not None})
            settings = Settings(**after.plan.statistics.model_dump(), seed=after.plan.seed)
            result = estimate_metric(metric, shared, None, settings)
            changes += [
                e.replace(system=system, against="before") for e in result if e.against == "before"
            ]
    if not changes:
        raise ResultError(
            "the two results share no metric (with the same options) and system; "
            f"found {[i.title for i in before.metrics]} on {list(before.systems)} "
            f"and {[i.title for i in after.metrics]} on {list(after.systems)}"
        )
    return tuple(changes)


def _rows(result: Result, metric: int, system: str, unit: str) -> Rows | None:
    if result.folder is None:
        raise ResultError("only stored results can be compared; give run() a folder")
    path = inside(result.folder, "rows", f"{metric:02d}", f"{system}.parquet")
    if not path.exists():
        return None
    try:
        return Rows.from_frame(read_parquet(path), unit)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise ResultError(f"{path} is damaged: {error}") from None


def _shared(rows: dict[str, Rows]) -> dict[str, Rows]:
    """Keep the units and labels that both have."""
    first, second = rows["after"], rows["before"]
    units = set(first.ids.tolist()) & set(second.ids.tolist())
    labels = tuple(label for label in first.labels if label in second.labels)
    if not units or not labels:
        raise ResultError("the two results measured no unit or label in common")
    return {name: _cut(r, units, labels) for name, r in rows.items()}


def _cut(rows: Rows, units: set[object], labels: tuple[str, ...]) -> Rows:
    keep = [unit in units for unit in rows.ids.tolist()]
    places = [rows.labels.index(label) for label in labels]
    return Rows(
        rows.unit,
        rows.ids[keep],
        {name: values[keep][:, places] for name, values in rows.columns.items()},
        labels,
        None if rows.clusters is None else rows.clusters[keep],
    )
