"""Heads: probabilities, scores, both rules, thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ombud.errors import PlanError
from ombud.systems.detectors import Head
from ombud.systems.detectors.heads import best_threshold, fit_linear


def test_multiclass_by_hand() -> None:
    head = Head()
    outputs = np.log(np.array([[0.3, 0.1, 0.1, 0.1, 0.2, 0.2], [0.1, 0.1, 0.1, 0.5, 0.1, 0.1]]))
    assert head.score(outputs) == pytest.approx([0.5, 0.7])
    # The two rules disagree on the first: its best class is 0, yet P(delicate) is 0.5.
    assert head.decide(outputs, "argmax", 0.4).tolist() == [False, True]
    assert head.decide(outputs, "threshold", 0.4).tolist() == [True, True]
    assert head.decide(outputs, "threshold", float(head.score(outputs)[0])).tolist() == [
        False,
        True,
    ]


def test_ordinal_by_hand() -> None:
    head = Head(kind="ordinal")
    steps = np.array([[0.9, 0.8, 0.6, 0.7, 0.1]])
    outputs = np.log(steps / (1 - steps))
    # The fourth step may not lie above the third.
    assert head.probabilities(outputs) == pytest.approx(np.array([[0.1, 0.1, 0.2, 0.0, 0.5, 0.1]]))
    assert head.score(outputs) == pytest.approx([0.6])
    assert head.predicted(outputs).tolist() == [4]
    assert head.targets(np.array([0, 3, 5])).tolist() == [
        [0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 1, 1, 1],
    ]


def test_binary() -> None:
    head = Head(kind="binary")
    assert head.outputs == 1
    assert head.probabilities(np.zeros((1, 1))) is None
    assert head.predicted(np.zeros((1, 1))) is None
    assert head.decide(np.array([[0.1], [-0.1]]), "argmax", 0.9).tolist() == [True, False]
    two = Head(kind="binary", classes=2, cut=1)
    assert two.probabilities(np.zeros((1, 1))) == pytest.approx(np.array([[0.5, 0.5]]))


# Only the time to draw is checked there, and that is the machine's load.
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(arrays(np.float64, (7, 6), elements=st.floats(-30, 30)))
def test_probabilities_add_up_and_agree_with_the_score(outputs: np.ndarray) -> None:
    for kind in ("multiclass", "ordinal"):
        head = Head(kind=kind)  # type: ignore[arg-type]
        values = outputs[:, : head.outputs]
        chances = head.probabilities(values)
        assert chances is not None
        assert chances.sum(axis=1) == pytest.approx(np.ones(7))
        assert (chances >= 0).all()
        assert chances[:, 3:].sum(axis=1) == pytest.approx(head.score(values), abs=1e-9)


def test_bad_heads_and_ratings_are_refused() -> None:
    with pytest.raises(PlanError, match="cut at 6"):
        Head(cut=6)
    with pytest.raises(PlanError, match="'other' is not one of"):
        Head(kind="other")  # type: ignore[arg-type]
    with pytest.raises(PlanError, match="ratings run from 0 to 7"):
        Head().targets(np.array([0, 7]))


def f1_of(flagged: np.ndarray, truth: np.ndarray) -> float:
    hits, wrong = int((flagged & truth).sum()), int((flagged ^ truth).sum())
    return 2 * hits / (2 * hits + wrong)


@given(st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=2, max_size=30))
def test_the_best_threshold_is_the_best_of_all(rows: list[tuple[int, bool]]) -> None:
    scores = np.array([score / 12 for score, _ in rows])
    truth = np.array([label for _, label in rows])
    if truth.all() or not truth.any():
        with pytest.raises(PlanError, match="both kinds"):
            best_threshold(scores, truth)
        return
    threshold, f1 = best_threshold(scores, truth)
    assert f1_of(scores > threshold, truth) == pytest.approx(f1)
    tried = [-1.0, *sorted(scores)]
    brute = [f1_of(scores > value, truth) for value in tried]
    assert f1 == pytest.approx(np.nanmax(brute))


@pytest.mark.parametrize("kind", ["multiclass", "ordinal", "binary"])
def test_linear_heads_learn_an_ordered_target(kind: str, rng: np.random.Generator) -> None:
    pytest.importorskip("sklearn")
    x = rng.normal(size=(800, 3))
    classes = np.clip(np.round(x[:, 0] * 1.5 + 2.5 + rng.normal(0, 0.3, 800)), 0, 5).astype(int)
    head = Head(kind=kind)  # type: ignore[arg-type]
    fitted = fit_linear(x, classes, head, strength=10.0)
    outputs = x @ fitted.weights + fitted.intercept
    assert f1_of(head.decide(outputs, "threshold", 0.5), classes >= 3) > 0.9
    predicted = head.predicted(outputs)
    if predicted is not None:
        assert (np.abs(predicted - classes) <= 1).mean() > 0.95


def test_a_class_that_no_text_has_gets_no_probability(rng: np.random.Generator) -> None:
    pytest.importorskip("sklearn")
    x = rng.normal(size=(100, 2))
    for present in ([0, 5], [0, 2, 5]):
        classes = rng.choice(present, 100)
        head = Head()
        fitted = fit_linear(x, classes, head, strength=1.0)
        chances = head.probabilities(x @ fitted.weights + fitted.intercept)
        assert chances is not None
        absent = [k for k in range(6) if k not in present]
        assert chances[:, absent].max() < 1e-6
    with pytest.raises(PlanError, match="all on one side"):
        fit_linear(x, np.zeros(100), Head(kind="binary"), strength=1.0)


def test_two_classes_give_the_probabilities_of_scikit_learn(rng: np.random.Generator) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    x = rng.normal(size=(200, 3))
    y = (x[:, 0] + rng.normal(size=200) > 0).astype(int)
    theirs = linear.LogisticRegression(C=1.0, max_iter=1000).fit(x, y).predict_proba(x)
    for kind in ("multiclass", "binary", "ordinal"):
        head = Head(kind=kind, classes=2, cut=1)  # type: ignore[arg-type]
        fitted = fit_linear(x, y, head, strength=1.0)
        ours = head.probabilities(x @ fitted.weights + fitted.intercept)
        assert ours == pytest.approx(theirs, abs=1e-4)
