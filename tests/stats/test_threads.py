"""Products of the bootstrap run on one thread, and leave the others as they were."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from ombud.stats import Sample, resample
from ombud.stats.bootstrap._design import one_thread
from ombud.stats.statistics import OfSums


def threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_products_run_on_one_thread_and_threads_come_back() -> None:
    if not threads():
        pytest.skip("numpy's products are not of a library that can be told")
    with threadpool_limits(2, "blas"):
        before = threads()
        with one_thread():
            assert threads() == {1}
        assert threads() == before


def test_replicates_are_summed_on_one_thread() -> None:
    if not threads():
        pytest.skip("numpy's products are not of a library that can be told")
    seen: list[set[int]] = []

    def mean(total: np.ndarray, n: np.ndarray) -> np.ndarray:
        seen.append(threads())
        return total / n

    values = np.arange(30.0)
    with threadpool_limits(2, "blas"):
        resample([Sample(values, OfSums(("value",), mean))], replicates=10,
                 rng=np.random.default_rng(0))  # fmt: skip
    assert seen and all(some == {1} for some in seen)
