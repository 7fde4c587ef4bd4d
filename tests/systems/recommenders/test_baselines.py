"""Popular and random lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ombud import registry
from ombud.data.interactions import Interactions
from ombud.systems.recommenders import Popular, Random
from ombud.systems.recommenders.popular import unseen_places


def ids(data: Interactions, lists) -> list[list[str]]:
    return [data.items.take(row[row >= 0]).tolist() for row in lists.items]


def test_counts_then_ids_decide():
    data = Interactions.from_arrays([1, 2, 3, 1, 2, 3, 4], ["d", "d", "c", "b", "b", "a", "e"])
    assert ids(data, Popular().fit(data).recommend([4], 9)) == [["b", "d", "a", "c"]]


def test_means_and_damped_means_by_hand():
    # a: 5; b: 4, 4, 4; c: 1, 3.  All: mean 3.5.  Damped by 2: a 4, b 3.8, c 2.75.
    data = Interactions.from_arrays(
        [1, 1, 2, 3, 2, 3], ["a", "b", "b", "b", "c", "c"], [5.0, 4, 4, 4, 1, 3]
    )
    plain, damped = Popular(by="mean").fit(data), Popular(by="damped-mean", damping=2).fit(data)
    assert plain.score([1], ["a", "b", "c"]).tolist() == [[5, 4, 2]]
    np.testing.assert_allclose(damped.score([1], ["a", "b", "c"]), [[4, 3.8, 2.75]], rtol=1e-6)
    assert ids(data, damped.recommend([2], 3, exclude_seen=False)) == [["a", "b", "c"]]
    # More damping brings a, with its one rating, and b together.
    gaps = [
        np.diff(Popular(by="damped-mean", damping=d).fit(data).score([1], ["b", "a"]))[0, 0]
        for d in (0, 2, 40)
    ]
    np.testing.assert_allclose(gaps, [1, 0.2, 145 / 41 - 152 / 43], atol=1e-6)


def test_equal_means_go_to_the_item_with_more_ratings():
    data = Interactions.from_arrays([1, 1, 2, 3], ["a", "b", "b", "c"], [4.0, 4, 4, 1])
    assert ids(data, Popular(by="mean").fit(data).recommend([3], 3)) == [["b", "a"]]


@given(st.lists(st.sets(st.integers(0, 20)), min_size=1, max_size=6), st.integers(1, 25))
def test_unseen_places_are_the_first_not_seen(rows, n):
    seen = np.array([p for row in rows for p in sorted(row)], np.int64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    found = unseen_places(seen, starts, n)
    for row, places in zip(rows, found, strict=True):
        assert places.tolist() == [p for p in range(21 + n) if p not in row][:n]


@pytest.mark.parametrize("size", [1, 2, 5, 64, 100])
def test_random_orders_are_orders(size):
    data = Interactions.from_arrays(np.zeros(size, int), np.arange(size))
    lists = Random(seed=4).fit(data).recommend([0], size, exclude_seen=False)
    assert sorted(lists.items[0].tolist()) == list(range(size))


def test_random_items_and_pairs_are_uniform():
    users, items = np.divmod(np.arange(6000), 2)
    data = Interactions.from_arrays(users, np.where(items, 11, users % 11))
    lists = Random(seed=9).fit(data).recommend(data.users.ids, 2, exclude_seen=False).items
    first = np.bincount(lists[:, 0], minlength=12)
    assert stats.chisquare(first).pvalue > 1e-4
    pairs = np.bincount(lists[:, 0] * 12 + lists[:, 1], minlength=144).reshape(12, 12)
    assert (np.diag(pairs) == 0).all()
    assert stats.chisquare(pairs[~np.eye(12, dtype=bool)]).pvalue > 1e-4


def test_new_histories_get_orders_of_their_own(plays):
    model = Random().fit(plays)
    many = model.recommend_for(np.zeros((600, plays.n_items), np.float32), 5).items
    assert len(np.unique(many, axis=0)) > 550  # also across blocks of users


def test_only_scores_on_the_scale_of_ratings_are_predictions() -> None:
    rates = {"item-knn", "user-knn", "svd", "explicit-als"}
    for name in ("random", "bpr", "implicit-als", *rates):
        assert registry.create("recommender", name).predicts_ratings == (name in rates)
    assert not Popular().predicts_ratings
    assert Popular(by="mean").predicts_ratings
