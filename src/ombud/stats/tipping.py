"""How different unlabeled items would have to be for a difference or a ratio to reverse.

The assumption behind a share among labeled items is that unlabeled items carry the label as often.
Let r be the rate of the label among unlabeled recommended items divided by the rate among labeled
ones, and h the same for histories. What is estimated then moves with r and h, and the points where
it loses its direction say how far the assumption carries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ombud.stats.estimate import TippingPoint
from ombud.stats.statistics import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCoverage:
    """How often labeled items carry a label, and how many items are labeled, on both sides."""

    # The rate of the label among labeled items, as the metric counts it.
    recommended: float
    history: float
    # Which share of the items is labeled, counted in the same way.
    labeled_recommended: float
    labeled_history: float
    # The ratio r = h that the estimate itself assumes: 1 where unlabeled items do not count, 0
    # where they count as *no*.
    assumed: float = 1.0

    @property
    def is_complete(self) -> bool:
        """Whether every item is labeled."""
        return self.labeled_recommended >= 1 and self.labeled_history >= 1

    def gap(self, gap: float, r: float, h: float) -> float:
        """Return what a gap becomes under other rates among unlabeled items."""
        moved = self.slope_recommended * (r - self.assumed)
        return gap + moved - self.slope_history * (h - self.assumed)

    def ratio(self, ratio: float, r: Any, h: Any) -> Any:
        """Return what a ratio of shares becomes under other rates among unlabeled items.

        `r` and `h` are numbers or arrays.
        """
        up = _weight(self.labeled_recommended, r) / _weight(self.labeled_recommended, self.assumed)
        down = _weight(self.labeled_history, h) / _weight(self.labeled_history, self.assumed)
        return ratio * up / down

    @property
    def slope_recommended(self) -> float:
        """How fast the share in lists grows with r."""
        return self.recommended * (1 - self.labeled_recommended)

    @property
    def slope_history(self) -> float:
        """How fast the share in histories grows with h."""
        return self.history * (1 - self.labeled_history)

    def possible(self, point: float | None, *, recommended: bool) -> float | None:
        """Return a ratio of rates, or None where it needs a rate below 0 or above 1."""
        rate = self.recommended if recommended else self.history
        return point if point is not None and point >= 0 and point * rate <= 1 else None

    def corner(self, ratio: float, *, recommended: bool) -> float:
        """Return an end of the plausible range, cut where the rate would be above 1."""
        rate = self.recommended if recommended else self.history
        return ratio if ratio * rate <= 1 else 1 / rate


_NOBODY = LabelCoverage(recommended=0, history=0, labeled_recommended=1, labeled_history=1)


def gap_tipping(
    interval: tuple[float, float],
    coverage: LabelCoverage,
    other: LabelCoverage = _NOBODY,
    *,
    lowest: float = 0.5,
    highest: float = 2.0,
    decides: bool = True,
) -> TippingPoint | None:
    """Return the tipping point of a share in lists minus a share in histories.

    Of two groups, it is that of the difference between their gaps: r is taken to be the same in
    both groups, and so is h. The difference then moves with r by the difference of the groups'
    slopes, which may be negative.

    Parameters
    ----------
    interval
        The confidence interval of the gap, or of the difference between two groups' gaps.
    coverage
        Rates and labeled shares of both sides.
    other
        The same of the group that is compared with, if any.
    lowest, highest
        The range of r and h that is plausible.
    decides
        Whether a reversal within that range decides the verdict.

    Returns
    -------
    None where the interval contains 0, so that there is no direction to lose, and where every
    item is labeled.

    Examples
    --------
    >>> coverage = LabelCoverage(
    ...     recommended=0.25, history=0.2, labeled_recommended=0.6, labeled_history=0.8
    ... )
    >>> point = gap_tipping((0.05, 0.1), coverage)
    >>> point.recommended, round(point.history, 2), point.reverses
    (0.5, 2.25, True)
    """
    low, high = interval
    if (coverage.is_complete and other.is_complete) or low <= 0 <= high:
        return None
    # The end nearest to 0 is the first to lose its direction; once it is there, so is the finding.
    nearest = low if low > 0 else high
    up = coverage.slope_recommended - other.slope_recommended
    down = coverage.slope_history - other.slope_history
    r = coverage.assumed - nearest / up if up else None
    h = coverage.assumed + nearest / down if down else None
    reverses = any(
        (coverage.gap(nearest, *at) - other.gap(0.0, *at)) * nearest < 0
        for at in _corners(coverage, other, lowest, highest)
    )
    return _point(coverage, r, h, (lowest, highest), reverses, decides, other)


def ratio_tipping(
    interval: tuple[float, float],
    coverage: LabelCoverage,
    *,
    lowest: float = 0.5,
    highest: float = 2.0,
    decides: bool = True,
) -> TippingPoint | None:
    """Return the tipping point of a share in lists divided by a share in histories.

    As `gap_tipping`; 1 means no effect.

    Examples
    --------
    >>> coverage = LabelCoverage(
    ...     recommended=0.25, history=0.2, labeled_recommended=0.6, labeled_history=0.8
    ... )
    >>> point = ratio_tipping((1.25, 1.5), coverage)
    >>> round(point.recommended, 6), round(point.history, 6)
    (0.5, 2.25)
    """
    low, high = interval
    if coverage.is_complete or low <= 1 <= high:
        return None
    nearest = max(low if low > 1 else high, 0.0)
    listed, past = coverage.labeled_recommended, coverage.labeled_history
    if not _weight(listed, coverage.assumed) or not _weight(past, coverage.assumed):
        return None  # nothing is labeled, so there is no rate to compare with
    r = h = None
    if listed < 1 and nearest > 0:
        r = (_weight(listed, coverage.assumed) / nearest - listed) / (1 - listed)
    if past < 1:
        h = (_weight(past, coverage.assumed) * nearest - past) / (1 - past)
    reverses = any(
        (coverage.ratio(nearest, *at) - 1) * (nearest - 1) < 0
        for at in _corners(coverage, _NOBODY, lowest, highest)
    )
    return _point(coverage, r, h, (lowest, highest), reverses, decides)


def contrast_tipping(
    interval: tuple[float, float],
    ratios: tuple[float, float],
    coverage: LabelCoverage,
    other: LabelCoverage,
    *,
    log: bool = False,
    lowest: float = 0.5,
    highest: float = 2.0,
    decides: bool = True,
) -> TippingPoint | None:
    """Return the tipping point of one ratio minus another, or of the difference of logarithms.

    As `gap_tipping` of two groups: r and h are the same on both sides. `ratios` are the estimates
    themselves, from which the difference moves. It can rise and fall again with h, so that the
    points are searched for: they are those nearest to what the estimates assume.

    Examples
    --------
    >>> labeled = {"labeled_recommended": 0.5, "labeled_history": 1.0}
    >>> one = LabelCoverage(recommended=0.4, history=0.2, **labeled)
    >>> two = LabelCoverage(recommended=0.2, history=0.2, **labeled)
    >>> point = contrast_tipping((0.25, 1.75), (2.0, 1.0), one, two)
    >>> round(point.recommended, 6), point.history
    (0.5, None)
    """
    low, high = interval
    sides = (coverage, other)
    shares = [s for side in sides for s in (side.labeled_recommended, side.labeled_history)]
    if all(side.is_complete for side in sides) or low <= 0 <= high:
        return None
    if log and min(ratios) <= 0 or not all(_weight(s, coverage.assumed) for s in shares):
        return None
    nearest = low if low > 0 else high

    def moved(r: Floats | float, h: Floats | float) -> Floats:
        with np.errstate(divide="ignore"):
            both = [
                np.asarray(side.ratio(ratio, r, h))
                for side, ratio in zip(sides, ratios, strict=True)
            ]
            one, two = np.log(both) if log else both
            start = np.log(ratios) if log else ratios
            return np.asarray((nearest + (one - two) - (start[0] - start[1])) * np.sign(nearest))

    # No rate among unlabeled items is above 1.
    most_r = 1 / rate if (rate := max(side.recommended for side in sides)) else highest
    most_h = 1 / rate if (rate := max(side.history for side in sides)) else highest
    start = coverage.assumed
    r = _first_turn(lambda x: moved(x, start), start, max(most_r, start))
    h = _first_turn(lambda x: moved(start, x), start, max(most_h, start))
    between = np.linspace(min(lowest, most_h), min(highest, most_h), 257)
    reverses = any((moved(min(end, most_r), between) < 0).any() for end in (lowest, highest))
    return _point(coverage, r, h, (lowest, highest), reverses, decides, other)


def _first_turn(value: Callable[[Any], Floats], start: float, highest: float) -> float | None:
    """Return the point nearest to `start`, of 0 to `highest`, where a value falls to 0."""
    found = []
    for end in (0.0, highest):
        steps = np.linspace(start, end, 513)
        turned = np.flatnonzero(value(steps) <= 0)
        if not len(turned) or start == end:
            continue
        near, far = steps[max(turned[0] - 1, 0)], steps[turned[0]]
        for _ in range(50):
            middle = (near + far) / 2
            near, far = (near, middle) if value(middle) <= 0 else (middle, far)
        found.append(float(far))
    return min(found, key=lambda point: abs(point - start), default=None)


def _weight(labeled: float, ratio: Any) -> Any:
    """Return a share relative to the rate among labeled items, at a ratio of rates."""
    return labeled + (1 - labeled) * ratio


def _corners(
    one: LabelCoverage, other: LabelCoverage, lowest: float, highest: float
) -> list[tuple[float, float]]:
    """Return the corners of the plausible range of r and h; what lies between moves less."""
    corners = []
    for end, beside in product((lowest, highest), repeat=2):
        r = other.corner(one.corner(end, recommended=True), recommended=True)
        h = other.corner(one.corner(beside, recommended=False), recommended=False)
        corners.append((r, h))
    return corners


def _point(
    coverage: LabelCoverage,
    r: float | None,
    h: float | None,
    plausible: tuple[float, float],
    reverses: bool,
    decides: bool,
    other: LabelCoverage = _NOBODY,
) -> TippingPoint:
    return TippingPoint(
        recommended=other.possible(coverage.possible(r, recommended=True), recommended=True),
        history=other.possible(coverage.possible(h, recommended=False), recommended=False),
        labeled_recommended=min(coverage.labeled_recommended, other.labeled_recommended),
        labeled_history=min(coverage.labeled_history, other.labeled_history),
        assumed=coverage.assumed,
        lowest=plausible[0],
        highest=plausible[1],
        reverses=reverses,
        decides=decides,
    )
