"""RMSE and MAE: by hand, against LensKit and scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, root_mean_squared_error

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.predictions import Predictions
from ombud.errors import AuditedSystemError, PlanError
from ombud.metrics.accuracy.ratings import MAE, RMSE
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings

REFERENCE = Path(__file__).parents[1] / "reference" / "accuracy"
EMPTY = Dataset()


def predictions(users, predicted, actual):
    n = len(users)
    return Predictions(
        np.asarray(users), np.arange(n), np.asarray(predicted, "f4"), np.asarray(actual, "f4")
    )


def point(metric, given_):
    rows = metric.measure(given_, EMPTY)
    return metric.statistic.point(np.stack([c[:, 0] for c in rows.columns.values()], axis=1))


def test_by_hand():
    # a is off by 1 and 1, b by 3.
    given_ = predictions(["a", "a", "b"], [2, 4, 5], [3, 3, 2])
    assert point(RMSE(), given_) == pytest.approx(np.sqrt(11 / 3))
    assert point(MAE(), given_) == pytest.approx(5 / 3)
    assert point(RMSE("users"), given_) == pytest.approx(2.0)
    assert point(MAE("users"), given_) == pytest.approx(2.0)


def test_missing_predictions_are_counted():
    given_ = predictions(["a", "a", "b"], [2, np.nan, np.nan], [3, 3, 2])
    rows = RMSE().measure(given_, EMPTY)
    assert rows.ids.tolist() == ["a"]
    assert [(e.count, e.of) for e in rows.exclusions] == [(2, 3)]


@pytest.fixture(scope="module")
def example():
    held = pl.read_csv(REFERENCE / "held_out.csv")
    theirs = pl.read_csv(REFERENCE / "lenskit.csv")
    return predictions(held["user"], held["predicted"], held["rating"]), theirs


@pytest.mark.parametrize("metric", [RMSE("users"), MAE("users")])
def test_same_as_lenskit(example, metric):
    given_, theirs = example
    rows = metric.measure(given_, EMPTY)
    expected = theirs.filter(metric=metric.registered_name).sort("user")
    assert rows.ids.tolist() == expected["user"].to_list()
    # LensKit works in 32 bits here.
    np.testing.assert_allclose(rows.columns["value"][:, 0], expected["value"], rtol=1e-5)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.floats(-9, 9, width=32), st.floats(-9, 9, width=32)),
        min_size=1,
        max_size=30,
    )
)
def test_same_as_scikit_learn_and_ordered(rows):
    users, predicted, actual = map(list, zip(*rows, strict=True))
    given_ = predictions(users, predicted, actual)
    rmse, mae = point(RMSE(), given_), point(MAE(), given_)
    assert rmse == pytest.approx(root_mean_squared_error(actual, predicted), abs=1e-9)
    assert mae == pytest.approx(mean_absolute_error(actual, predicted), abs=1e-9)
    assert mae <= rmse + 1e-12


@pytest.mark.simulation
def test_interval_covers_the_truth():
    # Users differ in how well they are predicted; the pooled truth is the root of the mean.
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(200):
        spread = rng.choice([0.5, 1.5], 120)
        users = np.repeat(np.arange(120), 5)
        given_ = predictions(users, rng.normal(0, spread[users]), np.zeros(600))
        [e] = estimate_metric(
            RMSE(), {"s": RMSE().measure(given_, EMPTY)}, settings=Settings(replicates=300)
        )
        hits += e.interval[0] <= np.sqrt((0.25 + 2.25) / 2) <= e.interval[1]
    # 95% of 200 is 190; four standard errors of a binomial below.
    assert hits >= 190 - 4 * np.sqrt(200 * 0.95 * 0.05)


def test_predictions_of_held_out_pairs():
    test = Interactions.from_arrays(["a", "a", "b"], [1, 2, 2], [3.0, 4.0, 5.0])
    asked = []

    def predict(users, items):
        asked.append((users.tolist(), items.tolist()))
        return np.array([1.0, np.nan, 2.0])[: len(users)]

    every = Predictions.of_held_out(test, predict)
    assert asked == [(["a", "a", "b"], [1, 2, 2])]
    again = Predictions.from_frame(every.to_frame())
    np.testing.assert_array_equal(again.predicted, np.array([1, np.nan, 2], "f4"))
    assert again.actual.tolist() == [3.0, 4.0, 5.0]
    Predictions.of_held_out(test, predict, users=["a", "zz"])
    assert asked[-1] == (["a", "a"], [1, 2])


def test_bad_answers_are_refused():
    test = Interactions.from_arrays(["a", "b"], [1, 2], [3.0, 4.0])
    with pytest.raises(AuditedSystemError, match=r"x predicted an array of shape \(1,\)"):
        Predictions.of_held_out(test, lambda u, i: np.ones(1), system="x")
    with pytest.raises(AuditedSystemError, match="infinite rating for 2 pairs"):
        Predictions.of_held_out(test, lambda u, i: np.full(2, np.inf))
    implicit = Interactions.from_arrays(["a"], [1])
    with pytest.raises(PlanError, match="there are none"):
        Predictions.of_held_out(implicit, lambda u, i: np.ones(1))
    with pytest.raises(PlanError, match="lists only"):
        RMSE().measure("lists", EMPTY)
