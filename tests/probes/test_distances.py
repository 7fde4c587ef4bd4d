from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.errors import RegistryError
from ombud.probes.distances import (
    FirstItem,
    Jaccard,
    Kendall,
    LabelShare,
    RankBiased,
    check_distance,
    distance_of,
    expected_distance,
    first_lists,
    probabilities,
    total_variation,
)

DISTANCES = {n: distance_of(n) for n in ("jaccard", "rank-biased", "kendall", "first-item")}
lists = st.lists(st.integers(0, 7), max_size=5, unique=True)


def row(items: list[int], width: int = 5) -> np.ndarray:
    return np.array([items + [-1] * (width - len(items))], np.int32)


def rbo_by_definition(a: list[int], b: list[int], p: float, depth: int) -> float:
    total = weight = 0.0
    for d in range(1, depth + 1):
        x, y = set(a[:d]), set(b[:d])
        agreement = len(x & y) / max(len(x), len(y)) if x or y else 1.0
        total += p ** (d - 1) * agreement
        weight += p ** (d - 1)
    return 1 - total / weight


def kendall_by_definition(a: list[int], b: list[int], q: float) -> float:
    """Case by case, as in the paper."""

    def penalty(i: int, j: int) -> float:
        in_a, in_b = (i in a, j in a), (i in b, j in b)
        if all(in_a) and all(in_b):
            return float((a.index(i) < a.index(j)) != (b.index(i) < b.index(j)))
        for whole, one, other in ((a, in_b, in_a), (b, in_a, in_b)):
            if all(other) and one[0] != one[1]:
                inside, outside = (i, j) if one[0] else (j, i)
                return float(whole.index(outside) < whole.index(inside))
        if all(in_a) != all(in_b):
            return q
        return 1.0

    total = sum(penalty(i, j) for i, j in combinations(sorted({*a, *b}), 2))
    n, m = len(a), len(b)
    if (n == 0) != (m == 0):
        return 1.0
    most = n * m + q * (n * (n - 1) + m * (m - 1)) / 2
    return total / most if most else 0.0


@given(lists, lists)
def test_list_distances_follow_their_definitions(a, b) -> None:
    union = {*a, *b}
    jaccard = 1 - len({*a} & {*b}) / len(union) if union else 0.0
    assert Jaccard()(row(a), row(b))[0] == pytest.approx(jaccard)
    assert RankBiased(0.8)(row(a), row(b))[0] == pytest.approx(rbo_by_definition(a, b, 0.8, 5))
    for q in (0.0, 0.5):
        assert Kendall(q)(row(a), row(b))[0] == pytest.approx(kendall_by_definition(a, b, q))
    assert FirstItem()(row(a), row(b))[0] == float(a[:1] != b[:1])


@given(lists, lists)
def test_distances_are_symmetric_and_between_zero_and_one(a, b) -> None:
    carries = np.arange(8) % 2 == 0
    for name, d in DISTANCES.items():
        there, back = d(row(a), row(b))[0], d(row(b), row(a))[0]
        assert there == pytest.approx(back)
        assert 0 <= there <= 1
        assert d(row(a), row(a))[0] == 0
        if sorted(a) != sorted(b) and len(a) == len(b) and name != "first-item":
            assert there > 0
    share = LabelShare(carries)(row(a), row(b))[0]
    assert np.isnan(share) == ((not a) != (not b))


def test_disjoint_lists_are_as_far_apart_as_can_be() -> None:
    for name in ("jaccard", "rank-biased", "kendall", "first-item"):
        assert distance_of(name)(row([0, 1, 2]), row([3, 4, 5]))[0] == pytest.approx(1.0)


def test_label_share_leaves_unknown_labels_out() -> None:
    share = LabelShare(
        np.array([True, False, True, False]), np.array([True, True, False, True]), "blood"
    )
    assert share(np.array([[0, 2]]), np.array([[0, 1]]))[0] == 0.5
    assert np.isnan(share(np.array([[2, -1]]), np.array([[0, 1]]))[0])
    assert share.name == "difference in label share of blood"
    check_distance(LabelShare(np.arange(12) % 3 == 0))


