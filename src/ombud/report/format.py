"""How numbers are printed: rounded to what their uncertainty supports, never without it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from ombud.stats.estimate import Estimate

_MOST = 6
_MINUS = "\u2212"


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
        return 0 if estimate.value is None else _decimals(abs(estimate.value), 2)
    low, high = estimate.interval
    if math.isfinite(low) and math.isfinite(high) and high > low:
        return _decimals(high - low, 1)
    return _decimals(abs(estimate.value or 0.0), 2)


def _decimals(size: float, digits: int) -> int:
    if size == 0 or not math.isfinite(size):
        return 2
    return min(_MOST, max(0, digits - math.floor(math.log10(size))))


def shared_decimals(estimates: Iterable[Estimate]) -> int | None:
    """Return one number of decimals for a column: that of its middle estimate.

    None when there is nothing to round.
    """
    wanted = sorted(decimals_for(e) for e in estimates if e.value is not None)
    return wanted[len(wanted) // 2] if wanted else None


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
    digits = f"{abs(value):,.{decimals}f}"
    if not any(d in digits for d in "123456789"):
        return digits
    if value < 0:
        return _MINUS + digits
    return f"+{digits}" if signed else digits


def estimate_text(estimate: Estimate, decimals: int | None = None, *, signed: bool = False) -> str:
    """Return a value with its interval, or the words why there is none.

    Parameters
    ----------
    estimate
        What to print.
    decimals
        Decimals of a whole column; default, what this estimate supports. More are used where the
        two ends would otherwise look equal.
    signed
        Whether a value above zero gets a plus sign.

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
