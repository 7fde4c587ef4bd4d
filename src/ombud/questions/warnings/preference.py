"""Do users rate, or meet, items with a label more than items without it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse

from ombud.audits.analysis import Analysis, AnalysisResult, Context, needed
from ombud.audits.presets import Options
from ombud.data.exclusions import Exclusion
from ombud.data.interactions import Interactions
from ombud.metrics.engine.estimate import correct
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.permutation import sign_flip_test
from ombud.stats.proportions import proportion
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


# Two means closer than this are the same rating.
_SAME = 1e-9


def two_sides(
    histories: sparse.csr_array, states: NDArray[np.int8], explicit: bool
) -> tuple[Floats, Floats]:
    """Return users x labels: what each user gives items with a label, and items without it.

    With ratings, the mean rating of each side, and NaN for users who met no item of one side.
    Without, the share of the user's interactions (with items whose label is known) on each
    side; NaN for users who met no such item.
    """
    ones = sparse.csr_array(
        (np.ones(histories.nnz, dtype=np.float32), histories.indices, histories.indptr),
        shape=histories.shape,
    )
    sides = [(states == wanted).astype(np.float64) for wanted in (1, 0)]
    counts = [np.asarray(ones @ side, dtype=np.float64) for side in sides]
    if explicit:
        sums = [np.asarray(histories.astype(np.float64) @ side) for side in sides]
        both = (counts[0] > 0) & (counts[1] > 0)
    else:
        sums, whole = counts, counts[0] + counts[1]
        counts, both = [whole, whole], whole > 0
    result = [
        np.divide(top, bottom, out=np.full(top.shape, np.nan), where=both)
        for top, bottom in zip(sums, counts, strict=True)
    ]
    return result[0], result[1]


@analysis("user-preference")
class UserPreference(Options, Analysis):
    """Share of users who rate items with a label higher than items without it, and lower.

    For each of a random sample of users, the mean rating of items known to have the label and of
    items known not to have it; without ratings, the share of interactions on either side. Both
    directions are given, with words, since the share that is *not* higher is not the share that
    is lower: users can tie.

    - **Unit**: the user. Wilson's intervals for shares, Student's for the mean difference, whose
      p-value comes from flipping signs at random, corrected over labels.
    - **Undefined**: for users who met no item of one side; they are counted.
    - **Does not capture**: which items users chose to meet. Without ratings, the comparison is
      mostly about how common the label is.

    References
    ----------
    Kovacs, Kazemian, Chee and Dean (2025), *Datasets for Navigating Sensitive Topics in
    Recommendation Systems*, section 4 (its text and its figure caption name opposite directions).
    """

    sample: int = Field(default=1000, ge=1)
    """The number of users that are drawn; all users where there are fewer."""
    permutations: int = Field(default=10_000, ge=1)
    """The number of random sign flips for the p-value."""
    labels: tuple[str, ...] = ()
    """The labels to test; all by default."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return both shares and the mean difference of every label."""
        data, settings = context.data, context.settings
        interactions, labels = needed(data, "user-preference")
        if self.labels:
            labels = labels.select(self.labels)
        rows = self._users(interactions, settings.seed)
        histories = interactions.matrix[rows]
        states = labels.aligned(interactions.items)
        explicit = interactions.explicit
        first, second = two_sides(histories, states, explicit)
        bounds = {
            word: two_sides(histories, np.where(states < 0, np.int8(fill), states), explicit)
            for word, fill in (("no", 0), ("yes", 1))
        }
        tests = sign_flip_test(
            first - second,
            permutations=self.permutations,
            rng=generator(settings.seed, "user-preference"),
        )
        estimates: list[list[Estimate]] = [[], [], [], []]
        table = []
        for w, label in enumerate(labels.names):
            row, result = self._label(label, first[:, w], second[:, w], explicit, settings)
            p = float(tests.p[w])
            if result[-1].is_defined and np.isfinite(p):
                result[-1] = result[-1].replace(p_value=p)
            for family, e in zip(estimates, result, strict=True):
                family.append(e)
            for word, (one, other) in bounds.items():
                row[f"share_higher_if_unknown_{word}"] = _higher(one[:, w], other[:, w])
            table.append(row | {"p": None if np.isnan(p) else p})
        tables = {
            "user-preference": pl.DataFrame(table, infer_schema_length=None),
            "user-preference-users": _points(
                labels.names, first, second, None if explicit else _counts(histories, states)
            ),
        }
        differences = correct(estimates[3], settings.correction)
        gone: tuple[Exclusion, ...] = ()
        if len(rows) < interactions.n_users:
            reason = f"not in the random sample of {len(rows):,}"
            left = interactions.n_users - len(rows)
            gone = (Exclusion("user preference", "users", left, reason, interactions.n_users),)
        return AnalysisResult(
            (*estimates[0], *estimates[1], *estimates[2], *differences), tables, gone
        )

    def _users(self, interactions: Interactions, seed: int) -> NDArray[np.int64]:
        n = interactions.n_users
        if self.sample >= n:
            return np.arange(n)
        drawn = generator(seed, "user-preference", "sample").choice(n, self.sample, replace=False)
        return np.sort(drawn)

    @staticmethod
    def _label(
        label: str, one: Floats, other: Floats, explicit: bool, settings: Settings
    ) -> tuple[dict[str, Any], list[Estimate]]:
        """Return the row of the table and the four estimates of one label."""
        there = ~(np.isnan(one) | np.isnan(other))
        difference = (one - other)[there]
        n = len(difference)
        counts = {
            "higher": int(np.count_nonzero(difference > _SAME)),
            "lower": int(np.count_nonzero(difference < -_SAME)),
        }
        counts["same"] = n - counts["higher"] - counts["lower"]
        verbs = (
            {"higher": "rate it higher", "lower": "rate it lower", "same": "rate both alike"}
            if explicit
            else {"higher": "meet more of it", "lower": "meet less of it", "same": "meet as much"}
        )
        what = "items with the label against items without it"
        text = (
            f"{what}: {counts['higher']:,} of {n:,} users {verbs['higher']}, "
            f"{counts['lower']:,} {verbs['lower']}, {counts['same']:,} {verbs['same']}; "
            f"{len(one) - n:,} met none of one side"
        )
        about: dict[str, Any] = {
            "unit": "user",
            "level": settings.level,
            "label": label,
            "note": text,
            "details": {**counts, "users": n, "left_out": len(one) - n, "explicit": explicit},
        }
        row: dict[str, Any] = {"label": label, "users": n, "left_out": len(one) - n, **counts}
        estimates = []
        for side, count in counts.items():
            e = proportion(
                count, n, metric=f"users who {verbs[side]}", key=f"user-preference/{side}", **about
            )
            low, high = e.interval or (None, None)
            row |= {f"share_{side}": e.value, f"{side}_low": low, f"{side}_high": high}
            estimates.append(e)
        title = "mean difference in " + ("rating" if explicit else "share of interactions")
        about |= {"key": "user-preference/difference", "null": 0.0, "kind": "gap"}
        e = mean_estimate(difference, metric=title, **about)
        low, high = e.interval or (None, None)
        row |= {"mean_difference": e.value, "low": low, "high": high, "words": text}
        return row, [*estimates, e]


