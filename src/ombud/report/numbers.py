"""Numbers in prose and tables: percent, percentage points, times, confidence intervals.

They are rounded to what their uncertainty supports, and never stand without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from ombud.stats.estimate import Estimate

_MOST_PLACES = 6
_MINUS = "\u2212"


def percent(share: float) -> str:
    """Return a share with two significant digits.

    Examples
    --------
    >>> percent(0.2861), percent(0.0203), percent(0.99), percent(0.9961), percent(0.00042)
    ('29%', '2.0%', '99.0%', '99.6%', '0.042%')
    """
    size = 100 * min(abs(share), 1 - abs(share)) if 0 < abs(share) < 1 else 100 * abs(share)
    places = 0 if size >= 10 or size == 0 else 1 - math.floor(math.log10(size))
    places = min(places, 1) if abs(share) > 0.5 else min(places, 4)
    return f"{number_text(100 * share, places)}%"


def times(ratio: float) -> str:
    """Return a ratio in words, with two significant digits and at least its distance from 1.

    Examples
    --------
    >>> times(2.27), times(23.4), times(0.52), times(1.004), times(3069)
    ('2.3 times', '23 times', '0.52 times', '1.004 times', '3,100 times')
    """
    return f"{number_text(ratio, _ratio_places(ratio))} times"


def _ratio_places(ratio: float) -> int:
    """Return the decimals of a ratio; below 0 it is rounded to tens, hundreds and so on."""
    if 0.85 < ratio < 1.15:
        return min(max(2, _places_for(ratio - 1, 1)), _MOST_PLACES)
    return _places_for(ratio, 2)


def _places_for(size: float, digits: int) -> int:
    """Return how many decimals show so many significant digits."""
    if not size or not math.isfinite(size):
        return 0
    return digits - 1 - math.floor(math.log10(abs(size)))


def correction_name(name: str) -> str:
    """Return a correction for multiple testing as a textbook prints it.

    Examples
    --------
    >>> correction_name("benjamini-hochberg"), correction_name("holm")
    ('Benjamini–Hochberg', 'Holm')
    """
    return name.replace("benjamini-hochberg", "Benjamini\u2013Hochberg").replace("holm", "Holm")


@dataclass(frozen=True)
class Scale:
    """How the values of a metric are printed."""

    unit: str = ""  # Follows a value in prose: " percentage points"
    factor: float = 1.0  # What values are multiplied by
    places: int = 2  # Decimals in prose and in tables
    signed: bool = False  # Whether increases carry a plus sign
    log: bool = False  # Whether charts have a logarithmic axis
    suffix: str = ""  # Follows every number, in tables too: "%"
    name: str = ""  # The unit in the head of a table
    # How the value is made of two levels: their difference, their ratio, or their ratio minus 1.
    compares: Literal["", "difference", "ratio", "relative"] = ""

    def number(self, value: float) -> str:
        """Return a value without its unit, as a table shows it."""
        return number_text(value * self.factor, self.places, signed=self.signed) + self.suffix

    def distance(self, estimate: Estimate) -> float:
        """Return how far an estimate lies from "no difference", on the scale of a chart."""
        if estimate.value is None:
            return 0.0
        if self.log:
            return abs(math.log(max(estimate.value, 0.05)))
        return abs(estimate.value - (estimate.null or 0.0))

    def prose(self, value: float) -> str:
        """Return a value with its unit; nothing that is small is printed as zero."""
        places = _visible(self.places, value * self.factor, 0.0)
        return times(value) if self.log else replace(self, places=places).number(value) + self.unit

    def ends(self, estimate: Estimate) -> str:
        """Return the bounds of the confidence interval: "10.6 to 13.9"."""
        if estimate.interval is None:
            return ""
        scale = replace(self, places=self._beside_null(estimate, self.places))
        return " to ".join(map(scale.number, estimate.interval))

    def _beside_null(self, estimate: Estimate, places: int) -> int:
        """Return decimals with which no end of a clear interval looks like no effect."""
        null = (estimate.null or 0.0) * self.factor
        ends = [end * self.factor for end in estimate.interval or ()]
        while estimate.excludes_null and places < _MOST_PLACES:
            if null not in [round(end, places) for end in ends]:
                break
            places += 1
        return places

    def interval(self, estimate: Estimate, least: int = 0) -> str:
        """Return the confidence interval for prose, with at least so many decimals.

        Examples
        --------
        >>> e = Estimate(metric="m", value=0.12, interval=(0.1, 0.142), method="x", n=9, null=0.0)
        >>> POINTS.interval(e)
        '95% CI 10.0 to 14.2'
        """
        if estimate.interval is None:
            return "no confidence interval"
        low, high = (end * self.factor for end in estimate.interval)
        of_ratio = 0 if low >= 10 else 1 if low >= 1.15 else 2
        places = self._beside_null(estimate, max(of_ratio if self.log else self.places, least))
        signed = self.signed and low < 0
        ends = [number_text(end, places, signed=signed) + self.suffix for end in (low, high)]
        return f"{estimate.level:.0%} CI {ends[0]} to {ends[1]}"

    def evidence(self, estimate: Estimate, follows: str = "") -> str:
        """Return the value with its confidence interval, for prose."""
        assert estimate.value is not None
        return f"{self.prose(estimate.value)}{follows} ({self.interval(estimate)})"

    def span(self, other: float, bounds: tuple[float, float]) -> tuple[float, float] | None:
        """Return a confidence interval on the scale of the levels, given the other level."""
        low, high = bounds
        if self.compares == "difference":
            return other + low, other + high
        if self.compares == "ratio":
            return other * low, other * high
        return (other * (1 + low), other * (1 + high)) if self.compares == "relative" else None


SHARE = Scale(factor=100, places=1, suffix="%")
POINTS = Scale(
    " percentage points", 100, places=1, signed=True, name="percentage points",
    compares="difference",
)  # fmt: skip
RELATIVE = Scale(factor=100, places=0, signed=True, suffix="%", compares="relative")
RATIO = Scale(" times", log=True, name="times as often", compares="ratio")
DIFFERENCE = Scale(places=3, signed=True, compares="difference")
SCORE = Scale(places=3)
COUNT = Scale(places=0)


@dataclass(frozen=True)
class Meeting:
    """Two levels and their difference or ratio, printed so that a reader's arithmetic agrees."""

    level: str
    other: str
    size: str
    interval: str


