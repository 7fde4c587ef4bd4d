"""Interactions cut in two: some to train on, some held out to test with.

No split loops over users: 20 million interactions take seconds. The two parts keep the users and
items (and so the codes) of the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import signature
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.interactions import Interactions
from ombud.errors import DataError, PlanError
from ombud.rng import generator


@dataclass(frozen=True, eq=False)
class Split:
    """Interactions to train on and interactions held out, over the same users and items."""

    train: Interactions  # What a recommender may see
    test: Interactions  # What was held out
    # Who has nothing held out or nothing to train on, and what was dropped for it.
    exclusions: tuple[Exclusion, ...] = ()

    def __repr__(self) -> str:
        return f"Split(train {len(self.train):,}, test {len(self.test):,})"


def per_user(interactions: Interactions, *, share: float = 0.1, seed: int = 0) -> Split:
    """Hold out a random share of every user's interactions.

    Of a user's n interactions, ``share * n`` rounded to the nearest (halves up) are held out,
    but never all of them. Users for whom that is none are counted.

    Parameters
    ----------
    interactions
        The whole.
    share
        Between 0 and 1.
    seed
        The seed; the same seed and data give the same split.

    Examples
    --------
    >>> whole = Interactions.from_arrays([1] * 10 + [2], [*range(10), 3])
    >>> per_user(whole, share=0.2)
    Split(train 9, test 2)
    """
    _check_share(share)
    counts = np.diff(interactions.matrix.indptr)
    wanted = np.minimum(np.floor(counts * share + 0.5), np.maximum(counts - 1, 0))
    held = _random_places(interactions, seed, "per-user") < np.repeat(wanted, counts)
    return _parts(interactions, held, _without_test(counts, wanted))


def leave_one_out(
    interactions: Interactions, *, order: Literal["random", "last"] = "random", seed: int = 0
) -> Split:
    """Hold out one interaction of every user who has at least two.

    Parameters
    ----------
    interactions
        The whole.
    order
        ``random``, or the ``last`` by time. Several at the last moment: one of them at random.
    seed
        The seed.
    """
    counts = np.diff(interactions.matrix.indptr)
    candidates = np.ones(len(interactions), dtype=bool)
    if order == "last":
        candidates = _latest(interactions)
    elif order != "random":
        raise PlanError(f"order is {order!r}; 'random' or 'last' was expected")
    wanted = (counts >= 2).astype(np.float64)
    places = _random_places(interactions, seed, "leave-one-out", first=candidates)
    return _parts(interactions, places < np.repeat(wanted, counts), _without_test(counts, wanted))


def split_by_time(
    interactions: Interactions, *, at: float | str | None = None, share: float = 0.1
) -> Split:
    """Hold out what happened at or after a moment.

    Users whose every interaction is that late cannot be trained on: what they did is dropped
    from the test part and counted.

    Parameters
    ----------
    interactions
        The whole, with times.
    at
        The first moment of the test part: seconds since 1970 (or whatever unit the times are
        in), or an ISO date such as ``"2020-01-31"`` (taken as UTC).
    share
        Without `at`: the moment is chosen so that about this share of all interactions is held
        out (less when many share that moment).
    """
    times = _times(interactions)
    if at is None:
        _check_share(share)
        late = int(np.floor(len(times) * share))
        index = len(times) - max(late, 1)
        moment = float(np.partition(times, index)[index])
        if late and np.count_nonzero(times >= moment) > late:
            # Interactions of one moment are not torn apart.
            after = times[times > moment]
            moment = float(after.min()) if len(after) else moment
    else:
        moment = _seconds(at)
    held = times >= moment
    if not held.any() or held.all():
        side = "after" if not held.any() else "before"
        raise PlanError(
            f"no interaction lies {side} the cut at {at if at is not None else moment}; "
            f"the times run from {times.min():.0f} to {times.max():.0f}"
        )
    return _drop_untrained(interactions, held)


def one_fold(
    interactions: Interactions,
    *,
    folds: int = 5,
    fold: int = 0,
    by: Literal["user", "all"] = "user",
    seed: int = 0,
) -> Split:
    """Hold out one of several equal parts.

    Parameters
    ----------
    interactions
        The whole.
    folds, fold
        How many parts, and which of them (from 0) is held out.
    by
        ``user`` deals each user's interactions out evenly (a user with a single interaction is
        never held out); ``all`` deals all interactions out without looking at users, and what is
        held out of users who then have nothing left to train on is dropped and counted.
    seed
        The seed; the folds of one seed never overlap and together are the whole.
    """
    if folds < 2 or not 0 <= fold < folds:
        raise PlanError(
            f"fold {fold} of {folds} does not exist; folds is 2 or more, fold from 0 to folds - 1"
        )
    rng = generator(seed, "split", "folds", by)
    if by == "all":
        part = (np.arange(len(interactions), dtype=np.int64) % folds).astype(np.int16)
        rng.shuffle(part)
        return _drop_untrained(interactions, part == fold)
    if by != "user":
        raise PlanError(f"by is {by!r}; 'user' or 'all' was expected")
    counts = np.diff(interactions.matrix.indptr)
    # Without its own first fold, every short history would fall into fold 0.
    start = rng.integers(0, folds, size=len(counts))
    dealt = (_random_places(interactions, seed, "folds") + np.repeat(start, counts)) % folds
    held = (dealt == fold) & np.repeat(counts >= 2, counts)
    wanted = np.bincount(_rows(interactions)[held], minlength=len(counts))
    return _parts(interactions, held, _without_test(counts, wanted))


METHODS: dict[str, Callable[..., Split]] = {
    "per-user": per_user,
    "leave-one-out": leave_one_out,
    "time": split_by_time,
    "k-fold": one_fold,
}
"""The splits that a plan can name."""


def split(interactions: Interactions, method: str = "per-user", **options: Any) -> Split:
    """Split by a method's name, as a plan does.

    Parameters
    ----------
    interactions
        The whole.
    method
        One of `METHODS`: ``per-user``, ``leave-one-out``, ``time`` or ``k-fold``.
    options
        The options of that method: `per_user`, `leave_one_out`, `split_by_time`, `one_fold`.
        A `seed` is accepted by all; a split by time has no use for it.
    """
    chosen = METHODS.get(method)
    if chosen is None:
        raise PlanError(f"no split is called {method!r}; known: {', '.join(METHODS)}")
    takes = [name for name in signature(chosen).parameters if name != "interactions"]
    if "seed" not in takes:
        options.pop("seed", None)
    unknown = sorted(set(options) - set(takes))
    if unknown:
        raise PlanError(
            f"split {method!r} does not take {', '.join(unknown)}; it takes {', '.join(takes)}"
        )
    try:
        return chosen(interactions, **options)
    except (TypeError, ValueError) as error:
        raise PlanError(f"split {method!r}: {error}") from None


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise PlanError(f"share is {share!r}; a number between 0 and 1 was expected")


def _rows(interactions: Interactions) -> NDArray[np.int32]:
    counts = np.diff(interactions.matrix.indptr)
    return np.repeat(np.arange(len(counts), dtype=np.int32), counts)


def _random_places(
    interactions: Interactions, seed: int, name: str, first: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Return, for each entry, its place in a random order of its user's entries.

    Entries marked `first` come before the others of their user.
    """
    rng = generator(seed, "split", name)
    size = len(interactions)
    # Rows are stored one after the other: sorted by (row, chance), row r still starts at indptr[r].
    key = _rows(interactions).astype(np.uint64) << np.uint64(32)
    key |= rng.integers(0, 2**31, size=size, dtype=np.uint64)
    if first is not None:
        key |= (~first).astype(np.uint64) << np.uint64(31)
    order = np.argsort(key, kind="stable")
    starts = interactions.matrix.indptr
    places = np.empty(size, dtype=np.int64)
    places[order] = np.arange(size) - np.repeat(starts[:-1].astype(np.int64), np.diff(starts))
    return places


