"""A service on this machine that answers well, badly, late, or not at all."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from ombud.errors import AuditedSystemError, DataError, PlanError, RegistryError, ResultError
from ombud.http.dispatch import RunStoppedError
from ombud.http.store import AnswerStore
from ombud.registry import create
from ombud.systems.base import Recommender
from ombud.systems.recommenders.adapters import HttpRecommender


def good(question):
    """User u gets items u, u + 1, ..."""
    return {
        "recommendations": [
            {"user": u, "items": list(range(u, u + question["n"])), "scores": [0.5] * question["n"]}
            for u in question["users"]
        ]
    }


class Service:
    """Answers with what `script` says: a function of the question and of how often it was asked."""

    def __init__(self):
        self.script = lambda question, times: (200, good(question), {})
        self.questions: list[dict] = []
        self.headers: list[dict] = []
        self.lock = threading.Lock()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                question = json.loads(raw)
                with service.lock:
                    times = service.questions.count(question)
                    service.questions.append(question)
                    service.headers.append(dict(self.headers))
                status, content, headers = service.script(question, times)
                body = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # a client that gave up is no news
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/recommend"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def service():
    made = Service()
    yield made
    made.close()


@pytest.fixture
def system(service, tmp_path):
    def make(**options):
        options = {"batch": 2, "wait": 0.001, "retries": 2, "timeout": 60.0} | options
        return HttpRecommender(url=service.url, cache=tmp_path / "replies.sqlite", **options)

    return make


@pytest.fixture
def waits(monkeypatch):
    """Waits are written down instead of waited, on a clock that stands still."""
    asked: list[float] = []

    async def sleep(_, seconds):
        asked.append(seconds)

    clock = SimpleNamespace(monotonic=lambda: 50.0, time=time.time)
    monkeypatch.setattr("ombud.http.dispatch.time", clock)
    monkeypatch.setattr("ombud.http.dispatch.Dispatcher._sleep", sleep)
    return asked


def test_batches_and_protocol(service, system):
    made = system().recommend([1, 2, 3], 2, exclude_seen=False)
    assert isinstance(system(), Recommender)
    assert made.to_frame()["item"].to_list() == [1, 2, 2, 3, 3, 4]
    assert made.to_frame()["score"].to_list() == [0.5] * 6
    service.questions.sort(key=lambda q: q["users"])
    assert service.questions == [
        {"users": [1, 2], "n": 2, "exclude_seen": False},
        {"users": [3], "n": 2, "exclude_seen": False},
    ]


def test_answered_questions_are_never_asked_again(service, system):
    first = system().recommend([1, 2, 3], 2)
    again = system().recommend([1, 2, 3], 2)
    assert len(service.questions) == 2
    assert again.to_frame().equals(first.to_frame())
    system(version="2").recommend([1, 2, 3], 2)
    system().recommend([1, 2, 3], 3)
    assert len(service.questions) == 6


@pytest.mark.parametrize(
    "bad",
    [
        (500, b"oops", {}),
        (503, b"", {"Retry-After": "0"}),
        (429, b"", {}),
        (200, b"<html>", {}),
        (200, b"\xff\xfe", {}),
        (200, [1, 2], {}),
        (200, {"recommendations": [{"user": 1}]}, {}),
    ],
)
def test_what_may_pass_is_tried_again_and_every_raw_reply_is_kept(service, system, tmp_path, bad):
    service.script = lambda q, times: bad if times < 2 else (200, good(q), {})
    made = system().recommend([1, 2], 2)
    assert made.lengths.tolist() == [2, 2]
    assert len(service.questions) == 3
    with sqlite3.connect(tmp_path / "replies.sqlite") as db:
        rows = db.execute("SELECT status, outcome, raw FROM calls ORDER BY attempt").fetchall()
    db.close()
    body = bad[1] if isinstance(bad[1], bytes) else json.dumps(bad[1]).encode()
    assert [(s, o) for s, o, _ in rows] == [(bad[0], "error")] * 2 + [(200, "usable")]
    assert rows[0][2] == rows[1][2] == body


def test_a_service_that_stays_down_is_an_error_that_names_user_and_fault(service, system):
    service.script = lambda q, times: (500, b"oops", {})
    with pytest.raises(AuditedSystemError) as caught:
        system(name="shop", parallel=1).recommend([1, 2, 3, 4], 2)
    assert "shop, asked for user 1 and 1 more: no usable reply in 3 tries" in str(caught.value)
    assert "status 500" in str(caught.value)
    assert len(service.questions) == 3  # the other batch was not asked any more


def test_a_batch_that_fails_can_be_excluded_and_counted(service, system):
    def script(q, times):
        return (500, b"", {}) if 1 in q["users"] else (200, good(q), {})

    service.script = script
    made = system(faults="exclude").recommend([1, 2, 3], 2)
    assert made.lengths.tolist() == [0, 0, 2]
    assert [(e.count, e.of) for e in made.exclusions] == [(2, 3)]
    assert "status 500" in made.exclusions[0].reason


def test_nothing_answered_is_an_error_even_when_excluding(service, system):
    service.script = lambda q, times: (500, b"", {})
    with pytest.raises(AuditedSystemError, match="answered none of 2 questions"):
        system(faults="exclude").recommend([1, 2, 3], 2)


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_what_will_not_pass_is_not_tried_again(service, system, status):
    service.script = lambda q, times: (status, b"", {"Location": "http://127.0.0.1:1/"})
    with pytest.raises(AuditedSystemError, match=f"status {status}"):
        system().recommend([1], 2)
    assert len(service.questions) == 1


def test_faulty_lists_name_the_user_or_are_counted(service, system):
    def script(q, times):
        lists = {1: [5, 5], 2: [1, 2], 3: "no", 4: list(range(9))}
        rows = [{"user": u, "items": lists[u]} for u in q["users"] if u in lists]
        return 200, {"recommendations": rows}, {}

    service.script = script
    with pytest.raises(AuditedSystemError, match="user 1: a list that holds an item"):
        system().recommend([1, 2, 3], 4)
    made = system(faults="exclude").recommend([1, 2, 3, 4, 5], 4)
    assert made.lengths.tolist() == [0, 2, 0, 4, 0]
    counts = {(e.what, e.count, e.reason.split(" (")[0]) for e in made.exclusions}
    assert counts == {
        ("users", 1, "a list that holds an item more than once"),
        ("users", 1, "something else where a list of items was expected"),
        ("users", 1, "the system gave no list for the user"),
        ("places", 5, "the list is longer than the 4 items asked for"),
    }


@pytest.mark.parametrize("stranger", [99, "1", True, None, [1]])
def test_users_nobody_asked_for(service, system, stranger):
    rows = [{"user": stranger, "items": [1]}]
    service.script = lambda q, times: (200, {"recommendations": rows}, {})
    with pytest.raises(AuditedSystemError, match="was not asked for"):
        system(retries=0).recommend([1, 2], 2)


def test_two_lists_for_one_user(service, system):
    rows = [{"user": 1, "items": [1]}, {"user": 1, "items": [2]}]
    service.script = lambda q, times: (200, {"recommendations": rows}, {})
    with pytest.raises(AuditedSystemError, match="two lists in one reply"):
        system().recommend([1], 2)


def test_no_reply_in_time(service, system):
    release = threading.Event()

    def script(q, times):
        if times == 0:
            release.wait(600)
        return 200, good(q), {}

    service.script = script
    made = system(timeout=1, retries=100).recommend([1], 2)
    release.set()
    assert made.lengths.tolist() == [2]
    assert len(service.questions) >= 2  # more, where the machine is too busy to reply in time


def test_nobody_listens(system, service):
    service.close()
    with pytest.raises(AuditedSystemError, match="ClientConnectorError"):
        system(retries=1).recommend([1], 2)
    service.close = lambda: None


def test_retry_after_is_waited_for(service, system, waits):
    def script(q, times):
        return (429, b"", {"Retry-After": "7"}) if times == 0 else (200, good(q), {})

    service.script = script
    system(parallel=1).recommend([1], 2)
    assert len(service.questions) == 2
    assert {round(s, 6) for s in waits if s > 0.01} == {7.0}


def test_a_long_retry_after_ends_the_run_instead_of_hanging(service, system):
    service.script = lambda q, times: (429, b"", {"Retry-After": "86400"})
    with pytest.raises(AuditedSystemError, match="86,400 s: a quota may be used up"):
        system().recommend([1], 2)
    assert len(service.questions) == 1


def test_rate_limit_spaces_the_questions(service, system, waits):
    system(batch=1, per_second=20, per_minute=600, parallel=4).recommend([1, 2, 3, 4, 5], 2)
    # After the last question each worker takes one more slot and finds nothing left to ask.
    assert sorted(round(s, 6) for s in waits)[:4] == [0.1, 0.2, 0.3, 0.4]


def test_keys_come_from_the_environment_and_are_kept_out_of_the_file(
    service, system, tmp_path, monkeypatch
):
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    service.script = lambda q, times: (200, good(q) | {"echo": "s3cret-value"}, {})
    system(key_env="SHOP_KEY").recommend([1], 2)
    assert service.headers[0]["Authorization"] == "Bearer s3cret-value"
    with sqlite3.connect(tmp_path / "replies.sqlite") as db:
        [(raw,)] = db.execute("SELECT raw FROM calls").fetchall()
    db.close()
    assert b"s3cret" not in raw and b"key removed" in raw
    monkeypatch.delenv("SHOP_KEY")
    with pytest.raises(PlanError, match="SHOP_KEY"):
        system(key_env="SHOP_KEY").recommend([2], 2)


def test_a_plan_cannot_send_a_key_to_any_host(monkeypatch, tmp_path):
    monkeypatch.setenv("SHOP_KEY", "s3cret-value")
    made = HttpRecommender(
        url="https://evil.example/x", key_env="SHOP_KEY", cache=tmp_path / "c.sqlite"
    )
    with pytest.raises(PlanError, match="OMBUD_KEY_HOSTS"):
        made.recommend([1], 2)


def test_a_plan_can_name_it_and_bad_options_are_refused():
    made = create("recommender", "http", {"url": "https://shop.example/r", "batch": 10})
    assert isinstance(made, HttpRecommender)
    with pytest.raises(RegistryError, match="faults"):
        create("recommender", "http", {"url": "https://shop.example/r", "faults": "ignore"})
    with pytest.raises(PlanError, match=r"batch is 0.*timeout is -1"):
        HttpRecommender(url="https://shop.example/r", batch=0, timeout=-1)
    with pytest.raises(PlanError, match="must begin with https"):
        HttpRecommender(url="file:///etc/passwd")


def test_a_cache_that_is_something_else_is_left_alone(service, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("my notes, long enough to be no database header at all" * 3)
    with pytest.raises(ResultError, match="Name another file"):
        HttpRecommender(url=service.url, cache=path).recommend([1], 2)
    assert path.read_text().startswith("my notes")
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(ResultError, match="not an answer cache"):
        HttpRecommender(url=service.url, cache=other).recommend([1], 2)


def test_a_reply_that_drips_ends_with_the_time_out(tmp_path):
    written = []

    class Drip(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b" ")
                written.append(b" ")
                time.sleep(0.1)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    server.daemon_threads = True
    server.handle_error = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    made = HttpRecommender(
        url=f"http://127.0.0.1:{server.server_port}/", cache=tmp_path / "c.sqlite", timeout=0.5
    )
    made.retries = 0
    with pytest.raises(AuditedSystemError, match=r"no reply within 0\.5 s"):
        made.recommend([1], 2)
    assert len(written) < 600
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('{"user": 1, "items": [1], "scores": [1e300]}', "not a finite number"),
        ('{"user": 1, "items": [1], "scores": [1%s]}' % ("0" * 400), "not a finite number"),
        ('{"user": 1, "items": [1], "scores": [NaN]}', "not a finite number"),
        ('{"user": 1, "items": ["\\ud800"]}', "half a character"),
        ('{"user": "\\ud800", "items": [1]}', "was not asked for"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_odd_replies_are_sentences(service, system, entry, fault):
    service.script = lambda q, times: (200, b'{"recommendations": [%b]}' % entry.encode(), {})
    with pytest.raises(AuditedSystemError, match=fault):
        system(retries=0).recommend([1], 2)


def test_users_that_utf8_cannot_hold_are_a_sentence(system):
    with pytest.raises(DataError, match="half a character"):
        system().recommend(["a", chr(0xD800)], 2)


def test_a_full_disk_stops_the_run_and_keeps_every_reply(service, system, monkeypatch):
    prepare, rescue = AnswerStore._prepare, AnswerStore.rescue

    def small(store):
        prepare(store)
        store._db.execute("PRAGMA max_page_count = 12")

    def with_reserve(store, answered):
        store._db.execute("PRAGMA max_page_count = 1000")
        rescue(store, answered)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages}")

    users = list(range(1, 601))
    with monkeypatch.context() as patch:
        patch.setattr(AnswerStore, "_prepare", small)
        patch.setattr(AnswerStore, "rescue", with_reserve)
        with pytest.raises(RunStoppedError, match=r"disk is full\); make room"):
            system().recommend(users, 5)
    asked = len(service.questions)
    assert 10 < asked < 300
    made = system().recommend(users, 5)
    assert made.lengths.tolist() == [5] * 600
    assert len(service.questions) == 300, "a reply was lost, and asked for again"


def test_an_old_or_damaged_cache_is_a_sentence(service, system, tmp_path):
    system().recommend(list(range(1, 400)), 5)
    path = tmp_path / "replies.sqlite"
    data = bytearray(path.read_bytes())
    data[4096:30_000] = b"\x07" * (30_000 - 4096)
    path.write_bytes(data)
    with pytest.raises(ResultError, match=r"replies\.sqlite"):
        system().recommend([1], 2)
    path.unlink()
    db = sqlite3.connect(path)
    db.executescript("CREATE TABLE replies (x); PRAGMA application_id = 0x6F6D6272;")
    db.close()
    with pytest.raises(ResultError, match="not an answer cache"):
        system().recommend([1], 2)


def test_a_damaged_reply_is_asked_again_and_counted(service, system, tmp_path):
    users = list(range(8))
    lists = system().recommend(users, 3)
    with closing(sqlite3.connect(tmp_path / "replies.sqlite")) as db:
        db.execute("UPDATE calls SET raw = replace(raw, '1', '2') WHERE rowid = 2")
        db.commit()
    before = len(service.questions)
    again = system().recommend(users, 3)
    assert again.items.tolist() == lists.items.tolist()
    assert len(service.questions) == before + 1
    (note,) = again.exclusions
    assert (note.count, note.key) == (1, "cache/damaged")
    assert "checksums did not match" in note.reason
    assert system().recommend(users, 3).exclusions == ()
    assert len(service.questions) == before + 1


def test_an_address_with_a_key_in_it_is_refused():
    with pytest.raises(PlanError, match="may hold a key") as caught:
        HttpRecommender(url="https://shop.example/r?key=0123456789")
    assert "0123456789" not in str(caught.value)


def test_a_quote_counts_what_is_not_answered_yet(service, system):
    made = system()
    assert made.quote_lists([1, 2, 3, 4, 5], 2, part=5).requests == 3
    made.recommend([1, 2], 2)
    quote = made.quote_lists([1, 2, 3, 4, 5], 2, part=5)
    assert (quote.questions, quote.known, quote.requests) == (3, 2, 2)
    assert len(service.questions) == 1  # quotes ask nothing
    # Batches end with the part that is asked at a time.
    assert made.quote_lists([1, 2, 3, 4, 5], 2, part=1).requests == 5
    assert made.quote_lists([1, 2, 3, 4, 5], 3, part=5).known == 0
