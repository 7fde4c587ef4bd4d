"""Amplification of all users and labels: sparse products over chunks of users."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.exclusions import Exclusion
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.base import Notes, Outputs, Rows
from ombud.metrics.denominators import (
    count_users,
    label_details,
    label_tallies,
    labeled_items,
    users_without_labels,
)
from ombud.metrics.engine.label_uncertainty import LabelDraws
from ombud.metrics.history import history_matrix, places
from ombud.questions.warnings.amplification.tally import (
    Carried,
    Tally,
    beta_draw,
    carried,
    fitted_priors,
    smoothed,
    tally,
)
from ombud.rng import generator
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.questions.warnings.amplification.metric import Options


# Counts of one chunk, and numbers of the part of it for which values are computed: 128 KiB, so that
# the dozen arrays of a part stay in the processor's cache.
_CHUNK = 2**22
_PART = 2**14
# Numbers of the draws that are kept (512 MiB).
_KEPT = 2**27
# Shares that differ by less are the same share.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found for each user, and everything that must be said beside it."""

    ids: NDArray[Any]
    columns: dict[str, Floats]
    labels: tuple[str, ...]
    exclusions: tuple[Exclusion, ...]
    notes: Mapping[str, str]
    details: Mapping[str, Mapping[str, Any]]
    shared: LabelDraws | None
    tallies: dict[str, Floats]

    def rows(self) -> Rows:
        """Return it in the form of the engine."""
        return Rows(
            unit="user",
            ids=self.ids,
            columns=self.columns,
            labels=self.labels,
            exclusions=self.exclusions,
            notes=self.notes,
            details=self.details,
            shared=self.shared,
            tallies=self.tallies,
            events=_differing(self.columns),
        )


def _differing(columns: Mapping[str, Floats]) -> NDArray[np.bool_]:
    """Return for whom lists and history differ."""
    if "list" in columns:
        return np.abs(columns["list"] - columns["history"]) > _ROUNDING
    return np.abs(columns["value"]) > _ROUNDING


