"""Personalised ranking: draws, blocks and the gradient."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")
from ombud.systems.recommenders import BPR, bpr
from ombud.systems.recommenders.kernels import pairwise
from ombud.worlds import WorldSpec, build_world


def test_blocks_partition_the_items_and_balance_the_counts(rng):
    counts = rng.integers(1, 40, 300).astype(np.int64)
    of_item, order, starts, placed = pairwise.deal_items(counts, 6, rng)
    assert sorted(order.tolist()) == list(range(300))
    for block in range(6):
        members = order[starts[block] : starts[block + 1]]
        assert (of_item[members] == block).all()
        assert placed[starts[block] : starts[block + 1]].tolist() == sorted(members.tolist())
        assert abs(counts[members].sum() - counts.sum() / 6) <= 40


def test_alias_tables_hold_the_frequencies_exactly(rng):
    counts = rng.integers(0, 9, 50).astype(np.int64)
    _, order, starts, _ = pairwise.deal_items(counts, 3, rng)
    keep, other = np.zeros(50, np.float32), np.zeros(50, np.int32)
    pairwise.alias_tables(order, starts, counts, keep, other)
    for block in range(3):
        members = order[starts[block] : starts[block + 1]]
        chance = np.zeros(50)
        for place in range(starts[block], starts[block + 1]):
            chance[order[place]] += keep[place] / len(members)
            chance[other[place]] += (1 - keep[place]) / len(members)
        expected = np.zeros(50)
        expected[members] = counts[members] / counts[members].sum()
        np.testing.assert_allclose(chance, expected, atol=1e-6)


def test_interactions_are_laid_out_cell_by_cell(rng):
    has = rng.random((20, 60)) < 0.3
    indices = np.nonzero(has)[1].astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(has.sum(1))]).astype(np.int64)
    of_item, _, starts, placed = pairwise.deal_items(has.sum(0).astype(np.int64), 5, rng)
    place_of = np.argsort(placed).astype(np.int32)
    who, what = np.empty(len(indices), np.int32), np.empty(len(indices), np.int32)
    cells, bounds = np.empty((2, 6), np.int64), np.array([0, 7, 20])
    pairwise.lay_out(bounds, indptr, indices, of_item, place_of, who, what, cells)
    for block in range(2):
        for cell in range(5):
            part = slice(cells[block, cell], cells[block, cell + 1])
            expected = [
                (u, place)
                for u in range(bounds[block], bounds[block + 1])
                for place in range(starts[cell], starts[cell + 1])
                if has[u, placed[place]]
            ]
            assert list(zip(who[part].tolist(), what[part].tolist(), strict=True)) == expected


def test_more_blocks_of_items_than_of_users_learn_as_well(monkeypatch):
    world = build_world(WorldSpec(name="tastes", users=300, items=400, ratings=False), seed=2)
    plays = world.interactions

    def lift(model):
        scores = model.score(plays.users.ids, plays.items.ids)
        seen = plays.matrix.toarray() > 0
        return np.nanmean(scores[seen]) - np.nanmean(scores[~seen])

    few = BPR(factors=8, epochs=30, threads=1).fit(plays)
    monkeypatch.setattr(bpr, "_BLOCK_BYTES", 1024)  # thirteen blocks of items
    one, two = (BPR(factors=8, epochs=30, threads=n).fit(plays) for n in (1, 2))
    a, b = (model.score(plays.users.ids, plays.items.ids) for model in (one, two))
    assert a.tobytes() == b.tobytes()
    assert not np.array_equal(a, few.score(plays.users.ids, plays.items.ids))
    assert lift(one) == pytest.approx(lift(few), rel=0.15)
    assert lift(few) > 0.05


def test_one_comparison_climbs_the_log_likelihood(rng):
    p, q = rng.normal(size=(1, 3)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
    b = np.array([0.1, -0.3], np.float32)
    rate, penalty = 1e-3, 0.2

    def gain(x):
        pu, qi, qj, bi, bj = x[:3], x[3:6], x[6:9], x[9], x[10]
        return -np.log1p(np.exp(-(bi - bj + pu @ (qi - qj)))) - penalty / 2 * (x @ x)

    x = np.concatenate([p[0], q[0], q[1], b]).astype(float)
    steps = np.eye(11) * 1e-6
    gradient = np.array([(gain(x + s) - gain(x - s)) / 2e-6 for s in steps])
    # One user who has item 0; drawing place 1 with certainty gives the negative, item 1.
    met = np.zeros(1, np.int64)
    pairwise.epoch(
        np.array([[0, 1]], np.int64), np.zeros(1, np.int32), np.zeros(1, np.int32),
        np.array([1, 1], np.int32), np.array([0, 2], np.int64),
        np.ones(2, np.float32), np.array([1, 1], np.int32), np.array([12345], np.uint64),
        p, q, b, np.float32(rate), np.float32(penalty), met,
    )  # fmt: skip
    assert met.tolist() == [1]
    moved = np.concatenate([p[0], q[0], q[1], b]) - x
    np.testing.assert_allclose(moved, rate * gradient, rtol=2e-3, atol=1e-6)


def test_a_negative_that_the_user_has_is_passed_over(rng):
    p, q = np.ones((1, 2), np.float32), np.ones((2, 2), np.float32)
    met = np.zeros(1, np.int64)
    pairwise.epoch(
        np.array([[0, 2]], np.int64), np.zeros(2, np.int32), np.array([0, 1], np.int32),
        np.array([0, 1], np.int32), np.array([0, 2], np.int64),
        np.ones(2, np.float32), np.array([0, 1], np.int32), np.array([7], np.uint64),
        p, q, np.zeros(2, np.float32), np.float32(0.1), np.float32(0.1), met,
    )  # fmt: skip
    assert met.tolist() == [0] and (p == 1).all() and (q == 1).all()
