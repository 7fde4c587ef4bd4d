"""Precision, recall, F1, MRR, NDCG and hit rate: by hand, and against LensKit and scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, ndcg_score

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.accuracy.held_out import relevant_part
from ombud.metrics.accuracy.ranking import F1, MRR, NDCG, HitRate, Precision, Recall
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.registry import create

REFERENCE = Path(__file__).parents[1] / "reference" / "accuracy"
METRICS = {
    "precision": Precision,
    "recall": Recall,
    "f1": F1,
    "mrr": MRR,
    "ndcg": NDCG,
    "hit-rate": HitRate,
}


def lists_of(rows):
    """Lists by user, best first."""
    return Recommendations.from_frame(
        {
            "user": [u for u, items in rows.items() for _ in items],
            "item": [i for items in rows.values() for i in items],
        }
    )


def held_out(ratings):
    rows = [(u, i, float(r)) for u, items in ratings.items() for i, r in items.items()]
    return Interactions.from_frame(
        dict(zip(("user", "item", "rating"), zip(*rows, strict=True), strict=True))
    )


def values(metric, lists, data):
    rows = metric.measure(lists, data)
    return dict(zip(rows.ids.tolist(), rows.columns["value"][:, 0].tolist(), strict=True))


def test_by_hand():
    lists = lists_of({"a": [1, 2, 3, 4], "b": [5, 6], "c": [9]})
    data = Dataset(test=held_out({"a": {2: 1, 4: 1, 7: 1}, "b": {1: 1}, "d": {1: 1}}))
    log = np.log2
    best = 1 + 1 / log(3) + 1 / log(4)
    assert values(Precision(4), lists, data) == {"a": 0.5, "b": 0.0}
    assert values(Recall(4), lists, data) == pytest.approx({"a": 2 / 3, "b": 0.0})
    assert values(F1(4), lists, data) == pytest.approx({"a": 2 * 0.5 * (2 / 3) / (7 / 6), "b": 0})
    assert values(MRR(4), lists, data) == {"a": 0.5, "b": 0.0}
    assert values(MRR(1), lists, data) == {"a": 0.0, "b": 0.0}
    assert values(HitRate(4), lists, data) == {"a": 1.0, "b": 0.0}
    gained = 1 / log(3) + 1 / log(5)
    assert values(NDCG(4), lists, data) == pytest.approx({"a": gained / best, "b": 0.0})


def test_users_without_a_relevant_item_or_a_list_are_counted():
    lists = lists_of({"a": [1, 2], "b": [3], "c": [3]}).for_users(["a", "b", "c", "d"])
    data = Dataset(test=held_out({"a": {1: 1}, "d": {1: 1}}))
    rows = Precision(2).measure(lists, data)
    assert rows.ids.tolist() == ["a"]
    assert [(e.count, e.of, e.reason.split(" (")[0]) for e in rows.exclusions] == [
        (2, 4, "no held-out item"),
        (1, 4, "no list was recommended"),
    ]
    charged = Precision(2, no_list="zero").measure(lists, data)
    assert charged.columns["value"][:, 0].tolist() == [0.5, 0.0]


def test_top_quartile_uses_history_and_held_out_and_keeps_ties():
    # All of a's ratings: 1 2 3 4 4 -> 75th percentile 4; both 4s are in, also the held-out one.
    test = held_out({"a": {10: 4, 11: 3}, "b": {10: 2}, "c": {10: 5}})
    train = held_out({"a": {1: 1, 2: 2, 3: 4}, "b": {1: 5, 2: 5, 3: 5}})
    found = relevant_part(test, train, np.arange(3, dtype=np.int32), "top-quartile")
    assert np.diff(found.indptr).tolist() == [1, 0, 1]
    assert found.data.tolist() == [4.0, 5.0]
    data = Dataset(train, test=test)
    rows = HitRate(1, "top-quartile").measure(lists_of({"a": [10], "b": [10], "c": [11]}), data)
    assert rows.ids.tolist() == ["a", "c"]
    assert rows.columns["value"][:, 0].tolist() == [1.0, 0.0]


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_top_quartile_equals_numpy(draw):
    def ratings(n):
        return draw.draw(st.lists(st.integers(1, 10), min_size=n, max_size=12))

    test = {u: dict(enumerate(ratings(1))) for u in range(3)}
    train = {u: dict(enumerate(ratings(0), 100)) for u in (0, 2)}
    train = {u: items for u, items in train.items() if items} or {9: {1: 1.0}}
    found = relevant_part(
        held_out(test), held_out(train), np.arange(3, dtype=np.int32), "top-quartile"
    )
    for user, items in test.items():
        every = [*items.values(), *train.get(user, {}).values()]
        threshold = np.quantile(every, 0.75)
        expected = {i for i, r in items.items() if r >= threshold - 1e-9}
        row = found.indices[found.indptr[user] : found.indptr[user + 1]]
        assert set(row.tolist()) == expected


@pytest.fixture(scope="module")
def example():
    lists = Recommendations.from_frame(REFERENCE / "lists.csv")
    test = Interactions.from_frame(REFERENCE / "held_out.csv")
    return lists, Dataset(test=test), pl.read_csv(REFERENCE / "lenskit.csv")


@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("name", ["precision", "recall", "mrr", "hit-rate", "ndcg", "ndcg-rating"])
def test_same_as_lenskit(example, name, k):
    lists, data, reference = example
    theirs = dict(reference.filter(metric=name, k=k).select("user", "value").iter_rows())
    assert len(theirs) == 50
    options = {"discount": "original"} if name.startswith("ndcg") else {}
    if name == "ndcg-rating":
        options["gain"] = "rating"
    metric = METRICS[name.removesuffix("-rating")](k, **options)
    ours = values(metric, lists, data)
    n_relevant = np.diff(data.test.matrix.indptr)
    lengths = lists.top(k).lengths
    for place, user in enumerate(data.test.users.ids.tolist()):
        # Where the definitions differ, as our documentation says, theirs is brought to ours.
        if name == "precision":
            theirs[user] *= lengths[user] / k
        if name == "recall":
            theirs[user] *= min(n_relevant[place], k) / n_relevant[place]
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("gain", ["binary", "rating"])
def test_ndcg_same_as_scikit_learn(example, gain):
    lists, data, _ = example
    ours = values(NDCG(10, gain=gain), lists, data)
    for user, value in ours.items():
        row = data.test.users.codes([user])[0]
        truth = data.test.matrix[[row]].toarray()
        truth = truth if gain == "rating" else (truth > 0).astype(float)
        mine = lists.items[user][lists.items[user] >= 0]
        codes = data.test.items.codes(lists.catalogue.take(mine))
        if len(codes) < 10:
            continue  # scikit-learn always ranks everything
        score = np.zeros(truth.shape)
        score[0, codes] = np.arange(20, 20 - len(codes), -1)
        assert value == pytest.approx(ndcg_score(truth, score, k=10, ignore_ties=True))


def test_f1_same_as_scikit_learn(example):
    lists, data, _ = example
    ours = values(F1(10), lists, data)
    full = [u for u in ours if lists.lengths[u] == 10]
    assert len(full) > 30
    for user in full:
        row = data.test.users.codes([user])[0]
        truth = data.test.matrix[[row]].toarray()[0] > 0
        listed = np.zeros(len(truth), dtype=bool)
        listed[data.test.items.codes(lists.catalogue.take(lists.items[user]))] = True
        assert ours[user] == pytest.approx(f1_score(truth, listed, zero_division=0.0))


def test_f1_of_means(example):
    lists, data, _ = example
    means = [
        np.mean(list(values(metric, lists, data).values()))
        for metric in (Precision(10), Recall(10))
    ]
    metric = F1(10, average="means")
    [estimate] = estimate_metric(
        metric, {"s": metric.measure(lists, data)}, settings=Settings(replicates=100)
    )
    assert estimate.value == pytest.approx(2 * means[0] * means[1] / sum(means))
    assert estimate.metric == "F1@10 (of means)" and estimate.n == 50
    low, high = estimate.interval
    assert low < estimate.value < high


def test_f1_of_means_without_any_hit_is_zero():
    metric = F1(2, average="means")
    rows = metric.measure(lists_of({"a": [1], "b": [2]}), Dataset(test=held_out({"a": {5: 1}})))
    assert metric.statistic.point(np.stack([rows.columns[c][:, 0] for c in rows.columns], 1)) == 0


@given(st.data())
def test_bounds_and_relations(draw):
    items = st.lists(st.integers(0, 15), min_size=1, max_size=8, unique=True)
    lists = lists_of({u: draw.draw(items) for u in range(4)})
    data = Dataset(test=held_out({u: dict.fromkeys(draw.draw(items), 1.0) for u in range(4)}))
    k = draw.draw(st.integers(1, 10))
    found = {name: values(metric(k), lists, data) for name, metric in METRICS.items()}
    for user in range(4):
        p, r, f, m, n, h = (found[name][user] for name in METRICS)
        assert min(p, r, f, m, n, h) >= 0 and max(p, r, f, m, n, h) <= 1 + 1e-12
        assert f == pytest.approx(2 * p * r / (p + r) if p + r else 0.0)
        # All or none of them know a hit.
        assert {p > 0, r > 0, f > 0, m > 0, n > 0, h == 1} in ({True}, {False})
        assert m <= h and p * k == pytest.approx(round(p * k))
        # A longer list never loses recall, hits or reciprocal rank.
        for name in ("recall", "hit-rate", "mrr"):
            assert values(METRICS[name](k + 1), lists, data)[user] >= found[name][user]


def test_the_best_list_has_ndcg_one():
    ratings = {1: 5, 2: 4, 3: 4, 4: 1}
    data = Dataset(test=held_out({"a": ratings, "b": {1: 1, 2: 5}}))
    lists = lists_of({"a": [1, 2, 3, 4], "b": [1, 2]})
    graded = values(NDCG(4, gain="rating"), lists, data)
    assert graded["a"] == pytest.approx(1.0)
    assert graded["b"] == pytest.approx((1 + 5 / np.log2(3)) / (5 + 1 / np.log2(3)))


def test_graded_gains_of_zero_and_below():
    lists = lists_of({"a": [1], "b": [1]})
    rows = NDCG(3, gain="rating").measure(
        lists, Dataset(test=held_out({"a": {1: 0.0}, "b": {1: 2}}))
    )
    assert np.isnan(rows.columns["value"][0, 0]) and rows.columns["value"][1, 0] == 1.0
    assert rows.exclusions[0].count == 1
    with pytest.raises(PlanError, match="0 or more"):
        NDCG(3, gain="rating").measure(lists, Dataset(test=held_out({"a": {1: -1.0}})))


def test_faults_say_what_to_do():
    lists = lists_of({"a": [1]})
    with pytest.raises(PlanError, match="give the plan a split"):
        Recall().measure(lists, Dataset())
    implicit = Interactions.from_arrays(["a"], [1])
    with pytest.raises(PlanError, match="needs ratings"):
        Recall(relevance="top-quartile").measure(lists, Dataset(test=implicit))
    with pytest.raises(PlanError, match="k is 0"):
        Recall(0)


def test_a_plan_can_name_them():
    for name, metric in METRICS.items():
        made = create("metric", name, {"k": 7, "relevance": "top-quartile"})
        assert isinstance(made, metric) and made.depth == 7
        assert made.title.endswith("@7, top quartile")
