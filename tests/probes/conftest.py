"""Tiny data on which every edit can be tried."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.data.interactions import Interactions
from ombud.systems.recommenders import EASE, SVD, ExplicitALS, ImplicitALS, ItemKNN, UserKNN

USERS, ITEMS = 24, 11

MODELS = {
    "svd": (SVD(factors=3, epochs=40, learning_rate=0.02, regularization=0.1), "ratings"),
    "explicit-als": (ExplicitALS(factors=3, regularization=0.2, solver="cholesky"), "ratings"),
    "implicit-als": (ImplicitALS(factors=3, alpha=3.0, solver="cholesky"), "plays"),
    "ease": (EASE(3.0), "plays"),
    "ease on ratings": (EASE(30.0), "ratings"),
    "item-knn": (ItemKNN(neighbours=3), "plays"),
    "item-knn on ratings": (ItemKNN(neighbours=3), "ratings"),
    "user-knn": (UserKNN(neighbours=4), "plays"),
    "user-knn on ratings": (UserKNN(neighbours=4), "ratings"),
}


def tiny(kind: str, seed: int = 5) -> Interactions:
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((USERS, ITEMS)) < 0.4)
    ratings = rng.integers(1, 4, len(users)).astype(float)
    return Interactions.from_arrays(users, items, ratings if kind == "ratings" else None)


@pytest.fixture(params=list(MODELS))
def model_name(request) -> str:
    return request.param


def trained(name: str, seed: int = 5):
    from dataclasses import replace

    model, kind = MODELS[name]
    return replace(model).fit(tiny(kind, seed))
