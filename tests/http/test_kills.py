"""Runs that are killed at random moments: nothing is asked twice, and what is answered stays.

Each run is a process of its own, forked from one that has the imports behind it. The suite kills
each kind of runner a few times; ``OMBUD_SLOW=1`` (``make test-all``) thirty times.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import runpy
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, ResultError
from ombud.systems.moderators import HttpModerator, RunSettings
from ombud.systems.recommenders.adapters import HttpRecommender

COUNT = 400
BATCH = 4


class Stub:
    """Scores texts and recommends items; counts questions and whole answers."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.latency = 0.01
        self.free = math.inf  # how many questions are answered before `released` is set
        self.released = threading.Event()
        self.lock = threading.Lock()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                question = json.loads(raw)
                name = json.dumps(question.get("users", question.get("text")))
                with stub.lock:
                    stub.asked[name] += 1
                    held = stub.asked.total() > stub.free
                if held:
                    stub.released.wait()
                time.sleep(stub.latency)
                body = json.dumps(stub.reply(question)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                with stub.lock:
                    stub.answered[name] += 1

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # type: ignore[method-assign, assignment]
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    @staticmethod
    def reply(question: Any) -> Any:
        if "users" not in question:
            return {"score": len(question["text"]) % 2}
        rows = [{"user": u, "items": [u % 7 + i for i in range(3)]} for u in question["users"]]
        return {"recommendations": rows}


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub()
    yield made
    made.released.set()
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


TEXTS = [f"text {'x' * (i % 5)} {i}" for i in range(COUNT)]
USERS = list(range(COUNT))


def moderate(url: str, cache: Path, in_flight: str = "leave") -> dict[str, Any]:
    """Outcome by question; None where it was in flight."""
    run = RunSettings(backoff=0.01, longest_backoff=0.05, in_flight=in_flight)  # type: ignore[arg-type]
    system = HttpModerator(
        base_url=url, score_path="score", threshold=0.5, cache=cache, run=run, name="m"
    )
    ids = np.arange(COUNT)
    texts = Texts(ids, np.array(TEXTS, dtype=object), np.full(COUNT, -1, dtype=np.int8))
    outcomes = system.moderate(texts).outcomes.tolist()
    found = zip(TEXTS, outcomes, strict=True)
    return {json.dumps(t): None if o == Outcome.ERROR else o for t, o in found}


def recommend(url: str, cache: Path, in_flight: str = "leave") -> dict[str, Any]:
    """Lists by question; None where it was in flight."""
    system = HttpRecommender(
        url=url, cache=cache, batch=BATCH, faults="exclude", in_flight=in_flight, wait=0.01
    )  # type: ignore[arg-type]
    lists = system.recommend(USERS, 3).to_lists()["items"].to_list()
    return {
        json.dumps(USERS[at : at + BATCH]): lists[at : at + BATCH] if len(lists[at]) else None
        for at in range(0, COUNT, BATCH)
    }


RUNNERS = {"moderator": moderate, "recommender": recommend}
SERVER = multiprocessing.get_context("forkserver")


def start(kind: str, stub: Stub, cache: Path) -> Any:
    given = {"KIND": kind, "URL": stub.url, "CACHE": cache}
    child = SERVER.Process(target=runpy.run_path, args=(__file__, given, "killed"))
    child.start()
    return child


def said_in(cache: Path) -> str:
    """What a run wrote to its standard error."""
    return cache.with_suffix(".said").read_text()


def wait_until_asked(stub: Stub, child: Any, more: int) -> None:
    before, deadline = stub.asked.total(), time.monotonic() + 600
    while stub.asked.total() < before + more and child.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@pytest.mark.parametrize("kind", sorted(RUNNERS))
@pytest.mark.parametrize("kills", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_again_and_again(kind: str, kills: int, stub: Stub, tmp_path: Path) -> None:
    expected = RUNNERS[kind](stub.url, tmp_path / "whole.sqlite")
    assert None not in expected.values()
    stub.asked.clear()
    stub.answered.clear()
    rng = np.random.default_rng(kills)
    # Each run gets about as far as its share, so that every one is killed in the middle of it.
    share = len(expected) // (kills + 1)
    for _ in range(kills):
        child = start(kind, stub, tmp_path / "killed.sqlite")
        wait_until_asked(stub, child, int(rng.integers(1, max(2, share))))
        time.sleep(float(rng.uniform(0, 0.02)))
        child.kill()
        child.join()
        assert "Error" not in said_in(tmp_path / "killed.sqlite")
    time.sleep(0.1)
    assert 0 < stub.asked.total() < len(expected), "the kills came too early or too late"
    found = RUNNERS[kind](stub.url, tmp_path / "killed.sqlite")
    assert max(stub.asked.values()) == 1, "a question was asked twice"
    lost = {name for name, answer in found.items() if answer is None}
    under_way = 8 if kind == "moderator" else 4
    assert len(lost) <= 2 * under_way * kills
    kept = {name: answer for name, answer in found.items() if answer is not None}
    assert kept == {name: expected[name] for name in expected.keys() - lost}
    again = RUNNERS[kind](stub.url, tmp_path / "killed.sqlite", "ask")
    assert again == expected
    doubled = {name for name, count in stub.asked.items() if count > 1}
    assert doubled <= lost, "a question that was not in flight was asked twice"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("kind", sorted(RUNNERS))
def test_a_signal_ends_a_run_and_loses_nothing(
    kind: str, sent: signal.Signals, stub: Stub, tmp_path: Path
) -> None:
    stub.free = 30
    child = start(kind, stub, tmp_path / "a.sqlite")
    wait_until_asked(stub, child, 31)
    os.kill(child.pid, sent)
    stub.released.set()
    child.join(600)
    said = said_in(tmp_path / "a.sqlite")
    assert child.exitcode == 1 and "KeyboardInterrupt" in said and "interrupted" in said
    assert 30 <= stub.asked.total() < len(RUNNERS[kind](stub.url, tmp_path / "a.sqlite"))
    assert set(stub.asked.values()) == {1}


def test_two_recommender_runs_at_once_are_told_apart(stub: Stub, tmp_path: Path) -> None:
    stub.free = 3
    child = start("recommender", stub, tmp_path / "a.sqlite")
    wait_until_asked(stub, child, 4)
    with pytest.raises(ResultError, match="another run is asking the same system"):
        recommend(stub.url, tmp_path / "a.sqlite")
    stub.released.set()
    child.join(600)
    assert child.exitcode == 0
    recommend(stub.url, tmp_path / "a.sqlite")
    assert set(stub.asked.values()) == {1}


def test_a_recommender_that_was_killed_says_what_to_do(stub: Stub, tmp_path: Path) -> None:
    stub.free = 0
    child = start("recommender", stub, tmp_path / "a.sqlite")
    wait_until_asked(stub, child, 4)  # as many as are asked at once
    child.kill()
    child.join()
    # Nobody listens now: asking anything before that is settled would be another error.
    stub.server.shutdown()
    stub.server.server_close()
    strict = HttpRecommender(url=stub.url, cache=tmp_path / "a.sqlite", batch=BATCH)
    with pytest.raises(AuditedSystemError, match=r"and 3 more: in flight.*in_flight = 'ask'"):
        strict.recommend(USERS, 3)
    assert (tmp_path / "a.sqlite").exists()


if __name__ == "killed":
    os.dup2(os.open(globals()["CACHE"].with_suffix(".said"), os.O_WRONLY | os.O_CREAT), 2)
    RUNNERS[globals()["KIND"]](globals()["URL"], globals()["CACHE"])