def _higher(one: Floats, other: Floats) -> float | None:
    there = ~(np.isnan(one) | np.isnan(other))
    if not there.any():
        return None
    return float(np.count_nonzero((one - other)[there] > _SAME) / np.count_nonzero(there))


def _counts(histories: sparse.csr_array, states: NDArray[np.int8]) -> tuple[Floats, Floats]:
    """Return users x labels: interactions with items that have the label, and with others."""
    ones = sparse.csr_array(
        (np.ones(histories.nnz), histories.indices, histories.indptr), shape=histories.shape
    )
    first, second = (np.asarray(ones @ (states == wanted).astype(float)) for wanted in (1, 0))
    return first, second


def _points(
    names: tuple[str, ...], first: Floats, second: Floats, counts: tuple[Floats, Floats] | None
) -> pl.DataFrame:
    """Return one row per label and user, without saying who the user is."""
    w, u = np.nonzero(~(np.isnan(first) | np.isnan(second)).T)
    columns: dict[str, NDArray[Any]] = {
        "label": np.array(names, dtype=object)[w],
        "with": first[u, w].astype(np.float32),
        "without": second[u, w].astype(np.float32),
    }
    if counts is not None:
        columns["interactions_with"] = counts[0][u, w].astype(np.int64)
        columns["interactions_without"] = counts[1][u, w].astype(np.int64)
    return pl.DataFrame(columns, schema_overrides={"label": pl.String})
