"""Are items with a label more or less popular than items without it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from ombud.audits.analysis import Analysis, AnalysisResult, Context, needed
from ombud.audits.presets import Options
from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.metrics.engine.estimate import correct
from ombud.questions.warnings.distribution import histograms
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.stats.multiplicity import benjamini_hochberg, holm
from ombud.stats.permutation import LabelTests, label_tests
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    pass


_WITH, _WITHOUT = "items with the label", "items without it"


def popularity_of(
    interactions: Interactions, popularity: Literal["auto", "count", "mean-rating"] = "auto"
) -> tuple[Floats, str]:
    """Return the popularity of each item, and what it is in words.

    ``auto`` is the mean rating where there are ratings, and the number of interactions
    otherwise. An item without interactions has no mean rating (NaN).
    """
    count = np.bincount(interactions.matrix.indices, minlength=interactions.n_items)
    if popularity == "count" or (popularity == "auto" and not interactions.explicit):
        return count.astype(np.float64), "interactions"
    if not interactions.explicit:
        raise PlanError("popularity='mean-rating' needs ratings; choose 'count'")
    total = np.bincount(
        interactions.matrix.indices,
        weights=interactions.matrix.data.astype(np.float64),
        minlength=interactions.n_items,
    )
    with np.errstate(invalid="ignore"):
        return total / np.where(count > 0, count, np.nan), "mean rating"


def shift_bounds(values: Floats, states: NDArray[np.int8]) -> tuple[Floats, Floats]:
    """Return the least and the greatest difference that unknown labels allow, for each label.

    For any number of unknown items that have the label, the difference is greatest when they
    are the most popular ones; every number is tried. NaN where no item can be on a side.

    `values` are the popularity of each item; items with NaN are excluded. `states` is items x
    labels: 1 yes, 0 no, less than 0 unknown.

    Examples
    --------
    >>> low, high = shift_bounds(np.array([1.0, 2.0, 3.0]), np.array([[1], [0], [-1]]))
    >>> float(low[0]), float(high[0])
    (-1.5, 0.0)
    """
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    x, state = values[known][order], states[known][order]
    low, high = (np.full(states.shape[1], np.nan) for _ in range(2))
    for w in range(states.shape[1]):
        yes, no, free = x[state[:, w] == 1], x[state[:, w] == 0], x[state[:, w] < 0]
        below = np.concatenate([[0.0], np.cumsum(free)])
        taken = np.arange(len(free) + 1)
        for least, result in ((True, low), (False, high)):
            # The label goes to the least popular of the unknown items, or to the most popular.
            given = below if least else below[-1] - below[::-1]
            with np.errstate(invalid="ignore", divide="ignore"):
                first = (yes.sum() + given) / (len(yes) + taken)
                second = (no.sum() + below[-1] - given) / (len(no) + len(free) - taken)
                difference = first - second
            if np.isfinite(difference).any():
                result[w] = np.nanmin(difference) if least else np.nanmax(difference)
    return low, high


@analysis("popularity-shift")
class PopularityShift(Options, Analysis):
    r"""Mean popularity of items with a label minus that of items without it, for every label.

    .. math:: \frac{1}{|Y|} \sum_{i \in Y} x_i - \frac{1}{|N|} \sum_{i \in N} x_i

    with Y the items known to have the label, N those known not to have it, and x the mean rating
    or the number of interactions. Tested by permutation within each label, two-sided, with
    :math:`p = (b + 1) / (m + 1)`, all arrangements when they are few; corrected over labels by
    Holm and by Benjamini-Hochberg, side by side in the table. Cliff's delta, which sees order
    only, stands beside it, because counts have heavy tails.

    - **Unit**: the item.
    - **Undefined**: when no item is known to have the label, or none to lack it.
    - **Does not capture**: why. Labels that are unknown are mostly those of unpopular items; the
      table has the difference if all unknowns were *no*, if all were *yes*, and the least and
      greatest difference that any truth about them allows.

    References
    ----------
    Kovacs, Kazemian, Chee and Dean, *Datasets for Navigating Sensitive Topics in Recommendation
    Systems*, section 4; Cliff (1993), Psychological Bulletin 114, 494-509.
    """

    popularity: Literal["auto", "count", "mean-rating"] = "auto"
    """``mean-rating``, ``count``, or ``auto``: the mean rating where there are ratings."""
    permutations: int = Field(default=10_000, ge=1)
    """The number of permutations drawn for each label."""
    bins: int = Field(default=20, ge=1)
    """The number of bins of the histograms with and without each label."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the shift and the effect size of every label."""
        data, settings = context.data, context.settings
        interactions, labels = needed(data, "popularity-shift")
        values, word = popularity_of(interactions, self.popularity)
        states = np.maximum(labels.aligned(interactions.items), -1)
        rng = generator(settings.seed, "popularity-shift")
        result = label_tests(
            values, states, permutations=self.permutations, level=settings.level, rng=rng
        )
        about: dict[str, Any] = {
            "unit": "item",
            "level": settings.level,
            "kind": "gap",
            "group": _WITH,
        }
        shifts, deltas = [], []
        for w, label in enumerate(labels.names):
            n = int(result.yes[w] + result.no[w])
            common = about | {"label": label, "against": _WITHOUT, "n": n, "null": 0.0}
            shift = common | {"key": "popularity-shift/difference", "details": {"popularity": word}}
            shifts.append(_shift(result, w, f"popularity shift ({word})", shift))
            deltas.append(_delta(result, w, common | {"key": "popularity-shift/cliffs-delta"}))
        tables = {
            "popularity-shift": self._table(values, states, labels.names, result),
            "popularity-histogram": histograms(
                values, states, labels.names, self.bins, word == "interactions"
            ),
        }
        return AnalysisResult((*correct(shifts, settings.correction), *deltas), tables)

    @staticmethod
    def _table(
        x: Floats, states: NDArray[np.int8], names: tuple[str, ...], found: LabelTests
    ) -> pl.DataFrame:
        low, high = shift_bounds(x, states)
        known = ~np.isnan(x)
        x, some = x[known], states[known]
        yes, no, free = ((some == 1), (some == 0), (some < 0))
        with np.errstate(invalid="ignore"):
            sums = [(x[:, None] * part).sum(axis=0) for part in (yes, no, free)]
            counts = [part.sum(axis=0) for part in (yes, no, free)]
            mean_yes, mean_no = sums[0] / counts[0], sums[1] / counts[1]
            as_no = mean_yes - (sums[1] + sums[2]) / (counts[1] + counts[2])
            as_yes = (sums[0] + sums[2]) / (counts[0] + counts[2]) - mean_no
        columns = {
            "label": list(names),
            "with": found.yes,
            "without": found.no,
            "unknown": found.unknown,
            "mean_with": mean_yes,
            "mean_without": mean_no,
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "p": found.p,
            "p_holm": holm(found.p),
            "p_benjamini_hochberg": benjamini_hochberg(found.p),
            "permutations": found.permutations,
            "exact": found.exact,
            "cliffs_delta": found.delta,
            "cliffs_delta_low": found.delta_low,
            "cliffs_delta_high": found.delta_high,
            "difference_if_unknown_no": as_no,
            "difference_if_unknown_yes": as_yes,
            "least_difference": low,
            "greatest_difference": high,
            "reason": found.reason.tolist(),
        }
        return pl.DataFrame(columns).fill_nan(None)


