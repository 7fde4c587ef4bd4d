"""How a quantity is spread over items with and without each label."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ombud.stats.statistics import Floats


def _edges(x: Floats, bins: int, by_log: bool) -> Floats:
    """Return where bins begin and end: equal steps, or equal factors from 0 on."""
    if not by_log:
        return np.linspace(x.min(), max(x.max(), x.min() + 1e-9), bins + 1)
    edges = np.unique(np.rint(np.geomspace(1, max(x.max(), 2) + 1, bins + 1)))
    edges[0] = 0.0
    return edges


def _index(x: Floats, edges: Floats) -> NDArray[np.int64]:
    return np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)


def one_histogram(values: Floats, what: str, bins: int, by_log: bool) -> pl.DataFrame:
    """Return how many values lie in each bin: `what`, `from`, `to`, `count`, `share`.

    Values that are NaN are left out.

    Examples
    --------
    >>> one_histogram(np.array([1.0, 1.0, 3.0]), "items", 2, by_log=False)["count"].to_list()
    [2, 1]
    """
    x = values[~np.isnan(values)].astype(np.float64)
    if not len(x):
        return pl.DataFrame()
    edges = _edges(x, bins, by_log)
    count = np.bincount(_index(x, edges), minlength=len(edges) - 1)
    columns = {"from": edges[:-1], "to": edges[1:], "count": count, "share": count / len(x)}
    return pl.DataFrame({"what": [what] * len(count), **columns})


def histograms(
    values: Floats, states: NDArray[np.int8], names: tuple[str, ...], bins: int, by_log: bool
) -> pl.DataFrame:
    """Return the number and share of items in each bin, with and without each label and unknown.

    Parameters
    ----------
    values
        One number per item; items with NaN are left out.
    states
        Items x labels: 1 yes, 0 no, less than 0 unknown.
    names
        The labels.
    bins
        How many bins, at most.
    by_log
        Whether bins grow by a constant factor (for counts).
    """
    known = ~np.isnan(values)
    x, some = values[known], states[known]
    if not len(x):
        return pl.DataFrame()
    edges = _edges(x, bins, by_log)
    bins = len(edges) - 1
    index = _index(x, edges)
    inside = sparse.csr_array((np.ones(len(x)), (index, np.arange(len(x)))), shape=(bins, len(x)))
    parts = []
    sides = {"with": some == 1, "without": some == 0, "unknown": some < 0}
    for status, side in sides.items():
        count = np.asarray(inside @ side.astype(np.float64))
        whole = count.sum(axis=0)
        share = np.divide(count, whole, out=np.zeros_like(count), where=whole > 0)
        parts.append(
            pl.DataFrame(
                {
                    "label": np.repeat(np.array(names, dtype=object), bins),
                    "status": [status] * bins * len(names),
                    "from": np.tile(edges[:-1], len(names)),
                    "to": np.tile(edges[1:], len(names)),
                    "items": count.T.ravel().astype(np.int64),
                    "share": share.T.ravel(),
                },
                schema_overrides={"label": pl.String},
            )
        )
    return pl.concat(parts)