def test_all_distances_of_the_spec_are_registered() -> None:
    known = {*registry.names("distance")}
    assert {"jaccard", "rank-biased", "kendall", "label-share", "first-item"} <= known
    with pytest.raises(RegistryError, match="euclid"):
        distance_of("euclid")


class _Bad:
    name = "bad"

    def __init__(self, kind: str = "offset") -> None:
        self.kind = kind

    def __call__(self, first, second):
        if self.kind == "offset":
            return np.ones(len(first))
        if self.kind == "negative":
            return Jaccard()(first, second) * -1
        return np.zeros(3)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("offset", "not 0 for two equal"), ("negative", "negative"), ("shape", "one number per row")],
)
def test_a_distance_that_is_none_is_refused(kind, message) -> None:
    with pytest.raises(RegistryError, match=message):
        check_distance(_Bad(kind))


@pytest.mark.parametrize("bad", [lambda: RankBiased(1.0), lambda: Kendall(2.0)])
def test_bad_arguments(bad) -> None:
    with pytest.raises(ValueError, match="it must be"):
        bad()


def test_first_lists_equal_a_sort(rng) -> None:
    scores = rng.integers(0, 5, size=(40, 9)).astype(float)
    scores[rng.random(scores.shape) < 0.3] = np.nan
    found = first_lists(scores, 4)
    for scored, listed in zip(scores, found, strict=True):
        order = sorted((-s, i) for i, s in enumerate(scored) if not np.isnan(s))
        wanted = [i for _, i in order][:4]
        assert listed.tolist() == wanted + [-1] * (4 - len(wanted))


def test_total_variation_is_half_the_absolute_difference(rng) -> None:
    a, b = probabilities(rng.normal(size=(2, 5, 7)).reshape(10, 7), 2.0).reshape(2, 5, 7)
    largest = [
        max(abs(x[list(s)].sum() - y[list(s)].sum()) for r in range(8) for s in
            combinations(range(7), r))
        for x, y in zip(a, b, strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(total_variation(a, b), largest)


def test_no_scores_is_no_distribution() -> None:
    none = probabilities(np.full((1, 3), np.nan), 1.0)
    some = probabilities(np.array([[1.0, np.nan, 2.0]]), 1.0)
    assert np.isnan(none).all()
    assert total_variation(none, none)[0] == 0
    assert total_variation(none, some)[0] == 1
    with pytest.raises(ValueError, match="must be positive"):
        probabilities(np.zeros((1, 1)), 0.0)


def test_expected_distance_under_common_random_numbers(rng) -> None:
    scores = rng.normal(size=(6, 9))
    same, error = expected_distance(scores, scores, Jaccard(), n=3, beta=1.0, rng=rng)
    assert (same == 0).all()
    assert (error == 0).all()
    moved, error = expected_distance(scores, -scores, Jaccard(), n=3, beta=5.0, draws=30, rng=rng)
    assert (moved > 0.5).all()
    assert (error > 0).all()


def test_sampled_lists_have_the_probabilities_of_the_softmax() -> None:
    """The chance that the first item differs, by common Gumbel noise, checked by enumeration.

    With two items and scores that differ by a and b, the first item differs when the logistic
    difference of the noises falls between: |F(a) - F(b)|.
    """
    rng = np.random.default_rng(4)
    first = np.tile([[0.0, 1.0]], (20_000, 1))
    second = np.tile([[0.0, -0.5]], (20_000, 1))
    found, _ = expected_distance(first, second, FirstItem(), n=1, beta=1.0, draws=5, rng=rng)
    logistic = 1 / (1 + np.exp(-1.0)) - 1 / (1 + np.exp(0.5))
    assert found.mean() == pytest.approx(logistic, abs=0.005)
    with pytest.raises(ValueError, match="at least 2"):
        expected_distance(first, second, FirstItem(), n=1, beta=1.0, draws=1, rng=rng)
