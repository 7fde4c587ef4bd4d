"""The peers' own answers, kept as tables, on data that both sides generate.

`tests/reference/make_recommenders.py` writes the tables; it is also where the data come from.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ombud.data.interactions import Interactions

pytest.importorskip("numba")
from ombud.systems.recommenders import SVD, ExplicitALS, ImplicitALS, ItemKNN, UserKNN

REFERENCE = Path(__file__).parents[2] / "reference"


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    path = REFERENCE / "make_recommenders.py"
    spec = importlib.util.spec_from_file_location("make_recommenders", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def rated(maker: ModuleType) -> Interactions:
    return Interactions.from_arrays(*maker.triples(), rating_scale=(0.5, 5.0))


@pytest.fixture(scope="module")
def played(maker: ModuleType) -> Interactions:
    return Interactions.from_arrays(*maker.triples()[:2])


def table(name: str, shape: tuple[int, int]) -> np.ndarray:
    rows = np.loadtxt(REFERENCE / "recommenders" / f"{name}.csv", delimiter=",", skiprows=1)
    out = np.full(shape, np.nan)
    out[rows[:, 0].astype(int), rows[:, 1].astype(int)] = rows[:, 2]
    return out


def everything(model, data: Interactions) -> np.ndarray:
    return model.fit(data).score(data.users.ids, data.items.ids)


def test_svd_is_surprise_step_by_step(rated, monkeypatch):
    shape = (rated.n_users, rated.n_items)
    start = [
        table(f"surprise_svd_start_{side}", (count, 5)).astype(np.float32)
        for side, count in zip(("users", "items"), shape, strict=True)
    ]
    monkeypatch.setattr(SVD, "_start", lambda *_: (start[0].copy(), start[1].copy()))
    model = SVD(factors=5, epochs=12, learning_rate=0.02, regularization=0.05, strata=1)
    np.testing.assert_allclose(everything(model, rated), table("surprise_svd", shape), atol=2e-5)


@pytest.mark.parametrize("solver", ["cg", "cholesky"])
def test_implicit_als_is_that_of_implicit(played, monkeypatch, solver):
    from ombud.systems.recommenders import als

    class Draws:
        """Hands out the reference's starting factors in place of random numbers."""

        def __init__(self) -> None:
            self.rng = np.random.default_rng(8)

        def random(self, shape, dtype):
            return (self.rng.normal(0, 0.1, shape) * 100).astype(dtype)  # the model scales by 0.01

    monkeypatch.setattr(als, "generator", lambda *_: Draws())
    model = ImplicitALS(factors=4, iterations=2, regularization=0.3, alpha=5.0, solver=solver)
    expected = table(f"implicit_als_{solver}", (played.n_users, played.n_items))
    np.testing.assert_allclose(everything(model, played), expected, rtol=2e-3, atol=2e-4)


def test_explicit_als_ends_where_lenskit_ends(rated):
    model = ExplicitALS(
        factors=3, iterations=400, regularization=0.2, damping=5.0, solver="cholesky", seed=1
    )
    expected = table("lenskit_explicit_als", (rated.n_users, rated.n_items))
    np.testing.assert_allclose(everything(model, rated), expected, atol=2e-3)


def test_item_knn_is_that_of_implicit(rated):
    # implicit counts the item itself among its K neighbours and leaves 0 where there are none.
    weighted = Interactions(rated.users, rated.items, rated.matrix, explicit=False)
    found = np.nan_to_num(everything(ItemKNN(neighbours=None, stored=8), weighted))
    expected = table("implicit_item_knn", found.shape)
    expected -= rated.matrix.toarray()  # the item itself, similarity 1
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize(("name", "model"), [
    ("item_knn_explicit", ItemKNN(neighbours=3, min_neighbours=2, stored=23)),
    ("item_knn_implicit", ItemKNN(neighbours=3, stored=23)),
    ("user_knn_explicit", UserKNN(neighbours=4, min_neighbours=2)),
    ("user_knn_implicit", UserKNN(neighbours=4)),
])  # fmt: skip
def test_neighbour_models_are_those_of_lenskit(rated, played, name, model):
    found = everything(model, rated if name.endswith("explicit") else played)
    expected = table(f"lenskit_{name}", found.shape)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
