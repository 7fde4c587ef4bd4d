"""Training from a table: parts that do not repeat one another, tuning, calibration, a test."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from ombud.cli import app
from ombud.errors import DataError, PlanError
from ombud.systems.detectors import EmbeddingDetector, load_detector
from ombud.systems.detectors.heads import Calibration, fit_calibration, fit_linear
from ombud.systems.detectors.training import (
    head_for,
    make_detector,
    read_labeled,
    reliability,
    train_detector,
)

CALM = ["garden", "table", "window", "river", "bread", "music", "paper", "morning", "lamp", "chair"]
KINDS: tuple[Literal["platt", "isotonic"], ...] = ("platt", "isotonic")
HARSH = ["cruel", "harsh", "deadly", "threat", "wound"]


def table(n: int = 300, seed: int = 0) -> pl.DataFrame:
    """Texts of eight words; those with a harsh word are delicate, but for one in ten."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(n):
        harsh = rng.random() < 0.4
        words = [*rng.choice(CALM, 7), str(rng.choice(HARSH if harsh else CALM)), f"n{number}"]
        rng.shuffle(words)
        rows.append({"text": " ".join(words), "label": bool(harsh ^ (rng.random() < 0.1))})
    return pl.DataFrame(rows)


def test_no_part_repeats_another_and_what_is_dropped_is_counted() -> None:
    long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    rows = [
        {"text": long, "label": True, "split": "test"},
        {"text": f"{long} fifteen", "label": True, "split": "train"},  # nearly the test text
        {"text": long.upper(), "label": False, "split": "validation"},  # the test text
        {"text": "a calm one", "label": False, "split": "train"},
        {"text": "a calm one", "label": False, "split": "train"},  # twice
        {"text": "harsh words here", "label": True, "split": "train"},
        {"text": "held calm", "label": False, "split": "val"},
        {"text": "held harsh", "label": True, "split": "val"},
        {"text": None, "label": True, "split": "train"},
        {"text": "no label", "label": None, "split": "train"},
    ]
    data = read_labeled(pl.DataFrame(rows))
    assert data.texts["test"] == [long]
    assert sorted(data.texts["train"]) == ["a calm one", "harsh words here"]
    assert sorted(data.texts["validation"]) == ["held calm", "held harsh"]
    counts = sorted(e.count for e in data.exclusions if e.where == "train part")
    where = {e.where: e.count for e in data.exclusions}
    assert where["training table"] == 2 and where["validation part"] == 1
    assert counts == [1, 1]  # one repeats, one nearly repeats


def test_what_a_table_may_hold() -> None:
    rows = [{"text": f"t {k}", "annotator_1": k % 6, "annotator_2": 5, "annotator_3": k % 3}
            for k in range(60)]  # fmt: skip
    data = read_labeled(pl.DataFrame(rows))
    assert data.graded and head_for(data).classes == 6
    joined = dict(zip(data.texts["train"], data.classes["train"].tolist(), strict=True))
    assert all(joined[t] == np.median([int(t[2:]) % 6, 5, int(t[2:]) % 3]) for t in joined)
    with pytest.raises(DataError, match="a column 'risk'"):
        read_labeled(pl.DataFrame({"text": ["a"]}))
    with pytest.raises(DataError, match="column 'split' has 'other'"):
        read_labeled(pl.DataFrame({"text": ["a"], "label": [True], "split": ["other"]}))
    with pytest.raises(PlanError, match="not of both kinds"):
        read_labeled(table().with_columns(label=pl.lit(True)))
    with pytest.raises(PlanError, match="leave some to train on"):
        read_labeled(table(), shares=(0.6, 0.6))
    with pytest.raises(PlanError, match="the other true or false"):
        read_labeled(table(), test=pl.DataFrame({"text": ["a"], "risk": [3]}))


