"""How much data an interval of a wanted width, or a wanted power, takes; and what could be seen.

All of it rests on one assumption: that an estimate of n independent units is about normal, with a
standard error of s / sqrt(n). With s = sqrt(p (1 - p)) these are the textbook formulas for a
proportion.
"""

from __future__ import annotations

import math

from scipy.special import ndtri

from ombud.stats.estimate import Estimate

POWER = 0.8
"""The chance that a study should have to find what it looks for, where nobody says otherwise."""


def _z(level: float) -> float:
    return float(ndtri((1 + level) / 2))


def is_ratio(estimate: Estimate) -> bool:
    """Whether an estimate is a quotient, of which the logarithm is about normal."""
    return estimate.kind == "ratio" or estimate.null == 1


def standard_error(estimate: Estimate) -> float | None:
    """Return the standard error that the width of an interval stands for.

    That of a ratio is the standard error of its logarithm. None where there is no interval, or an
    end of it is not finite (or, of a ratio, not above 0).
    """
    if estimate.interval is None:
        return None
    low, high = estimate.interval
    if is_ratio(estimate):
        if low <= 0:
            return None
        low, high = math.log(low), math.log(high) if math.isfinite(high) else high
    if not math.isfinite(low) or not math.isfinite(high):
        return None
    return (high - low) / (2 * _z(estimate.level))


def smallest_effect(estimate: Estimate, power: float = POWER) -> float | None:
    r"""Return the smallest difference from `null` that would have been found with a chance.

    .. math:: (z_{(1 + level) / 2} + z_{power}) \cdot se

    For a ratio it is the smallest factor above 1, :math:`\exp` of the same with the standard error
    of the logarithm. The test is that of this number alone, before correction for many.

    Parameters
    ----------
    estimate
        A number with an interval and a value that means no difference.
    power
        The chance.

    Returns
    -------
    The difference, or None where there is no interval or no null value.

    Examples
    --------
    >>> e = Estimate(metric="m", value=0.1, interval=(0.002, 0.198), method="x", n=9, null=0.0)
    >>> round(smallest_effect(e), 3)
    0.14
    """
    error = standard_error(estimate)
    if error is None or estimate.null is None:
        return None
    far = (_z(estimate.level) + float(ndtri(power))) * error
    return math.exp(far) if is_ratio(estimate) else far


def units_for_half_width(spread: float, half_width: float, level: float = 0.95) -> int:
    r"""Return how many units give an interval of a wanted half-width.

    .. math:: n = \lceil (z_{(1 + level) / 2} \, s / h)^2 \rceil

    s is the standard deviation of one unit: the standard error times the root of the units.

    Examples
    --------
    Three points either way, for a share of one half:

    >>> units_for_half_width(0.5, 0.03)
    1068
    """
    _check(spread, half_width, "half_width")
    return max(1, math.ceil((_z(level) * spread / half_width) ** 2 - 1e-9))


def units_for_power(spread: float, effect: float, power: float = POWER, level: float = 0.95) -> int:
    r"""Return how many units find an effect with a chance.

    .. math:: n = \lceil ((z_{(1 + level) / 2} + z_{power}) \, s / e)^2 \rceil

    Parameters
    ----------
    spread
        The standard deviation s of one unit.
    effect
        The difference e from what means no difference; of a ratio, its logarithm.
    power
        The chance.
    level
        One minus the level of the two-sided test.

    Examples
    --------
    >>> units_for_power(1.0, 0.5)
    32
    """
    _check(spread, effect, "effect")
    if not 0 < power < 1:
        raise ValueError(f"power is {power}; it lies between 0 and 1")
    far = _z(level) + float(ndtri(power))
    return max(1, math.ceil((max(far, 0.0) * spread / effect) ** 2 - 1e-9))


def _check(spread: float, wanted: float, name: str) -> None:
    if not (spread > 0 and math.isfinite(spread)):
        raise ValueError(f"spread is {spread}; it must be above 0 and finite")
    if not (wanted > 0 and math.isfinite(wanted)):
        raise ValueError(f"{name} is {wanted}; it must be above 0 and finite")
