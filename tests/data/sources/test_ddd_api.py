"""The client of Does the Dog Die against a local stub that is slow, busy, broken, and killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

from ombud.data.sources.ddd_api import ADDRESS, KEY_VARIABLE, cached_answers, collect
from ombud.data.sources.ddd_votes import match_answers
from ombud.errors import DataError

KEY = "a-key-that-must-stay-here"
TOPICS = [
    (153, "a dog dies", 175, 10),
    (188, "there's blood/gore", 2, 30),
    (9999, "unicorns", 1, 1),
]


class Stub:
    """Titles by IMDb number: title n has the site's number 1000 + n."""

    def __init__(self, titles: int) -> None:
        self.titles = titles
        self.faults: list[Any] = []
        self.asked: Counter[str] = Counter()
        self.keys: set[str | None] = set()
        self.latency = 0.0
        self.without_ids = False
        self.address = ""

    def reply(self, path: str, query: dict[str, list[str]]) -> tuple[int, Any]:
        if path == "/dddsearch":
            number = int(query["imdb"][0].removeprefix("tt"))
            near = {"id": 5, "name": "Another", "imdbId": "tt9999999", "tmdbId": None}
            if not 1 <= number <= self.titles:
                return 200, {"items": [near]}
            imdb = None if number == 2 else f"tt{number:07d}"
            mine = {"id": 1000 + number, "imdbId": imdb, "tmdbId": number * 5, "genres": ["x"]}
            return 200, {"items": [near, mine]}
        number = int(path.removeprefix("/media/")) - 1000
        if number == 3:
            return 200, "<html>no such title</html>"
        item = {"id": 1000 + number, "name": f"Title {number}"}
        if not self.without_ids:
            item |= {"imdbId": f"tt{number:07d}", "tmdbId": number * 5}
        stats = [
            {"TopicId": t, "yesSum": yes + number, "noSum": no, "topic": {"id": t, "name": name}}
            for t, name, yes, no in TOPICS
        ]
        return 200, {"item": item, "topicItemStats": stats}


def handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            stub.asked[self.path] += 1
            stub.keys.add(self.headers.get("X-API-KEY"))
            time.sleep(stub.latency)
            fault = stub.faults.pop(0) if stub.faults else None
            if fault == "cut":
                self.connection.close()
                return
            parts = urlsplit(self.path)
            status, content = fault or stub.reply(parts.path, parse_qs(parts.query))
            body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            kind = "text/html" if isinstance(content, str) else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if isinstance(content, dict) and "retry" in content:
                self.send_header("Retry-After", content["retry"])
            if status == 302:
                self.send_header("Location", "http://127.0.0.1:9/steal")
            self.end_headers()
            self.wfile.write(body)

    return Handler


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    state = Stub(8)
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler(state))
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever, args=(0.02,))
    thread.start()
    state.address = f"http://127.0.0.1:{running.server_port}"
    yield state
    running.shutdown()
    thread.join()
    running.server_close()


def links(count: int) -> pl.DataFrame:
    numbers = list(range(1, count + 1))
    return pl.DataFrame(
        {
            "item": [n * 7 for n in numbers] + [999],
            "imdb": [*numbers, None],
            "tmdb": [n * 5 for n in numbers] + [None],
        },
        schema={"item": pl.Int64, "imdb": pl.Int64, "tmdb": pl.Int64},
    )


def ask(stub: Stub, store: Path, count: int = 10, **options: Any) -> Any:
    waits: list[float] = []
    done = collect(
        links(count),
        store,
        address=stub.address,
        per_second=10_000,
        attempts=3,
        sleep=waits.append,
        **options,
    )
    return done, waits


def test_titles_are_found_by_id_and_matched(stub: Stub, tmp_path: Path) -> None:
    store = tmp_path / "ddd.sqlite"
    steps: list[tuple[int, int, str]] = []
    done, _ = ask(stub, store, progress=lambda *step: steps.append(step))
    # 8 titles exist; the third has no page; 9 and 10 are unknown; one movie has no link.
    assert (done.movies, done.found, done.absent, done.unlinked) == (11, 7, 3, 1)
    assert steps[-1] == (10, 10, "tt0000010")
    votes = match_answers(cached_answers(store), links(10))
    assert votes.items.tolist() == [7 * n for n in (1, 2, 4, 5, 6, 7, 8)]
    dog, gore = votes.names.index("a-dog-dies"), votes.names.index("blood-gore")
    assert votes.yes[0, dog] == 176 and votes.no[0, dog] == 10
    assert votes.yes[1, dog] == 177, "the title without an IMDb id is matched by its TMDB id"
    assert votes.no[:, gore].tolist() == [30] * 7
    assert votes.yes.sum() == votes.yes[:, [dog, gore]].sum()
    assert "unicorns" in str(votes.exclusions[0])


def test_nothing_is_asked_twice(stub: Stub, tmp_path: Path) -> None:
    store = tmp_path / "ddd.sqlite"
    first, _ = ask(stub, store)
    again, _ = ask(stub, store)
    assert first.requests == 18 and again.requests == 0
    assert (again.found, again.absent) == (first.found, first.absent)
    assert max(stub.asked.values()) == 1


