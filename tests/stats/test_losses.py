"""Relative loss: by hand, coverage, few hits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.stats.losses import relative_loss


def test_by_hand() -> None:
    before, after = np.tile([1.0, 0.0], 60), np.tile([0.5, 0.25], 60)
    e = relative_loss(before, after, metric="loss", unit="user")
    assert e.value == pytest.approx(0.25)
    assert e.details == {"hits_before": 60, "hits_after": 120, "hits_both": 60}


def test_few_hits_are_counted() -> None:
    before = np.zeros(5_000)
    before[:4] = 0.1
    e = relative_loss(before, np.zeros(5_000), metric="loss", unit="user")
    assert not e.is_defined and e.details["hits_before"] == 4 and e.details["hits_after"] == 0
    assert relative_loss(before, before, metric="loss", fewest=4).value == 0


def test_nothing_changed_and_bad_input() -> None:
    x = np.linspace(0, 1, 100)
    e = relative_loss(x, x, metric="loss")
    assert e.value == 0 and e.interval is None
    with pytest.raises(ValueError, match="shape"):
        relative_loss(x, x[:5], metric="loss")
    with pytest.raises(ValueError, match="zero or more"):
        relative_loss(x, -x, metric="loss")


@given(st.floats(0.1, 10))
def test_the_unit_of_the_measure_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.random(200), rng.random(200)
    one = relative_loss(x, y, metric="loss")
    two = relative_loss(scale * x, scale * y, metric="loss")
    assert one.value == pytest.approx(two.value)
    assert one.interval == pytest.approx(two.interval)


def test_intervals_cover() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(300):
        hit = rng.random((2_000, 2)) < [0.2, 0.6]
        before = hit[:, 0] / (1 + rng.integers(0, 20, 2_000))
        after = before * hit[:, 1] * 1.5
        e = relative_loss(before, after, metric="loss")
        assert e.interval is not None
        # 0.6 of the hits are kept, each worth 1.5 times: a loss of 0.1.
        inside += e.interval[0] < 0.1 < e.interval[1]
    assert 0.91 <= inside / 300 <= 0.985
