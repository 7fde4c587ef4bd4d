"""How much data it takes: closed forms, published numbers, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.power import NormalIndPower

from ombud.stats import Estimate, smallest_effect, units_for_power
from ombud.stats.power import standard_error, units_for_half_width
from ombud.stats.proportions import wilson


def test_units_for_a_share_are_the_textbook_numbers() -> None:
    # Cochran: 385 for five points either way, 1,068 for three, at one half and 95%.
    assert units_for_half_width(0.5, 0.05) == 385
    assert units_for_half_width(0.5, 0.03) == 1068


@given(st.floats(0.05, 0.95), st.floats(0.01, 0.1))
def test_the_interval_of_a_share_is_as_wide_as_wanted(share: float, half_width: float) -> None:
    n = units_for_half_width(math.sqrt(share * (1 - share)), half_width)
    if n < 100:
        return  # the normal form is for more
    found = wilson(round(share * n), n)
    assert (found.high - found.low) / 2 == pytest.approx(half_width, rel=0.15)


@settings(max_examples=40)
@given(st.floats(0.1, 2), st.floats(0.05, 1), st.floats(0.5, 0.99), st.floats(0.8, 0.99))
def test_units_for_power_are_those_of_statsmodels(
    spread: float, effect: float, power: float, level: float
) -> None:
    ours = units_for_power(spread, effect, power, level)

    def theirs(n: int) -> float:
        return float(
            NormalIndPower().power(effect / spread, n, (1 - level) / 2, 0, alternative="larger")
        )

    assert theirs(ours) >= power - 1e-6
    if ours > 1:
        assert theirs(ours - 1) < power + 1e-6


def test_the_smallest_effect_is_found_as_often_as_said() -> None:
    rng = np.random.default_rng(5)
    n, spread = 200, 0.4
    error = spread / math.sqrt(n)
    pilot = Estimate(
        metric="m", value=0.0, interval=(-1.959964 * error, 1.959964 * error), method="x", n=n,
        null=0.0,
    )  # fmt: skip
    effect = smallest_effect(pilot)
    assert effect is not None
    means = rng.normal(effect, spread, size=(4000, n))
    t = means.mean(axis=1) / (means.std(axis=1, ddof=1) / math.sqrt(n))
    found = float(np.mean(t > 1.972))  # Student's t with 199 degrees of freedom
    assert found == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 4000))


def test_ratios_are_measured_by_their_logarithm() -> None:
    low, high = math.exp(-0.196), math.exp(0.196)
    e = Estimate(
        metric="m", value=1.0, interval=(low, high), method="x", n=9, kind="ratio", null=1.0
    )
    assert standard_error(e) == pytest.approx(0.1, rel=1e-3)
    assert smallest_effect(e) == pytest.approx(math.exp(0.2802), rel=1e-3)
    for interval in ((0.0, 2.0), (0.5, math.inf)):
        assert standard_error(e.replace(interval=interval)) is None


def test_without_an_interval_or_a_null_value_there_is_no_smallest_effect() -> None:
    e = Estimate(metric="m", value=1.0, interval=(0.5, 1.5), method="x", n=9)
    assert smallest_effect(e) is None and standard_error(e) is not None
    bare = Estimate(metric="m", value=1.0, interval=None, method="none: x", n=9, null=0.0)
    assert smallest_effect(bare) is None
    assert smallest_effect(Estimate.undefined(metric="m", reason="r", n=0, null=0.0)) is None


@pytest.mark.parametrize(
    ("spread", "wanted", "power"), [(0, 1, 0.8), (math.inf, 1, 0.8), (1, 0, 0.8), (1, -1, 0.8)]
)
def test_numbers_that_make_no_sense_are_refused(spread: float, wanted: float, power: float) -> None:
    with pytest.raises(ValueError, match="must be above 0"):
        units_for_half_width(spread, wanted)
    with pytest.raises(ValueError, match="must be above 0"):
        units_for_power(spread, wanted, power)
    with pytest.raises(ValueError, match="power"):
        units_for_power(1, 1, 1.0)