def test_ids_missing_in_the_answer_come_from_the_search(stub: Stub, tmp_path: Path) -> None:
    stub.without_ids = True
    ask(stub, tmp_path / "ddd.sqlite", count=1)
    assert match_answers(cached_answers(tmp_path / "ddd.sqlite"), links(1)).items.tolist() == [7]


def test_a_busy_or_broken_server_is_asked_again(stub: Stub, tmp_path: Path) -> None:
    stub.faults = [(429, {"retry": "4"}), (503, {}), None, "cut"]
    done, waits = ask(stub, tmp_path / "ddd.sqlite", count=2)
    assert done.found == 2
    assert any(wait >= 4 for wait in waits)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([(401, {})], f"refuses the key in {KEY_VARIABLE}"),
        ([(500, {})] * 3, "3 attempts failed, the last with status 500"),
        (["cut"] * 3, "3 attempts failed"),
        ([(429, {"retry": "86400"})], "asks to wait 86,400 seconds"),
        ([(302, {})], "status 302"),
        ([(200, {"x": "y" * (9 << 20)})], "more than 8,388,608 bytes"),
    ],
)
def test_it_stops_with_a_sentence_and_keeps_what_it_has(
    stub: Stub, tmp_path: Path, faults: list[Any], words: str
) -> None:
    store = tmp_path / "ddd.sqlite"
    ask(stub, store, count=1)
    stub.faults = list(faults)
    with pytest.raises(DataError) as error:
        ask(stub, store, count=4)
    assert words in str(error.value) and "run it again to go on" in str(error.value)
    assert KEY not in str(error.value)
    stub.faults = []
    done, _ = ask(stub, store, count=4)
    assert done.found == 3
    assert stub.asked["/dddsearch?imdb=tt0000001"] == 1


def test_requests_are_kept_apart(stub: Stub, tmp_path: Path) -> None:
    waits: list[float] = []
    collect(
        links(3), tmp_path / "d.sqlite", address=stub.address, per_second=0.5, sleep=waits.append
    )
    # The clock does not move while the stand-in for sleep returns at once: waits add up.
    assert len(waits) >= 5 and waits[-1] > 8


def test_the_key_is_sent_to_the_site_alone_and_stored_nowhere(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(stub, tmp_path / "ddd.sqlite", count=2)
    assert stub.keys == {KEY}
    assert KEY.encode() not in (tmp_path / "ddd.sqlite").read_bytes()
    for address in ("https://example.org", "http://example.org"):
        with pytest.raises(DataError, match="not sent|not https"):
            collect(links(1), tmp_path / "x.sqlite", address=address)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(DataError, match=f"set the environment variable {KEY_VARIABLE}"):
        collect(links(1), tmp_path / "x.sqlite", address=ADDRESS)


KILLED = """
import sys, polars as pl
from ombud.data.sources.ddd_api import collect
numbers = list(range(1, 9))
links = pl.DataFrame({"item": numbers, "imdb": numbers, "tmdb": numbers})
collect(links, sys.argv[1], address=sys.argv[2], per_second=1000)
"""


def test_killed_in_the_middle_it_goes_on(stub: Stub, tmp_path: Path) -> None:
    store = tmp_path / "ddd.sqlite"
    stub.latency = 0.05
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(store), stub.address])
    deadline = time.monotonic() + 600
    while sum(stub.asked.values()) < 5:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    stub.latency = 0
    time.sleep(0.1)
    before = Counter(stub.asked)
    done, _ = ask(stub, store, count=8)
    assert done.found == 7
    twice = [path for path, count in stub.asked.items() if count > 1]
    assert len(twice) <= 1, "at most the request that was under way is asked again"
    assert done.requests <= 16 - sum(before.values()) + 1


def test_a_file_that_is_no_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    path = tmp_path / "ddd.sqlite"
    path.write_bytes(b"not a database, but long enough to look at" * 100)
    with pytest.raises(DataError, match="not a file of kept replies"):
        list(cached_answers(path))
    sqlite3.connect(path.with_name("other.sqlite")).close()
    with pytest.raises(DataError, match="not a file of kept replies"):
        list(cached_answers(path.with_name("other.sqlite")))
    with pytest.raises(DataError, match="not a file of kept replies"):
        collect(links(1), path, address="http://127.0.0.1:9")


def test_a_reply_about_another_title_is_not_kept(stub: Stub, tmp_path: Path) -> None:
    right = stub.reply("/media/1001", {})
    stub.faults = [None, stub.reply("/media/1004", {}), right]
    done, _ = ask(stub, tmp_path / "ddd.sqlite", count=1)
    assert done.found == 1 and done.requests == 3
    answers = list(cached_answers(tmp_path / "ddd.sqlite"))
    assert {answer.imdb for answer in answers} == {1}


def test_a_pace_of_nothing_is_refused(stub: Stub, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="must be above 0"):
        collect(links(1), tmp_path / "x.sqlite", address=stub.address, per_second=0)
