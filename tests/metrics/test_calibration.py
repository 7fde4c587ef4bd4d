from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.calibration import Miscalibration, divergence, item_mixes
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.worlds import small_world


@pytest.fixture
def example() -> tuple[Dataset, Recommendations]:
    interactions = Interactions.from_arrays(["u"] * 4 + ["v"], ["a", "b", "c", "d", "c"])
    labels = Labels.from_applied(
        {"item": ["a", "a", "b", "e"], "label": ["blood", "spiders", "blood", "spiders"]}
    )
    lists = Recommendations.from_frame({"user": ["u", "u", "v"], "item": ["e", "f", "e"]})
    return Dataset(interactions, labels), lists


def test_hand_worked(example: tuple[Dataset, Recommendations]) -> None:
    data, lists = example
    found = Miscalibration(k=2).measure(lists, data).columns["value"][:, 0]
    # u met a (half blood, half spiders), b (blood), c and d (none); the list is e (spiders), f.
    p, q = np.array([1.5, 0.5, 2]) / 4, np.array([0, 1, 1]) / 2
    assert found[0] == pytest.approx(np.sum(p * np.log(p / (0.99 * q + 0.01 * p))))
    # v met nothing labelled and is shown spiders alone.
    assert found[1] == pytest.approx(-np.log(0.01))


def test_leaving_out_unlabelled_items(example: tuple[Dataset, Recommendations]) -> None:
    data, lists = example
    rows = Miscalibration(k=2, none="leave-out").measure(lists, data)
    p, q = np.array([0.75, 0.25]), np.array([0.0, 1.0])
    mixed = 0.99 * q + 0.01 * p
    assert rows.columns["value"][0, 0] == pytest.approx(entropy(p, mixed))
    assert np.isnan(rows.columns["value"][1, 0])
    assert [e.count for e in rows.exclusions] == [1]


def test_exposure_counts_the_first_place_most(example: tuple[Dataset, Recommendations]) -> None:
    data, lists = example
    found = Miscalibration(k=2, weighting="exposure").measure(lists, data).columns["value"]
    d = np.array([1, 1 / np.log2(3)])
    p, q = np.array([1.5, 0.5, 2]) / 4, np.array([0, d[0], d[1]]) / d.sum()
    assert found[0, 0] == pytest.approx(np.sum(p * np.log(p / (0.99 * q + 0.01 * p))))


def test_every_item_has_the_weight_one(rng: np.random.Generator) -> None:
    world = small_world(1)
    assert world.dataset.labels is not None
    assert np.asarray(item_mixes(world.dataset.labels).sum(axis=1)) == pytest.approx(1.0)


@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=6).filter(
        lambda rows: min(sum(p for p, _ in rows), sum(q for _, q in rows)) > 0.01
    )
)
def test_divergence_is_that_of_scipy_and_bounded(rows: list[tuple[float, float]]) -> None:
    p, q = np.array(rows).T
    p, q = p / p.sum(), q / q.sum()
    found = float(divergence(p[None], q[None])[0])
    assert found == pytest.approx(float(entropy(p, 0.99 * q + 0.01 * p)), abs=1e-9)
    assert 0 <= found <= -np.log(0.01) + 1e-9
    assert divergence(p[None], p[None])[0] == pytest.approx(0, abs=1e-12)


def test_through_the_engine_and_faults() -> None:
    world = small_world(2)
    lists = world.recommenders()[0].recommend(world.interactions.users.ids, 20)
    asked = Miscalibration(k=20)
    rows = {"neutral": asked.measure(lists, world.dataset)}
    (level, *_) = estimate_metric(asked, rows, None, Settings(replicates=200))
    assert level.interval is not None and level.value is not None and level.p_value is None
    with pytest.raises(PlanError, match="alpha"):
        Miscalibration(alpha=0)
    with pytest.raises(PlanError, match="needs interactions and labels"):
        asked.measure(lists, Dataset())
