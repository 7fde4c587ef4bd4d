"""How units are spread around a number, in few enough rows to be stored and drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from ombud.metrics.base import Metric, Rows, key_of
from ombud.stats.statistics import Floats

_BINS = 40
_CUT = 0.98
_STEPS = (1, 2, 2.5, 5, 10)


def bin_edges(values: Floats, bins: int = _BINS) -> Floats:
    """Return equal bins with round edges, one of them 0, up to where 98% of the values lie.

    What lies beyond belongs to a last bin without an end.

    Parameters
    ----------
    values
        Finite numbers, at least one.
    bins
        At most about so many.

    Examples
    --------
    >>> bin_edges(np.array([-1.0, 0.2, 0.9]), bins=4).tolist()
    [-1.0, -0.5, 0.0, 0.5, 1.0]
    """
    low, high = float(values.min()), float(np.quantile(values, _CUT))
    low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        high = low + 1.0
    rough = (high - low) / bins
    size = 10.0 ** np.floor(np.log10(rough))
    step = next(size * s for s in _STEPS if size * s >= rough * (1 - 1e-9))
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return np.asarray(np.arange(first, max(last, first + 1) + 1) * step, dtype=np.float64)


def spread_tables(metric: Metric, rows: Mapping[str, Rows]) -> dict[str, pl.DataFrame]:
    """Return how many units lie in each bin, by label and system, if the metric asks for it.

    Such a metric has one column, ``value``. The bins of a label
    are the same for all systems; ``to`` is missing where the last bin has no end.

    Parameters
    ----------
    metric
        What was measured.
    rows
        What was measured on each unit, by system.
    """
    if not metric.spread or not rows:
        return {}
    labels = next(iter(rows.values())).labels
    parts = [_label(w, label, rows) for w, label in enumerate(labels)]
    parts = [part for part in parts if part is not None]
    if not parts:
        return {}
    table = pl.concat([part for part in parts if part is not None])
    names = pl.lit(metric.title).alias("metric"), pl.lit(key_of(metric)).alias("key")
    table = table.select(*names, pl.all())
    name = re.sub(r"[^a-z0-9]+", "-", metric.title.lower()).strip("-")
    return {f"spread-{name}": table}


def _label(w: int, label: str, rows: Mapping[str, Rows]) -> pl.DataFrame | None:
    values = {name: r.columns["value"][:, w] for name, r in rows.items()}
    values = {name: v[np.isfinite(v)] for name, v in values.items()}
    pooled = np.concatenate(list(values.values()))
    if not len(pooled):
        return None
    edges = bin_edges(pooled)
    n = len(edges)
    parts = []
    for name, some in values.items():
        # Binary fractions just below a round edge belong above it.
        index = np.searchsorted(edges, some + 1e-9, side="right") - 1
        units = np.bincount(np.clip(index, 0, n - 1), minlength=n)
        parts.append(
            pl.DataFrame(
                {
                    "label": [label] * n,
                    "system": [name] * n,
                    "from": edges,
                    "to": [*edges[1:].tolist(), None],
                    "units": units,
                    "share": units / max(len(some), 1),
                }
            )
        )
    return pl.concat(parts)