@dataclass(frozen=True, eq=False)
class _Sides:
    """Lists and histories of the same users, over the items of the labels and one for the rest."""

    ids: NDArray[Any]
    lists: sparse.csr_array
    history: sparse.csr_array
    labels: Labels
    after_last: Floats
    exclusions: tuple[Exclusion, ...]
    short: int

    def tallies(self, *tables: Carried) -> Iterator[tuple[slice, list[Tally]]]:
        """Yield users and what their lists and histories carry, part by part.

        Of every two tables, the first is of lists and the second of histories.
        """
        width = max(1, len(self.labels.names))
        step, small = max(1, _CHUNK // width), max(1, _PART // width)
        for start in range(0, len(self.ids), step):
            users = slice(start, start + step)
            whole = self.lists.shape[0] <= step
            sides = (self.lists, self.history)
            sides = sides if whole else (self.lists[users], self.history[users])
            found = [tally(sides[at % 2], table) for at, table in enumerate(tables)]
            for low in range(0, len(found[0].carrying), small):
                part = slice(low, low + small)
                yield slice(start + low, start + low + small), [each[part] for each in found]


def measure(
    asked: Options, outputs: Outputs, data: Dataset, *, over_labels: bool = False
) -> Measured:
    """Return the amplification of each user, for each label or over all of them.

    With `over_labels`, it is averaged over labels within each user.
    """
    sides = _sides(asked, outputs, data)
    if asked.votes == "probability" or sides.labels.errors is not None:
        columns, touched, shared = _by_votes(asked, sides, over_labels)
        counted: dict[str, Floats] = {}
    else:
        # Where unknown labels count as no, every user counts, and sums over users are enough.
        counted = _labeled_sums(sides, over_labels) if asked.unknown == "no" else {}
        labels = sides.labels
        if asked.unknown in {"lowest", "highest", "yes"}:  # whatever the plan declares
            states = labels.as_stated[:-1]
            labels = replace(labels, states=states, unlabeled="unknown", stated=None)
        items = carried(labels, asked.unknown)
        columns, touched = _values(asked, sides, items, over_labels, counted)
        shared = None
    exclusions = sides.exclusions
    if over_labels:
        lacking = int(np.count_nonzero(np.isnan(next(iter(columns.values())))))
        if lacking:
            reason = "amplification is undefined for every label"
            exclusions += (Exclusion("amplification", "users", lacking, reason, len(sides.ids)),)
    names = ("",) if over_labels else sides.labels.names
    tallies = {"touched": touched.astype(np.float64), "short": np.array([float(sides.short)])}
    tallies |= counted
    noted = notes_of(asked, tallies, names, over_labels=over_labels)
    exclusions += noted.exclusions
    return Measured(
        sides.ids, columns, names, exclusions, noted.by_label, noted.details, shared, tallies
    )


def notes_of(
    asked: Options,
    tallies: Mapping[str, Floats],
    labels: tuple[str, ...],
    *,
    over_labels: bool = False,
) -> Notes:
    """Return how often smoothing was needed, how many lists are short, and who is excluded.

    `tallies` are as in `Rows.tallies`, `labels` those of the rows; with `over_labels`, rows are
    means over labels.
    """
    touched, short = tallies["touched"].astype(np.int64), int(tallies["short"][0])
    notes = _notes(asked, short, touched, labels, over_labels)
    details = _details(asked, short, touched, labels, over_labels)
    denominators = label_details(tallies, len(labels))
    details = {w: details[w] | more for w, more in zip(labels, denominators, strict=True)}
    return Notes(notes, details, users_without_labels(tallies))


def _sides(asked: Options, outputs: Outputs, data: Dataset) -> _Sides:
    if data.interactions is None or data.labels is None:
        lacking = "interactions" if data.interactions is None else "labels"
        raise PlanError(f"amplification needs interactions and labels; the data has no {lacking}")
    if not isinstance(outputs, Recommendations):
        raise PlanError("amplification measures recommendations, not a moderator's decisions")
    interactions, labels = data.interactions, data.labels
    if asked.votes == "probability" and labels.yes is None and labels.errors is None:
        raise PlanError(
            "votes='probability' needs labels with votes (columns yes and no); these labels were "
            "applied: choose votes='state'"
        )
    if (
        labels.errors is not None
        and labels.errors.transport == "error-rates"
        and asked.form != "ratio-of-means"
    ):
        raise PlanError(
            f"the labels were given by a system with known error rates; only form='ratio-of-means' "
            f"can be corrected for them, not {asked.form!r}, because a single user's ratio is not. "
            "Choose that form"
        )
    lists = outputs.top(asked.k)
    n_items, users = len(labels.items), interactions.users.codes(outputs.users)
    lengths = lists.lengths
    known = users >= 0
    known[known] = np.diff(interactions.matrix.indptr)[users[known]] > 0
    kept = (lengths > 0) & known
    codes = lists.in_catalogue(labels.items)
    codes = codes if kept.all() else codes[kept]
    exclusions = [
        Exclusion("amplification", what, int(count), reason, of)
        for what, count, reason, of in (
            ("users", np.count_nonzero(lengths == 0), "no list was recommended", len(lengths)),
            (
                "users",
                np.count_nonzero((lengths > 0) & ~known),
                "a list, but no history to compare it with",
                len(lengths),
            ),
        )
        if count
    ]
    width = codes.shape[1]
    weights: NDArray[Any] = np.ones(width + 1, dtype=np.float32)
    if asked.weighting == "exposure":
        weights = 1 / np.log2(np.arange(width + 1) + 2)
    return _Sides(
        np.asarray(outputs.users)[kept],
        places(codes, n_items, weights[:width]),
        history_matrix(interactions, asked.history, users[kept], labels.items),
        labels,
        weights[lengths[kept]].astype(np.float64)[:, None],
        tuple(exclusions),
        int(np.count_nonzero(lengths[kept] < asked.k)),
    )


def _values(
    asked: Options,
    sides: _Sides,
    items: tuple[Carried, Carried],
    over_labels: bool,
    counted: dict[str, Floats] | None = None,
) -> tuple[dict[str, Floats], NDArray[np.int64]]:
    """Return the columns of the statistic, and how many users smoothing touched, by label.

    The second row of the counts is for lists (log ratios only), the third is of defined pairs.
    Denominators are added to `counted`, where it is given and unknown labels are not bounds.
    """
    n, w = len(sides.ids), len(sides.labels.names)
    never, looked_at = np.zeros(w, dtype=np.bool_), []
    if counted is not None and asked.unknown == "exclude":
        never = ~sides.labels.some_no
        looked_at = [Carried(*labeled_items(sides.labels), None)] * 2
    columns = {name: np.empty((n, 1 if over_labels else w)) for name in asked.statistic.columns}
    touched = np.zeros((3, w), dtype=np.int64)
    for part, (result, past, *looked) in sides.tallies(*items, *looked_at):
        defined = (result.places > 0) & (past.places > 0) & ~never
        if counted is not None and asked.unknown in {"exclude", "no"}:
            shares = {"list": result.share, "history": past.share}
            known = dict(zip(shares, (found.share for found in looked), strict=False))
            _count(asked, sides.labels, defined, shares, known, over_labels, counted)
        if asked.form == "ratio-of-means":
            values = {
                "list": np.where(defined, result.share, np.nan),
                "history": np.where(defined, past.share, np.nan),
            }
            touched[2] += count_users(defined)
        else:
            below, absent = smoothed(past, asked.smoothing)
            above = result.share
            if asked.form == "log-ratio" or asked.smoothing == "additive":
                above, lacking = smoothed(result, asked.smoothing, sides.after_last[part])
                touched[1] += np.count_nonzero(lacking & ~np.isnan(past.share), axis=0)
            touched[0] += np.count_nonzero(absent & defined, axis=0)
            touched[2] += count_users(defined)
            ratio = above / below
            if asked.form == "log-ratio":
                np.log(ratio, out=ratio)
            else:
                ratio -= 1
            values = {"value": np.where(never, np.nan, ratio) if never.any() else ratio}
        for name, value in values.items():
            columns[name][part] = _mean_over_labels(value) if over_labels else value
    return columns, touched


def _labeled_sums(sides: _Sides, over_labels: bool) -> dict[str, Floats]:
    """Return the sum over users of the labeled share of their list and of their history."""
    looked_at = Carried(*labeled_items(sides.labels), None)
    sums = np.zeros((2, looked_at.labels))
    for _, both in sides.tallies(looked_at, looked_at):
        for side, found in enumerate(both):
            sums[side] += (1 / found.weight[:, 0]) @ found.carrying
    sums = np.broadcast_to(sums, (2, len(sides.labels.names)))
    if over_labels:
        sums = sums.mean(axis=1, keepdims=True)
    return {"labeled list": sums[0], "labeled history": sums[1]}


def _count(
    asked: Options,
    labels: Labels,
    defined: NDArray[np.bool_],
    shares: Mapping[str, Floats],
    known: Mapping[str, Floats],
    over_labels: bool,
    counted: dict[str, Floats],
) -> None:
    """Add the denominators of some users."""
    known = {side: np.broadcast_to(share, defined.shape) for side, share in known.items()}
    if over_labels:
        shares = {s: _mean_over_labels(np.where(defined, v, np.nan)) for s, v in shares.items()}
        known = {side: share.mean(axis=1, keepdims=True) for side, share in known.items()}
        defined = np.asarray(defined.any(axis=1, keepdims=True))
    for name, values in label_tallies(labels, asked.unknown, defined, shares, known).items():
        counted[name] = counted[name] + values if name in counted else values


def _mean_over_labels(values: Floats) -> Floats:
    known = ~np.isnan(values)
    count = known.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((np.where(known, values, 0.0).sum(axis=1) / count)[:, None])


def _by_votes(
    asked: Options, sides: _Sides, over_labels: bool
) -> tuple[dict[str, Floats], NDArray[np.int64], LabelDraws]:
    """Average over draws of the labels, and keep what each draw gives for (a part of) the users."""
    n, w = len(sides.ids), 1 if over_labels else len(sides.labels.names)
    # The draws must be the same for every system, so the stream depends on nothing else.
    rng = generator(0, "label votes")
    most = max(1, _KEPT // (asked.draws * w * len(asked.statistic.columns)))
    kept = np.arange(n) if n <= most else np.sort(generator(0, "kept").permutation(n)[:most])
    errors = sides.labels.errors
    priors = fitted_priors(sides.labels) if errors is None else None
    total: dict[str, Floats] = {}
    each = {
        name: np.empty((asked.draws, len(kept), w), dtype=np.float32)
        for name in asked.statistic.columns
    }
    touched = np.zeros((3, len(sides.labels.names)), dtype=np.int64)
    for d in range(asked.draws):
        if priors is None:
            assert errors is not None  # one of both is there
            drawn = errors.draw(rng)
        else:
            drawn = beta_draw(sides.labels, priors, rng)
        items = carried(sides.labels, asked.unknown, drawn)
        columns, counts = _values(asked, sides, items, over_labels)
        touched += counts
        for name, values in columns.items():
            each[name][d] = values[kept]
            total[name] = total[name] + values if name in total else values
    columns = {name: values / asked.draws for name, values in total.items()}
    shared = LabelDraws(sides.ids[kept], each)
    return columns, np.rint(touched / asked.draws).astype(np.int64), shared


def _details(
    asked: Options,
    short: int,
    touched: NDArray[np.int64],
    labels: tuple[str, ...],
    over_labels: bool,
) -> dict[str, dict[str, Any]]:
    """Return how many pairs of user and label were smoothed, how many there are, short lists."""

    def values(counts: list[int]) -> dict[str, Any]:
        smoothed, _, of = counts
        details: dict[str, Any] = {"pairs": of, "short_lists": short, "places": asked.k}
        if asked.form != "ratio-of-means":
            details["smoothed_histories"] = smoothed
        return details

    if over_labels:
        return {"": values(touched.sum(axis=1).tolist()) | {"labels": touched.shape[1]}}
    return {n: values(counts) for n, counts in zip(labels, touched.T.tolist(), strict=True)}


def _notes(
    asked: Options,
    short: int,
    touched: NDArray[np.int64],
    labels: tuple[str, ...],
    over_labels: bool,
) -> dict[str, str]:
    what = {
        "imaginary-item": "an imaginary item was added to",
        "drop": "left out, because the label is absent:",
        "additive": "half an item with and half without was added to",
    }[asked.smoothing]
    end = f"; {short:,} lists are shorter than {asked.k}" if short else ""

    def words(counts: list[int]) -> str:
        in_history, in_lists, of = counts
        if asked.form == "ratio-of-means":
            return f"no smoothing{end}"
        share = f" ({in_history / of:.0%})" if of else ""
        pairs = "user-label pairs" if over_labels else "users"
        said = f"{what} {in_history:,} of {of:,} histories of {pairs}{share}"
        if asked.form == "log-ratio" or asked.smoothing == "additive":
            said += f", and {in_lists:,} lists"
        if asked.votes == "probability":
            said += "; counts are means over draws of the labels"
        return said + end

    if over_labels:
        return {"": words(touched.sum(axis=1).tolist())}
    return {n: words(counts) for n, counts in zip(labels, touched.T.tolist(), strict=True)}