def meet(
    estimate: Estimate, level: float, other: float, levels: Scale, scale: Scale
) -> Meeting | None:
    """Return both levels and their difference or ratio so that they agree as printed.

    A difference and its levels have the same decimals: those of the scale where the rounded numbers
    agree, otherwise one more; then the printed difference is that of the printed levels. A ratio has
    two or three significant digits, and its levels three, or as many as it takes. There are more
    where a narrow interval supports them. None where the levels are not two sides of the estimate.

    Examples
    --------
    >>> e = Estimate(
    ...     metric="m", value=0.0718, interval=(0.065, 0.079), method="x", n=9, null=0.0
    ... )
    >>> meet(e, 0.2264, 0.1546, SHARE, POINTS)
    Meeting(level='22.64%', other='15.46%', size='+7.18 percentage points', interval='95% CI 6.50 to 7.90')
    >>> meet(e, 0.3, 0.1, SHARE, POINTS) is None
    True
    """  # noqa: E501 - what is printed is one line
    value = estimate.value
    assert value is not None
    if not math.isclose(_compared(level, other, scale), value, rel_tol=1e-6, abs_tol=1e-9):
        return None
    low, high = estimate.interval or (value, value)
    a, b = level * levels.factor, other * levels.factor
    size, width = value * scale.factor, (high - low) * scale.factor
    if scale.compares == "difference":
        fewest = _visible(scale.places, size, width)
        for at in (fewest, fewest + 1):
            one, two = round(a, at), round(b, at)
            printed = round(one - two, at)
            if printed == round(size, at) and bool(one) == bool(a) and bool(two) == bool(b):
                break
        at_a = at_b = at
    else:
        usual = _ratio_places(size) if scale.log else min(scale.places, _places_for(size, 2))
        fewest = _visible(usual, size - 1 if scale.log else size, width)
        # Digits of both levels together; what others are compared with has fewer.
        for digits, at in product(range(6, 11), range(fewest, fewest + 1 + scale.log)):
            at_a = max(levels.places, _places_for(a, (digits + 1) // 2))
            at_b = max(levels.places, _places_for(b, digits // 2))
            one, two = round(a, at_a), round(b, at_b)
            printed = round(_compared(one, two, scale) * scale.factor, at)
            if printed == round(size, at):
                break
    return Meeting(
        _level(a, at_a) + levels.suffix,
        _level(b, at_b) + levels.suffix,
        number_text(printed, at, signed=scale.signed) + scale.suffix + scale.unit,
        scale.interval(estimate, at),
    )


def _level(value: float, places: int) -> str:
    if value > 0 and not round(value, places):
        return f"under {number_text(10.0**-places, places)}"
    return number_text(value, places)


def _visible(places: int, size: float, width: float) -> int:
    """Return decimals, more than `places` where a size or half its interval would be lost."""
    return min(_MOST_PLACES, max(places, _places_for(size, 1), _places_for(width / 2, 1)))


def _compared(level: float, other: float, scale: Scale) -> float:
    if scale.compares == "difference":
        return level - other
    return level / other - (scale.compares == "relative") if other and scale.compares else math.nan


def apart(before: float, after: float, scale: Scale) -> tuple[str, str]:
    """Return two values, the second with its unit, with decimals that tell them apart.

    Examples
    --------
    >>> apart(0.0379, 0.0375, SHARE), apart(1.2, 2.3, RATIO), apart(0.02, 0.02, POINTS)
    (('3.79%', '3.75%'), ('1.2', '2.3 times'), ('+2.0', '+2.0 percentage points'))
    """
    for places in range(scale.places - scale.log, _MOST_PLACES):
        first, second = (replace(scale, places=places).number(v) for v in (before, after))
        if first != second or before == after:
            break
    return first, f"{second}{scale.unit}"


def largest(values: Iterable[float]) -> float:
    """Return the largest absolute value, or 1 where there is none."""
    return max((abs(v) for v in values if math.isfinite(v)), default=0.0) or 1.0


def decimals_for(estimate: Estimate) -> int:
    """Return how many decimals an estimate supports: two digits of the width of its interval.

    Examples
    --------
    >>> decimals_for(Estimate(metric="m", value=0.25, interval=(0.2, 0.31), method="x", n=9))
    2
    >>> decimals_for(Estimate(metric="m", value=1234.5, interval=(1200, 1270), method="x", n=9))
    0
    """
    if estimate.interval is None:
        return 0 if estimate.value is None else _decimals(estimate.value, 3)
    low, high = estimate.interval
    wide = math.isfinite(low) and math.isfinite(high) and high > low
    return _decimals(high - low, 2) if wide else _decimals(estimate.value or 0.0, 3)


def _decimals(size: float, digits: int) -> int:
    usual = not size or not math.isfinite(size)
    return 2 if usual else min(_MOST_PLACES, max(0, _places_for(size, digits)))


def number_text(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a number with thousands separators and a true minus sign.

    Examples
    --------
    >>> number_text(1234.567, 1), number_text(-0.5, 2), number_text(0.5, 2, signed=True)
    ('1,234.6', '−0.50', '+0.50')
    >>> number_text(-0.0001, 2), number_text(float("inf"), 2)
    ('0.00', '∞')
    """
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    digits = f"{abs(round(value, decimals) if decimals < 0 else value):,.{max(decimals, 0)}f}"
    if not any(d in digits for d in "123456789"):
        return digits
    if value < 0:
        return _MINUS + digits
    return f"+{digits}" if signed else digits


def estimate_text(estimate: Estimate, decimals: int | None = None, *, signed: bool = False) -> str:
    """Return a value with its interval, or the words why there is none.

    `decimals` are those of a whole column; default, what this estimate supports. More are used
    where the two ends would otherwise look equal. With `signed`, a value above zero gets a plus
    sign.

    Examples
    --------
    >>> estimate_text(Estimate(metric="m", value=0.25, interval=(0.2, 0.31), method="x", n=9))
    '0.25 [0.20, 0.31]'
    >>> estimate_text(Estimate.undefined(metric="m", reason="no user has a list", n=0))
    'not defined: no user has a list'
    """
    if estimate.value is None:
        return f"not defined: {estimate.reason}"
    own = decimals_for(estimate)
    places = own if decimals is None else decimals
    if estimate.interval is None:
        reason = estimate.method.removeprefix("none").removeprefix(":").strip() or "not given"
        shown = number_text(estimate.value, max(places, own), signed=signed)
        return f"{shown} (no interval: {reason})"
    low, high = estimate.interval
    if low < high and f"{low:.{places}f}" == f"{high:.{places}f}":
        places = own
    value = number_text(estimate.value, places, signed=signed)
    return f"{value} [{number_text(low, places)}, {number_text(high, places)}]"


def p_text(p: float | None) -> str:
    """Return a p-value as it is usually printed.

    Examples
    --------
    >>> p_text(0.0004), p_text(0.0312), p_text(0.31), p_text(0.9996), p_text(None)
    ('<0.001', '0.031', '0.31', '>0.99', '–')
    """
    if p is None:
        return "\u2013"
    if p < 0.001:
        return "<0.001"
    if p > 0.99:
        return ">0.99"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"
