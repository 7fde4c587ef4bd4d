"""The ROC area, its interval and paired differences."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.stats.roc import auc_difference, auc_estimate, placements


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=20))
def test_the_area_is_the_share_of_pairs_in_order(rows: list[tuple[int, bool]]) -> None:
    scores = [float(s) for s, _ in rows]
    truth = [t for _, t in rows]
    e = auc_estimate(scores, truth)
    pairs = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for (a, s), (b, t) in product(zip(scores, truth, strict=True), repeat=2)
        if s and not t
    ]
    if not pairs:
        assert e.value is None
    else:
        assert e.value == pytest.approx(np.mean(pairs))
        place = placements(scores, truth)
        assert place[~np.array(truth)].mean() == pytest.approx(e.value)


def test_the_area_equals_scikit_learn_and_its_interval_covers() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(5)
    from scipy.special import ndtr

    covered = 0
    for run in range(300):
        truth = np.arange(120) < 40
        scores = rng.normal(size=120) + truth
        e = auc_estimate(scores, truth)
        if not run:
            assert e.value == pytest.approx(roc_auc_score(truth, scores))
        assert e.interval is not None
        covered += e.interval[0] <= ndtr(1 / np.sqrt(2)) <= e.interval[1]
    assert 0.91 < covered / 300 < 0.985


def test_a_paired_difference_of_areas_is_null_for_equal_systems() -> None:
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(300):
        truth = np.arange(150) < 60
        base = rng.normal(size=150) + truth
        one, two = base + rng.normal(size=150), base + rng.normal(size=150)
        e = auc_difference(one, two, truth)
        assert e.p_value is not None
        alarms += e.p_value < 0.05
    assert alarms / 300 < 0.09
    assert auc_difference(base, base, truth).value is None


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(7)
    truth = np.repeat(np.arange(30) < 12, 10)
    shared = np.repeat(rng.normal(size=30), 10) + truth
    alone = auc_estimate(shared, truth).interval
    together = auc_estimate(shared, truth, clusters=np.repeat(np.arange(30), 10)).interval
    assert alone is not None and together is not None
    assert together[1] - together[0] > 2 * (alone[1] - alone[0])