def test_a_trained_detector_is_tuned_calibrated_tested_and_saved(tmp_path: Path) -> None:
    data = read_labeled(table())
    found = train_detector(data, make_detector("ngrams", head_for(data)))
    assert found.test["part"] == "test" and found.test["f1"] > 0.65
    low, high = found.test["f1 interval"]
    assert low < found.test["f1"] < high
    assert len(found.tried) == 6
    best = max(row["validation F1"] for row in found.tried)
    first = next(row for row in found.tried if row["validation F1"] == best)
    detector: Any = found.detector
    assert (detector.strength, detector.balanced) == (first["strength"], first["balanced"])
    assert detector.facts["validation F1"] == pytest.approx(best)
    assert found.test["calibration error"] < 0.2
    folder = detector.save(tmp_path / "d")
    again = load_detector(folder)
    assert again.calibration == detector.calibration is not None
    texts = data.texts["test"]
    assert np.array_equal(again.score(texts)[0], detector.score(texts)[0])
    # A second route to F1: count the flags.
    flags = again.flags(again.score(texts)[1])
    truth = data.classes["test"] == 1
    assert found.test["f1"] == pytest.approx(
        2 * (flags & truth).sum() / (flags.sum() + truth.sum())
    )


def test_token_features_are_those_of_sklearn() -> None:
    pytest.importorskip("wordllama")
    texts = ["a calm calm day", "a harsh word", "a calm word", "day by day"]
    detector = EmbeddingDetector(head=head_for(read_labeled(table())), tokens=True)
    features = detector.learn_features(texts).toarray()
    vectors, _ = detector.embed(texts)
    width = vectors.shape[1]
    assert features[:, :width] == pytest.approx(2 * vectors, abs=1e-6)
    from sklearn.feature_extraction.text import TfidfVectorizer

    tokens = detector._ready().tokens(texts)
    words = [[str(i) for i in ids] for ids in tokens]
    theirs = TfidfVectorizer(analyzer=lambda ids: ids, sublinear_tf=True, min_df=2)
    wanted = theirs.fit_transform(words).toarray()
    at = [width + int(name) for name in theirs.get_feature_names_out()]
    assert features[:, at] == pytest.approx(wanted, abs=1e-5)
    assert np.count_nonzero(features[:, width:]) == np.count_nonzero(wanted)


def test_balanced_weights_are_those_of_sklearn(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(80, 3)), (rng.random(80) < 0.2).astype(int)
    head = head_for(read_labeled(table()))
    found = fit_linear(x, y, head, strength=2.0, balanced=True)
    theirs = LogisticRegression(C=2.0, class_weight="balanced", max_iter=1000).fit(x, y)
    assert found.weights[:, 0] == pytest.approx(theirs.coef_[0], abs=1e-4)


def test_platt_and_isotonic_by_a_second_route(rng: np.random.Generator) -> None:
    scores = rng.random(400)
    truth = rng.random(400) < scores**2
    platt = fit_calibration(scores, truth, "platt")
    odds = np.log(scores / (1 - scores))
    yes, no = truth.sum(), (~truth).sum()
    target = np.where(truth, (yes + 1) / (yes + 2), 1 / (no + 2))

    def loss(at: np.ndarray) -> float:
        p = 1 / (1 + np.exp(-(at[0] * odds + at[1])))
        return float(-np.sum(target * np.log(p) + (1 - target) * np.log(1 - p)))

    slope, intercept = optimize.minimize(loss, [1.0, 0.0], method="Nelder-Mead").x
    assert (platt.x[0], platt.y[0]) == pytest.approx((slope, intercept), abs=1e-2)
    curve = fit_calibration(scores, truth, "isotonic")
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, truth)
    at = np.linspace(0, 1, 50)
    assert curve.apply(at) == pytest.approx(theirs.predict(at))
    with pytest.raises(PlanError, match="both kinds"):
        fit_calibration(scores, np.ones(400, bool), "platt")
    cases: tuple[tuple[Any, ...], ...] = (
        ("platt", (-1.0,), (0.0,)),
        ("isotonic", (0.0, 1.0), (1.0, 0.0)),
        ("isotonic", (), ()),
        ("odd", (1.0,), (1.0,)),
    )
    for broken in cases:  # fmt: skip
        with pytest.raises(ValueError, match="not a rising curve"):
            Calibration(*broken)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(KINDS))
