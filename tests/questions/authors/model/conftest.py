"""Data simulated from the propagation model, for every test of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

import numpy as np
import pytest
from numpy.typing import NDArray


class Made(TypedDict):
    count: NDArray[np.int64]
    known: NDArray[np.int64]
    list_count: NDArray[np.int64]
    list_known: NDArray[np.int64]


def simulate(
    rng: np.random.Generator,
    users: int = 400,
    *,
    mu: float = -0.3,
    sigma: float = 1.2,
    b: tuple[float, ...] = (-0.2, 0.1),
    s: tuple[float, ...] = (0.5, 1.1),
    v: tuple[float, ...] = (0.5, 0.5),
    middle: float = 12.0,
    size: int = 40,
) -> Made:
    known = 5 + np.floor(np.exp(rng.normal(np.log(middle), 0.9, users))).astype(np.int64)
    t = rng.normal(mu, sigma, users)
    x = np.array(b) + np.array(s) * t[:, None] + rng.normal(size=(users, len(b))) * np.array(v)
    list_known = rng.binomial(size, 0.8, x.shape)
    return {
        "count": rng.binomial(known, 1 / (1 + np.exp(-t))),
        "known": known,
        "list_count": rng.binomial(list_known, 1 / (1 + np.exp(-x))),
        "list_known": list_known,
    }


@pytest.fixture(scope="session")
def made() -> Callable[..., Made]:
    """Return the function that simulates counts."""
    return simulate
