"""Outputs that common tools save are read as decisions: labels count, not scores alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from ombud.data import Outcome, Recommendations, Texts
from ombud.errors import DataError
from ombud.systems import RecordedDecisions, RecordedRecommendations
from ombud.systems.moderators.http import HttpModerator
from ombud.systems.moderators.huggingface import HuggingFaceModerator
from ombud.systems.moderators.openai import thresholds_from_replies
from ombud.systems.moderators.perspective import Perspective
from ombud.systems.moderators.policy import LlamaGuard

TEXTS = Texts.from_frame({"id": ["a", "b", "c"], "text": ["x", "y", "z"], "label": [1, 0, 0]})
ALLOWED, FLAGGED, _, ERROR, _, SCORED = map(int, Outcome)


def decided(path: Any, **options: Any) -> list[int]:
    return RecordedDecisions(path, **options).moderate(TEXTS).outcomes.tolist()


def save(folder: Path, name: str, content: Any, *, lines: bool = False) -> Path:
    path = folder / name
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
    return path


def test_the_label_of_a_pipeline_decides_not_its_score(tmp_path: Path) -> None:
    rows = [
        {"label": "toxic", "score": 0.9},
        {"label": "neutral", "score": 0.98},
        {"label": "toxic", "score": 0.55},
    ]
    yes = {"yes": ["toxic"]}
    for path in (save(tmp_path, "rows.json", rows), save(tmp_path, "rows.jsonl", rows, lines=True)):
        assert decided(path, threshold=0.5) == [FLAGGED, ALLOWED, FLAGGED]
        assert decided(path, threshold=0.7, reading=yes) == [FLAGGED, ALLOWED, ALLOWED]
    pl.DataFrame(rows).with_columns(id=pl.Series(["c", "b", "a"])).write_csv(tmp_path / "r.csv")
    assert decided(tmp_path / "r.csv", threshold=0.7) == [ALLOWED, ALLOWED, FLAGGED]
    odd = [{"label": "LABEL_1", "score": 0.9}] * 3
    with pytest.raises(DataError, match="which labels mean flagged"):
        decided(save(tmp_path, "odd.json", odd))
    with pytest.raises(DataError, match="2 outputs without ids for 3 texts"):
        decided(save(tmp_path, "few.json", rows[:2]))


def test_all_labels_of_a_pipeline(tmp_path: Path) -> None:
    single = [
        [{"label": "hate", "score": 0.3}, {"label": "offensive", "score": 0.3},
         {"label": "neither", "score": 0.4}],
        [{"label": "neither", "score": 0.9}, {"label": "hate", "score": 0.05},
         {"label": "offensive", "score": 0.05}],
        [{"label": "hate", "score": 0.8}, {"label": "offensive", "score": 0.1},
         {"label": "neither", "score": 0.1}],
    ]  # fmt: skip
    # The maker's decision is the label that the model chooses; a threshold is another one.
    path = save(tmp_path, "s.json", single)
    assert decided(path) == [ALLOWED, ALLOWED, FLAGGED]
    assert decided(path, threshold=0.5) == [FLAGGED, ALLOWED, FLAGGED]
    multi = [[{"label": e["label"], "score": e["score"] * 0.9} for e in row] for row in single]
    path = save(tmp_path, "m.json", multi)
    assert decided(path) == [SCORED] * 3
    assert decided(path, threshold=0.5) == [ALLOWED, ALLOWED, FLAGGED]


def test_detoxify(tmp_path: Path) -> None:
    rows = {"toxicity": [0.9, 0.1, 0.2], "severe_toxicity": [0.1] * 3, "insult": [0.1, 0.9, 0.1]}
    assert decided(save(tmp_path, "d.json", rows), threshold=0.5) == [FLAGGED, ALLOWED, ALLOWED]
    table = pl.DataFrame({"input_text": ["z", "x", "y"], **rows})
    table.write_csv(tmp_path / "d.csv")
    assert decided(tmp_path / "d.csv", threshold=0.5) == [ALLOWED, ALLOWED, FLAGGED]
    assert decided(tmp_path / "d.csv") == [SCORED] * 3


def test_replies_of_services(tmp_path: Path) -> None:
    result = {"categories": {"hate": True}, "category_scores": {"hate": 0.9}}
    batch = [
        {"id": "batch_1", "custom_id": "b", "error": None, "response": {"status_code": 200, "body":
            {"id": "modr-1", "model": "m", "results": [{"flagged": True, **result}]}}},
        {"id": "batch_2", "custom_id": "a", "error": None, "response": {"status_code": 200, "body":
            {"id": "modr-2", "model": "m", "results": [{"flagged": False, **result}]}}},
        {"id": "batch_3", "custom_id": "c", "response": None,
         "error": {"code": "batch_expired", "message": "too late"}},
    ]  # fmt: skip
    path = save(tmp_path, "batch.jsonl", batch, lines=True)
    assert decided(path) == [ALLOWED, FLAGGED, ERROR]
    replies = [one["response"]["body"] for one in batch[:2]] * 2
    assert decided(save(tmp_path, "replies.jsonl", replies[:3], lines=True)) == [1, 0, 1]
    toxic = [
        {"attributeScores": {"TOXICITY": {"summaryScore": {"value": v}}}} for v in (0.8, 0.2, 0.75)
    ]
    path = save(tmp_path, "p.jsonl", toxic, lines=True)
    assert decided(path, threshold=0.7) == [FLAGGED, ALLOWED, FLAGGED]
    assert decided(path) == [SCORED] * 3
    azure = [
        {"id": one, "reply": {"blocklistsMatch": match, "categoriesAnalysis": [
            {"category": "Hate", "severity": 0}, {"category": "Violence", "severity": severity}]}}
        for one, severity, match in (("c", 6, []), ("a", 2, []), ("b", 0, [{"blocklistName": "x"}]))
    ]  # fmt: skip
    path = save(tmp_path, "azure.jsonl", azure, lines=True)
    assert decided(path, threshold=4) == [ALLOWED, FLAGGED, FLAGGED]
    assert decided(path) == [SCORED] * 3
    sigmoid = [{"label": "toxic", "score": score} for score in (0.9, 0.3, 0.8)]
    assert decided(save(tmp_path, "one.json", sigmoid)) == [SCORED] * 3
    assert decided(save(tmp_path, "two.json", sigmoid[::2] + sigmoid[:1])) == [FLAGGED] * 3


def test_lists_of_common_tools(tmp_path: Path) -> None:
    expected = {"u1": ["b", "a"], "u2": ["c"]}
    lenskit = pd.DataFrame({"user_id": ["u1", "u1", "u2"], "item_id": ["b", "a", "c"],
                            "rank": [1, 2, 1], "score": [3.0, 2.0, 1.0]})  # fmt: skip
    (tmp_path / "x.inter").write_text(
        "user_id:token\titem_id:token\tscore:float\nu1\ta\t0.1\nu1\tb\t0.9\nu2\tc\t0.5\n"
    )
    (tmp_path / "x.run").write_text("u1 Q0 b 1 0.9 sys\nu1 Q0  a 2 0.5 sys\nu2 Q0 c 1 0.5 sys\n")
    for source in (lenskit, tmp_path / "x.inter", tmp_path / "x.run"):
        lists: Recommendations = RecordedRecommendations(source, name="tool").lists
        found = {row["user"]: row["items"] for row in lists.to_lists().iter_rows(named=True)}
        assert found == expected


def test_readers_of_replies_do_not_invent_decisions() -> None:
    guard = LlamaGuard(base_url="http://localhost", model="m", categories=["S1"])
    for text, finish in (
        ("unsafe", "stop"),
        ("unsafe\nViolent Crimes", "stop"),
        ("unsafe\nS1", "length"),
    ):
        reply = {"choices": [{"message": {"content": text}, "finish_reason": finish}]}
        assert guard.read(reply).outcome == Outcome.UNPARSEABLE
    reply = {"choices": [{"message": {"content": "unsafe\nS2"}, "finish_reason": "stop"}]}
    assert guard.read(reply).outcome == Outcome.ALLOWED

    def pipeline(texts: list[str], **options: Any) -> Any:
        return [[{"label": "a", "score": 0.3}, {"label": "b", "score": 0.3}] for _ in texts]

    multi = HuggingFaceModerator.from_pipeline(pipeline, flagged=["a", "b"])
    assert multi.moderate(TEXTS).outcomes.tolist() == [SCORED] * 3
    half = HuggingFaceModerator.from_pipeline(pipeline, flagged=["a", "b"], threshold=0.5)
    assert half.moderate(TEXTS).outcomes.tolist() == [ALLOWED] * 3

    def chooses(texts: list[str], **options: Any) -> Any:
        return [
            [
                {"label": "a", "score": 0.3},
                {"label": "b", "score": 0.3},
                {"label": "c", "score": 0.4},
            ]
            for _ in texts
        ]

    single = HuggingFaceModerator.from_pipeline(chooses, flagged=["a", "b"])
    assert single.moderate(TEXTS).outcomes.tolist() == [ALLOWED] * 3

    own = Perspective(attributes=["A", "B"], thresholds={"A": 0.3, "B": 0.7})
    low, high = (
        own.read(
            {"attributeScores": {k: {"summaryScore": {"value": v}} for k, v in values.items()}}
        )
        for values in ({"A": 0.35, "B": 0.31}, {"A": 0.1, "B": 0.69})
    )
    assert low.outcome == Outcome.FLAGGED and high.outcome == Outcome.ALLOWED
    assert low.score >= 1 > high.score

    words = {"flagged_values": ["GUARDRAIL_INTERVENED"], "allowed_values": ["NONE"]}
    service = HttpModerator(base_url="http://localhost", flag_path="action", **words)
    assert service.read({"action": "GUARDRAIL_INTERVENED"}).outcome == Outcome.FLAGGED
    assert service.read({"action": "NONE"}).outcome == Outcome.ALLOWED

    replies = [
        b'{"error": {"message": "no"}}',
        b'{"results": [{"categories": {"x": null}, "category_scores": {"x": null}}]}',
        b'{"results": [{"categories": {"x": true}, "category_scores": {"x": 0.5}}]}',
    ]
    assert thresholds_from_replies(replies) == {"x": (None, 0.5)}
