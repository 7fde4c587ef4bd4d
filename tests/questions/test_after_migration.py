"""The plan that a migration writes runs, whatever the new moderator is."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import tomli_w
from typer.testing import CliRunner

from ombud.audits.plan import Plan
from ombud.audits.result import Result
from ombud.cli import app
from ombud.questions.migration import ALL_FLAGS, FLAGS

N = 60


def score_in(body: str) -> float:
    """The score that a text states, as in "women 0.731"."""
    return float(re.findall(r"\b0\.\d{3}\b", body)[-1])


def chat(s: float, question: Any) -> Any:
    word = "unsafe" if s >= 0.5 else "safe"
    # The score of two words is what they divide between them.
    likely = [{"token": w, "logprob": math.log(p)} for w, p in (("unsafe", s), ("safe", 1 - s))]
    chosen = {"token": word, "logprob": -0.1, "top_logprobs": likely}
    message = {"role": "assistant", "content": word}
    given: dict[str, Any] = {"message": message, "finish_reason": "stop"}
    if question.get("logprobs"):
        given["logprobs"] = {"content": [chosen]}
    return {"model": "m-1", "choices": [given]}


def moderations(s: float, question: Any) -> Any:
    scores = dict.fromkeys(("harassment", "sexual", "violence"), 0.0) | {"hate": s}
    flags = {name: value >= 0.5 for name, value in scores.items()}
    given = {"flagged": s >= 0.5, "categories": flags, "category_scores": scores}
    return {"id": "x", "model": question["model"], "results": [given]}


def guardrail(s: float, _: Any) -> Any:
    kinds = ("NONE", "LOW", "MEDIUM", "HIGH")
    some = {"type": "HATE", "confidence": kinds[int(4 * s)], "action": "NONE"}
    action = "GUARDRAIL_INTERVENED" if s >= 0.5 else "NONE"
    some["action"] = "BLOCKED" if s >= 0.5 else "NONE"
    return {"action": action, "assessments": [{"contentPolicy": {"filters": [some]}}]}


def perspective(s: float, question: Any) -> Any:
    each = {"summaryScore": {"value": s, "type": "PROBABILITY"}}
    return {"attributeScores": dict.fromkeys(question["requestedAttributes"], each)}


def google(s: float, _: Any) -> Any:
    return {"moderationCategories": [{"name": "Toxic", "confidence": s}], "languageCode": "en"}


def azure(s: float, question: Any) -> Any:
    severities = {"Hate": int(8 * s)}
    names = question["categories"]
    return {
        "categoriesAnalysis": [{"category": c, "severity": severities.get(c, 0)} for c in names]
    }


def checks(s: float, question: Any) -> Any:
    names = [one["category"] for one in question["checks"]["contentFilter"]["categories"]]
    results = [{"category": c, "severityScore": round(5 * s) / 5 * (c == "HATE")} for c in names]
    return {"results": {"contentFilter": {"results": results}}}


def plain(s: float, _: Any) -> Any:
    return {"score": s}


ANSWERS = {
    "chat/completions": chat,
    "v1/moderations": moderations,
    "/apply": guardrail,
    "comments:analyze": perspective,
    "moderateText": google,
    "text:analyze": azure,
    "guardrail-checks": checks,
    "plain": plain,
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        answer = next(make for part, make in ANSWERS.items() if part in self.path)
        reply = json.dumps(answer(score_in(body), json.loads(body))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        del format, args


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


NEW: dict[str, dict[str, Any]] = {
    "recorded": {"path": "new.csv"},
    "recorded, decided": {"type": "recorded", "path": "decided.csv"},
    "recorded, repeats": {"type": "recorded", "path": "repeats.csv"},
    "keyword": {"terms": ["women", "awful", "bad"]},
    "profanity-check": {},
    "http": {"base_url": "/plain", "template": {"text": "{text}"}, "score_path": "score"},
    "policy": {"base_url": "/v1", "form": "llama-guard", "model": "m"},
    "policy, threshold": {
        "type": "policy",
        "base_url": "/v1",
        "form": "llama-guard",
        "model": "m",
        "threshold": 0.4,
    },
    "policy, repeats": {
        "type": "policy",
        "base_url": "/v1",
        "form": "llama-guard",
        "model": "m",
        "run": {"repeats": 2},
    },
    "llama-guard": {"base_url": "/v1", "logprobs": 20},
    "azure-content-safety": {"base_url": "", "api_version": "2024-09-01"},
    "azure, thresholds": {
        "type": "azure-content-safety",
        "base_url": "",
        "api_version": "2024-09-01",
        "thresholds": {"Hate": 2.0, "SelfHarm": 4.0, "Sexual": 4.0, "Violence": 4.0},
    },
    "mistral-moderation": {"base_url": "/v1", "model": "mistral-moderation-2603"},
    "openai-moderation": {"base_url": "/v1", "model": "omni-moderation-2024-09-26"},
    "bedrock-checks": {"base_url": ""},
    "bedrock-guardrail": {"base_url": "", "guardrail": "g1", "guardrail_version": "7"},
    "google-moderate-text": {"base_url": "", "language": "en"},
    "perspective": {"base_url": ""},
}


def write(folder: Path) -> None:
    rng = np.random.default_rng(4)
    scores = rng.choice(np.arange(10, 990), N, replace=False) / 1000
    about = np.where(np.arange(N) % 2, "women", "the sea")
    bad = np.where(scores > 0.6, "awful bad", "")
    texts = [f"{b} {a} {s:.3f}" for a, b, s in zip(about, bad, scores, strict=True)]
    pl.DataFrame({"id": np.arange(N), "text": texts}).write_csv(folder / "texts.csv")
    old = np.clip(scores + 0.1 * rng.normal(size=N), 0, 1)
    pl.DataFrame({"id": np.arange(N), "score": old}).write_csv(folder / "old.csv")
    new = pl.DataFrame({"id": np.arange(N), "score": scores})
    new.write_csv(folder / "new.csv")
    new.with_columns(flagged=pl.col("score") > 0.9).write_csv(folder / "decided.csv")
    twice = [new.with_columns(outcome=pl.lit("allowed"), repeat=pl.lit(i)) for i in (0, 1)]
    pl.concat(twice).write_csv(folder / "repeats.csv")


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, arguments)])


def migrate(folder: Path, url: str, name: str, *more: str) -> Any:
    write(folder)
    section = {"type": name, **NEW[name]}
    if "base_url" in section:
        section |= {"base_url": url + section["base_url"], "cache": "answers.sqlite"}
        section["key_env"] = ""
    systems = {"candidate": section, "old": {"type": "recorded", "path": "old.csv"}}
    content = {"data": {"texts": "texts.csv"}, "systems": systems}
    (folder / "plan.toml").write_text(tomli_w.dumps(content))
    files = ("--plan", folder / "plan.toml", "--texts", folder / "texts.csv")
    return run(
        "migrate", "old", "candidate", *files, "--old-threshold", "0.6", *more, "-o", folder / "to"
    )


@pytest.mark.parametrize("name", NEW)
def test_the_plan_for_afterwards_runs_and_finds_no_change(
    tmp_path: Path, url: str, name: str
) -> None:
    made = migrate(tmp_path, url, name)
    assert made.exit_code == 0, made.output
    before = Result.load(tmp_path / "to" / "migration.result")
    threshold = before.tables["migration"]["threshold"][0]
    assert Plan.load(tmp_path / "to" / "after.toml").options["new_threshold"] == threshold
    then = run("run", tmp_path / "to" / "after.toml", "-o", tmp_path / "now")
    assert then.exit_code == 0, then.output
    fact = Result.load(tmp_path / "now").tables["migration"].row(0, named=True)
    assert fact["texts"] == N and fact["threshold"] == threshold
    assert fact["new_flag_rate"] == fact["old_flag_rate"], "the same answers at the same threshold"
    (change,) = [
        e
        for e in Result.load(tmp_path / "now").estimates
        if e.key in (FLAGS, ALL_FLAGS) and not e.group
    ]
    assert (change.value, change.details["up"], change.details["down"]) == (0.0, 0, 0)
    # By another route: the scores that the run stored, at the threshold.
    stored = pl.read_parquet(tmp_path / "to" / "migration.result" / "outputs" / "candidate.parquet")
    if "repeat" in stored.columns:
        stored = stored.filter(pl.col("repeat") == 0)
    scores = stored["score"].to_numpy()
    assert fact["new_flag_rate"] == pytest.approx(float(np.mean(scores >= threshold)))


def test_a_maker_states_a_threshold_for_a_type_without_one(tmp_path: Path, url: str) -> None:
    stated = ("--match", "recommended", "--new-threshold", "0.7")
    made = migrate(tmp_path, url, "openai-moderation", *stated)
    assert made.exit_code == 0, made.output
    folder = tmp_path / "to" / "migration.result"
    fact = Result.load(folder).tables["migration"].row(0, named=True)
    texts = pl.read_csv(tmp_path / "texts.csv")["text"].to_list()
    assert fact["new_flag_rate"] == pytest.approx(np.mean([score_in(t) >= 0.7 for t in texts]))
    assert "flags from the score" in (folder / "report.html").read_text()
    then = run("run", tmp_path / "to" / "after.toml", "-o", tmp_path / "now")
    assert then.exit_code == 0, then.output


def test_without_scores_a_threshold_is_a_clear_error(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stated = ("--match", "recommended", "--new-threshold", "0.7")
    monkeypatch.setitem(NEW, "silent", {"type": "policy", **NEW["policy"], "logprobs": 0})
    made = migrate(tmp_path, url, "silent", *stated)
    words = " ".join(made.output.split())
    assert made.exit_code == 2 and "candidate gives no score for 60 of 60 texts" in words, words
    assert "new_threshold cannot decide" in words


def test_a_stated_threshold_needs_match_none(tmp_path: Path) -> None:
    write(tmp_path)
    options = {"old": "old", "new": "new", "new_threshold": 0.5}
    recorded = {
        name: {"type": "recorded", "path": str(tmp_path / f"{name}.csv"), "threshold": 0.5}
        for name in ("old", "new")
    }
    content = {"preset": "migration", "options": options, "systems": recorded}
    content["data"] = {"texts": str(tmp_path / "texts.csv")}
    (tmp_path / "plan.toml").write_text(tomli_w.dumps(content))
    made = run("run", tmp_path / "plan.toml", "-o", tmp_path / "now")
    assert made.exit_code == 2 and "new_threshold needs match" in " ".join(made.output.split())
