"""Each estimate is read once, in one place, and none is lost."""

from __future__ import annotations

import pytest

from ombud.metrics.engine.signs import Sign, by_sign, nearest_end, reading
from ombud.stats.estimate import Estimate

BASE = Estimate(metric="m", value=0.2, interval=(0.1, 0.3), method="x", n=9, null=0.0)
WIDE = BASE.replace(interval=(-0.1, 0.5))


@pytest.mark.parametrize(
    ("estimate", "sign"),
    [
        (BASE, "above"),
        (BASE.replace(value=-0.2, interval=(-0.3, -0.1)), "below"),
        (WIDE, "no sign"),
        (BASE.replace(p_value=0.01, p_adjusted=0.04), "above"),
        (BASE.replace(p_value=0.01, p_adjusted=0.2), "above uncorrected"),
        (
            BASE.replace(value=-0.2, interval=(-0.3, -0.1), p_value=0.01, p_adjusted=0.2),
            "below uncorrected",
        ),
        (WIDE.replace(p_value=0.4, p_adjusted=0.8), "no sign"),
        (BASE.replace(level=0.99, p_value=0.02, p_adjusted=0.02), "no sign"),
        (BASE.replace(null=None), "untested"),
        (BASE.replace(interval=None, method="none: why"), "untested"),
        (Estimate.undefined(metric="m", reason="r", n=0), "undefined"),
        (BASE.replace(null=1.0, kind="ratio"), "below"),
    ],
)
def test_reading(estimate: Estimate, sign: Sign) -> None:
    assert reading(estimate) == sign


def test_what_is_certain_to_be_large_comes_first() -> None:
    noisy = BASE.replace(value=0.9, interval=(0.05, 1.75))
    assert by_sign([noisy, BASE])["above"] == (BASE, noisy)
    small = BASE.replace(value=0.15)
    assert by_sign([small, BASE])["above"] == (BASE, small)


@pytest.mark.parametrize(
    ("interval", "null", "distance"),
    [
        ((0.1, 0.3), 0.0, 0.1),
        ((-0.3, -0.1), 0.0, 0.1),
        ((-0.1, 0.3), 0.0, 0.0),
        ((2.0, 8.0), 1.0, 0.6931),
        ((0.25, 0.5), 1.0, 0.6931),
        ((0.0, 0.5), 1.0, 0.6931),
        ((0.5, 2.0), 1.0, 0.0),
    ],
)
def test_nearest_end(interval: tuple[float, float], null: float, distance: float) -> None:
    e = BASE.replace(value=sum(interval) / 2, interval=interval, null=null)
    assert nearest_end(e) == pytest.approx(distance, abs=1e-4)
