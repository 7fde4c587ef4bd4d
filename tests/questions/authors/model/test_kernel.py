"""The integrals: by hand, by scipy, by differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit

from ombud.errors import DataError
from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._expansion import Region, expanded
from ombud.questions.authors.model._kernel import (
    Nodes,
    Work,
    list_integral,
    log_likelihood,
    log_likelihoods,
)
from ombud.questions.authors.model._tables import list_tables

FINE = Nodes(31, 25)


def by_scipy(y: int, n: int, lists: list[tuple[int, int]], point: np.ndarray) -> float:
    """The same log likelihood of one user by adaptive quadrature, one integral in the other."""
    mu, sigma = point[0], np.exp(point[1])
    b, s, v = point[2:].reshape(3, -1)
    v = np.exp(v)

    def inner(t: float) -> float:
        total = 1.0
        for a, (k, r) in enumerate(lists):
            middle = b[a] + s[a] * t

            def f(z: float, middle: float = middle, k: int = k, r: int = r, a: int = a) -> float:
                p = expit(middle + v[a] * z)
                return float(p**k * (1 - p) ** (r - k) * np.exp(-z * z / 2) / np.sqrt(2 * np.pi))

            total *= quad(f, -10, 10, limit=200, epsabs=1e-14)[0]
        return total

    def outer(z: float) -> float:
        p = expit(mu + sigma * z)
        normal = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        return float(p**y * (1 - p) ** (n - y) * normal * inner(mu + sigma * z))

    return float(np.log(quad(outer, -10, 10, limit=200, epsabs=1e-16)[0]))


def test_a_profile_of_one_item_in_a_centred_population_is_a_coin() -> None:
    # By symmetry the chance of the identity is exactly one half, whatever the spread.
    counts = Counts.check([1], [1])
    for sigma in (0.01, 1.0, 3.0):
        value = log_likelihoods(counts, np.array([[0.0, np.log(sigma)]]), FINE)[0]
        assert value == pytest.approx(np.log(0.5), abs=1e-6)


@pytest.mark.parametrize(
    ("user", "lists", "point"),
    [
        ((2, 5), [(3, 8)], [-0.3, np.log(1.2), 0.1, 0.8, np.log(0.5)]),
        ((0, 6), [(0, 9), (4, 4)], [0.4, np.log(0.7), -0.2, 0.1, 1.3, -0.4, np.log(0.9), -3.0]),
        ((5, 5), [(7, 10)], [0.0, np.log(0.05), 0.3, 0.5, np.log(0.02)]),
        ((3, 7), [(0, 0), (2, 3)], [-0.3, 0.0, 0.1, 0.2, 0.8, 0.5, 0.0, -0.5]),
    ],
)
def test_equal_to_nested_adaptive_quadrature(
    user: tuple[int, int], lists: list[tuple[int, int]], point: list[float]
) -> None:
    rows = np.array([lists, [(1, 2)] * len(lists)])
    # The first of two users: every system must have a list that says something.
    counts = Counts.check([user[0], 1], [user[1], 2], rows[..., 0], rows[..., 1]).rows([0])
    expected = by_scipy(*user, lists, np.array(point))
    assert log_likelihoods(counts, np.array([point]), FINE)[0] == pytest.approx(expected, abs=1e-6)
    assert log_likelihoods(counts, np.array([point]), Nodes(9, 7))[0] == pytest.approx(
        expected, abs=2e-3
    )


def test_derivatives_are_those_of_the_value(rng: np.random.Generator) -> None:
    counts = Counts.check(
        rng.integers(0, 5, 30), np.full(30, 6), rng.integers(0, 9, (30, 2)), np.full((30, 2), 9)
    )
    point = np.array([0.2, -0.1, 0.3, -0.2, 0.6, 1.2, -0.7, -1.5])
    there = log_likelihood(counts, point, FINE)
    for i in range(len(point)):
        step = np.zeros(len(point))
        step[i] = 1e-4
        up, down = (log_likelihood(counts, point + e, FINE) for e in (step, -step))
        assert there.gradient[i] == pytest.approx((up.value - down.value) / 2e-4, abs=1e-5)
        assert there.hessian[i] == pytest.approx((up.gradient - down.gradient) / 2e-4, abs=1e-4)


@given(r=st.integers(0, 60), share=st.floats(0, 1), middle=st.floats(-6, 6), v=st.floats(1e-4, 2.5))
def test_a_list_has_probability_one_over_all_its_counts(
    r: int, share: float, middle: float, v: float
) -> None:
    from scipy.special import gammaln

    k = np.arange(r + 1.0)
    coefficient = gammaln(r + 1) - gammaln(k + 1) - gammaln(r - k + 1)
    found = list_integral(k, np.full(r + 1, float(r)), np.full(r + 1, middle), v, 25, False).value
    assert np.exp(found + coefficient).sum() == pytest.approx(1, abs=1e-4)


def test_the_expansion_is_the_integral_close_to_its_middle(
    made: Callable[..., Any], rng: np.random.Generator
) -> None:
    middle = np.array([0.1, 0.2, 0.3, -0.2, 0.6, 1.2, -0.7, -4.0])
    b, s, v = middle[2:].reshape(3, 2)
    counts = Counts.check(
        **made(rng, 60, mu=0.1, sigma=np.exp(0.2), b=tuple(b), s=tuple(s), v=tuple(np.exp(v)))
    )
    sds = np.array([0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.3])
    points = middle + rng.standard_normal((20, 8)) * sds
    variances = np.exp(2 * (middle[6:, None] + 4 * sds[6:, None] * np.array([-1, 1])))
    region = Region(middle, np.diag(sds**2), variances)
    nodes = Nodes(15, 13)
    exact = log_likelihoods(counts, points, nodes)
    for degree, error in ((4, 0.02), (6, 0.002)):
        away = expanded(counts, points, region, nodes, degree) - exact
        assert np.abs(away).max() < error
    assert exact.std() > 0.3


@pytest.mark.parametrize("split", [False, True])
def test_tables_give_the_integrals_wherever_they_are_read(split: bool) -> None:
    rng = np.random.default_rng(2)
    size = np.array([3, 35, 50, 400])
    counts = Counts.check(
        [1, 2, 3, 4], [4, 9, 9, 5], np.array([[0], [12], [50], [30]]), size[:, None], ["a"]
    )
    (table,) = list_tables(counts, Nodes(12, 12, split), Work(1e9))
    # One after the other, so that the table grows on all sides.
    wide = ((3.0, 30.0),) if split else ()
    for v, far in ((0.5, 2.0), (0.001, 8.0), *wide):
        middle = rng.uniform(-far, far, (2, 4, 50))
        found = table.read(middle, np.array([v, 1.3 * v]))
        for point, sd in enumerate((v, 1.3 * v)):
            k, r = counts.list_count, counts.list_known
            exact = list_integral(k, r, middle[point], sd, 80, False, split=True).value
            away = np.abs(found[point] - exact)
            # Where hardly anything is left it need not be as close.
            near = exact > exact.max(axis=1, keepdims=True) - 20
            assert away[near].max() < 1e-3 and away.max() < 0.02


@pytest.mark.parametrize("split", [False, True])
def test_residuals_of_any_size_have_a_finite_integral(split: bool) -> None:
    middle = np.linspace(-200, 200, 81)
    for v in np.geomspace(1e-3, 1e9, 25):
        for k in (0.0, 3.0, 28.0):
            found = list_integral(np.array(k), np.array(28.0), middle, v, 20, False, split)
            assert np.isfinite(found.value).all()


def test_offsets_that_are_all_the_same_are_another_mean_and_intercept(
    made: Callable[..., Any], rng: np.random.Generator
) -> None:
    data = made(rng, 40)
    own, lists = 0.7, np.array([-0.4, 1.1])
    plain = Counts.check(**data)
    moved = Counts.check(
        **data, offset=np.full(40, own), list_offset=np.broadcast_to(lists, (40, 2))
    )
    b, s, v = np.array([0.3, -0.2]), np.array([0.6, 1.2]), np.array([-0.7, -1.0])
    there = np.array([0.1, 0.2, *b, *s, *v])
    # theta = logistic(own + t): t moves by -own, and with it what the lines start from.
    same = np.array([0.1 - own, 0.2, *(b + s * own - lists), *s, *v])
    first, second = (log_likelihood(c, p, FINE) for c, p in ((plain, there), (moved, same)))
    assert second.value == pytest.approx(first.value, abs=1e-6)
    assert second.gradient[:4] == pytest.approx(first.gradient[:4], abs=1e-4)
    for found, point in ((plain, there), (moved, same)):
        at_many = log_likelihoods(found, point[None], FINE)[0]
        assert at_many == pytest.approx(first.value, abs=1e-6)
        region = Region(point, np.diag(np.full(8, 0.01)), np.exp(2 * v[:, None] + [-0.8, 0.8]))
        close = expanded(found, point[None], region, FINE, 6)[0]
        assert close == pytest.approx(first.value, abs=0.02)


@pytest.mark.parametrize(
    ("offset", "said"), [(np.zeros(3), "shape"), (np.array([0.0, np.inf]), "no log odds")]
)
def test_offsets_that_cannot_be_are_refused(offset: np.ndarray, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Counts.check([1, 2], [3, 3], offset=offset)
    # Where nothing is known an offset does not matter.
    assert Counts.check([1, 0], [3, 0], offset=[0.5, np.nan]).offset.tolist() == [0.5, 0.0]


def test_every_fault_of_the_counts_is_named() -> None:
    with pytest.raises(DataError) as caught:
        Counts.check([3, -1], [2, 4.5], [[1], [1]], None)
    text = str(caught.value)
    assert "count has 1 values that are no counts" in text
    assert "known has 1 values that are no counts" in text
    assert "list_known" in text
    with pytest.raises(DataError, match="count is larger than known in 1 places"):
        Counts.check([3], [2])
    with pytest.raises(DataError, match="no profile holds"):
        Counts.check([0], [0])
    with pytest.raises(DataError, match="same name"):
        Counts.check([1], [2], [[1, 1]], [[2, 2]], ["a", "a"])
