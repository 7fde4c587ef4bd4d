"""Thresholds of a moderation service from its stored replies: both bounds of each category."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ombud.cli import app
from ombud.http.store import AnswerStore, Call, hash_of


def reply(model: str = "text-moderation-007", **scores: float) -> dict[str, Any]:
    limits = {"hate": 0.4, "violence": 0.58}
    return {
        "model": model,
        "results": [
            {
                "flagged": any(s >= limits[c] for c, s in scores.items()),
                "category_scores": scores,
                "categories": {c: s >= limits[c] for c, s in scores.items()},
            }
        ],
    }


REPLIES = [
    reply(hate=0.39, violence=0.2),
    reply(hate=0.41, violence=0.57),
    reply(hate=0.5, violence=0.1),
    reply("another", hate=0.1, violence=0.6),
]


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["thresholds", *words])


def test_bounds_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    lines = [*REPLIES[:2], {"id": 3, "response": REPLIES[2]}, REPLIES[3], {"error": "busy"}]
    file.write_text("\n".join(json.dumps(line) for line in lines))
    done = run(str(file), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "text-moderation-007": {"hate": [0.39, 0.41], "violence": [0.57, None]},
        "another": {"hate": [0.1, None], "violence": [None, 0.6]},
    }
    told = run(str(file)).output
    assert "text-moderation-007: 3 replies" in told
    assert '"hate" = 0.410000' in told
    assert '"violence"' not in told  # only one side was seen
    assert "only one side was seen" in told


def test_an_answer_cache(tmp_path: Path) -> None:
    path = tmp_path / "moderators.sqlite"
    with AnswerStore(path, "openai-moderation", "text-moderation-007") as store:
        for row, one in enumerate(REPLIES):
            key = (hash_of(f"text {row}"), 0)
            raw = json.dumps(one).encode()
            call = Call(0, 1.0, 2.0, 200, "allowed", "", raw)
            store.write([(key, 0, 1.0)], [(key, call)])
    done = run(str(path), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["text-moderation-007"]["hate"] == [0.39, 0.41]


def test_a_planted_threshold_lies_between_the_bounds(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    file = tmp_path / "replies.jsonl"
    scores = rng.random((500, 2))
    file.write_text("\n".join(json.dumps(reply(hate=a, violence=b)) for a, b in scores.tolist()))
    found = json.loads(run(str(file), "--json").stdout)["text-moderation-007"]
    for category, limit in (("hate", 0.4), ("violence", 0.58)):
        low, high = found[category]
        assert low < limit <= high
        assert high - low < 0.05


def test_a_category_without_a_single_threshold_is_named(tmp_path: Path) -> None:
    odd = reply(hate=0.9)
    odd["results"][0]["categories"]["hate"] = False
    file = tmp_path / "replies.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in (odd, reply(hate=0.5))))
    told = run(str(file)).output
    assert "no single threshold" in " ".join(told.split())
    assert "[systems.NAME.thresholds]" not in told


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("r.jsonl", b'{"a": 1}\n', "no reply has category_scores"),
        ("r.jsonl", b"{broken", "is not JSON"),
        ("r.sqlite", b"no database at all", "not an answer cache"),
        ("r.jsonl", b'{"results": [{"category_scores": 3}], "model": "m"}', "damaged"),
    ],
)
def test_files_that_hold_no_replies(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    done = run(str(tmp_path / name))
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.output.split())
