"""Tipping points against brute force: the first rate among unlabeled items that turns the sign."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.stats.tipping import LabelCoverage, contrast_tipping, gap_tipping, ratio_tipping

FINE = np.linspace(0, 40, 400_001)


def coverage(**changes: float) -> LabelCoverage:
    plain = {
        "recommended": 0.3,
        "history": 0.2,
        "labeled_recommended": 0.84,
        "labeled_history": 0.7,
    }
    return LabelCoverage(**plain | changes)  # type: ignore[arg-type]


def share(rate: float, labeled: float, ratio: np.ndarray | float, assumed: float) -> np.ndarray:
    """The share of all items that carry the label, per unit of what the estimate counts."""
    unlabeled = rate * np.asarray(ratio)
    whole = labeled * rate + (1 - labeled) * unlabeled
    counted = labeled * rate + (1 - labeled) * assumed * rate
    return whole - counted


def first_turn(values: np.ndarray, start: float, rate: float) -> float | None:
    """The possible ratio nearest to the assumed one at which the sign has turned."""
    turned = FINE[(values <= 0) & (FINE * rate <= 1 + 1e-9)]
    return None if not len(turned) else float(turned[np.argmin(np.abs(turned - start))])


@pytest.mark.parametrize("interval", [(0.02, 0.1), (-0.1, -0.02), (0.2, 0.4), (-0.05, -0.01)])
@pytest.mark.parametrize("assumed", [0.0, 1.0])
@pytest.mark.parametrize(
    "labeled", [(0.84, 0.7), (0.2, 0.95), (1.0, 0.45), (0.45, 1.0), (0.01, 0.01)]
)
def test_gap_against_brute_force(
    interval: tuple[float, float], assumed: float, labeled: tuple[float, float]
) -> None:
    some = coverage(labeled_recommended=labeled[0], labeled_history=labeled[1], assumed=assumed)
    point = gap_tipping(interval, some)
    assert point is not None
    nearest = min(interval, key=abs)
    sign = np.sign(nearest)
    listed = sign * (nearest + share(some.recommended, labeled[0], FINE, assumed))
    past = sign * (nearest - share(some.history, labeled[1], FINE, assumed))
    for found, values, rate in (
        (point.recommended, listed, some.recommended),
        (point.history, past, some.history),
    ):
        expected = first_turn(values, assumed, rate)
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected, abs=2e-4)
    corners = [
        nearest
        + share(some.recommended, labeled[0], min(r, 1 / some.recommended), assumed)
        - share(some.history, labeled[1], min(h, 1 / some.history), assumed)
        for r in (0.5, 2.0)
        for h in (0.5, 2.0)
    ]
    assert point.reverses == any(np.sign(c) == -sign for c in corners)


@pytest.mark.parametrize("interval", [(0.02, 0.1), (-0.1, -0.02)])
@pytest.mark.parametrize("assumed", [0.0, 1.0])
@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ((0.3, 0.2, 0.84, 0.7), (0.1, 0.2, 0.84, 0.9)),
        ((0.1, 0.2, 0.84, 0.9), (0.6, 0.3, 0.5, 0.7)),  # r and h work the other way round
        ((0.3, 0.2, 1.0, 1.0), (0.3, 0.2, 0.5, 0.6)),
        ((0.3, 0.2, 0.5, 0.6), (0.3, 0.2, 0.5, 0.6)),  # nothing moves
    ],
)
def test_two_groups_against_brute_force(
    interval: tuple[float, float],
    assumed: float,
    mine: tuple[float, ...],
    others: tuple[float, ...],
) -> None:
    names = ("recommended", "history", "labeled_recommended", "labeled_history")
    one, other = (
        coverage(**dict(zip(names, values, strict=True)), assumed=assumed)
        for values in (mine, others)
    )
    point = gap_tipping(interval, one, other)
    assert point is not None
    nearest = min(interval, key=abs)
    sign = np.sign(nearest)

    def moved(side: int, ratio: np.ndarray | float) -> np.ndarray:
        own = share(mine[side], mine[side + 2], ratio, assumed)
        return own - share(others[side], others[side + 2], ratio, assumed)

    for found, values, side in (
        (point.recommended, sign * (nearest + moved(0, FINE)), 0),
        (point.history, sign * (nearest - moved(1, FINE)), 1),
    ):
        expected = first_turn(values, assumed, max(mine[side], others[side]))
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected, abs=2e-4)
    ends = [[min(e, 1 / max(mine[s], others[s])) for e in (0.5, 2.0)] for s in (0, 1)]
    corners = [nearest + moved(0, r) - moved(1, h) for r in ends[0] for h in ends[1]]
    assert point.reverses == any(np.sign(c) == -sign for c in corners)


@pytest.mark.parametrize("interval", [(1.1, 1.6), (0.4, 0.9), (2.5, 4.0), (0.0, 0.3)])
@pytest.mark.parametrize("assumed", [0.0, 1.0])
@pytest.mark.parametrize("labeled", [(0.84, 0.7), (0.2, 0.95), (0.5, 0.5)])
def test_ratio_against_brute_force(
    interval: tuple[float, float], assumed: float, labeled: tuple[float, float]
) -> None:
    some = coverage(labeled_recommended=labeled[0], labeled_history=labeled[1], assumed=assumed)
    point = ratio_tipping(interval, some)
    assert point is not None
    nearest = min(interval, key=lambda end: abs(end - 1))
    sign = np.sign(nearest - 1)

    def factor(labeled: float, ratio: np.ndarray | float) -> np.ndarray:
        return (labeled + (1 - labeled) * np.asarray(ratio)) / (labeled + (1 - labeled) * assumed)

    listed = sign * (nearest * factor(labeled[0], FINE) - 1)
    past = sign * (nearest / factor(labeled[1], FINE) - 1)
    for found, values, rate in (
        (point.recommended, listed, some.recommended),
        (point.history, past, some.history),
    ):
        expected = first_turn(values, assumed, rate)
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected, abs=2e-4)
    corners = [
        nearest * factor(labeled[0], r) / factor(labeled[1], h) - 1
        for r in (0.5, 2.0)
        for h in (0.5, 2.0)
    ]
    assert point.reverses == any(np.sign(c) == -sign for c in corners)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("ratios", [(1.5, 1.1), (0.6, 1.4), (4.0, 0.8)])
@pytest.mark.parametrize("assumed", [0.0, 1.0])
@pytest.mark.parametrize(
    ("mine", "others"),
    [
        ((0.3, 0.2, 0.84, 0.7), (0.1, 0.2, 0.84, 0.9)),
        ((0.1, 0.2, 0.3, 0.9), (0.6, 0.3, 0.5, 0.2)),
        ((0.3, 0.2, 1.0, 1.0), (0.3, 0.2, 0.5, 0.6)),
        ((0.3, 0.2, 0.5, 0.6), (0.3, 0.2, 0.5, 0.6)),
    ],
)
def test_two_ratios_against_brute_force(
    log: bool,
    ratios: tuple[float, float],
    assumed: float,
    mine: tuple[float, ...],
    others: tuple[float, ...],
) -> None:
    names = ("recommended", "history", "labeled_recommended", "labeled_history")
    one, other = (
        coverage(**dict(zip(names, values, strict=True)), assumed=assumed)
        for values in (mine, others)
    )
    scale = np.log if log else np.asarray
    point_estimate = float(scale(ratios[0]) - scale(ratios[1]))
    sign = np.sign(point_estimate)
    nearest = point_estimate - sign * min(0.1, abs(point_estimate) / 2)
    interval = sorted((nearest, point_estimate + sign))
    point = contrast_tipping((interval[0], interval[1]), ratios, one, other, log=log)
    assert point is not None

    def at(r: np.ndarray | float, h: np.ndarray | float) -> np.ndarray:
        """The bound nearest to no effect, moved as the difference of the two ratios moves."""
        made = []
        for values, ratio in ((mine, ratios[0]), (others, ratios[1])):
            rate, past, c_r, c_h = values
            up = rate * (c_r + (1 - c_r) * np.asarray(r)) / (rate * (c_r + (1 - c_r) * assumed))
            down = past * (c_h + (1 - c_h) * np.asarray(h)) / (past * (c_h + (1 - c_h) * assumed))
            made.append(scale(ratio * up / down))
        return sign * (nearest + made[0] - made[1] - point_estimate)

    for found, values, side in (
        (point.recommended, at(FINE, assumed), 0),
        (point.history, at(assumed, FINE), 1),
    ):
        expected = first_turn(values, assumed, max(mine[side], others[side]))
        assert (found is None) == (expected is None)
        if expected is not None:
            assert found == pytest.approx(expected, abs=2e-4)
    grid = [np.linspace(0.5, min(2, 1 / max(mine[s], others[s])), 301) for s in (0, 1)]
    every = at(grid[0][:, None], grid[1][None, :])
    assert point.reverses == bool((every < 0).any())


def test_formulas_as_written() -> None:
    some = coverage()
    point = gap_tipping((0.02, 0.1), some)
    assert point is not None
    assert point.recommended == pytest.approx(1 - 0.02 / (0.3 * 0.16))
    assert point.history == pytest.approx(1 + 0.02 / (0.2 * 0.3))
    assert (point.labeled_recommended, point.labeled_history) == (0.84, 0.7)


def test_without_a_direction_or_without_unlabeled_items_there_is_no_point() -> None:
    assert gap_tipping((-0.01, 0.1), coverage()) is None
    assert ratio_tipping((0.9, 1.1), coverage()) is None
    assert contrast_tipping((-0.1, 0.1), (1.2, 1.1), coverage(), coverage()) is None
    everything = coverage(labeled_recommended=1.0, labeled_history=1.0)
    assert gap_tipping((0.01, 0.1), everything) is None
    assert ratio_tipping((1.1, 1.2), everything) is None
    assert contrast_tipping((0.1, 0.2), (1.2, 1.0), everything, everything) is None


def test_nothing_labeled_has_no_rate_to_compare_with() -> None:
    nothing = coverage(labeled_recommended=0.0, labeled_history=0.0, assumed=0.0)
    assert ratio_tipping((1.1, 1.2), nothing) is None
    assert contrast_tipping((0.1, 0.2), (1.2, 1.0), nothing, nothing) is None


def test_rates_that_cannot_exist_are_not_named() -> None:
    point = gap_tipping((0.2, 0.4), coverage(history=0.6, labeled_history=0.9))
    assert point is not None
    assert point.recommended is None  # the rate would be below 0
    assert point.history is None  # the rate would be above 1
    assert not point.reverses


def test_a_wider_range_and_a_declaration() -> None:
    narrow = gap_tipping((0.05, 0.1), coverage(), lowest=0.9, highest=1.1)
    wide = gap_tipping((0.05, 0.1), coverage(), lowest=0.1, highest=5.0, decides=False)
    assert narrow is not None and wide is not None
    assert not narrow.reverses and wide.reverses
    assert narrow.decides and not wide.decides
    assert (wide.lowest, wide.highest) == (0.1, 5.0)
