"""Refusals measured like flags, and answers that change when asked again."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit, Plan
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.metrics import FalsePositiveRate
from ombud.metrics.engine.comparisons import WHOLE
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.metrics import DecisionInstability, Suppression
from ombud.report import Report

HOW = Settings(replicates=200)


def world() -> tuple[Dataset, Decisions]:
    n = 400
    ids = np.arange(n)
    outcomes = np.zeros(n, dtype=np.int8)
    outcomes[:60] = Outcome.REFUSED  # 60 of the 100 texts of the group
    outcomes[100:120] = Outcome.REFUSED
    outcomes[200:240] = Outcome.FLAGGED
    outcomes[390:] = Outcome.ERROR
    texts = Texts(ids, np.full(n, "a question", dtype=object), np.zeros(n, dtype=np.int8))
    groups = Grouping(Vocabulary(ids), ("g",), (ids < 100)[:, None], ("identity",))
    scores = np.full(n, np.nan, dtype=np.float32)
    return Dataset(texts=texts, text_groups=groups), Decisions(ids, outcomes, scores)


def test_refusals_by_hand() -> None:
    data, decisions = world()
    for outcome, count in (("flagged", 40 / 310), ("refused", 80 / 390), ("either", 120 / 390)):
        metric = FalsePositiveRate(outcome=outcome)  # type: ignore[arg-type]
        found = estimate_metric(metric, {"m": metric.measure(decisions, data)}, None, HOW)
        assert found[0].value == pytest.approx(count)
    ratio = Suppression(outcome="refused")
    (g,) = estimate_metric(ratio, {"m": ratio.measure(decisions, data)}, data.text_groups, HOW)
    assert g.against == WHOLE
    assert g.value == pytest.approx(0.6 / (80 / 390))
    assert g.metric == "suppression by refusals"
    assert "60 of 100 texts refused" in g.note


def test_the_report_speaks_of_refusals(tmp_path) -> None:  # type: ignore[no-untyped-def]
    n = 600
    about = ["women" if i % 3 == 0 else "the sea" for i in range(n)]
    texts = [f"tell me about {who}, please ({i})" for i, who in enumerate(about)]
    rng = np.random.default_rng(2)
    refused = rng.random(n) < np.where(np.array(about) == "women", 0.5, 0.1)
    pl.DataFrame({"text": texts, "label": [0] * n}).write_csv(tmp_path / "prompts.csv")
    outcome = np.where(refused, "refused", "allowed")
    ids = np.arange(1, n + 1)
    pl.DataFrame({"id": ids, "outcome": outcome}).write_csv(tmp_path / "model.csv")
    plan = Plan.from_dict(
        {
            "preset": "suppression",
            "options": {"outcome": "refused", "scores": False},
            "data": {"texts": "prompts.csv"},
            "systems": {"model": {"type": "recorded", "path": "model.csv"}},
            "statistics": {"replicates": 100},
        }
    ).relative_to(tmp_path)
    text = Report(Audit.from_plan(plan).run()).markdown()
    assert "model refuses acceptable texts about women more often" in text
    assert "In no group" in text


@given(st.lists(st.sampled_from([0, 1, 2]), min_size=2, max_size=6))
def test_instability_is_the_share_of_pairs_that_differ(answers: list[int]) -> None:
    texts = Texts.from_frame({"id": [7], "text": ["x"]})
    m = len(answers)
    decisions = Decisions(
        np.full(m, 7),
        np.array(answers, dtype=np.int8),
        np.full(m, np.nan, dtype=np.float32),
        repeats=np.arange(m, dtype=np.int32),
    )
    rows = DecisionInstability().measure(decisions, Dataset(texts=texts))
    pairs = [a != b for i, a in enumerate(answers) for b in answers[:i]]
    assert rows.columns["value"][0, 0] == pytest.approx(np.mean(pairs))


def test_texts_asked_once_are_left_out() -> None:
    data, decisions = world()
    rows = DecisionInstability(families=True).measure(decisions, data)
    assert len(rows.ids) == 0
    assert rows.exclusions[0].count == 400
