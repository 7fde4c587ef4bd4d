"""The delicate preset: worked examples, planted faults, bad input, and the whole report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.audits import Audit, Plan, Result
from ombud.audits.analysis import Context
from ombud.audits.audit import rescore
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.delicate.bias import BiasTests, ErrorTerms
from ombud.questions.delicate.comparison import DecisionStability, DetectorComparison
from ombud.questions.delicate.metrics import Accuracy, BaseRates, F1Score, Precision, Recall
from ombud.questions.delicate.options import dictionary_of
from ombud.questions.delicate.preset import text_groups
from ombud.questions.delicate.ratings import read_ratings
from ombud.report.report import Report
from ombud.systems.base import Moderator
from ombud.systems.moderators.keyword import KeywordModerator

ABOUT = {
    "health": "my depression and the chemotherapy",
    "crime": "the robbery and a stabbing",
    "plain": "the garden and our boat",
}


def texts_of(flags: list[int], **more: Any) -> tuple[Dataset, np.ndarray]:
    n = len(flags)
    texts = Texts(np.arange(n), np.array([f"text {i}" for i in range(n)], object),
                  np.array(flags, dtype=np.int8), **more)  # fmt: skip
    return Dataset(texts=texts), np.arange(n)


def said(ids: np.ndarray, flagged: list[int], scores: list[float] | None = None) -> Decisions:
    points = np.array(flagged if scores is None else scores, dtype=np.float32)
    return Decisions(ids, np.array(flagged, dtype=np.int8), points)


def level(metric: Any, data: Dataset, decisions: Decisions) -> Any:
    return estimate_metric(metric, {"s": metric.measure(decisions, data)}, None,
                           Settings(replicates=200))[0]  # fmt: skip


def test_a_worked_example_and_scikit_learn() -> None:
    """3 found of 4, 1 of 6 flagged wrongly: P 3/4, R 3/4, F1 3/4, accuracy 8/10."""
    truth, flags = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 1, 0, 0, 0, 0, 0]
    data, ids = texts_of(truth * 3)
    decisions = said(ids, flags * 3)
    from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

    for metric, value, peer in (
        (Precision(), 0.75, precision_score), (Recall(), 0.75, recall_score),
        (F1Score(), 0.75, f1_score), (Accuracy(), 0.8, accuracy_score),
    ):  # fmt: skip
        e = level(metric, data, decisions)
        assert e.value == pytest.approx(value) == pytest.approx(peer(truth, flags))
        assert e.details["count of tp"] == 9 and e.details["count of fp"] == 3


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=12, max_size=60))
def test_f1_lies_between_precision_and_recall(rows: list[tuple[bool, bool]]) -> None:
    data, ids = texts_of([int(t) for t, _ in rows])
    decisions = said(ids, [int(f) for _, f in rows])
    if len({t for t, _ in rows}) < 2:
        return
    p, r, f1 = (level(m, data, decisions).value for m in (Precision(), Recall(), F1Score()))
    if p is not None and r is not None and f1 is not None:
        assert min(p, r) - 1e-9 <= f1 <= max(p, r) + 1e-9


def test_systems_are_compared_in_precision_on_all_texts() -> None:
    """Not on the texts that both flagged, where precision would be equal by construction."""
    rng = np.random.default_rng(1)
    truth = rng.random(400) < 0.4
    good, bad = np.where(rng.random(400) < 0.9, truth, ~truth), rng.random(400) < 0.5
    data, ids = texts_of(truth.astype(int).tolist())
    rows = {
        name: Precision().measure(said(ids, flags.astype(int).tolist()), data)
        for name, flags in (("good", good), ("bad", bad))
    }
    gap = next(e for e in estimate_metric(Precision(), rows) if e.against)
    assert gap.value == pytest.approx(truth[good].mean() - truth[bad].mean())
    assert gap.interval is not None and gap.interval[0] > 0.2


def test_undecided_texts_are_left_out_and_counted() -> None:
    data, ids = texts_of([1, 0, -1] * 8)
    decisions = said(ids, [1, 0, 1] * 8)
    decisions.outcomes[0] = 2
    rows = F1Score().measure(decisions, data)
    assert len(rows.ids) == 15
    assert sorted(e.count for e in rows.exclusions) == [1, 8]


def test_a_threshold_with_weights_is_that_of_repeated_texts() -> None:
    from ombud.systems.detectors.heads import best_threshold

    rng = np.random.default_rng(2)
    truth = rng.random(200) < 0.3
    scores = np.round(rng.random(200) * 0.6 + truth * 0.3, 2)
    times = rng.integers(0, 4, 200)
    again = np.repeat(np.arange(200), times)
    assert best_threshold(scores, truth, times) == best_threshold(scores[again], truth[again])
    assert best_threshold(scores, truth, np.ones(200)) == best_threshold(scores, truth)


def test_a_tuned_threshold_is_marked_and_lies_above() -> None:
    rng = np.random.default_rng(3)
    truth = (rng.random(300) < 0.3).astype(int)
    scores = (0.3 * truth + rng.random(300)).tolist()
    data, ids = texts_of(truth.tolist())
    decisions = said(ids, [int(s > 0.9) for s in scores], scores)
    found = DetectorComparison(replicates=100).analyze(Context(data, {"s": decisions}, Settings()))
    tuned = next(e for e in found.estimates if e.key == "detection/tuned-f1")
    assert tuned.details["tuned"] and tuned.note.startswith("#")
    assert tuned.value >= level(F1Score(), data, decisions).value
    assert found.tables["detection-counts"]["tp"].sum() > 0
    curve = found.tables["precision-recall"]
    assert curve["recall"].max() == 1.0 and curve["recall"].is_sorted()


def test_base_rates_of_clusters_are_bootstrapped() -> None:
    data, ids = texts_of([1, 0, 0] * 60, clusters=np.repeat(np.arange(45), 4).astype(np.int32))
    decisions = said(ids, ([1, 0, 0] * 4 + [0, 1, 0]) * 12)
    e = BaseRates(rates=(0.01,)).analyze(Context(data, {"s": decisions}, Settings())).estimates[0]
    assert e.unit == "cluster" and "bootstrap" in e.method
    assert e.value == pytest.approx(0.01 * 0.8 / (0.01 * 0.8 + 0.99 * 0.1))
    with pytest.raises(PlanError, match="less than 1"):
        BaseRates(rates=(2.0,))


def test_repeats_that_differ_are_counted_and_widen_f1() -> None:
    rng = np.random.default_rng(4)
    n, times = 80, 10
    truth = (np.arange(n) % 2).astype(int)
    chance = np.where(np.arange(n) < 20, 0.5, truth)
    data, _ = texts_of(truth.tolist())
    flags = (rng.random((times, n)) < chance).astype(np.int8)
    decisions = Decisions(np.tile(np.arange(n), times), flags.ravel(),
                          flags.ravel().astype(np.float32),
                          repeats=np.repeat(np.arange(times), n).astype(np.int32))  # fmt: skip
    found = DecisionStability(replicates=300).analyze(Context(data, {"s": decisions}, Settings()))
    changed, f1 = found.estimates
    assert changed.value == pytest.approx(0.25) and changed.details["changed"] == 20
    assert found.tables["decision-stability"]["largest sd of decisions"][0] == pytest.approx(0.5)
    averaged = level(F1Score(), data, decisions)
    assert f1.interval[1] - f1.interval[0] > averaged.interval[1] - averaged.interval[0]
    once = DecisionStability().analyze(
        Context(data, {"s": said(np.arange(n), truth.tolist())}, Settings())
    )
    assert not once.estimates
    nothing_to_find, _ = texts_of([0] * n)
    found = DecisionStability().analyze(Context(nothing_to_find, {"s": decisions}, Settings()))
    assert found.estimates[1].value is None
    assert found.estimates[1].reason_code == "too-few-units"


def corpus(n: int = 600) -> tuple[list[str], np.ndarray, np.ndarray]:
    kinds = np.array(list(ABOUT))[np.arange(n) % 3]
    personal = np.arange(n) // 3 % 2 == 0
    texts = [
        f"{'She' if i % 2 else 'He'} wrote {'darn, I cry about' if p else 'a report on'} "
        f"{ABOUT[k]}, page {i}."
        for i, (k, p) in enumerate(zip(kinds, personal, strict=True))
    ]
    return texts, kinds, personal


def test_a_planted_detector_is_caught_missing_health_and_flagging_swearing() -> None:
    texts, kinds, personal = corpus()
    truth = (kinds != "plain").astype(np.int8)
    flagged = ((kinds == "crime") | ((kinds == "plain") & personal)).astype(int)
    data = Dataset(texts=Texts(np.arange(600), np.array(texts, object), truth))
    data = Dataset(texts=data.texts, text_groups=text_groups(
        data.texts, ["topic", "coarse-topic"], dictionary_of()))  # fmt: skip
    decisions = said(np.arange(600), flagged.tolist())
    rows = {"s": Recall().measure(decisions, data)}
    found = estimate_metric(Recall(), rows, data.text_groups, Settings(replicates=200))
    at = {e.group: e.value for e in found if e.kind == "level"}
    assert at["coarse-topic=health-disability"] == 0.0
    assert at["coarse-topic=crime-violence"] == 1.0
    table = ErrorTerms().analyze(Context(data, {"s": decisions}, Settings())).tables["error-terms"]
    wrong = table.filter(pl.col("error") == "false positive")["term"].to_list()
    missed = table.filter(pl.col("error") == "false negative")
    assert "darn" in wrong[:4] or any(term.startswith("d***") for term in wrong[:4])
    assert {"medicine", "mental-health-disability"} & set(
        ", ".join(missed["topics"].head(4).to_list()).split(", ")
    )


class Prefers(Moderator):
    """Flags texts with a word."""

    def __init__(self, word: str, name: str) -> None:
        self.word, self.name = word, name

    def moderate(self, texts: Texts, *, progress: Any = None) -> Decisions:
        hit = np.array([self.word in text for text in texts.texts])
        return Decisions(np.asarray(texts.ids), hit.astype(np.int8), hit.astype(np.float32))


def test_bias_tests_ask_every_live_moderator_and_name_the_others(tmp_path: Path) -> None:
    from ombud.systems.recorded import RecordedDecisions

    texts, kinds, _ = corpus(90)
    truth = (kinds != "plain").astype(np.int8)
    data = Dataset(texts=Texts(np.arange(90), np.array(texts, object), truth))
    recorded = RecordedDecisions.from_frame(said(np.arange(90), truth.tolist()), "tape")
    audit = Audit(
        data,
        {"he": Prefers("He", "x"), "crime": Prefers("robbery", "y"), "tape": recorded},
        [F1Score()],
        analyses=[BiasTests(templates=("I am {value}.",), values=("robbery", "fine"))],
    )
    result = audit.run()
    flips = {e.system: e for e in result.estimates if e.key == "swap/flips-changed"}
    assert flips["he"].value == 1.0 and flips["crime"].value == 0.0 and "tape" not in flips
    assert any(e.system == "tape" and "recorded" in e.reason for e in result.exclusions)
    assert result.tables["bias-country"].height == 2 * 249
    fails = {e.system: e.value for e in result.estimates if e.key == "template/fails"}
    assert fails == {"he": 0.0, "crime": 1.0}
    with pytest.raises(PlanError, match="need values"):
        BiasTests(templates=("I am {value}.",))


def test_texts_without_a_term_are_in_no_family() -> None:
    """Terms decide who is in them, so that a list of terms misses them by definition."""
    kinds = ("what he did to", "the robbery of", "what he did to", "the kidnapping of")
    lines = [f"{kinds[i % 4]} page {i}" for i in range(200)]
    given = Texts(np.arange(200), np.array(lines, object), np.ones(200, np.int8))
    groups = text_groups(given, ["topic", "coarse-topic"], dictionary_of())
    words = KeywordModerator(terms=["robbery"])
    result = Audit(Dataset(texts=given, text_groups=groups), {"words": words}, [Recall()]).run()
    (verdict,) = Report(result).verdicts
    assert any(e.group.endswith("=no term") for e in result.estimates)
    assert not any(e.group.endswith("=no term") for e in verdict.family.estimates)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    texts, kinds, personal = corpus(300)
    ids = [f"t{i}" for i in range(300)]
    base = np.where(kinds == "plain", 0, np.where(personal, 5, 2))
    ratings = [
        {"id": ids[i], "rater": f"r{r}", "risk": int(np.clip(base[i] + rng.integers(-1, 2), 0, 5))}
        for i in range(300)
        for r in range(3)
    ]
    pl.DataFrame({"id": ids, "text": texts, "family": ["forum", "news"] * 150}).write_csv(
        tmp_path / "texts.csv"
    )
    pl.DataFrame(ratings).write_csv(tmp_path / "ratings.csv")
    (tmp_path / "plan.toml").write_text(
        'preset = "delicate"\n[options]\nratings = "ratings.csv"\n[data]\ntexts = "texts.csv"\n'
        '[statistics]\nreplicates = 200\n[systems.words]\ntype = "keyword"\nterms = ["cry"]\n'
        '[systems.crime]\ntype = "keyword"\nterms = ["robbery", "He"]\n'
    )
    return tmp_path


def test_the_preset_runs_from_files_to_report_and_again(project: Path) -> None:
    result = Audit.from_plan(Plan.load(project / "plan.toml")).run(project / "result")
    again = Result.load(project / "result")
    assert {e.key for e in again.estimates} >= {
        "detection-f1", "detection/auc", "base-rates/precision", "ratings/alpha", "ratings/f1",
        "swap/flips-changed", "country/flagged",
    }  # fmt: skip
    attributes = {e.group.partition("=")[0] for e in again.estimates if e.group}
    assert {"coarse-topic", "length", "source", "risk", "explicit"} <= attributes
    page = Report(result).html(script=False)  # all numbers go by their keys
    for words in ("How well delicate texts are found", "What changes decisions", "What raters say"):
        assert words in page
    ids = {e.group.partition("=")[2] for e in again.estimates if "topic=" in e.group}
    ids = {i for i in ids if "-" in i}
    assert ids and not {i for i in ids if f"topic={i}" in page}
    verdicts = {v.name: v for v in Report(again).verdicts}
    assert verdicts["delicate"].family.tested and verdicts["delicate-swaps"].findings
    new = rescore(project / "result")
    f1 = {
        e.system: e.value for e in new.select(key="detection-f1") if not e.group and not e.against
    }
    assert f1 == {
        e.system: e.value
        for e in again.select(key="detection-f1") if not e.group and not e.against
    }  # fmt: skip


def test_labels_of_ratings_are_used_where_texts_have_none(project: Path) -> None:
    audit = Audit.from_plan(Plan.load(project / "plan.toml"))
    texts = audit.data.texts
    assert texts is not None
    ratings = read_ratings(project / "ratings.csv", texts)
    assert np.array_equal(texts.truth, ratings.labels.delicate)
    assert "legal and privacy check" in audit.data.card.known_harms


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("id,rater,risk\nt0,a,7\n", "risk"),
        ("id,rater,risk\nt0,a,2.5\n", "whole number"),
        ("id,rater,risk\nt0,a,2\nt0,a,3\n", "rates a text again"),
        ("id,rater,risk\nx,a,2\n", "none of its ids"),
    ],
)
def test_bad_ratings_are_refused(project: Path, rows: str, words: str) -> None:
    (project / "ratings.csv").write_text(rows)
    with pytest.raises(DataError, match=words):
        Audit.from_plan(Plan.load(project / "plan.toml"))


def test_bad_plans_are_refused(project: Path) -> None:
    plan = (project / "plan.toml").read_text()
    (project / "plan.toml").write_text(plan.replace('ratings = "ratings.csv"', "tone = 1"))
    with pytest.raises(PlanError, match=r"options\.tone is not an option"):
        Audit.from_plan(Plan.load(project / "plan.toml"))
    (project / "plan.toml").write_text(plan.replace('ratings = "ratings.csv"', ""))
    with pytest.raises(PlanError, match="column 'label'"):
        Audit.from_plan(Plan.load(project / "plan.toml"))


def test_coarse_topics_are_those_of_the_crosswalk() -> None:
    texts = Texts(np.arange(3), np.array(["my depression", "a robbery", "a boat"], object),
                  np.array([1, 1, 0], dtype=np.int8))  # fmt: skip
    groups = text_groups(texts, ["coarse-topic", "explicit", "length"], dictionary_of())
    at = {name: groups.members[:, k].tolist() for k, name in enumerate(groups.names)}
    assert at["coarse-topic=health-disability"] == [True, False, False]
    assert at["coarse-topic=no term"] == at["explicit=no term"] == [False, False, True]
    assert at["length=up to 50 words"] == [True, True, True]
