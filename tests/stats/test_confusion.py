"""Counts behind rates, precision at other base rates, and the ROC area."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.stats.confusion import (
    Confusion,
    auc_difference,
    auc_estimate,
    placements,
    precision_at,
    precision_at_estimate,
    recover_counts,
)

# Table 5 of the DeTexD paper: precision, recall, F1, and the counts they come from.
PUBLISHED = {
    "HateBERT AbusEval": ((86.7, 11.6, 20.5), (39, 6, 297, 681)),
    "HateBERT AbusEval#": ((57.0, 70.2, 62.9), (236, 178, 100, 509)),
    "HateBERT HatEval": ((95.2, 6.0, 11.2), (20, 1, 316, 686)),
    "HateBERT OffensEval": ((75.4, 31.0, 43.9), (104, 34, 232, 653)),
    "HateBERT OffensEval#": ((60.1, 72.6, 65.8), (244, 162, 92, 525)),
    "Perspective": ((77.2, 29.2, 42.3), (98, 29, 238, 658)),
    "OpenAI moderation": ((91.3, 18.7, 31.1), (63, 6, 273, 681)),
    "DeTexD RoBERTa": ((81.4, 78.3, 79.8), (263, 60, 73, 627)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_counts_of_the_published_table_are_found_and_unique(name: str) -> None:
    (p, r, f), counts = PUBLISHED[name]
    assert recover_counts(336, 687, precision=p, recall=r, f1=f) == [Confusion(*counts)]


def test_what_is_not_unique_or_contradicts_itself_is_said() -> None:
    two = recover_counts(336, 687, precision=41.1, recall=86.0, f1=55.6)
    assert [m.fp for m in two] == [414, 415]
    assert recover_counts(336, 687, precision=55.0, recall=64.0, f1=58.9) == []
    assert recover_counts(336, 687, precision=55.0, recall=64.0) == [Confusion(215, 176, 121, 511)]
    with pytest.raises(ValueError, match="no rate"):
        recover_counts(5, 5)


@given(st.integers(0, 12), st.integers(0, 15))
def test_the_true_matrix_is_always_among_the_answers(tp: int, fp: int) -> None:
    truth = Confusion(tp, fp, 12 - tp, 15 - fp)
    accuracy = round(100 * (tp + truth.tn) / 27, 1)
    macro = (truth.f1 + 2 * truth.tn / max(2 * truth.tn + truth.fp + truth.fn, 1)) / 2
    if not np.isnan(macro):
        assert truth in recover_counts(12, 15, accuracy=accuracy, macro_f1=round(100 * macro, 1))


def test_precision_at_the_base_rate_of_the_sample_is_its_precision() -> None:
    m = Confusion(263, 60, 73, 627)
    at = precision_at(336 / 1023, m.recall, 60 / 687)
    assert float(at) == pytest.approx(m.precision)


def test_intervals_of_precision_at_a_base_rate_cover() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        tp, fp = rng.binomial(100, 0.7), rng.binomial(200, 0.04)
        e = precision_at_estimate(Confusion(tp, fp, 100 - tp, 200 - fp), 0.05, rng=rng, draws=2000)
        low, high = e.interval or (0, 0)
        covered += low <= float(precision_at(0.05, 0.7, 0.04)) <= high
    assert covered / 300 > 0.91


def test_no_false_positive_is_no_promise_and_no_flag_is_undefined() -> None:
    rng = np.random.default_rng(1)
    e = precision_at_estimate(Confusion(10, 0, 5, 40), 0.001, rng=rng)
    assert e.value == 1.0 and e.interval is not None and e.interval[0] < 0.5
    assert precision_at_estimate(Confusion(0, 0, 5, 40), 0.1, rng=rng).reason
    assert precision_at_estimate(Confusion(0, 3, 0, 40), 0.1, rng=rng).value is None


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