def test_calibration_never_reverses_the_order(
    seed: int, kind: Literal["platt", "isotonic"]
) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.random(60)
    truth = rng.random(60) < 0.2 + 0.6 * scores
    if truth.all() or not truth.any():
        return
    after = fit_calibration(scores, truth, kind).apply(np.sort(scores))
    assert (np.diff(after) >= 0).all() and after.min() >= 0 and after.max() <= 1


def test_calibration_halves_the_error_of_overconfident_scores(rng: np.random.Generator) -> None:
    p = rng.random(4000)
    truth = rng.random(4000) < p
    scores = 1 / (1 + np.exp(-4 * np.log(p / (1 - p))))  # far too sure
    half = slice(0, 2000), slice(2000, 4000)

    def error(values: np.ndarray) -> float:
        rows = reliability(values, truth[half[1]])
        return sum(r["n"] * abs(r["predicted"] - r["share"]) for r in rows) / 2000

    before = error(scores[half[1]])
    for kind in KINDS:
        curve = fit_calibration(scores[half[0]], truth[half[0]], kind)
        assert error(curve.apply(scores[half[1]])) < 0.4 * before


def test_the_command_trains_from_a_table(tmp_path: Path) -> None:
    table().write_csv(tmp_path / "texts.csv")
    command = ["text", "train", str(tmp_path / "texts.csv"), "--to", str(tmp_path / "d")]
    done = CliRunner().invoke(app, [*command, "--model", "ngrams", "--json"])
    assert done.exit_code == 0, done.output
    made = json.loads(done.stdout)
    assert made["texts"]["train"] > 150 and len(made["reliability"]) == 10
    assert "<svg" in (tmp_path / "d" / "reliability.svg").read_text()
    said = CliRunner().invoke(app, command)
    assert said.exit_code == 2 and "is not empty" in said.output
    command[-1] = str(tmp_path / "e")
    for extra, words in (
        (["--model", "best"], "--model 'best' is not one of embeddings"),
        (["--recipe", "published"], "needs --base"),
        (["--base", str(tmp_path)], "--base is for"),
        (["--calibration", "x"], "not one of platt"),
    ):
        failed = CliRunner().invoke(app, [*command, *extra])
        assert failed.exit_code == 2 and words in " ".join(failed.output.split())


def test_a_missing_package_is_named_and_nothing_else_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ombud.errors

    real = find_spec
    monkeypatch.setattr(
        ombud.errors, "find_spec", lambda n, *a: None if n == "wordllama" else real(n, *a)
    )
    table().write_csv(tmp_path / "texts.csv")
    done = CliRunner().invoke(
        app, ["text", "train", str(tmp_path / "texts.csv"), "--to", str(tmp_path / "d")]
    )
    assert done.exit_code != 0 and "ombud[embeddings]" in done.output
    assert not (tmp_path / "d").exists()


def test_the_command_trains_from_a_project(tmp_path: Path) -> None:
    from ombud.app.exchange import add_ratings, read_ratings
    from ombud.app.project import Project

    frame = table(120)
    with Project.create(tmp_path / "p") as project:
        texts = frame.with_row_index("id").select(pl.col("id").cast(pl.String), "text")
        project.add_texts(texts, round_="main")
        rows = [
            {"id": str(k), "rater": f"r{r}", "answer": "delicate" if yes else "not delicate",
             "risk": 4 if yes else None}
            for k, yes in enumerate(frame["label"]) for r in range(3)
        ]  # fmt: skip
        ratings = read_ratings(pl.DataFrame(rows), project.settings)
        add_ratings(project, ratings, new_raters=True)
    done = CliRunner().invoke(
        app,
        ["text", "train", str(tmp_path / "p"), "--to", str(tmp_path / "d"), "--model", "ngrams"],
    )
    assert done.exit_code == 0, done.output
    assert load_detector(tmp_path / "d").head.classes == 6
