"""Splits: what is held out, who keeps what, and how it is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.interactions import Interactions
from ombud.data.splits import METHODS, leave_one_out, one_fold, per_user, split, split_by_time
from ombud.errors import DataError, PlanError


def make(counts, seed=0, times=None, n_items=60):
    """Users 0, 1, ... with so many interactions each; ratings identify the entries."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(len(counts)), counts)
    items = np.concatenate([rng.choice(n_items, c, replace=False) for c in counts])
    frame = {"user": users, "item": items, "rating": np.arange(len(users), dtype=float)}
    if times is not None:
        frame["time"] = np.asarray(times, dtype=float)
    return Interactions.from_frame(frame)


def entries(interactions):
    return set(zip(*interactions.to_frame().select("user", "item", "rating"), strict=True))


@given(
    counts=st.lists(st.integers(1, 30), min_size=2, max_size=20).filter(lambda c: max(c) >= 10),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 99),
)
def test_parts_are_the_whole_and_sizes_follow_the_rule(counts, share, seed):
    whole = make(counts)
    parts = per_user(whole, share=share, seed=seed)
    assert entries(parts.train) | entries(parts.test) == entries(whole)
    assert not entries(parts.train) & entries(parts.test)
    held = np.diff(parts.test.matrix.indptr)
    expected = [min(int(np.floor(c * share + 0.5)), c - 1) for c in counts]
    assert held.tolist() == expected
    assert (np.diff(parts.train.matrix.indptr) >= 1).all()
    assert sum(e.count for e in parts.exclusions) == expected.count(0)
    assert parts.train.users is whole.users and parts.test.items is whole.items


def test_single_interactions_are_counted_apart_from_short_histories():
    parts = per_user(make([1, 1, 3, 20]), share=0.1)
    assert [(e.count, e.of) for e in parts.exclusions] == [(2, 4), (1, 4)]
    assert "single interaction" in parts.exclusions[0].reason
    assert "rounds to none" in parts.exclusions[1].reason


def test_same_seed_same_split_other_seed_other_split():
    whole = make([40] * 5)
    one, again, other = (per_user(whole, share=0.5, seed=s) for s in (3, 3, 4))
    assert entries(one.test) == entries(again.test) != entries(other.test)


def test_every_entry_is_equally_likely_to_be_held_out():
    whole = make([8, 5])
    times = np.zeros(13)
    for seed in range(2000):
        held = per_user(whole, share=0.25, seed=seed).test
        rows = np.repeat([0, 1], np.diff(held.matrix.indptr))
        keys = held.matrix.data.astype(int)
        assert (np.where(keys < 8, 0, 1) == rows).all()
        times[keys] += 1
    # 2 of 8 and 1 of 5; five standard errors of a share of 2000 draws.
    assert np.abs(times[:8] / 2000 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 2000)
    assert np.abs(times[8:] / 2000 - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / 2000)


def test_leave_one_out_holds_out_one_of_two_or_more():
    parts = leave_one_out(make([1, 2, 7]), seed=5)
    assert np.diff(parts.test.matrix.indptr).tolist() == [0, 1, 1]
    assert parts.exclusions[0].count == 1


def test_leave_one_out_last_by_time_with_ties_broken_by_seed():
    # Entry number = rating; user 0's last moment is shared by entries 1 and 3.
    whole = make([4, 3], times=[1, 9, 2, 9, 5, 4, 3])
    chosen = set()
    for seed in range(40):
        held = leave_one_out(whole, order="last", seed=seed).test
        first, second = held.matrix.data.tolist()
        assert second == 4.0
        chosen.add(first)
    assert chosen == {1.0, 3.0}


def test_by_time_at_a_moment_drops_and_counts_untrained_users():
    whole = make([3, 2], times=[1, 5, 6, 7, 8])
    parts = split_by_time(whole, at=5.5)
    assert sorted(parts.test.matrix.data.tolist()) == [2.0]
    assert sorted(parts.train.matrix.data.tolist()) == [0.0, 1.0]
    assert parts.exclusions[0].count == 1
    assert "2 interactions" in parts.exclusions[0].reason


def test_by_time_share_never_tears_a_moment_apart():
    whole = make([10], times=[0, 0, 0, 0, 0, 0, 0, 1, 1, 2])
    assert len(split_by_time(whole, share=0.2).test) == 1
    assert len(split_by_time(whole, share=0.3).test) == 3


def test_by_time_reads_dates():
    whole = make([3], times=[0, 86_400, 3 * 86_400])
    held = split_by_time(whole, at="1970-01-02").test
    assert sorted(held.matrix.data.tolist()) == [1.0, 2.0]
    with pytest.raises(PlanError, match="ISO date"):
        split_by_time(whole, at="soon")


@pytest.mark.parametrize("at", [-1, 99])
def test_a_cut_outside_the_times_is_refused(at):
    with pytest.raises(PlanError, match="no interaction lies"):
        split_by_time(make([3], times=[0, 1, 2]), at=at)


@pytest.mark.parametrize("by", ["user", "all"])
def test_folds_do_not_overlap_and_cover_what_can_be_held_out(by):
    whole = make([1, 2, 11, 30])
    seen: set = set()
    for number in range(4):
        fold = one_fold(whole, folds=4, fold=number, by=by, seed=2)
        assert not seen & entries(fold.test)
        seen |= entries(fold.test)
        trained = set(fold.train.to_frame()["user"])
        assert set(fold.test.to_frame()["user"]) <= trained
    expected = {e for e in entries(whole) if e[0] != 0}
    if by == "user":
        assert seen == expected
    else:
        assert expected >= seen and len(seen) >= 41


def test_folds_by_user_are_balanced():
    whole = make([11, 30, 4])
    folds = [one_fold(whole, folds=4, fold=number, seed=1) for number in range(4)]
    sizes = np.array([np.diff(fold.test.matrix.indptr) for fold in folds])
    assert (np.ptp(sizes, axis=0) <= 1).all()
    # Short histories do not all fall into the first fold.
    first = one_fold(make([3] * 200), folds=5, fold=0)
    assert 90 < len(first.test) < 150


def test_a_plan_can_name_every_method():
    whole = make([20, 20], times=np.arange(40) % 20)
    for method in METHODS:
        parts = split(whole, method, seed=1)
        assert len(parts.train) + len(parts.test) == 40, method


@pytest.mark.parametrize(
    ("method", "options", "words"),
    [
        ("per-users", {}, "known: per-user, leave-one-out, time, k-fold"),
        ("per-user", {"folds": 3}, "does not take folds; it takes share, seed"),
        ("per-user", {"share": 1.5}, "share is 1.5"),
        ("per-user", {"share": "much"}, "per-user"),
        ("k-fold", {"folds": 1}, "folds is 2 or more"),
        ("k-fold", {"by": "item"}, "'user' or 'all'"),
        ("leave-one-out", {"order": "first"}, "'random' or 'last'"),
        ("time", {}, "no column 'time'"),
        ("per-user", {"seed": -1}, "seed"),
    ],
)
def test_bad_options_are_refused_with_words(method, options, words):
    with pytest.raises(PlanError, match=words):
        split(make([5, 5]), method, **options)


def test_nothing_to_hold_out_is_an_error():
    with pytest.raises(DataError, match="nothing can be held out"):
        per_user(make([1, 1, 1]))


def test_missing_times_are_refused():
    with pytest.raises(DataError, match="1 interactions have no time"):
        whole = make([3], times=[0, 1, 2])
        assert whole.times is not None
        whole.times[1] = np.nan
        split_by_time(whole, at=1)
