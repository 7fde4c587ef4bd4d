"""Risk ratings from 0 to 5, several raters a text: reading, labels and agreement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.faults import rows_where
from ombud.data.frames import Column, has_columns, read_table
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.stats.agreement import Measurement, alpha_sample
from ombud.stats.bootstrap.replicates import Replicates, Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

HIGHEST_RISK = 5
"""Ratings are whole numbers from 0 (not delicate) to this."""

DELICATE_FROM = 3
"""A rating of at least this is a vote for the binary label DELICATE."""

AGREEMENT_TITLES: Mapping[str, str] = {
    "identified": "Step I, delicate or not (nominal)",
    "delicate": "Risk of 3 or more, or not (nominal)",
    "ordinal": "Risk 0 to 5 (ordinal)",
    "interval": "Risk 0 to 5 (interval)",
    "step-2": "Step II, risk 1 to 5 where all said delicate (ordinal)",
}
"""The alphas that `risk_agreement` gives, by key, with the words a reader sees."""

_MEASUREMENTS: Mapping[str, Measurement] = {
    "identified": "nominal",
    "delicate": "nominal",
    "ordinal": "ordinal",
    "interval": "interval",
    "step-2": "ordinal",
}
_CATEGORIES: Mapping[str, Sequence[float] | None] = {
    "identified": (0.0, 1.0),
    "delicate": (0.0, 1.0),
    "ordinal": tuple(map(float, range(HIGHEST_RISK + 1))),
    "interval": None,
    "step-2": tuple(map(float, range(1, HIGHEST_RISK + 1))),
}


@dataclass(frozen=True, eq=False)
class RiskLabels:
    """The three labels of every text, and what the raters said."""

    # Majority of ratings above 0: 1 or 0; -1 where half say so, or nobody rated.
    identified: npt.NDArray[np.int8]
    delicate: npt.NDArray[np.int8]  # Majority of ratings of at least 3, in the same way
    # The rating with most votes, at least two of them and more than any other (one, where one
    # rating was all there is to be); -1 where there is none: a case for adjudication.
    risk: npt.NDArray[np.int8]
    median: Floats  # The median rating; NaN without ratings
    shares: Floats  # Shape (texts, 6): the share of raters for each rating; NaN without ratings
    ratings: npt.NDArray[np.int64]  # How many rated


def risk_labels(ratings: npt.ArrayLike, *, least_votes: int = 2) -> RiskLabels:
    """Return the labels that ratings make: a majority each, and never a silent pick.

    Ratings are texts x raters: whole numbers from 0 to 5, NaN where a rater did not rate. A risk
    class needs `least_votes` votes.

    Examples
    --------
    >>> labels = risk_labels([[3, 5, 1], [0, 0, 1]])
    >>> labels.delicate.tolist(), labels.risk.tolist(), labels.median.tolist()
    ([1, 0], [-1, 0], [3.0, 0.0])
    """
    values = _checked(ratings)
    known = ~np.isnan(values)
    n = known.sum(axis=1)
    counts = np.stack([(values == r).sum(axis=1) for r in range(HIGHEST_RISK + 1)], axis=1)
    most = counts.max(axis=1)
    alone = (counts == most[:, None]).sum(axis=1) == 1
    settled = alone & (most >= least_votes)
    with np.errstate(invalid="ignore"):
        shares = counts / n[:, None]
    ordered = np.sort(values, axis=1)  # NaN last
    rows, last = np.arange(len(values)), max(values.shape[1] - 1, 0)
    median = np.full(len(values), np.nan)
    if values.shape[1]:
        low = ordered[rows, np.maximum(n - 1, 0) // 2]
        high = ordered[rows, np.minimum(n // 2, last)]
        median = np.where(n > 0, (low + high) / 2, np.nan)
    return RiskLabels(
        identified=_majority(counts[:, 1:].sum(axis=1), n),
        delicate=_majority(counts[:, DELICATE_FROM:].sum(axis=1), n),
        risk=np.where(settled, counts.argmax(axis=1), -1).astype(np.int8),
        median=median,
        shares=shares,
        ratings=n,
    )


def _majority(votes: npt.NDArray[np.int64], n: npt.NDArray[np.int64]) -> npt.NDArray[np.int8]:
    decided = 2 * votes != n
    return np.where((n > 0) & decided, 2 * votes > n, -1).astype(np.int8)


def _checked(ratings: npt.ArrayLike) -> Floats:
    values = np.asarray(ratings, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"ratings have shape {values.shape}; expected (texts, raters)")
    known = values[~np.isnan(values)]
    wrong = (known < 0) | (known > HIGHEST_RISK) | (known != np.floor(known))
    if wrong.any():
        raise ValueError(
            f"{int(wrong.sum())} ratings are not whole numbers from 0 to {HIGHEST_RISK}; "
            f"the first is {known[wrong][0]:g}"
        )
    return values


def _recoded(values: Floats) -> dict[str, Floats]:
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        identified = np.where(known, values > 0, np.nan)
        delicate = np.where(known, values >= DELICATE_FROM, np.nan)
        all_delicate = (np.where(known, values, 1) > 0).all(axis=1, keepdims=True)
    return {
        "identified": identified,
        "delicate": delicate,
        "ordinal": values,
        "interval": values,
        "step-2": np.where(all_delicate, values, np.nan),
    }


def _samples(values: Floats, names: Sequence[str]) -> list[Sample]:
    recoded = _recoded(values)
    found = []
    for name in names:
        rows, statistic = alpha_sample(recoded[name], _MEASUREMENTS[name], _CATEGORIES[name])
        found.append(Sample(rows, statistic))
    return found


def _estimates(
    drawn: Replicates, names: Sequence[str], groups: Sequence[str], level: float, **about: Any
) -> list[Estimate]:
    found = []
    for g, group in enumerate(groups):
        for s, name in enumerate(names):
            n = int(drawn.n[s, g])
            described: dict[str, Any] = {
                "metric": AGREEMENT_TITLES[name],
                "label": name,
                "group": group,
                "unit": "text",
                "level": level,
                **about,
            }
            if np.isnan(drawn.point[s, g]):
                reason = (
                    "all ratings are equal, so nothing could disagree"
                    if n
                    else "no text has two ratings"
                )
                found.append(
                    Estimate.undefined(
                        reason_code="no-variation" if n else "no-units",
                        reason=reason,
                        n=n,
                        **described,
                    )
                )
            else:
                found.append(drawn.estimate(s, g, **described))
    return found


def risk_agreement(
    ratings: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    groups: Mapping[str, npt.ArrayLike] | None = None,
    replicates: int = 2000,
    level: float = 0.95,
) -> list[Estimate]:
    r"""Return Krippendorff's alphas of risk ratings, with bootstrap intervals over texts.

    Five of them (`AGREEMENT_TITLES`), because a published "alpha" seldom says which it is:
    nominal of step I (above 0 or not), nominal of the binary label (3 or more), ordinal and
    interval of 0 to 5, and ordinal of 1 to 5 among texts that all raters called delicate.

    .. math:: \alpha = 1 - D_o / D_e

    Resampled over texts, with the raters as they are. Undefined without two ratings of a text, and
    when all ratings are equal. It does not say who is right.

    Parameters
    ----------
    ratings
        Shape (texts, raters): whole numbers from 0 to 5, NaN where a rater did not rate.
    rng
        Source of randomness.
    groups
        Sets of texts by name, one Boolean per text; they may overlap. The whole comes first, with
        the empty name.
    replicates, level
        Of the interval.

    References
    ----------
    Krippendorff (2011), *Computing Krippendorff's Alpha-Reliability*.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> found = risk_agreement([[0, 0, 0], [5, 5, 4], [0, 1, 0], [3, 3, 3]], rng=rng)
    >>> found[1].label, found[1].value
    ('delicate', 1.0)
    """
    values = _checked(ratings)
    named = {"": np.ones(len(values), dtype=np.bool_)}
    named |= {name: np.asarray(member, dtype=np.bool_) for name, member in (groups or {}).items()}
    names = tuple(AGREEMENT_TITLES)
    drawn = resample(
        _samples(values, names),
        groups=np.column_stack(list(named.values())),
        replicates=replicates,
        rng=rng,
    )
    return _estimates(drawn, names, tuple(named), level)


def against_others(
    ratings: npt.ArrayLike,
    rater: int,
    *,
    rng: np.random.Generator,
    replicates: int = 1000,
    level: float = 0.95,
    group: str = "",
) -> list[Estimate]:
    """Return the alphas of one rater's ratings paired with everybody else's.

    Each text that the rater shares with others gives one pair for each of them; alpha is that of
    the pairs, resampled over texts. Undefined when the rater shares no text with anybody, or when
    the pairs hold one rating only. It does not say whether the rater or the others are right.

    Parameters
    ----------
    ratings
        Shape (texts, raters): whole numbers from 0 to 5, NaN where a rater did not rate.
    rater
        The rater's column.
    rng, replicates, level
        As in `risk_agreement`.
    group
        The rater's name in the estimates.

    Examples
    --------
    >>> ratings = [[0, 0, 4], [5, 5, 1], [0, 0, 2], [3, 3, 0]]
    >>> rng = np.random.default_rng(1)
    >>> [round(against_others(ratings, r, rng=rng)[0].value, 2) for r in (0, 2)]
    [0.29, -0.5]
    """
    values = _checked(ratings)
    others = np.delete(values, rater, axis=1)
    text, other = np.nonzero(~np.isnan(others) & ~np.isnan(values[:, [rater]]))
    pairs = np.column_stack([values[text, rater], others[text, other]])
    names = tuple(name for name in AGREEMENT_TITLES if name != "step-2")
    if not len(pairs):
        reason = "the rater shares no text with another"
        return [
            Estimate.undefined(
                reason_code="no-units",
                metric=AGREEMENT_TITLES[name], label=name, group=group, reason=reason, n=0,
                unit="text", level=level,
            )
            for name in names
        ]  # fmt: skip
    drawn = resample(_samples(pairs, names), clusters=text, replicates=replicates, rng=rng)
    return _estimates(drawn, names, (group,), level)


@dataclass(frozen=True, eq=False)
class Ratings:
    """Ratings of the texts of an audit."""

    matrix: NDArray[np.float64]  # Texts x raters, from 0 to 5; NaN where a rater did not rate
    raters: tuple[str, ...]  # Who rated
    exclusions: tuple[Exclusion, ...] = ()  # What could not be used

    @property
    def labels(self) -> RiskLabels:
        """The three labels of each text; one rating suffices where one is all there is."""
        most = int((~np.isnan(self.matrix)).sum(axis=1).max(initial=0))
        return risk_labels(self.matrix, least_votes=min(2, max(most, 1)))

    @property
    def unanimous(self) -> NDArray[np.bool_]:
        """Whether at least two raters rated a text, and all say delicate, or all say not."""
        known = ~np.isnan(self.matrix)
        with np.errstate(invalid="ignore"):
            votes = ((self.matrix >= 3) & known).sum(axis=1)
        n = known.sum(axis=1)
        return np.asarray((n >= 2) & ((votes == 0) | (votes == n)))


def read_ratings(path: Path | str, texts: Texts) -> Ratings:
    """Read ratings from a file with `id`, `rater` and `risk`, as the annotation app exports them.

    Or with one row a text and the columns `annotator_1`, `annotator_2` ...; without a column `id`,
    rows are numbered from 1, as texts without ids are.

    Rows without a risk (skipped, cannot be judged) and repeats are left out and counted, and so are
    ratings of texts that the audit does not have.

    Raises
    ------
    DataError
        If a rating is not a whole number from 0 to 5, if a rater rates a text twice without
        `repeat`, or if no text of the audit is rated.
    """
    columns = [
        Column("id", "id"),
        Column("rater", "category"),
        Column("risk", "number", nullable=True, low=0, high=HIGHEST_RISK),
        Column("repeat", "flag", required=False, nullable=True),
    ]
    wide = 1
    while has_columns(path, f"annotator_{wide}"):
        wide += 1
    if wide > 1 and not has_columns(path, "rater"):
        table = _long(path, [f"annotator_{k}" for k in range(1, wide)])
    else:
        table = read_table(str(path), columns, str(path))
    exclusions = []
    if "repeat" in table.columns:
        again = table.filter(pl.col("repeat").fill_null(False))
        if again.height:
            reason = "repeats, which show a rater's agreement with themselves"
            exclusions.append(Exclusion("ratings", "ratings", again.height, reason, table.height))
        table = table.filter(~pl.col("repeat").fill_null(False))
    empty = table["risk"].null_count()
    if empty:
        reason = "no risk is given (skipped, or cannot be judged)"
        exclusions.append(Exclusion("ratings", "ratings", empty, reason, table.height))
        table = table.filter(pl.col("risk").is_not_null())
    faults = []
    if rows := rows_where(table, pl.col("risk") != pl.col("risk").floor()):
        faults.append(f"column 'risk' is not a whole number in {rows}")
    if rows := rows_where(table, ~pl.struct("id", "rater").is_first_distinct()):
        faults.append(f"a rater rates a text again in {rows}; mark it in a column 'repeat'")
    if faults:
        raise DataError(str(path), faults)
    row = Vocabulary(np.asarray(texts.ids)).codes(table["id"].to_arrow())
    unknown = int((row < 0).sum())
    if unknown == table.height:
        raise DataError(str(path), ["none of its ids is the id of a text of the audit"])
    if unknown:
        reason = "they are of texts that are not in the data"
        exclusions.append(Exclusion("ratings", "ratings", unknown, reason, table.height))
    raters, column = Vocabulary.encode(table["rater"].cast(pl.String).to_arrow())
    matrix = np.full((len(texts), len(raters)), np.nan)
    known = row >= 0
    matrix[row[known], column[known]] = table["risk"].cast(pl.Float64).to_numpy()[known]
    return Ratings(matrix, tuple(str(name) for name in raters.ids), tuple(exclusions))


def _long(path: Path | str, raters: Sequence[str]) -> pl.DataFrame:
    """Return one row a rating from a file with a column for each annotator."""
    columns = [Column("id", "id", required=False)]
    columns += [Column(name, "number", nullable=True, low=0, high=HIGHEST_RISK) for name in raters]
    table = read_table(str(path), columns, str(path))
    if "id" not in table.columns:
        table = table.with_row_index("id", offset=1).with_columns(pl.col("id").cast(pl.Int64))
    elif rows := rows_where(table, ~pl.col("id").is_first_distinct()):
        raise DataError(str(path), [f"column 'id' repeats an id in {rows}"])
    return table.unpivot(raters, index="id", variable_name="rater", value_name="risk")
