"""What the data is like: activity, label counts, densities, and histograms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from ombud.audits.analysis import Analysis, AnalysisResult, Context, needed
from ombud.data.labels import LabelState
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.items import Items


_BINS = 30
_RATING = "mean rating of an item"
_WHOLE = "none: a fact about this data, counted in full"


@analysis("distribution")
@dataclass(frozen=True)
class Distribution(Analysis):
    """Interactions per user and item, labels per status, histograms, and two densities.

    Interaction density is interactions / (users x items); warning density is labels known to be
    there / (labels x items). Items are those of the interactions. The standard deviation divides
    by n, as these are all users and items of the data.

    Histograms are of interactions per user and per item, of the mean rating of an item, and of
    every attribute of items that is a number, such as hits and kudos.

    - **Unit**: the user or the item; nothing is inferred beyond the data, so there are no
      intervals.
    - **Undefined**: never; a data set has at least one user, item and label.
    - **Does not capture**: how unknown labels are spread; the warning density if all unknowns
      were *yes* is the upper bound given beside it.
    """

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the statistics as estimates without intervals, and as tables."""
        data = context.data
        interactions, labels = needed(data, "distribution")
        states = labels.aligned(interactions.items)
        per = {
            "user": np.diff(interactions.matrix.indptr),
            "item": np.bincount(interactions.matrix.indices, minlength=interactions.n_items),
        }
        estimates, rows = [], []
        for unit, counts in per.items():
            result = {
                "max": counts.max(),
                "min": counts.min(),
                "mean": counts.mean(),
                "median": np.median(counts),
                "sd": counts.std(),
            }
            rows.append({"per": unit, "n": len(counts)} | {k: float(v) for k, v in result.items()})
            estimates += [
                _fact(
                    f"interactions per {unit}: {name}",
                    float(value),
                    len(counts),
                    unit,
                    f"interactions-per-{unit}-{name}",
                )
                for name, value in result.items()
            ]
        applied = int(np.count_nonzero(states == LabelState.YES))
        open_pairs = int(np.count_nonzero(states < 0))
        pairs = states.size
        note = f"{open_pairs / pairs:.1%} of all item-label pairs are unknown or disputed"
        estimates += [
            _fact(
                "interaction density",
                interactions.density,
                interactions.n_users,
                "user",
                "interaction-density",
            ),
            _fact(
                "warning density",
                applied / pairs,
                interactions.n_items,
                "item",
                "label-density",
                note,
                {"unknown_share": open_pairs / pairs},
            ),
            _fact(
                "warning density if every unknown were yes",
                (applied + open_pairs) / pairs,
                interactions.n_items,
                "item",
                "label-density-if-unknown-yes",
            ),
        ]
        status = pl.DataFrame(
            {"label": list(labels.names)}
            | {s.name.lower(): np.count_nonzero(states == s, axis=0) for s in reversed(LabelState)}
        )
        counted = {"interactions of a user": per["user"], "interactions of an item": per["item"]}
        parts = [
            one_histogram(some.astype(np.float64), what, _BINS, by_log=True)
            for what, some in (counted | _numbers(data.items)).items()
        ]
        if interactions.explicit:
            sums = np.bincount(
                interactions.matrix.indices, interactions.matrix.data, interactions.n_items
            )
            with np.errstate(invalid="ignore", divide="ignore"):
                means = sums / per["item"]
            parts.append(one_histogram(means, _RATING, _BINS, by_log=False))
        tables = {
            "interactions-per": pl.DataFrame(rows),
            "label-status": status,
            "activity-histogram": pl.concat([part for part in parts if part.height]),
        }
        return AnalysisResult(tuple(estimates), tables)


def _numbers(items: Items | None) -> dict[str, NDArray[np.float64]]:
    """Return the attributes of items that are numbers of 0 or more, NaN where not known."""
    found: dict[str, NDArray[np.float64]] = {}
    if items is None:
        return {}
    for name in items.attributes:
        values = pl.Series(items.values[name].tolist(), dtype=pl.String, strict=False)
        numbers = values.cast(pl.Float64, strict=False)
        array = numbers.to_numpy().astype(np.float64)
        readable = numbers.null_count() == values.null_count() < len(values)
        if readable and not np.any(array < 0):
            found[name] = array
    return found


def _fact(
    metric: str,
    value: float,
    n: int,
    unit: str,
    key: str,
    note: str = "",
    details: Mapping[str, float] | None = None,
) -> Estimate:
    return Estimate(
        metric=metric,
        value=value,
        interval=None,
        method=_WHOLE,
        n=n,
        unit=unit,
        note=note,
        key=f"distribution/{key}",
        details=details or {},
    )


# -- Histograms: how a quantity is spread over items, and over items with and without a label.


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

    Values that are NaN are excluded.

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

    Items whose value is NaN are excluded. `states` is items x labels: 1 yes, 0 no, less than 0
    unknown. There are so many bins at most; with `by_log` they grow by a constant factor (for
    counts).
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
