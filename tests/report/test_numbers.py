"""Numbers are rounded to what their interval supports, and are never alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.report.numbers import (
    DIFFERENCE,
    POINTS,
    RATIO,
    RELATIVE,
    SCORE,
    SHARE,
    Scale,
    apart,
    decimals_for,
    estimate_text,
    meet,
    number_text,
    p_text,
)
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


def sides(level: float, other: float, levels: Scale, scale: Scale, width: float = -1.0) -> Estimate:
    value = level - other
    if scale.compares != "difference":
        value = level / other - (scale.compares == "relative")
    null, width = 1.0 if scale.log else 0.0, 0.2 * abs(value) if width < 0 else width
    return Estimate(
        metric="m", value=value, interval=(value - width, value + width), method="x", n=9, null=null
    )


@pytest.mark.parametrize(
    ("level", "other", "scale", "printed"),
    [
        (0.491, 0.237, POINTS, ("49.1%", "23.7%", "+25.4 percentage points")),
        (0.2371, 0.4906, POINTS, ("23.71%", "49.06%", "−25.35 percentage points")),
        # No decimals agree: the difference is that of the printed levels.
        (0.100449, 0.049553, POINTS, ("10.04%", "4.96%", "+5.08 percentage points")),
        (0.00043, 0.00006, POINTS, ("0.043%", "0.006%", "+0.037 percentage points")),
        (0.123, 0.00004, POINTS, ("12.30%", "under 0.01%", "+12.30 percentage points")),
        (0.0, 1.0, POINTS, ("0.0%", "100.0%", "−100.0 percentage points")),
        (0.4717, 0.0606, RATIO, ("47.2%", "6.06%", "7.8 times")),
        (41 / 202, 576 / 9507, RATIO, ("20.3%", "6.06%", "3.35 times")),
        (0.204, 0.2, RATIO, ("20.4%", "20.0%", "1.02 times")),
        (0.2004, 0.2, RATIO, ("20.04%", "20.0%", "1.002 times")),
        (0.31, 0.000101, RATIO, ("31.0%", "0.0101%", "3,100 times")),
        (0.0, 0.5, RATIO, ("0.0%", "50.0%", "0 times")),
        (0.0043, 0.0006, RELATIVE, ("0.430%", "0.0600%", "+620%")),
        (0.0, 0.5, RELATIVE, ("0.0%", "50.0%", "−100%")),
    ],
)
def test_two_levels_and_what_is_between_them(
    level: float, other: float, scale: Scale, printed: tuple[str, str, str],
    numbers_meet: Callable[[str, str, str], bool],
) -> None:  # fmt: skip
    made = meet(sides(level, other, SHARE, scale), level, other, SHARE, scale)
    assert made is not None and (made.level, made.other, made.size) == printed
    assert numbers_meet(*printed)


def test_narrow_intervals_bring_digits_and_no_end_looks_like_no_effect() -> None:
    for level, width, size, interval in (
        (0.0268, 0.02, "+168%", "95% CI 166% to 170%"),
        (0.0268, 1.676, "+170%", "95% CI 0.4% to 335.6%"),
        (0.0268, 1.67996, "+170%", "95% CI 0.004% to 335.996%"),
    ):
        made = meet(sides(level, 0.01, SHARE, RELATIVE, width), level, 0.01, SHARE, RELATIVE)
        assert made is not None and (made.size, made.interval) == (size, interval)


def test_no_end_of_a_clear_interval_looks_like_no_effect_in_a_table() -> None:
    e = Estimate(metric="m", value=-0.169, interval=(-0.284, -0.0003), method="x", n=9, null=0.0)
    assert POINTS.ends(e) == "\u221228.40 to \u22120.03"
    assert POINTS.ends(e.replace(interval=(-0.284, 0.0003))) == "\u221228.4 to 0.0"
    near = e.replace(value=1.4, interval=(1.004, 2.0), null=1.0)
    assert RATIO.ends(near) == "1.004 to 2.000"


SHARES = st.one_of(st.floats(0, 1), st.floats(1e-6, 1e-3), st.sampled_from([0.0, 0.5, 1.0]))


@pytest.mark.parametrize(
    ("levels", "scale"),
    [(SHARE, POINTS), (SHARE, RATIO), (SHARE, RELATIVE), (SCORE, DIFFERENCE), (SCORE, RATIO)],
)
@given(level=SHARES, other=SHARES, width=st.floats(0, 0.2))
def test_whatever_is_printed_agrees(
    levels: Scale, scale: Scale, level: float, other: float, width: float,
    numbers_meet: Callable[[str, str, str], bool],
) -> None:  # fmt: skip
    if scale.compares != "difference" and other < 1e-6:
        some = Estimate(metric="m", value=1.0, interval=None, method="none: few", n=9)
        assert other or meet(some, level, other, levels, scale) is None
        return
    e = sides(level, other, levels, scale, width)
    made = meet(e, level, other, levels, scale)
    assert made is not None and e.value is not None
    assert numbers_meet(made.level, made.other, made.size), made
    for text, true in ((made.level, level), (made.other, other)):
        shown = float(re.sub("[%,]|under ", "", text))
        unit = 10.0 ** -len(text.rstrip("%").partition(".")[2])
        assert abs(shown - true * levels.factor) <= unit * (1 if "under" in text else 0.501)
        assert shown or not true
    shown = made.size.partition(" ")[0].rstrip("%").replace(",", "").replace("\u2212", "-")
    size, true = float(shown), e.value * scale.factor
    assert size or abs(true) < 1e-6, made
    if scale.compares == "difference":
        assert abs(size - true) <= 1.501 * 10.0 ** -len(shown.partition(".")[2])
    else:
        assert math.isclose(size, true, rel_tol=0.06, abs_tol=0.501), made


def test_small_values_are_not_printed_as_zero() -> None:
    assert [POINTS.prose(v) for v in (0.0, 0.0004, -0.0718)] == [
        "0.0 percentage points", "+0.04 percentage points", "\u22127.2 percentage points",
    ]  # fmt: skip
    assert (SHARE.prose(0.00049), RATIO.prose(1.004), RELATIVE.prose(0.004)) == (
        "0.05%", "1.004 times", "+0.4%",
    )  # fmt: skip


def test_before_and_after_differ_as_printed() -> None:
    assert apart(2.31, 2.34, RATIO) == ("2.31", "2.34 times")
    assert apart(0.0004, 0.0001, SHARE) == ("0.04%", "0.01%")
