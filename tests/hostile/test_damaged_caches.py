"""Caches with flipped bits: no reply that differs is ever used, and what is lost is asked again."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.data.ids import Vocabulary
from ombud.data.sources.ddd_api import _Asker, _open, cached_answers
from ombud.errors import DataError, ResultError
from ombud.http.pace import RateLimit
from ombud.http.store import AnswerStore, Call, Key, hash_of
from ombud.probes.blackbox.questions import Questions
from ombud.probes.edits import History

COPIES = 100
FLIPS = 4

OLD_SCHEMA = """
CREATE TABLE systems (
    id INTEGER PRIMARY KEY, system TEXT, version TEXT, UNIQUE (system, version)
);
CREATE TABLE calls (
    system INTEGER NOT NULL REFERENCES systems,
    text BLOB NOT NULL,
    repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    asked REAL NOT NULL,
    answered REAL,
    status INTEGER,
    outcome TEXT,
    reason TEXT,
    raw BLOB,
    UNIQUE (system, text, repeat, attempt)
);
PRAGMA application_id = 1869439588; PRAGMA user_version = 1;
"""
"""What ombud wrote before entries had checksums."""


def flipped(source: Path, target: Path, rng: random.Random) -> Path:
    """Copy a file with a few bits flipped."""
    content = bytearray(source.read_bytes())
    for _ in range(FLIPS):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    target.write_bytes(content)
    return target


def reply(i: int, asked: float = 1.5) -> Call:
    outcome = ("allowed", "flagged")[i % 2]
    raw = json.dumps({"score": i / 1000, "outcome": outcome, "more": "x" * 100}).encode()
    return Call(0, asked, asked + 1, 200, outcome, "", raw)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Key, Call]]:
    path = tmp_path_factory.mktemp("cache") / "a.sqlite"
    truth = {(hash_of(f"text {i}"), 0): reply(i) for i in range(150)}
    with AnswerStore(path, "s", "1") as store:
        store.write([(key, 0, 1.5) for key in truth], list(truth.items()))
    with AnswerStore(path, "other", "1") as store:
        store.write([(key, 0, 1.5) for key in truth], [(k, reply(1)) for k in truth])
    return path, truth


def test_flipped_bits_change_no_reply(cache: tuple[Path, dict[Key, Call]], tmp_path: Path) -> None:
    path, truth = cache
    rng = random.Random(31)
    ends: Counter[str] = Counter()
    for copy in range(COPIES):
        hurt = flipped(path, tmp_path / f"{copy}.sqlite", rng)
        try:
            with AnswerStore(hurt, "s", "1") as store:
                calls = store.latest()
                assert calls.items() <= truth.items(), "a reply that was never given"
                lost = [key for key in truth if key not in calls]
                # Sent again, they are whole again.
                store.write([(key, 0, 1.5) for key in lost], [(k, truth[k]) for k in lost])
                assert store.latest() == truth
                ends["damaged" if lost else "intact"] += 1
        except ResultError:
            ends["refused"] += 1
        except sqlite3.Error:  # what ends a run, with this reason
            ends["cannot be written"] += 1
    assert ends["damaged"] >= COPIES // 4, ends
    assert ends["intact"] >= COPIES // 8, ends


def old_store(path: Path, truth: dict[Key, Call]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD_SCHEMA)
        db.execute("INSERT INTO systems VALUES (1, 's', '1')")
        rows = [
            (1, *key, c.attempt, c.asked, c.answered, c.status, c.outcome, c.reason, c.raw)
            for key, c in truth.items()
        ]
        db.executemany(f"INSERT INTO calls VALUES ({', '.join('?' * 10)})", rows)
        db.commit()


def test_an_old_cache_gets_checksums_and_keeps_its_replies(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    truth = {(hash_of(f"text {i}"), i % 2): reply(i) for i in range(650)}
    nothing: Any = None
    truth[hash_of("flown"), 0] = Call(3, 1.0, None, None, nothing, nothing, None)
    old_store(path, truth)
    for _ in range(2):
        with AnswerStore(path, "s", "1") as store:
            assert store.latest() == truth
            assert store.damaged == 0
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (2,)
        db.execute("UPDATE calls SET status = 201 WHERE rowid = 7")
        db.commit()
    with AnswerStore(path, "s", "1") as store:
        assert len(store.latest()) == len(truth) - 1


@pytest.mark.parametrize("value", ["text = 'words'", "outcome = x'00'", "raw = 5", "reason = NULL"])
def test_odd_rows_of_an_old_cache_get_none(value: str, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    truth = {(hash_of(f"text {i}"), 0): reply(i) for i in range(5)}
    old_store(path, truth)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"UPDATE calls SET {value} WHERE rowid = 2")
        db.commit()
    with AnswerStore(path, "s", "1") as store:
        assert len(store.latest()) == 4
        assert store.damaged == 1


def test_a_file_whose_version_was_flipped_is_not_upgraded_a_second_time(
    cache: tuple[Path, dict[Key, Call]], tmp_path: Path
) -> None:
    path = tmp_path / "a.sqlite"
    shutil.copy(cache[0], path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 0")
    with pytest.raises(ResultError, match=r"a\.sqlite"):
        AnswerStore(path, "s", "1")


class Shop:
    """A black box that answers by a rule, and counts."""

    name, version, writes = "shop", "1", False

    def __init__(self) -> None:
        self.calls = 0

    def recommend(self, history: dict[Any, float], n: int) -> list[int]:
        self.calls += 1
        return [(sum(history) + i) % 50 for i in range(n)]


HISTORIES = [History(np.array([i, i + 1], np.int32), np.ones(2, np.float32)) for i in range(40)]


def ask(path: Path) -> tuple[list[list[int]], int]:
    shop: Any = Shop()
    questions = Questions(shop, Vocabulary(np.arange(50)), 5, cache=path, in_flight="ask")
    try:
        lists = questions.ask(HISTORIES)
        return [[] if one is None else one.tolist() for one in lists], shop.calls
    finally:
        questions.close()


def test_flipped_bits_change_no_answer_of_a_black_box(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite"
    truth, calls = ask(path)
    assert (calls, ask(path)) == (40, (truth, 0))
    rng = random.Random(31)
    refused = again = 0
    for copy in range(COPIES // 2):
        try:
            lists, calls = ask(flipped(path, tmp_path / f"{copy}.sqlite", rng))
        except ResultError:
            refused += 1
            continue
        assert lists == truth
        again += bool(calls)
    assert again >= COPIES // 8, (refused, again)


def test_an_old_cache_of_a_black_box_keeps_its_answers(tmp_path: Path) -> None:
    path = tmp_path / "box.sqlite"
    truth, _ = ask(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE asked DROP COLUMN checksum")
        db.execute("PRAGMA user_version = 0")
        db.execute("UPDATE asked SET answer = '[1, 2' WHERE rowid = 3")
        db.commit()
    assert ask(path) == (truth, 1)
    assert ask(path) == (truth, 0)


def kept_titles(path: Path) -> list[Any]:
    def get(number: int) -> bytes:
        item = {"id": number, "imdbId": f"tt{number:07d}", "name": f"title {number}"}
        stats = [{"topic": {"id": 1, "name": "a dog dies"}, "yesSum": number, "noSum": 1}]
        return json.dumps({"item": item, "topicItemStats": stats, "more": "x" * 100}).encode()

    with closing(_open(path)) as db:
        asker: Any = _Asker(db, "http://127.0.0.1:9", "", RateLimit(None, None, float), print, 1, 0)
        asker._ask = lambda path, params, about: (200, get(int(path)))
        return [asker.get("media", str(i), str(i), {}) for i in range(100, 180)]


def test_flipped_bits_change_no_reply_of_a_content_warning_site(tmp_path: Path) -> None:
    path = tmp_path / "ddd.sqlite"
    truth = kept_titles(path)
    answers = list(cached_answers(path))
    assert len(answers) == 80
    rng = random.Random(31)
    refused = 0
    for copy in range(COPIES // 2):
        hurt = flipped(path, tmp_path / f"{copy}.sqlite", rng)
        try:
            assert list(cached_answers(hurt)) == answers
        except DataError:
            refused += 1
        try:
            assert kept_titles(hurt) == truth
        except DataError:
            continue
        assert list(cached_answers(hurt)) == answers
    assert refused >= COPIES // 4


def test_old_replies_of_a_content_warning_site_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "ddd.sqlite"
    kept_titles(path)
    answers = list(cached_answers(path))
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE replies DROP COLUMN checksum")
        db.commit()
    assert list(cached_answers(path)) == answers
    _open(path).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(checksum) FROM replies").fetchone() == (80,)
    assert list(cached_answers(path)) == answers
