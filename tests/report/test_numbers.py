"""Numbers are rounded to what their interval supports, and are never alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.report.numbers import decimals_for, estimate_text, number_text, p_text
from ombud.stats.estimate import Estimate


def of(value: float, low: float, high: float) -> Estimate:
    return Estimate(metric="m", value=value, interval=(low, high), method="x", n=5)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (of(0.25, 0.2, 0.31), "0.25 [0.20, 0.31]"),
        (of(0.05234, 0.0412, 0.0634), "0.052 [0.041, 0.063]"),
        (of(-0.05, -0.1, 0.01), "−0.05 [−0.10, 0.01]"),
        (of(12345.6, 12000.0, 12700.0), "12,346 [12,000, 12,700]"),
        (of(1.5, 0.9, float("inf")), "1.50 [0.90, ∞]"),
        (of(0.5, 0.5, 0.5), "0.500 [0.500, 0.500]"),
        (of(-0.00001, -0.1, 0.1), "0.00 [−0.10, 0.10]"),
    ],
)
def test_estimates(estimate: Estimate, text: str) -> None:
    assert estimate_text(estimate) == text


def test_without_interval_the_reason_is_said() -> None:
    alone = Estimate(metric="m", value=0.25, interval=None, method="none: one user only", n=1)
    assert estimate_text(alone) == "0.250 (no interval: one user only)"


def test_undefined_is_never_a_number() -> None:
    text = estimate_text(Estimate.undefined(metric="m", reason="nobody asked", n=0))
    assert text == "not defined: nobody asked"


def test_a_sign_is_given_when_wanted() -> None:
    assert estimate_text(of(0.25, 0.2, 0.31), signed=True) == "+0.25 [0.20, 0.31]"


def test_a_narrow_interval_keeps_its_own_decimals_in_a_coarse_column() -> None:
    assert estimate_text(of(0.0004, 0.0003, 0.0005), 2) == "0.00040 [0.00030, 0.00050]"


@given(st.floats(-1e6, 1e6), st.floats(1e-4, 1e5), st.floats(1e-4, 1e5))
def test_printed_ends_are_near_the_true_ends(value: float, down: float, up: float) -> None:
    estimate = of(value, value - down, value + up)
    printed = re.findall(r"[−+]?[\d,]*\.?\d+", estimate_text(estimate))
    numbers = [float(p.replace("−", "-").replace(",", "")) for p in printed[:3]]
    width = down + up
    for shown, true in zip(numbers, (value, value - down, value + up), strict=True):
        assert abs(shown - true) <= 0.06 * width + 1e-9


@given(st.floats(0, 1))
def test_p_values_are_short(p: float) -> None:
    text = p_text(p)
    assert len(text) <= 6
    if not text.startswith(("<", ">")):
        assert abs(float(text) - p) <= 0.005


def test_other_numbers() -> None:
    assert number_text(1234567.0, 0) == "1,234,567"
    assert decimals_for(Estimate.undefined(metric="m", reason="r", n=0)) == 0
    assert p_text(None) == "–"
