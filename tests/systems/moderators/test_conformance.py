"""Each service against a stub of its own: the example bodies byte for byte, and requests checked.

The stub refuses a request with a field that the service does not know, a text that is too long,
and too many requests or tokens; so a request that passes here is one that the documentation allows.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud import registry
from ombud.cli.describe import described
from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.http.dispatch import RunStoppedError
from ombud.http.pace import RunSettings
from ombud.systems.moderators.anthropic import AnthropicMessages
from ombud.systems.moderators.azure import AzureContentSafety
from ombud.systems.moderators.bedrock import BedrockChecks, BedrockGuardrail
from ombud.systems.moderators.google import GoogleModerateText
from ombud.systems.moderators.mistral import MistralModeration
from ombud.systems.moderators.openai import OpenAIModeration
from ombud.systems.moderators.perspective import Perspective
from ombud.systems.moderators.service import Service

REPLIES = Path(__file__).with_name("replies")
ALLOWED, FLAGGED, REFUSED, ERROR, UNPARSEABLE, SCORED = map(int, Outcome)
QUICK = {"retries": 2, "backoff": 0.001, "longest_backoff": 0.002, "concurrency": 1}

# What a service takes, as nested keys; {} takes anything below, and [..] a list of such.
Shape = dict[str, Any]
TEXT: Shape = {"text": {}}
SHAPES: dict[str, Shape] = {
    "azure": {
        "text": {},
        "categories": {},
        "blocklistNames": {},
        "haltOnBlocklistHit": {},
        "outputType": {},
    },
    "mistral": {"model": {}, "input": {}},
    "checks": {
        "checks": {"contentFilter": {"categories": [{"category": {}}]}},
        "messages": [{"role": {}, "content": [TEXT]}],
    },
    "guardrail": {"source": {}, "content": [{"text": TEXT}], "outputScope": {}},
    "openai": {"model": {}, "input": {}},
    "google": {"document": {"type": {}, "content": {}, "languageCode": {}}, "modelVersion": {}},
    "google-v1": {"document": {"type": {}, "content": {}, "language": {}}},
    "anthropic": {
        "model": {},
        "max_tokens": {},
        "messages": [{"role": {}, "content": {}}],
        "output_config": {"effort": {}},
        "thinking": {},
    },
    "perspective": {
        "comment": {"text": {}},
        "requestedAttributes": {},
        "languages": {},
        "doNotStore": {},
        "clientToken": {},
    },
}


def unknown_fields(given: Any, shape: Any, where: str = "") -> list[str]:
    if isinstance(shape, list):
        return [f for one in given for f in unknown_fields(one, shape[0], where)]
    if not shape:
        return []
    found = [f"{where}{name}" for name in given if name not in shape]
    for name in given:
        if name in shape:
            found += unknown_fields(given[name], shape[name], f"{where}{name}.")
    return found


def example(name: str) -> tuple[bytes, dict[str, Any]]:
    """The bytes of the body in a file of replies, as they stand there, and the whole file."""
    raw = (REPLIES / f"{name}.json").read_bytes()
    whole = json.loads(raw)
    begin = re.search(rb'\n "body": (?={)', raw)
    assert begin is not None
    body, _ = json.JSONDecoder().raw_decode(raw[begin.end() :].decode())
    text = raw[begin.end() :].decode()
    end = json.JSONDecoder().raw_decode(text)[1]
    assert body == whole["body"]
    return text[:end].encode(), whole


class Case:
    """How a service is made, where it posts, what it answers, and what that means."""

    def __init__(
        self,
        shape: str,
        reply: str,
        path: str,
        header: str,
        make: Callable[..., Service],
        expected: tuple[int, float],
    ) -> None:
        self.shape, self.path, self.header, self.make = shape, path, header, make
        self.reply, self.expected = reply, expected


def made(cls: Any, **options: Any) -> Callable[..., Service]:
    def make(url: str, cache: Path, **more: Any) -> Service:
        run = RunSettings(**{**QUICK, **more.pop("run", {})})
        system: Service = cls(base_url=url, cache=cache, run=run, **{**options, **more})
        return system

    return make


OMNI = "omni-moderation-2024-09-26"
ONLY_TOXICITY = {"attributes": ["TOXICITY", "IDENTITY_ATTACK"]}
CASES = {
    "azure": Case(
        "azure",
        "azure-text-analyze",
        "/contentsafety/text:analyze?api-version=2024-09-01",
        "ocp-apim-subscription-key",
        made(AzureContentSafety, api_version="2024-09-01", key_env="T_KEY"),
        (SCORED, 5.0),
    ),
    "mistral": Case(
        "mistral",
        "mistral-moderations",
        "/moderations",
        "authorization",
        made(MistralModeration, model="mistral-moderation-2603", key_env="T_KEY"),
        (FLAGGED, 0.913),
    ),
    "checks": Case(
        "checks",
        "bedrock-invoke-guardrail-checks",
        "/guardrail-checks/invoke",
        "authorization",
        made(BedrockChecks, key_env="T_KEY"),
        (SCORED, 0.8),
    ),
    "guardrail": Case(
        "guardrail",
        "bedrock-apply-guardrail",
        "/guardrail/g1/version/7/apply",
        "authorization",
        made(BedrockGuardrail, guardrail="g1", guardrail_version="7", key_env="T_KEY"),
        (FLAGGED, 3.0),
    ),
    "openai": Case(
        "openai",
        "openai-moderations",
        "/moderations",
        "authorization",
        made(OpenAIModeration, model=OMNI, key_env="T_KEY"),
        (FLAGGED, 0.83),
    ),
    "google": Case(
        "google",
        "google-moderate-text",
        "/v2/documents:moderateText",
        "x-goog-api-key",
        made(GoogleModerateText, model_version="MODEL_VERSION_2", language="en", key_env="T_KEY"),
        (SCORED, 0.82),
    ),
    "google-v1": Case(
        "google-v1",
        "google-moderate-text",
        "/v1/documents:moderateText",
        "x-goog-api-key",
        made(GoogleModerateText, version="v1", language="en", key_env="T_KEY"),
        (SCORED, 0.82),
    ),
    "anthropic": Case(
        "anthropic",
        "anthropic-messages",
        "/v1/messages",
        "x-api-key",
        made(
            AnthropicMessages,
            model="claude-haiku-5-5",
            effort="low",
            thinking={"type": "adaptive"},
            key_env="T_KEY",
        ),
        (FLAGGED, float("nan")),
    ),
    "perspective": Case(
        "perspective",
        "perspective-analyze",
        "/v1alpha1/comments:analyze",
        "x-goog-api-key",
        made(Perspective, **ONLY_TOXICITY, key_env="T_KEY"),
        (SCORED, 0.81),
    ),
}


class Stub(ThreadingHTTPServer):
    """Answers as one service does; `script` has other answers for the next requests."""

    daemon_threads = True

    def __init__(self, case: Case) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.case = case
        self.good = example(case.reply)[0]
        self.script: list[tuple[int, bytes, dict[str, str]]] = []
        self.always: tuple[int, bytes] | None = None
        self.faults: list[str] = []
        self.seen: list[Any] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes, Any]:
        given = json.loads(body)
        self.seen.append(given)
        if path != self.case.path:
            self.faults.append(f"posted to {path}")
        if "secret-0123456789" not in headers.get(self.case.header, ""):
            self.faults.append("no key in its header")
        if fields := unknown_fields(given, SHAPES[self.case.shape]):
            self.faults.append(f"unknown fields {fields}")
            return 400, b'{"error": {"message": "unknown field"}}', {}
        if self.script:
            return self.script.pop(0)
        if self.always:
            return (*self.always, {})
        good = self.good
        if "clientToken" in given:  # the service repeats it
            good = json.dumps(json.loads(good) | {"clientToken": given["clientToken"]}).encode()
        if isinstance(given.get("input"), list):
            reply = json.loads(good)
            reply["results"] *= len(given["input"])
            good = json.dumps(reply).encode()
        return 200, good, {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        stub = self.server
        assert isinstance(stub, Stub)
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, reply, more = stub.answer(self.path, headers, body)
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Stub]]:
    monkeypatch.setenv("T_KEY", "secret-0123456789")
    running: list[tuple[Stub, threading.Thread]] = []

    def start(name: str) -> Stub:
        stub = Stub(CASES[name])
        thread = threading.Thread(target=stub.serve_forever, args=(0.01,))
        thread.start()
        running.append((stub, thread))
        return stub

    yield start
    for stub, thread in running:
        stub.shutdown()
        stub.server_close()
        thread.join()


def texts_of(*rows: str) -> Texts:
    n = len(rows)
    return Texts(np.arange(n), np.array([*rows, None], dtype=object)[:-1], np.full(n, -1, np.int8))


def run(system: Service, *rows: str) -> tuple[Decisions, list[str]]:
    made = system.moderate(texts_of(*rows))
    assert system.last_report is not None
    return made, list(system.last_report.reasons)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_example_body_is_read_as_documented(
    name: str, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    case, stub = CASES[name], serve(name)
    made, reasons = run(case.make(stub.url, tmp_path / "a.sqlite"), "a text", "naïve 文字")
    assert stub.faults == []
    outcome, score = case.expected
    assert made.outcomes.tolist() == [outcome] * 2 and reasons == ["", ""]
    assert made.scores.tolist() == pytest.approx([score] * 2, nan_ok=True)
    assert made.version
    # The second way to the same numbers: the reader, on the bytes of the file.
    system = case.make(stub.url, tmp_path / "a.sqlite")
    answer = system.parse(200, example(case.reply)[0])
    assert (answer.outcome, answer.score) == (outcome, pytest.approx(score, nan_ok=True))


ERRORS = [
    (name, at, body["status"], json.dumps(body["body"]).encode())
    for name, case in CASES.items()
    for at, body in enumerate(example(case.reply)[1].get("errors", []))
]


@pytest.mark.parametrize(("name", "at", "status", "body"), ERRORS)
def test_an_example_error_is_explained_and_never_allowed(
    name: str, at: int, status: int, body: bytes, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    stub = serve(name)
    stub.script = [(status, body, {})] * 3
    system = CASES[name].make(stub.url, tmp_path / "a.sqlite")
    try:
        made, reasons = run(system, "a text")
    except RunStoppedError as fault:
        assert status in {403, 404} and str(status) in str(fault)
        assert "claude-3-haiku" in str(fault) or "guardrail" in str(fault)
        return
    assert made.outcomes.tolist() in ([ERROR], [UNPARSEABLE], [REFUSED])
    words = {"message", "msg", "category"}
    said = [v for k, v in _strings(json.loads(body)) if k in words]
    cut = json.loads(body).get("stop_reason") == "max_tokens"
    assert ("cut off" if cut else said[0][:60]) in reasons[0]


def _strings(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _strings(one, key)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one, name)
    elif isinstance(value, str):
        yield name, value


@pytest.mark.parametrize("name", sorted(CASES))
def test_limits_on_requests_and_on_tokens_are_waited_for(
    name: str, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    stub = serve(name)
    words = {
        "requests": b'{"error": {"message": "Too many requests a minute", "code": "rate_limit"}}',
        "tokens": b'{"error": {"message": "Limit of tokens per min (TPM)", "type": "tokens"}}',
    }
    stub.script = [(429, words["requests"], {}), (429, words["tokens"], {"Retry-After": "0.01"})]
    made, reasons = run(CASES[name].make(stub.url, tmp_path / "a.sqlite"), "a text")
    assert reasons == [""] and made.outcomes[0] == CASES[name].expected[0]
    assert len(stub.seen) == 3 and stub.faults == []
    stub.script = [(429, words["tokens"], {})] * 3
    made, (reason,) = run(CASES[name].make(stub.url, tmp_path / "b.sqlite"), "another")
    assert made.outcomes.tolist() == [ERROR] and "tokens per min" in reason


BAD = {
    "half-valid": b'{"results": [{"flag',
    "page": b"<!DOCTYPE html><title>Sign in</title>",
    "empty": b"",
    "empty object": b"{}",
    "null": b"null",
    "list": b"[]",
    "other": b'{"ok": true}',
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_bad_input_is_counted_explained_and_resumable(
    name: str, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """None of it is ever allowed; what was cut off or no JSON is queried again by a later run."""
    stub = serve(name)
    stub.script = [(200, body, {}) for body in BAD.values()]
    rows = [f"text {i}" for i in range(len(BAD))]
    system = CASES[name].make(stub.url, tmp_path / "a.sqlite", run={"retries": 0})
    made, reasons = run(system, *rows, "", "good")
    # Perspective repeats a token: a reply that cannot hold it may be about another text.
    strays = 2 if name == "perspective" else 0
    bad = [UNPARSEABLE] * 4 + [ERROR if strays else UNPARSEABLE] * 2 + [UNPARSEABLE]
    assert made.outcomes.tolist() == [*bad, ERROR, CASES[name].expected[0]]
    assert all(reasons[:-1]) and "web page" in reasons[1] and "empty" in reasons[-2]
    told = [e for e in made.exclusions if e.reason.startswith(("unparseable", "error"))]
    assert sum(e.count for e in told) == len(BAD) + 1
    asked = len(stub.seen)
    again, _ = run(CASES[name].make(stub.url, tmp_path / "a.sqlite"), *rows, "", "good")
    assert len(stub.seen) == asked + 3 + strays
    good = CASES[name].expected[0]
    assert again.outcomes.tolist()[:3] == [good] * 3
    rest = [UNPARSEABLE] + [good if strays else UNPARSEABLE] * 2 + [UNPARSEABLE]
    assert again.outcomes.tolist()[3:-2] == rest


def test_a_parameter_that_the_service_refuses_stops_the_run(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """Fault 4: sixty texts, and five refusals in a row are enough."""
    stub = serve("anthropic")
    body = json.dumps(example("anthropic-messages")[1]["errors"][2]["body"]).encode()
    stub.always = (400, body)
    rows = [f"text {i}" for i in range(60)]
    cache = tmp_path / "a.sqlite"
    for start in (0, 5):
        system = CASES["anthropic"].make(stub.url, cache, run={"give_up_after": 5})
        with pytest.raises(RunStoppedError, match="5 replies in a row.*`temperature` is deprec"):
            system.moderate(texts_of(*rows))
        assert len(stub.seen) == start + 5
    stub.always = None
    assert (run(system, *rows)[0].outcomes == FLAGGED).all()


def test_a_text_that_the_service_will_never_take_is_not_sent_again(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """Faults 4, 9 and 17: too long for Bedrock (429) and Azure, a language for Perspective."""
    for name, at in (("guardrail", 0), ("azure", 1), ("perspective", 0)):
        stub = serve(name)
        error = example(CASES[name].reply)[1]["errors"][at]
        stub.script = [(error["status"], json.dumps(error["body"]).encode(), {})]
        for _ in range(2):
            system = CASES[name].make(stub.url, tmp_path / f"{name}.sqlite")
            made, reasons = run(system, "far too long")
            assert made.outcomes.tolist() == [ERROR]
            assert re.search("exceeds the maximum|longer than|does not support", reasons[0])
        assert len(stub.seen) == 1, "neither retried nor paid again"


def test_words_about_length_stop_a_run_in_which_every_text_meets_them(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """They may be about a parameter; once other texts are answered, they are about the text."""
    stub = serve("guardrail")
    body = json.dumps(example("bedrock-apply-guardrail")[1]["errors"][0]["body"]).encode()
    stub.always = (429, body)
    rows = [f"text {i}" for i in range(30)]
    system = CASES["guardrail"].make(stub.url, tmp_path / "a.sqlite", run={"give_up_after": 4})
    with pytest.raises(RunStoppedError, match="4 replies in a row.*exceeds the maximum"):
        system.moderate(texts_of(*rows))
    assert len(stub.seen) == 4
    stub.always = None
    stub.script = [(200, stub.good, {}), *[(429, body, {})] * 20]
    made, _ = run(system, *rows)
    assert made.outcomes.tolist() == [ERROR] * 4 + [FLAGGED] + [ERROR] * 20 + [FLAGGED] * 5
    assert len(stub.seen) == 30


def test_models_that_reason_get_two_minutes() -> None:
    """Fault 19: a timeout is paid, and its question is sent again."""
    assert AnthropicMessages(model="claude-haiku-5-5").run.timeout == 120


def test_a_quota_that_is_used_up_stops_the_run_with_its_words(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    stub = serve("openai")
    words = b'{"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}'
    stub.always = (429, words)
    system = CASES["openai"].make(stub.url, tmp_path / "a.sqlite")
    with pytest.raises(RunStoppedError, match=r"used up \(429\).*You exceeded your quota"):
        system.moderate(texts_of("a", "b", "c"))
    assert len(stub.seen) == 1


@pytest.mark.parametrize("name", ["openai", "mistral"])
def test_a_truncated_batch_is_divided(
    name: str, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """Three texts and two results: each text is queried alone, and none is allowed by default."""
    stub = serve(name)
    reply = json.loads(stub.good)
    reply["results"] *= 2
    stub.script = [(200, json.dumps(reply).encode(), {})]
    system = CASES[name].make(stub.url, tmp_path / "a.sqlite", run={"batch": 3})
    made, _ = run(system, "a", "b", "c")
    assert made.outcomes.tolist() == [FLAGGED] * 3
    assert [one["input"] for one in stub.seen] == [["a", "b", "c"], "a", "b", "c"]
    stub.seen.clear()
    made, _ = run(CASES[name].make(stub.url, tmp_path / "b.sqlite", run={"batch": 3}), "a", "b")
    assert made.outcomes.tolist() == [FLAGGED] * 2 and len(stub.seen) == 1


def test_a_model_that_changes_and_categories_that_vanish_are_counted(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    stub = serve("openai")
    other = json.loads(stub.good)
    other["model"] = "omni-moderation-2027-01-01"
    (result,) = other["results"]
    result["category_scores"]["new"] = 0.9
    result["categories"]["new"] = True
    for part in ("categories", "category_scores"):
        del result[part]["illicit"]
    stub.script = [(200, json.dumps(other).encode(), {})]
    system = CASES["openai"].make(stub.url, tmp_path / "a.sqlite")
    run(system, "a", "b", "c")
    assert system.last_report is not None
    told = " | ".join(system.last_report.notices)
    assert "omni-moderation-2027-01-01 (1), omni-moderation-latest (2)" in told
    assert "illicit (2) of 3" in told and "new to ombud: new (1) of 3 replies" in told
    strict = CASES["openai"].make(stub.url, tmp_path / "b.sqlite", categories=["illicit"])
    stub.script = [(200, json.dumps(other).encode(), {})]
    made, reasons = run(strict, "a", "b")
    assert made.outcomes.tolist() == [UNPARSEABLE, ALLOWED] and "illicit" in reasons[0]


@pytest.mark.parametrize("name", ["azure", "checks", "perspective", "mistral"])
def test_a_requested_category_that_is_not_scored_decides_nothing(
    name: str, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """The rest of the categories would say allowed, and nobody knows of the one that is lacking."""
    case, stub = CASES[name], serve(name)
    reply = json.loads(stub.good)
    counting = {"mistral": {"categories": ["selfharm"]}}.get(name, {})
    if name == "azure":
        reply["categoriesAnalysis"] = reply["categoriesAnalysis"][1:3]
    elif name == "checks":
        del reply["results"]["contentFilter"]["results"][0]
    elif name == "mistral":
        del reply["results"][0]["category_scores"]["selfharm"]
    else:
        del reply["attributeScores"]["TOXICITY"], reply["clientToken"]
    stub.script = [(200, json.dumps(reply).encode(), {})]
    threshold = {"azure": 4.0}.get(name, 0.99)
    system = case.make(stub.url, tmp_path / "a.sqlite", threshold=threshold, **counting)
    made, reasons = run(system, "a")
    assert made.outcomes.tolist() == [UNPARSEABLE] and reasons[0]


def test_texts_over_a_limit_in_characters_are_not_sent(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """Fault 16: ten thousand characters of any script pass; by bytes half of these would not."""
    stub = serve("azure")
    system = CASES["azure"].make(stub.url, tmp_path / "a.sqlite")
    made, reasons = run(system, "文" * 10_000, "a" * 10_001)
    assert made.outcomes.tolist() == [SCORED, ERROR]
    assert reasons[1] == "the text has 10,001 characters, over the limit of 10,000; it was not sent"
    assert len(stub.seen) == 1


def test_azure_decides_by_severity_and_blocklist(tmp_path: Path) -> None:
    body = example("azure-text-analyze")[0]
    make = made(AzureContentSafety, api_version="2024-09-01")

    def read(reply: bytes = body, **options: Any) -> tuple[int, float]:
        answer = make("https://mine.cognitiveservices.azure.com", tmp_path, **options).parse(
            200, reply
        )
        return answer.outcome, answer.score

    assert read(threshold=5) == (FLAGGED, 5) and read(threshold=6) == (ALLOWED, 5)
    each = {"Hate": 6, "SelfHarm": 2, "Sexual": 4, "Violence": 2}
    # Violence 2 of 2 flags, though Hate 5 of 6 does not: by hand, max(5/6, 0, 0, 2/2) = 1.
    assert read(thresholds=each) == (FLAGGED, 1.0)
    assert read(thresholds=each | {"Violence": 4}) == (ALLOWED, pytest.approx(5 / 6))
    assert read(thresholds={"Hate": 2}) == (SCORED, 5)  # three categories have no threshold
    match = json.loads(body) | {"blocklistsMatch": [{"blocklistName": "x"}]}
    listed = json.dumps(match).encode()
    assert read(listed, threshold=7, blocklists=["x"]) == (FLAGGED, 7)
    twice = json.loads(body)
    twice["categoriesAnalysis"].append({"category": "Hate", "severity": 0})
    assert read(json.dumps(twice).encode(), threshold=6)[0] == UNPARSEABLE
    del twice["categoriesAnalysis"][0]["severity"]
    assert read(json.dumps(twice).encode(), threshold=6)[0] == UNPARSEABLE
    for options, words in (
        ({"blocklists": ["x"]}, "set threshold too"),
        ({"thresholds": {"hate": 2}}, "no category is called 'hate'"),
        ({"threshold": 8}, "at most 7"),
        ({"api_version": ""}, "2024-09-01"),
    ):
        with pytest.raises(PlanError, match=words):
            make("https://mine.cognitiveservices.azure.com", tmp_path, **options)


def test_mistral_flags_without_an_overall_flag_and_topics_are_not_harm() -> None:
    body = json.loads(example("mistral-moderations")[0])

    def read(changed: str, **options: Any) -> tuple[int, float]:
        (result,) = body["results"]
        scores = dict.fromkeys(result["category_scores"], 0.01) | {changed: 0.9}
        flags = {name: name == changed for name in scores}
        reply = body | {"results": [{"categories": flags, "category_scores": scores}]}
        system = MistralModeration(model="mistral-moderation-2603", **options)
        answer = system.parse(200, json.dumps(reply).encode())
        return answer.outcome, answer.score

    assert read("violence_and_threats") == (FLAGGED, 0.9)
    assert read("health") == (ALLOWED, 0.01)
    assert read("health", categories="all") == (FLAGGED, 0.9)
    assert read("criminal", categories=["sexual"]) == (ALLOWED, 0.01)
    assert read("criminal", threshold=0.95) == (ALLOWED, 0.9)
    assert read("criminal", thresholds={"criminal": 0.5}, threshold=0.95)[0] == FLAGGED


def test_bedrock_guardrails_decide_and_a_part_of_a_text_is_no_decision() -> None:
    body = json.loads(example("bedrock-apply-guardrail")[0])
    system = BedrockGuardrail(region="us-east-1", guardrail="g", guardrail_version="DRAFT")
    assert (
        system.url
        == "https://bedrock-runtime.us-east-1.amazonaws.com/guardrail/g/version/DRAFT/apply"
    )
    assert "changes" in system.notices[0]

    def read(**more: Any) -> tuple[int, str]:
        answer = system.parse(200, json.dumps(body | more).encode())
        return answer.outcome, answer.reason

    assert read() == (FLAGGED, "")
    assert read(action="NONE")[0] == UNPARSEABLE  # HATE is blocked all the same
    assert read(action="NONE", assessments=[]) == (ALLOWED, "")
    part = {"textCharacters": {"guarded": 10, "total": 61}}
    assert read(guardrailCoverage=part) == (
        ERROR,
        "the guardrail examined only 10 of 61 characters",
    )
    assert read(action="MASKED")[0] == UNPARSEABLE
    with pytest.raises(PlanError, match="set region"):
        BedrockChecks()
    with pytest.raises(PlanError, match="guardrail_version"):
        BedrockGuardrail(region="us-east-1", guardrail="g")


def test_google_keeps_severities_and_refuses_languages_that_it_does_not_know() -> None:
    body = json.loads(example("google-moderate-text")[0])

    def read(system: GoogleModerateText, **more: Any) -> Any:
        return system.parse(200, json.dumps(body | more).encode())

    usual = GoogleModerateText(threshold=0.6, model_version="MODEL_VERSION_2")
    answer = read(usual)
    assert (answer.outcome, answer.score) == (FLAGGED, 0.82)
    assert answer.categories["Toxic"] == 0.82 and answer.categories["Toxic (severity)"] == 0.55
    severe = GoogleModerateText(threshold=0.6, model_version="MODEL_VERSION_2", score="severity")
    assert (read(severe).outcome, read(severe).score) == (ALLOWED, 0.55)
    foreign = read(usual, languageSupported=False, languageCode="tl")
    assert (foreign.outcome, foreign.final) == (ERROR, True)
    assert foreign.reason == "the service does not support the text's language (tl)"
    assert (
        usual.judge(200, json.dumps(body | {"languageSupported": False}).encode(), "x").outcome
        == "rejected"
    )
    assert read(usual, moderationCategories=[]).outcome == UNPARSEABLE
    assert usual.parse(200, b'{"languageCode": "en"}').reason.endswith("no moderationCategories")
    assert "modelVersion" not in GoogleModerateText(version="v1").question("x")
    with pytest.raises(PlanError, match="version = 'v2'"):
        GoogleModerateText(version="v1", model_version="MODEL_VERSION_2")
    assert "may change" in GoogleModerateText().notices[0]


def test_refusals_and_ends_of_answers_keep_their_cause() -> None:
    """Fault 18."""
    system = AnthropicMessages(model="claude-haiku-5-5", max_tokens=10)
    whole = example("anthropic-messages")[1]
    refused = system.parse(200, json.dumps(whole["errors"][0]["body"]).encode())
    assert (refused.outcome, refused.reason) == (REFUSED, "the model refused: general_harms")
    cut = system.parse(200, json.dumps(whole["errors"][1]["body"]).encode())
    assert cut.outcome == UNPARSEABLE and "cut off at max_tokens = 10" in cut.reason
    for stop, words in (("pause_turn", "paused"), ("model_context_window_exceeded", "too long")):
        reply = whole["body"] | {"stop_reason": stop, "content": []}
        answer = system.parse(200, json.dumps(reply).encode())
        assert answer.outcome in (ERROR, UNPARSEABLE) and words in answer.reason
        assert answer.final == (stop == "model_context_window_exceeded")


RETIRED = [
    (AnthropicMessages, "claude-3-haiku-20240307", "2026-04-20"),
    (AnthropicMessages, "claude-3-5-haiku-20241022", "2026-02-19"),
    (OpenAIModeration, "text-moderation-latest", "2025-10-27"),
    (OpenAIModeration, "text-moderation-007", "2025-10-27"),
    (MistralModeration, "mistral-moderation-2411", "2026-06-30"),
]


@pytest.mark.parametrize(("cls", "model", "date"), RETIRED)
def test_a_retired_model_is_refused_with_its_date_and_its_replies_are_still_read(
    cls: Any, model: str, date: str, serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """Faults 1 and 13."""
    name = {AnthropicMessages: "anthropic", OpenAIModeration: "openai"}.get(cls, "mistral")
    stub = serve(name)
    system = made(cls, model=model, key_env="T_KEY")(stub.url, tmp_path / "a.sqlite")
    with pytest.raises(PlanError, match=rf"{model} was retired on {date}.*{cls.current_models[0]}"):
        system.moderate(texts_of("a"))
    assert stub.seen == []
    served = made(cls, model=cls.current_models[0], key_env="T_KEY")(
        stub.url, tmp_path / "a.sqlite"
    )
    served.moderate(texts_of("a"))
    # Replies from before the end are in the cache: nothing is sent, and nothing is refused.
    served.retired_models = {cls.current_models[0]: "2027-01-01"}
    assert served.moderate(texts_of("a")).outcomes.tolist() == [FLAGGED]
    with pytest.raises(PlanError, match="2027-01-01"):
        served.moderate(texts_of("b"))


def test_no_model_is_a_default_and_describe_lists_those_of_this_release() -> None:
    for name in ("anthropic", "openai-moderation", "mistral-moderation"):
        with pytest.raises(PlanError, match=r"set model; at this release the service has"):
            registry.create("moderator", name)
    for name in (
        "anthropic",
        "azure-content-safety",
        "google-moderate-text",
        "mistral-moderation",
        "openai-moderation",
    ):
        text = described("moderator", name)["text"]
        current = registry.get("moderator", name).current_models
        assert current and all(model in text for model in current), name
    for name in ("bedrock-checks", "bedrock-guardrail"):
        assert "SigV4" in described("moderator", name)["text"]
    assert "moves" in OpenAIModeration(model="omni-moderation-latest").notices[0]
    assert OpenAIModeration(model=OMNI).notices == ()
    assert "ends with 2026" in Perspective().notices[0]
    assert Perspective(base_url="http://127.0.0.1:9").notices == ()


def test_the_pace_of_a_service_holds_at_its_own_host_unless_the_plan_sets_one() -> None:
    """Fault 15: tokens a minute, too."""
    own = OpenAIModeration(model=OMNI)
    assert (own.run.per_minute, own.run.tokens_per_minute) == (250, 10_000)
    own = OpenAIModeration(model=OMNI, run=RunSettings(retries=1))
    assert (own.run.retries, own.run.tokens_per_minute) == (1, 10_000)
    faster = OpenAIModeration(model=OMNI, run=RunSettings(tokens_per_minute=500_000))
    assert (faster.run.per_minute, faster.run.tokens_per_minute) == (None, 500_000)
    assert OpenAIModeration(model=OMNI, base_url="http://127.0.0.1:9").run.per_minute is None
    azure = "https://mine.cognitiveservices.azure.com"
    assert AzureContentSafety(base_url=azure, api_version="2024-09-01").run.per_second == 5
    assert Perspective(run=RunSettings(retries=0)).run.per_second == 1


def test_a_run_under_a_limit_of_tokens_takes_as_long_as_they_need(
    serve: Callable[[str], Stub], tmp_path: Path
) -> None:
    """By hand: 4 requests of 30 bytes and more are 40 tokens and more; 24,000 a minute is 0.1 s."""
    stub = serve("openai")
    system = CASES["openai"].make(
        stub.url, tmp_path / "a.sqlite", run={"tokens_per_minute": 24_000}
    )
    begin = time.monotonic()
    run(system, *(f"text {i}" * 10 for i in range(4)))
    # Only a lower bound: a busy machine takes longer. The last request's tokens delay nobody.
    sizes = [len(json.dumps(one, ensure_ascii=False).encode()) for one in stub.seen[:-1]]
    assert time.monotonic() - begin >= 60 * sum(sizes) / 3 / 24_000 * 0.99
    quote = CASES["openai"].make(stub.url, tmp_path / "b.sqlite", run={"tokens_per_minute": 60.0})
    assert quote.quote(texts_of("a" * 300, "b" * 300)).seconds >= 200
