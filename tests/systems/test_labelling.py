"""Labels that a system reads off texts, and what its errors do to intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data import Interactions, Recommendations, Texts
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.label_errors import LabelErrors
from ombud.data.labels import Labels
from ombud.data.tables import TableOptions, read_labels, write_table
from ombud.errors import DataError, PlanError
from ombud.metrics import LabelShare, ShareGap
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.warnings.amplification.metric import Amplification
from ombud.systems.labelling import labels_from_texts


class Says:
    """Says yes to texts that hold a word; has no opinion about those that hold 'fog'."""

    name = "says"

    def __init__(self, word: str) -> None:
        self.word = word

    def moderate(self, texts: Texts) -> Decisions:
        outcomes = np.array(
            [3 if "fog" in t else int(self.word in t) for t in texts.texts], np.int8
        )
        scores = np.array([t.count(self.word) / 4 for t in texts.texts], dtype=np.float32)
        return Decisions(np.asarray(texts.ids), outcomes, scores)


def known(tp: int, fp: int, fn: int, tn: int) -> dict[str, list[Any]]:
    rows = [("red", True)] * tp + [("red", False)] * fp + [("blue", True)] * fn
    rows += [("blue", False)] * tn
    return {
        "label": ["fear"] * len(rows),
        "text": [f"{word} {i}" for i, (word, _) in enumerate(rows)],
        "present": [present for _, present in rows],
    }


def test_states_probabilities_and_what_is_left_out() -> None:
    items = {"item": [3, 1, 2, 4], "text": ["red sky", "blue sky", "fog", None]}
    labels = labels_from_texts(items, {"fear": Says("red")}, known(39, 10, 5, 194))
    by_item = dict(zip(labels.items.ids.tolist(), labels.states[:, 0].tolist(), strict=True))
    assert by_item == {1: 0, 2: -2, 3: 1, 4: -2}
    chance = dict(zip(labels.items.ids.tolist(), labels.probability()[:, 0].tolist(), strict=True))
    found, false = 39.5 / 45, 10.5 / 205  # one of two items is said to carry it
    share = (0.5 - false) / (found - false)
    assert chance[3] == pytest.approx(share * found / 0.5)
    assert chance[1] == pytest.approx(share * (1 - found) / 0.5)
    assert np.isnan(chance[2]) and np.isnan(chance[4])
    assert sorted((e.count, e.reason) for e in labels.exclusions) == [
        (1, "says gave no decision about fear"),
        (1, "they have no text"),
    ]


def test_error_rates_are_carried_to_another_share_of_labels() -> None:
    """Found 0.9 and false 0.1 with 30% said yes: 25% carry the label; so 75% of yes are right."""
    said = np.array([[1]] * 300 + [[0]] * 700, dtype=np.int8)
    errors = LabelErrors(
        said, np.array([[1000], [9000]]), np.array([[9000], [1000]]), "error-rates"
    )
    assert errors.chances()[0, 0] == pytest.approx(0.25 * 0.9 / 0.3, abs=1e-3)
    assert errors.chances()[-1, 0] == pytest.approx(0.25 * 0.1 / 0.7, abs=1e-3)


def test_bad_input_is_refused() -> None:
    items = {"item": [1, 2], "text": ["red", "blue"]}
    with pytest.raises(DataError, match="at least 20"):
        labels_from_texts(items, {"fear": Says("red")}, known(5, 1, 1, 5))
    with pytest.raises(DataError, match="no system looks for"):
        labels_from_texts(items, {"joy": Says("red")}, known(10, 5, 5, 20))
    with pytest.raises(DataError, match="about no validation text"):
        labels_from_texts(items, {"fear": Says("red")}, known(0, 0, 10, 20))
    with pytest.raises(DataError, match="say nothing"):
        labels_from_texts(items, {"fear": Says("red")}, known(10, 20, 10, 20))
    with pytest.raises(DataError, match="both are needed"):
        labels_from_texts(items, {"fear": Says("red")}, known(10, 0, 10, 0))
    with pytest.raises(PlanError, match="the correction by calibration is withdrawn: where a"):
        labels_from_texts(
            items, {"fear": Says("red")}, known(20, 2, 2, 20), transport="calibration"
        )


def test_a_detector_is_not_measured_on_what_it_learned() -> None:
    from ombud.systems.detectors import Head, NgramDetector

    texts = [f"{'dread and fear' if i % 2 else 'sun and sand'} {i}" for i in range(60)]
    detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1))
    detector.fit(texts, [i % 2 for i in range(60)])
    validation = {"label": ["f"] * 60, "text": texts, "present": [bool(i % 2) for i in range(60)]}
    with pytest.raises(PlanError, match="stand in the training"):
        labels_from_texts({"item": [1], "text": ["sun"]}, {"f": detector}, validation)


def test_errors_survive_being_stored(tmp_path: Path) -> None:
    items = {"item": [1, 2, 3], "text": ["red", "blue", "fog"]}
    labels = labels_from_texts(items, {"fear": Says("red")}, known(20, 4, 5, 30))
    write_table("labels", Dataset(labels=labels), tmp_path / "labels.parquet")
    again = read_labels(tmp_path / "labels.parquet", TableOptions())
    assert again.errors is not None and again.errors.transport == "error-rates"
    assert np.array_equal(again.errors.said, labels.errors.said[:2])
    assert np.array_equal(again.errors.yes, labels.errors.yes)
    assert np.array_equal(again.select(("fear",)).errors.no, labels.errors.no)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 30), st.integers(1, 30))
def test_draws_average_to_the_probabilities(tp: int, fp: int, fn: int, tn: int) -> None:
    said = np.array([[1], [0]] * 300, dtype=np.int8)
    errors = LabelErrors(said, np.array([[fn], [tp]]), np.array([[tn], [fp]]), "calibration")
    rng = np.random.default_rng(0)
    mean = np.mean(
        [errors.draw(rng)[:, 0].reshape(300, 2).mean(axis=0) for _ in range(200)], axis=0
    )
    assert np.allclose(mean, errors.chances()[:2, 0], atol=0.09)


def test_corrected_degrees_average_to_the_true_share() -> None:
    """Found 0.8, false 0.1, said yes to 31%: 30% carry the label, and so the degrees say."""
    said = np.array([[1]] * 310 + [[0]] * 690, dtype=np.int8)
    errors = LabelErrors(said, np.array([[2000], [8000]]), np.array([[9000], [1000]]))
    rng = np.random.default_rng(1)
    means = [errors.draw(rng).mean() for _ in range(300)]
    assert np.mean(means) == pytest.approx(0.3, abs=0.005)
    # The spread of a mean over 1,000 items: the errors of one reading.
    assert np.std(means) == pytest.approx(
        np.sqrt(0.7 * 0.09 + 0.3 * 0.16) / 0.7 / np.sqrt(1000), rel=0.2
    )


def _world(rng: np.random.Generator, items: int = 400, users: int = 150) -> dict[str, Any]:
    """Lists of items with a label more often than histories; a system that errs."""
    truth = rng.random(items) < 0.3
    said = np.where(truth, rng.random(items) < 0.8, rng.random(items) < 0.15)
    pull = np.where(truth, 2.0, 1.0)
    lists = np.stack(
        [rng.choice(items, 10, replace=False, p=pull / pull.sum()) for _ in range(users)]
    )
    past = np.stack([rng.choice(items, 20, replace=False) for _ in range(users)])
    return {"truth": truth, "said": said, "lists": lists, "past": past}


def _audit(world: dict[str, Any], labels: Labels, metric: Any) -> Any:
    users = len(world["lists"])
    interactions = Interactions.from_frame(
        {"user": np.repeat(np.arange(users), 20), "item": world["past"].ravel()}
    )
    shown = Recommendations.from_frame(
        pl.DataFrame(
            {
                "user": np.repeat(np.arange(users), 10),
                "item": world["lists"].ravel(),
                "rank": np.tile(np.arange(1, 11), users),
            }
        )
    )
    rows = metric.measure(shown, Dataset(interactions=interactions, labels=labels))
    return estimate_metric(metric, {"s": rows}, None, Settings(replicates=300))[0]


def _labels(world: dict[str, Any], rng: np.random.Generator) -> tuple[Labels, Labels, Labels]:
    """The truth, what the system says taken at its word, and with its measured errors."""
    n = len(world["truth"])
    sample = rng.choice(n, 150, replace=False)
    words = np.where(world["said"], "red", "blue")
    items = {"item": list(range(n)), "text": [f"{w} {i}" for i, w in enumerate(words)]}
    validation = {
        "label": ["fear"] * 150,
        "text": [f"{words[i]} {i}" for i in sample],
        "present": world["truth"][sample].tolist(),
    }
    measured = labels_from_texts(items, {"fear": Says("red")}, validation)
    assert measured.errors is not None
    at_its_word = Labels(measured.items, measured.names, measured.states)
    true = Labels(measured.items, measured.names, world["truth"].astype(np.int8)[:, None])
    return true, at_its_word, measured


@pytest.mark.parametrize("runs", [40, pytest.param(300, marks=pytest.mark.slow)])
def test_intervals_cover_the_gap_that_true_labels_have(runs: int) -> None:
    """Taken at its word, the system's labels shrink the gap; with measured errors it is covered."""
    rng = np.random.default_rng(8)
    covered = naive = 0
    widths = []
    for _ in range(runs):
        world = _world(rng)
        true, at_its_word, measured = _labels(world, rng)
        gap = _audit(world, true, ShareGap(k=10)).value
        for labels in (at_its_word, measured):
            e = _audit(world, labels, ShareGap(k=10))
            inside = e.interval[0] <= gap <= e.interval[1]
            if labels is measured:
                covered += inside
                widths.append(e.interval[1] - e.interval[0])
            else:
                naive += inside
    assert covered / runs >= (0.85 if runs < 100 else 0.92)
    assert naive / runs < covered / runs


def test_a_form_that_cannot_be_corrected_is_refused() -> None:
    rng = np.random.default_rng(2)
    world = _world(rng)
    _, _, measured = _labels(world, rng)
    with pytest.raises(PlanError, match="ratio-of-means"):
        _audit(world, measured, Amplification(k=10))


@pytest.mark.parametrize("metric", [LabelShare(k=10), Amplification(k=10, form="ratio-of-means")])
def test_other_measures_carry_the_errors_too(metric: Any) -> None:
    rng = np.random.default_rng(2)
    world = _world(rng)
    _, at_its_word, measured = _labels(world, rng)
    plain, wide = (_audit(world, labels, metric) for labels in (at_its_word, measured))
    assert wide.interval[1] - wide.interval[0] > 1.2 * (plain.interval[1] - plain.interval[0])