def _shift(found: LabelTests, w: int, metric: str, about: dict[str, Any]) -> Estimate:
    if found.reason[w]:
        return Estimate.undefined(
            reason_code="no-labels", metric=metric, reason=str(found.reason[w]), **about
        )
    ends = (float(found.low[w]), float(found.high[w]))
    there = np.isfinite(ends).all()
    how = "all arrangements" if found.exact[w] else f"{int(found.permutations[w]):,} permutations"
    note = (
        f"{int(found.yes[w]):,} items with, {int(found.no[w]):,} without, "
        f"{int(found.unknown[w]):,} unknown and left out; p from {how}"
    )
    return Estimate(
        metric=metric,
        value=float(found.difference[w]),
        interval=ends if there else None,
        method="Welch" if there else "none: too few items on one side, or no spread",
        p_value=float(found.p[w]),
        note=note,
        **about,
    )


def _delta(found: LabelTests, w: int, about: dict[str, Any]) -> Estimate:
    metric = "popularity shift (Cliff's delta)"
    if found.reason[w]:
        return Estimate.undefined(
            reason_code="no-labels", metric=metric, reason=str(found.reason[w]), **about
        )
    ends = (float(found.delta_low[w]), float(found.delta_high[w]))
    there = np.isfinite(ends).all()
    return Estimate(
        metric=metric,
        value=float(found.delta[w]),
        interval=ends if there else None,
        method="DeLong, logit scale" if there else "none: too few items on one side, or no overlap",
        **about,
    )
