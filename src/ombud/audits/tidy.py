"""Every estimate as one row with plain columns, for other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from ombud.stats.estimate import Estimate
from ombud.stats.power import smallest_effect

_DETAILS = "details."

TIDY_COLUMNS: dict[str, tuple[type[pl.DataType], str]] = {
    "key": (pl.String, "What is measured, for programs: stable where `metric` is wording."),
    "metric": (pl.String, "The metric as printed."),
    "kind": (pl.String, "`level`, `gap` (a difference) or `ratio`."),
    "system": (pl.String, "The audited system; empty for all."),
    "label": (pl.String, "The content label; empty for all."),
    "group": (pl.String, "The group of users or texts; empty for all."),
    "against": (pl.String, "What a gap or a ratio is compared with."),
    "value": (pl.Float64, "The number; missing when it is undefined."),
    "low": (pl.Float64, "The lower end of the interval; missing without one."),
    "high": (pl.Float64, "The upper end."),
    "level": (pl.Float64, "The coverage that the interval aims at."),
    "method": (pl.String, "How the interval was made, or why there is none."),
    "n": (pl.Int64, "How many independent units stand behind the number."),
    "unit": (pl.String, "What those units are."),
    "null": (pl.Float64, "The value that would mean no difference, where there is one."),
    "p_value": (pl.Float64, "The two-sided p-value of `null`."),
    "p_adjusted": (pl.Float64, "The same after correction for many comparisons."),
    "correction": (pl.String, "The correction, and the size of its family."),
    "family": (pl.String, "The question whose comparisons it is one of; empty for all others."),
    "smallest_effect": (pl.Float64, "What would have been found with a chance of 80%."),
    "undefined_replicates": (pl.Int64, "In how many replicates the number did not exist."),
    "events": (pl.Int64, "How many events it rests on, where the metric counts them."),
    "reason": (pl.String, "Why there is no number."),
    "reason_code": (pl.String, "The same as a code; see `ombud.stats.estimate.REASONS`."),
    "note": (pl.String, "What a reader must know beside the number."),
}
"""The columns that every table of estimates has, with their type and meaning.

What an estimate is made of (`Estimate.details`) follows in columns that begin with ``details.``:
numbers, truth values and words as they are, lists and tables as JSON.
"""


def tidy_frame(estimates: Sequence[Estimate]) -> pl.DataFrame:
    """Return one row an estimate, in plain columns: `TIDY_COLUMNS`, then ``details.*``.

    Examples
    --------
    >>> e = Estimate(
    ...     metric="share@10", value=0.25, interval=(0.2, 0.3), method="wilson", n=99,
    ...     details={"history": 0.2},
    ... )
    >>> tidy_frame([e]).select("metric", "low", "details.history").rows()
    [('share@10', 0.2, 0.2)]
    """
    rows = [_row(estimate) for estimate in estimates]
    fixed = [
        pl.Series(name, [row[name] for row in rows], dtype=dtype)
        for name, (dtype, _) in TIDY_COLUMNS.items()
    ]
    names = sorted({name for estimate in estimates for name in estimate.details})
    found = [
        _column(f"{_DETAILS}{name}", [estimate.details.get(name) for estimate in estimates])
        for name in names
    ]
    return pl.DataFrame([*fixed, *found])


def _row(estimate: Estimate) -> Mapping[str, Any]:
    low, high = estimate.interval if estimate.interval is not None else (None, None)
    own = {name: getattr(estimate, name, None) for name in TIDY_COLUMNS}
    return own | {"low": low, "high": high, "smallest_effect": smallest_effect(estimate)}


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    """Return values as one column of their own type, or of JSON where they have none in common."""
    given = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in given):
        return pl.Series(name, values, dtype=pl.Boolean)
    numbers = not any(isinstance(value, bool) for value in given)
    if numbers and all(isinstance(v, int) and -(2**63) <= v < 2**63 for v in given):
        return pl.Series(name, values, dtype=pl.Int64)
    if numbers and all(isinstance(value, int | float) for value in given):
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    if all(isinstance(value, str) for value in given):
        return pl.Series(name, values, dtype=pl.String)
    told = [None if v is None else json.dumps(v, sort_keys=True, default=str) for v in values]
    return pl.Series(name, told, dtype=pl.String)