def _times(interactions: Interactions) -> NDArray[np.float64]:
    times = interactions.times
    if times is None:
        raise PlanError("this split needs times; the interactions have no column 'time'")
    missing = int(np.count_nonzero(np.isnan(times)))
    if missing:
        raise DataError("interactions", [f"{missing:,} interactions have no time; drop them first"])
    return times


def _latest(interactions: Interactions) -> NDArray[np.bool_]:
    times, starts = _times(interactions), interactions.matrix.indptr
    counts = np.diff(starts)
    used = counts > 0
    last = np.maximum.reduceat(times, starts[:-1][used])
    return np.asarray(times == np.repeat(last, counts[used]))


def _seconds(at: float | str) -> float:
    if not isinstance(at, str):
        return float(at)
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        raise PlanError(f"at is {at!r}; a number or an ISO date was expected") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _without_test(counts: NDArray[Any], wanted: NDArray[Any]) -> list[Exclusion]:
    single = int(np.count_nonzero(counts == 1))
    few = int(np.count_nonzero((counts > 1) & (wanted == 0)))
    total = int(np.count_nonzero(counts))
    result = []
    if single:
        reason = "a single interaction, which is kept for training"
        result.append(Exclusion("held-out part", "users", single, reason, total))
    if few:
        reason = "the part held out of so few interactions rounds to none"
        result.append(Exclusion("held-out part", "users", few, reason, total))
    return result


def _drop_untrained(interactions: Interactions, held: NDArray[np.bool_]) -> Split:
    """Take out of the test part what belongs to users who have nothing to train on."""
    counts = np.diff(interactions.matrix.indptr)
    rows = _rows(interactions)
    held_of = np.bincount(rows[held], minlength=len(counts))
    lost = (held_of == counts) & (counts > 0)
    result = []
    if lost.any():
        users, entries = int(np.count_nonzero(lost)), int(held_of[lost].sum())
        reason = f"all they did ({entries:,} interactions) falls into the held-out part"
        result.append(Exclusion("held-out part", "users", users, reason, int((counts > 0).sum())))
    return _parts(interactions, held & ~lost[rows], result, train=~held)


def _parts(
    interactions: Interactions,
    held: NDArray[np.bool_],
    exclusions: list[Exclusion],
    train: NDArray[np.bool_] | None = None,
) -> Split:
    if not held.any():
        raise DataError(
            "interactions",
            ["nothing can be held out: no user has enough interactions to spare one"],
        )
    rest = ~held if train is None else train
    return Split(interactions.select(rest), interactions.select(held), tuple(exclusions))
