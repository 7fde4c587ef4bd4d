"""Evaluation: F1 and base rates, recovered counts, comparisons, errors."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.questions.delicate import (
    comparison_estimates,
    confusion,
    detection_estimates,
    error_rates,
    group_estimates,
    paired_f1_estimate,
    precision_at_base_rate,
    precision_recall_curve,
    recover_counts,
    stability_estimates,
    standout_terms,
)
from ombud.stats.risk_ratings import risk_labels
from ombud.taxonomy import load_taxonomy

# Table 5 of the paper: precision, recall and F1 in per cent, with the counts that give them.
TABLE = {
    "HateBERT AbusEval": ((86.7, 11.6, 20.5), (39, 6, 297, 681)),
    "HateBERT AbusEval#": ((57.0, 70.2, 62.9), (236, 178, 100, 509)),
    "HateBERT HatEval": ((95.2, 6.0, 11.2), (20, 1, 316, 686)),
    "HateBERT OffensEval": ((75.4, 31.0, 43.9), (104, 34, 232, 653)),
    "HateBERT OffensEval#": ((60.1, 72.6, 65.8), (244, 162, 92, 525)),
    "Perspective": ((77.2, 29.2, 42.3), (98, 29, 238, 658)),
    "OpenAI moderation": ((91.3, 18.7, 31.1), (63, 6, 273, 681)),
    "DeTexD RoBERTa": ((81.4, 78.3, 79.8), (263, 60, 73, 627)),
}


def arrays(tp: int, fp: int, fn: int, tn: int) -> tuple[np.ndarray, np.ndarray]:
    flags = np.repeat([1.0, 1.0, 0.0, 0.0], [tp, fp, fn, tn])
    return flags, np.repeat([1.0, 0.0, 1.0, 0.0], [tp, fp, fn, tn])


@pytest.mark.realdata
def test_the_released_labels_are_the_second_rule(realdata: Path) -> None:
    path = realdata / "delicate-excerpts" / "detexd_benchmark_excerpts.csv"
    with path.open(encoding="utf-8", newline="") as source:
        rows = [r for r in csv.DictReader(source) if r["annotator_1"] and r["annotator_3"]]
    assert len(rows) == 20
    ratings = [[float(r[f"annotator_{k}"]) for k in (1, 2, 3)] for r in rows]
    found = risk_labels(ratings)
    published = [
        int(float(r["label"])) if r["label"] not in ("True", "False") else int(r["label"] == "True")
        for r in rows
    ]
    assert found.delicate.tolist() == published


@pytest.mark.parametrize("name", TABLE)
def test_published_figures_follow_from_their_counts(name: str) -> None:
    published, counts = TABLE[name]
    flags, truth = arrays(*counts)
    found = detection_estimates(flags, truth, rng=np.random.default_rng(0), replicates=200)
    # Within half a unit of the last digit: 18.75 was printed as 18.7.
    assert [100 * (e.value or 0) for e in found[:3]] == pytest.approx(published, abs=0.0501)
    assert found[0].details["tp"] == counts[0]


@pytest.mark.parametrize("name", TABLE)
def test_counts_are_recovered_from_rounded_figures(name: str) -> None:
    (precision, recall, f1), counts = TABLE[name]
    found = recover_counts(336, 687, precision=precision, recall=recall, f1=f1)
    assert [tuple(c) for c in found] == [counts]


def test_figures_that_cannot_be_or_are_not_enough() -> None:
    # The content filter's F1 does not follow from its precision and recall.
    assert recover_counts(336, 687, precision=55.0, recall=64.0, f1=58.9) == ()
    assert len(recover_counts(336, 687, precision=55.0, recall=64.0)) == 1
    two = recover_counts(336, 687, precision=41.1, recall=86.0, f1=55.6)
    assert [c.fp for c in two] == [414, 415]
    with pytest.raises(ValueError, match="no figure"):
        recover_counts(3, 3)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 20), st.integers(1, 20))
def test_true_counts_are_always_among_those_recovered(tp: int, fp: int, fn: int, tn: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    flags, truth = arrays(tp, fp, fn, tn)
    if not truth.any() or truth.all():
        return
    accuracy = round(100 * sklearn.accuracy_score(truth, flags), 1)
    macro = round(100 * sklearn.f1_score(truth, flags, average="macro", zero_division=0), 1)
    found = recover_counts(tp + fn, fp + tn, accuracy=accuracy, macro_f1=macro)
    assert (tp, fp, fn, tn) in [tuple(c) for c in found]


def test_estimates_equal_those_of_scikit_learn(rng: np.random.Generator) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    truth = rng.integers(0, 2, 300)
    flags = np.where(rng.random(300) < 0.8, truth, 1 - truth)
    found = {e.key: e.value for e in detection_estimates(flags, truth, rng=rng, replicates=100)}
    assert found["delicate/precision"] == pytest.approx(sklearn.precision_score(truth, flags))
    assert found["delicate/recall"] == pytest.approx(sklearn.recall_score(truth, flags))
    assert found["delicate/f1"] == pytest.approx(sklearn.f1_score(truth, flags))
    scores = rng.random(300).round(2)
    curve = precision_recall_curve(scores, truth)
    p, r, t = sklearn.precision_recall_curve(truth, scores)
    assert curve["threshold"].to_list() == pytest.approx(t[::-1].tolist())
    assert curve["precision"].to_list() == pytest.approx(p[:-1][::-1].tolist())
    assert curve["recall"].to_list() == pytest.approx(r[:-1][::-1].tolist())


def test_undefined_is_said() -> None:
    rng = np.random.default_rng(0)
    none = {e.key: e for e in detection_estimates([0, 0], [0, 0], rng=rng)}
    assert none["delicate/precision"].reason == "nothing is flagged"
    assert none["delicate/recall"].reason == "no text is delicate"
    assert not none["delicate/f1"].is_defined
    zero = {e.key: e for e in detection_estimates([0, 0, 1, 0], [1, 1, 0, 0], rng=rng)}
    assert zero["delicate/f1"].value == 0.0
    assert confusion([1, np.nan, 1], [1, 1, -1]) == (1, 0, 0, 0)
    marked = detection_estimates([1, 0, 1], [1, 0, 0], rng=rng, tuned_here=True)
    assert all(e.note.startswith("#") and e.details["tuned on these texts"] for e in marked)


def test_groups_overlap() -> None:
    flags, truth = np.array([1, 0, 1, 0]), np.array([1, 1, 0, 0])
    groups = {"a": [True, True, False, False], "b": [True, True, True, True]}
    found = group_estimates(flags, truth, groups, rng=np.random.default_rng(0), replicates=50)
    recall = {e.group: e.value for e in found if e.key == "delicate/recall"}
    assert recall == {"a": 0.5, "b": 0.5}


def test_base_rates_by_hand() -> None:
    flags, truth = arrays(263, 60, 73, 627)
    found = precision_at_base_rate(flags, truth)
    tpr, fpr = 263 / 336, 60 / 687
    for estimate, rate in zip(found, (0.1, 0.01, 0.001), strict=True):
        assert estimate.value == pytest.approx(rate * tpr / (rate * tpr + (1 - rate) * fpr))
        assert estimate.interval is not None
        assert estimate.interval[0] < estimate.value < estimate.interval[1]
    # At the set's own share it is precision itself.
    own = precision_at_base_rate(flags, truth, rates=(336 / 1023,))[0]
    assert own.value == pytest.approx(263 / 323)
    none = precision_at_base_rate(*arrays(5, 0, 5, 50), rates=(0.01,))[0]
    assert none.value == 1.0 and none.interval is not None
    assert none.interval[0] < 0.5 and none.interval[1] == 1.0
    assert not precision_at_base_rate([0, 0], [1, 0])[0].is_defined
    assert not precision_at_base_rate([1, 1], [1, 1])[0].is_defined


@pytest.mark.parametrize(("tpr", "fpr"), [(0.8, 0.09), (0.3, 0.02), (0.6, 0.005)])
def test_base_rate_intervals_cover(tpr: float, fpr: float) -> None:
    rng = np.random.default_rng(7)
    true = 0.01 * tpr / (0.01 * tpr + 0.99 * fpr)
    covered, total = 0, 600
    for _ in range(total):
        tp, fp = rng.binomial(336, tpr), rng.binomial(687, fpr)
        flags, truth = arrays(tp, fp, 336 - tp, 687 - fp)
        low, high = precision_at_base_rate(flags, truth, rates=(0.01,))[0].interval or (1, 0)
        covered += low <= true <= high
    assert covered / total > 0.925


def test_paired_differences() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 500)
    good = np.where(rng.random(500) < 0.9, truth, 1 - truth)
    poor = np.where(rng.random(500) < 0.7, truth, 1 - truth)
    gap = paired_f1_estimate(good, poor, truth, rng=rng)
    assert gap.excludes_null and gap.value > 0 and gap.p_value < 0.001
    same = paired_f1_estimate(good, good, truth, rng=rng)
    assert same.value == 0.0 and same.p_value == 1.0 and same.interval is None
    none = paired_f1_estimate(np.zeros(3), [1, 0, 0], np.zeros(3), rng=rng)
    assert not none.is_defined
    table = comparison_estimates(
        {"good": good, "poor": poor, "none": np.zeros(500)},
        truth,
        reference="good",
        rng=rng,
        tuned_here={"poor"},
    )
    gaps = {e.system: e for e in table if e.key == "delicate/f1-difference"}
    assert set(gaps) == {"poor", "none"}
    assert gaps["poor"].p_adjusted >= gaps["poor"].p_value
    assert gaps["poor"].details["tuned on these texts"]
    assert not gaps["none"].details["tuned on these texts"]
    with pytest.raises(ValueError, match="is not among"):
        comparison_estimates({"a": good}, truth, reference="b", rng=rng)


def test_stability_by_hand() -> None:
    half = np.tile([1.0, 0.0], 50)
    rows = np.vstack([half] * 10 + [np.ones(100)] * 10)
    share, spread = stability_estimates(rows)
    assert share.value == 0.5 and share.n == 20
    assert spread.value == 0.5
    assert not stability_estimates([[1.0, np.nan]])[0].is_defined


def test_a_planted_detector_is_seen_through() -> None:
    """It misses health and flags swearing; the error analysis must say both."""
    rng = np.random.default_rng(5)
    plain = [f"word{i}" for i in range(300)]
    texts, truth, topics = [], [], []
    for _ in range(800):
        kind = rng.choice(["health", "swearing", "violence", "none"])
        words = list(rng.choice(plain, 12))
        if kind == "health":
            words[3] = rng.choice(["depression", "cancer", "therapy"])
        if kind == "swearing":
            words[3] = "frigging"
        if kind == "violence":
            words[3] = "murder"
        texts.append(" ".join(words))
        topics.append(kind)
        truth.append(int(kind in ("health", "violence")))
    flags = np.array([int("frigging" in text or "murder" in text) for text in texts])
    kinds, labels = np.array(topics), np.array(truth)
    groups = {kind: kinds == kind for kind in ("health", "swearing", "violence", "none")}
    rates = {(e.key, e.group): e for e in error_rates(flags, labels, groups)}
    assert rates["delicate/missed", "health"].value == 1.0
    assert rates["delicate/missed", "violence"].value == 0.0
    assert rates["delicate/flagged-in-error", "swearing"].value == 1.0
    assert rates["delicate/flagged-in-error", "none"].value == 0.0
    missed = standout_terms(texts, (flags == 0) & (labels == 1))
    out = missed.filter(missed["stands_out"])["term"].to_list()
    assert set(out) == {"depression", "cancer", "therapy"}
    wrong = standout_terms(texts, (flags == 1) & (labels == 0))
    assert wrong.filter(wrong["stands_out"])["term"].to_list() == ["frigging"]


def test_no_word_stands_out_by_chance() -> None:
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(40):
        texts = [" ".join(rng.choice([f"w{i}" for i in range(60)], 10)) for _ in range(200)]
        alarms += int(standout_terms(texts, rng.random(200) < 0.3)["stands_out"].any())
    assert alarms <= 5
    assert standout_terms(["a b"], [True]).height == 0


def test_topics_of_the_taxonomy_make_groups() -> None:
    coarse = load_taxonomy("delicate@1").map_to("delicate-coarse@1", relations=("exact", "broader"))
    assert coarse["medicine"] == ("health-disability",)
