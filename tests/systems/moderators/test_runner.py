"""The runner against a service that fails in every documented way."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError, ResultError
from ombud.http.dispatch import RunStoppedError
from ombud.http.pace import RateLimit
from ombud.http.store import AnswerStore
from ombud.systems.moderators import HttpModerator, OpenAIModeration, Price, RunSettings

QUICK = {"backoff": 0.01, "longest_backoff": 0.05}


def texts_of(*rows: str) -> Texts:
    n = len(rows)
    return Texts(np.arange(n), np.array(rows, dtype=object), np.full(n, -1, dtype=np.int8))


def service(stub: Any, folder: Path, **run: Any) -> HttpModerator:
    return HttpModerator(
        name="stub",
        base_url=f"{stub.url}/plain",
        score_path="score",
        threshold=0.5,
        version_path="model.v",
        cache=folder / "answers.sqlite",
        run=RunSettings(**{**QUICK, **run}),
    )


@pytest.mark.parametrize(
    ("fault", "outcome", "asked"),
    [
        ("", Outcome.FLAGGED, 1),
        ("500", Outcome.FLAGGED, 2),
        ("503", Outcome.FLAGGED, 2),
        ("429", Outcome.FLAGGED, 2),
        ("429:0.05", Outcome.FLAGGED, 2),
        ("408", Outcome.FLAGGED, 2),
        ("half", Outcome.FLAGGED, 2),
        ("stall", Outcome.FLAGGED, 2),
        ("close", Outcome.FLAGGED, 2),
        ("reset", Outcome.FLAGGED, 2),
        ("chunked", Outcome.FLAGGED, 1),
        ("malformed", Outcome.UNPARSEABLE, 1),
        ("shape", Outcome.UNPARSEABLE, 1),
        ("400", Outcome.ERROR, 1),
        ("413", Outcome.ERROR, 1),
    ],
)
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_each_fault_has_its_outcome(
    stub: Any,
    tmp_path: Path,
    fault: str,
    outcome: Outcome,
    asked: int,
    loop: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    else:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    stub.faults["zz"].extend([fault] if fault else [])
    waits = fault in {"half", "stall"}
    more = {"timeout": 1, "retries": 100} if waits else {"timeout": 60}
    system = service(stub, tmp_path, **more)
    decisions = system.moderate(texts_of("fine", "zz"))
    assert decisions.outcomes.tolist() == [Outcome.ALLOWED, outcome]
    # A busy machine may need more than the second that is waited for these.
    assert stub.asked["zz"] >= asked if waits else stub.asked == {"fine": 1, "zz": asked}
    assert system.last_report is not None
    assert bool(system.last_report.reasons[1]) == (outcome > Outcome.FLAGGED)


def test_a_text_whose_retries_are_used_up_is_an_error_and_only_it_is_asked_again(
    stub: Any, tmp_path: Path
) -> None:
    stub.faults["zz"].extend(["500"] * 3)
    system = service(stub, tmp_path, retries=2)
    first = system.moderate(texts_of("fine", "zz"))
    assert first.outcomes.tolist() == [Outcome.ALLOWED, Outcome.ERROR]
    second = system.moderate(texts_of("fine", "zz"))
    assert second.outcomes.tolist() == [Outcome.ALLOWED, Outcome.FLAGGED]
    assert stub.asked == {"fine": 1, "zz": 4}
    third = system.moderate(texts_of("fine", "zz"))
    assert third.outcomes.tolist() == second.outcomes.tolist()
    assert stub.asked == {"fine": 1, "zz": 4}


@pytest.mark.parametrize("status", ["401", "403", "404", "302"])
def test_a_service_that_turns_us_away_stops_the_run_and_keeps_what_was_answered(
    stub: Any, tmp_path: Path, status: str
) -> None:
    rows = [f"text {i}" for i in range(50)]
    stub.faults["text 20"].append(status)
    system = service(stub, tmp_path, concurrency=1)
    with pytest.raises(RunStoppedError, match=rf"{status}.*20 of 50 questions.*are kept"):
        system.moderate(texts_of(*rows))
    assert sum(stub.asked.values()) == 21
    partial = system.runner().collect(texts_of(*rows))
    assert np.count_nonzero(partial.decisions.decided) == 20
    assert Counter(partial.reasons)["not asked yet"] == 29
    assert system.moderate(texts_of(*rows)).decided.all()
    assert stub.asked == {row: 1 + (row == "text 20") for row in rows}


def test_a_long_retry_after_stops_the_run(stub: Any, tmp_path: Path) -> None:
    stub.faults["b"].append("429:86400")
    with pytest.raises(RunStoppedError, match="86,400 s: a quota"):
        service(stub, tmp_path, concurrency=1).moderate(texts_of("a", "b", "c"))
    assert stub.asked == {"a": 1, "b": 1}


def test_every_request_takes_a_slot_and_a_retry_after_pauses_all(
    stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slots: list[float] = []
    pauses: list[float] = []

    def wait(limit: RateLimit) -> float:
        slots.append(limit.interval)
        return 0.0

    monkeypatch.setattr(RateLimit, "wait", wait)
    monkeypatch.setattr(RateLimit, "pause", lambda limit, seconds: pauses.append(seconds))
    stub.faults["a"].extend(["429:7", "500"])
    system = service(stub, tmp_path, concurrency=1, per_second=20, per_minute=600)
    system.moderate(texts_of("a", "b"))
    assert stub.asked == {"a": 3, "b": 1}
    assert [p for p in pauses if p] == [7.0]
    assert slots == [0.1] * (4 + 1), "one for each request, and one before the work was found done"


def test_a_service_that_is_down_ends_the_run_early(stub: Any, tmp_path: Path) -> None:
    rows = [f"text {i}" for i in range(100)]
    for row in rows:
        stub.faults[row].extend(["500"] * 9)
    system = service(stub, tmp_path, retries=1, give_up_after=5, concurrency=2)
    with pytest.raises(RunStoppedError, match=r"5 questions failed in a row.*0 of 100"):
        system.moderate(texts_of(*rows))
    assert len(stub.asked) < 20


def test_nothing_listens_at_the_address(tmp_path: Path, stub_with: Any) -> None:
    gone = stub_with()
    system = service(gone, tmp_path, retries=0, give_up_after=2)
    system.base_url = "http://127.0.0.1:9/plain"
    with pytest.raises(RunStoppedError, match="failed in a row"):
        system.moderate(texts_of("a", "b", "c"))


def test_repeats_are_asked_each_and_cached_each(stub: Any, tmp_path: Path) -> None:
    texts = texts_of("a", "zz")
    once = service(stub, tmp_path).moderate(texts)
    assert once.repeats is None
    thrice = service(stub, tmp_path, repeats=3).moderate(texts)
    assert stub.asked == {"a": 3, "zz": 3}
    assert thrice.repeats is not None
    assert thrice.repeats.tolist() == [0, 0, 1, 1, 2, 2]
    assert thrice.ids.tolist() == [0, 1] * 3
    assert thrice.outcomes.tolist() == [0, 1] * 3
    service(stub, tmp_path, repeats=3).moderate(texts)
    assert stub.asked == {"a": 3, "zz": 3}


def test_the_same_text_twice_is_asked_once(stub: Any, tmp_path: Path) -> None:
    decisions = service(stub, tmp_path).moderate(texts_of("zz", "a", "zz"))
    assert decisions.outcomes.tolist() == [1, 0, 1]
    assert stub.asked == {"zz": 1, "a": 1}


def test_texts_that_cannot_be_sent_have_outcomes(stub: Any, tmp_path: Path) -> None:
    system = service(stub, tmp_path)
    system.max_bytes = 100
    odd = ["", "  \n", "é" * 51, "e" * 100, "bad \ud800 end", "nul \0 and \u202e"]
    decisions = system.moderate(texts_of(*odd))
    assert [Outcome(o).name for o in decisions.outcomes] == ["ERROR"] * 3 + ["ALLOWED"] * 3
    report = system.last_report
    assert report is not None
    assert "empty" in report.reasons[0] and "102 bytes" in report.reasons[2]
    assert stub.asked == {"e" * 100: 1, "bad \ufffd end": 1, "nul \0 and \u202e": 1}
    assert any("surrogates" in notice for notice in report.notices)


def test_no_texts(stub: Any, tmp_path: Path) -> None:
    assert len(service(stub, tmp_path).moderate(texts_of())) == 0


def test_a_threshold_is_changed_without_asking_again(stub: Any, tmp_path: Path) -> None:
    texts = texts_of("z" + "a" * 30)
    assert service(stub, tmp_path).moderate(texts).outcomes.tolist() == [0]
    strict = service(stub, tmp_path)
    strict.threshold = 0.1
    assert strict.moderate(texts).outcomes.tolist() == [1]
    assert sum(stub.asked.values()) == 1


def test_another_version_is_asked_again(stub: Any, tmp_path: Path) -> None:
    first, second = service(stub, tmp_path), service(stub, tmp_path)
    second.version = "2"
    first.moderate(texts_of("a"))
    second.moderate(texts_of("a"))
    assert stub.asked == {"a": 2}


def test_batches_and_a_text_that_spoils_one(stub: Any, tmp_path: Path) -> None:
    rows = [f"text {i}" for i in range(10)] + ["zz"]
    stub.faults["text 4"].extend(["400", "400"])
    system = OpenAIModeration(
        model="omni-moderation-2024-09-26",
        base_url=f"{stub.url}/v1",
        key_env="",
        cache=tmp_path / "a.sqlite",
        run=RunSettings(batch=4, **QUICK),
    )
    decisions = system.moderate(texts_of(*rows))
    assert decisions.outcomes.tolist() == [0, 0, 0, 0, Outcome.ERROR, 0, 0, 0, 0, 0, 1]
    assert max(stub.answered.values()) == 1
    assert stub.asked["text 4"] == 2 and stub.asked["text 0"] == 1
    with pytest.raises(PlanError, match="one text in a request"):
        service(stub, tmp_path, batch=2).moderate(texts_of("a"))


def test_the_estimate_comes_first_and_the_budget_holds(stub: Any, tmp_path: Path) -> None:
    system = service(stub, tmp_path, per_minute=60, repeats=2, max_cost=1.0)
    system.price = Price(0.5, "text", "EUR")
    texts = texts_of("a", "b", "b", "")
    estimate = system.quote(texts)
    assert (estimate.texts, estimate.questions, estimate.unsent, estimate.known) == (8, 4, 2, 0)
    assert estimate.cost == pytest.approx(2.0)
    assert estimate.seconds == pytest.approx(4.0)
    assert "about 2.00 EUR" in str(estimate) and "at least 4 s" in str(estimate)
    with pytest.raises(PlanError, match=r"2\.00 EUR, over max_cost = 1\.00; nothing was asked"):
        system.moderate(texts)
    system.price = Price()
    with pytest.raises(PlanError, match="no price"):
        system.moderate(texts)
    assert not stub.asked
    notes: list[str] = []
    service(stub, tmp_path).moderate(texts, progress=lambda done, total, note: notes.append(note))
    assert "2 of 4 texts to ask" in notes[0]
    after = service(stub, tmp_path).quote(texts)
    assert (after.questions, after.known, after.cost) == (0, 3, None)


def test_a_damaged_reply_is_asked_again_once_and_counted(stub: Any, tmp_path: Path) -> None:
    texts = texts_of("a", "zz", "b", "zzz")
    before = service(stub, tmp_path).moderate(texts)
    with closing(sqlite3.connect(tmp_path / "answers.sqlite")) as db:
        db.execute("UPDATE calls SET raw = CAST('{\"score\": 0.99}' AS BLOB) WHERE rowid = 3")
        db.commit()
    assert service(stub, tmp_path).quote(texts).questions == 1
    report = service(stub, tmp_path).runner().run(texts)
    assert report.decisions.outcomes.tolist() == before.outcomes.tolist()
    assert (report.asked, stub.asked.total()) == (1, 5)
    assert "1 cached replies were damaged on disk" in report.notices[0]
    assert service(stub, tmp_path).runner().run(texts).notices == ()


def test_a_run_inside_a_running_event_loop(stub: Any, tmp_path: Path) -> None:
    async def notebook() -> Any:
        return service(stub, tmp_path).moderate(texts_of("zz"))

    assert asyncio.run(notebook()).outcomes.tolist() == [1]


def test_two_runs_at_once_are_told_apart(stub: Any, tmp_path: Path) -> None:
    system = service(stub, tmp_path)
    with (
        AnswerStore(tmp_path / "answers.sqlite", "http", system.identity) as cache,
        cache.lock(),
        pytest.raises(ResultError, match="another run"),
    ):
        system.moderate(texts_of("a"))
    assert system.moderate(texts_of("a")).decided.all()


def test_a_full_disk_stops_the_run_and_keeps_every_reply(
    stub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = AnswerStore._prepare
    rescue = AnswerStore.rescue

    def small(cache: Any) -> None:
        prepare(cache)
        cache._db.execute("PRAGMA max_page_count = 20")

    def with_reserve(cache: Any, answered: Any) -> None:
        cache._db.execute("PRAGMA max_page_count = 1000")
        rescue(cache, answered)
        pages = cache._db.execute("PRAGMA page_count").fetchone()[0]
        cache._db.execute(f"PRAGMA max_page_count = {pages}")

    rows = [f"text {i}" for i in range(1500)]
    with monkeypatch.context() as patch:
        patch.setattr(AnswerStore, "_prepare", small)
        patch.setattr(AnswerStore, "rescue", with_reserve)
        with pytest.raises(RunStoppedError, match=r"disk is full\); make room") as caught:
            service(stub, tmp_path).moderate(texts_of(*rows))
    assert "could not be written" not in str(caught.value)
    kept = service(stub, tmp_path).runner().collect(texts_of(*rows))
    assert np.count_nonzero(kept.decisions.decided) == sum(stub.answered.values()) > 100
    assert service(stub, tmp_path).moderate(texts_of(*rows)).decided.all()
    assert set(stub.answered.values()) == {1}


def test_ctrl_c_waits_for_replies_and_keeps_them(stub_with: Any, tmp_path: Path) -> None:
    stub = stub_with(latency=0.05)
    rows = [f"text {i}" for i in range(400)]

    def press() -> None:
        while sum(stub.asked.values()) < 20:
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    # A test run in the background starts with SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt, match="stopped: interrupted"):
            service(stub, tmp_path, concurrency=4).moderate(texts_of(*rows))
    finally:
        presser.join()
        signal.signal(signal.SIGINT, before)
    kept = service(stub, tmp_path).runner().collect(texts_of(*rows))
    assert np.count_nonzero(kept.decisions.decided) == sum(stub.asked.values()) < 400
    assert kept.estimate.uncertain == 0


CHILD = """
import json, sys
import numpy as np
from pathlib import Path
from ombud.data.texts import Texts
from ombud.systems.moderators import HttpModerator, RunSettings
rows, url, cache = json.load(sys.stdin)
texts = Texts(np.arange(len(rows)), np.array(rows, dtype=object), np.full(len(rows), -1, np.int8))
HttpModerator(
    name="stub", base_url=url, score_path="score", threshold=0.5, version_path="model.v",
    cache=Path(cache), run=RunSettings(backoff=0.01, longest_backoff=0.05, timeout=10),
).moderate(texts)
"""


def start_and_kill(stub: Any, rows: list[str], cache: Path, after: int) -> None:
    before = sum(stub.asked.values())
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(json.dumps([rows, f"{stub.url}/plain", str(cache)]))
    child.stdin.close()
    while sum(stub.asked.values()) < before + after:
        assert child.poll() is None, "the child ended before it could be killed"
        time.sleep(0.001)
    child.kill()
    child.wait()


def test_killed_and_resumed_every_text_has_one_outcome_and_none_is_asked_twice(
    stub_with: Any, tmp_path: Path
) -> None:
    stub = stub_with(latency=0.01)
    rows = [f"{'zz ' * (i % 3 == 0)}text {i}" for i in range(600)]
    faults = ["500", "429", "429:0.1", "malformed", "reset", "close", "half", "chunked"]
    for i, fault in enumerate(faults * 5):
        stub.faults[rows[7 * i]].append(fault)
    faulty = set(stub.faults)
    cache = tmp_path / "answers.sqlite"
    for after in (37, 101, 150):
        start_and_kill(stub, rows, cache, after)
    assert 288 <= sum(stub.asked.values()) < 600
    # Long enough that only the replies cut in half run out of time, however loaded the machine.
    system = service(stub, tmp_path, timeout=10)
    decisions = system.moderate(texts_of(*rows))
    assert len(decisions) == len(rows)
    assert max(stub.answered.values()) == 1, "a whole reply was given twice"
    assert {row for row, count in stub.asked.items() if count > 1} <= faulty
    report = system.last_report
    assert report is not None
    lost = [r for r, why in zip(rows, report.reasons, strict=True) if "in flight" in why]
    assert 0 < len(lost) <= 3 * 8 * 2, "more texts are uncertain than were under way"
    expected = [
        Outcome.ERROR
        if row in lost
        else Outcome.UNPARSEABLE
        if row in faulty and (rows.index(row) // 7) % 8 == 3 and stub.asked[row] == 1
        else Outcome(row.startswith("zz"))
        for row in rows
    ]
    assert decisions.outcomes.tolist() == expected
    again = service(stub, tmp_path, timeout=10, in_flight="ask")
    assert not (again.moderate(texts_of(*rows)).outcomes == Outcome.ERROR).any()
    twice = {row for row, count in stub.answered.items() if count > 1}
    assert twice <= set(lost)


def test_a_cache_of_something_else_is_refused_and_left_alone(stub: Any, tmp_path: Path) -> None:
    other = tmp_path / "answers.sqlite"
    other.write_text("not a database, but somebody's notes\n" * 50)
    with pytest.raises(ResultError, match="file is not a database"):
        service(stub, tmp_path).moderate(texts_of("a"))
    assert other.read_text().startswith("not a database")
    other.unlink()
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE mine (x)")
    db.close()
    with pytest.raises(ResultError, match="not an answer cache"):
        service(stub, tmp_path).moderate(texts_of("a"))


def test_raw_replies_times_and_outcomes_are_kept_but_not_texts(stub: Any, tmp_path: Path) -> None:
    stub.faults["zz secret wording"].append("malformed")
    service(stub, tmp_path).moderate(texts_of("zz secret wording", "a"))
    db = sqlite3.connect(tmp_path / "answers.sqlite")
    rows = db.execute(
        "SELECT outcome, raw, answered - asked FROM calls ORDER BY outcome"
    ).fetchall()
    db.close()
    assert [row[0] for row in rows] == ["allowed", "malformed"]
    assert json.loads(rows[0][1])["score"] == 0 and rows[1][1] == b'{"attributeScores": {'
    assert all(row[2] >= 0 for row in rows)
    everything = b"".join(p.read_bytes() for p in tmp_path.iterdir())
    assert b"secret wording" not in everything


def test_another_edition_is_asked_again_and_both_are_kept(stub: Any, tmp_path: Path) -> None:
    march, april = service(stub, tmp_path), service(stub, tmp_path)
    march.edition, april.edition = "2026-03", "2026-04"
    for system in (march, april, march):
        system.moderate(texts_of("a", "b"))
    assert stub.asked == {"a": 2, "b": 2}


def test_a_service_of_a_plugin_that_raises_costs_only_its_own_text(
    stub: Any, tmp_path: Path
) -> None:
    class Clumsy(HttpModerator):
        def body(self, texts: Any) -> bytes:
            return super().body(texts) if texts[0] != "b" else bytes(texts[0])

        def parse(self, status: int, body: bytes) -> Any:
            return super().parse(status, body) if b"1.0" not in body else body["x"]  # type: ignore

    system = Clumsy(
        base_url=f"{stub.url}/plain", score_path="score", threshold=0.5, cache=tmp_path / "a.sqlite"
    )
    decisions = system.moderate(texts_of("a", "b", "zz", "c"))
    assert decisions.outcomes.tolist() == [0, Outcome.ERROR, Outcome.UNPARSEABLE, 0]
    assert stub.asked == {"a": 1, "zz": 1, "c": 1}


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("fault", ["twice:0", "twice:0.002", "twice:0.06", "late:0.25", "close"])
def test_no_text_gets_the_answer_of_another(
    stub_with: Any, tmp_path: Path, fault: str, concurrency: int
) -> None:
    stub = stub_with(latency=0.005)
    rows = [f"{'z' * (i % 2) * 9}text {i}" for i in range(40)]
    for row in rows[2:40:9]:
        stub.faults[row].append(fault)
    # What is late is no answer; on a busy machine other replies are late too, and asked for again.
    late = {"timeout": 0.2, "retries": 100} if fault == "late:0.25" else {"timeout": 60}
    system = service(stub, tmp_path, concurrency=concurrency, **late)
    decisions = system.moderate(texts_of(*rows))
    assert decisions.outcomes.tolist() == [i % 2 for i in range(40)]
    kept = system.runner().collect(texts_of(*rows)).decisions
    assert kept.outcomes.tolist() == decisions.outcomes.tolist()


@pytest.mark.parametrize(
    ("echo", "outcome", "asked"),
    [("zz", Outcome.FLAGGED, 1), ("another", Outcome.FLAGGED, 2), ("", Outcome.FLAGGED, 2)],
)
def test_a_reply_that_names_another_text_is_no_answer(
    stub: Any, tmp_path: Path, echo: str, outcome: Outcome, asked: int
) -> None:
    reply = {"score": 1.0, "model": {"v": "7"}, **({"text": echo} if echo else {})}
    good = {"score": 1.0, "model": {"v": "7"}, "text": "zz"}
    faults = [f"body:{json.dumps(one).encode().hex()}" for one in (reply, good)]
    stub.faults["zz"].extend(faults)
    system = service(stub, tmp_path)
    system.echo_path = "text"
    assert system.moderate(texts_of("zz")).outcomes.tolist() == [outcome]
    assert stub.asked == {"zz": asked}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (b'{"score": 1e300, "model": {"v": "7"}}', Outcome.UNPARSEABLE),
        (b'{"score": 1' + b"0" * 400 + b', "model": {"v": "7"}}', Outcome.UNPARSEABLE),
        (b'{"score": 1' + b"0" * 5000 + b', "model": {"v": "7"}}', Outcome.UNPARSEABLE),
        (b'{"score": NaN, "model": {"v": "7"}}', Outcome.UNPARSEABLE),
        (b'{"score": 1, "model": {"v": "\\ud800x"}}', Outcome.FLAGGED),
        (b'{"score": 1, "model": {"v": "7"}, "c": {"\\ud800": 0.5}}', Outcome.FLAGGED),
        (b"[" * 100_000, Outcome.UNPARSEABLE),
        (b'{"score": ' + b"[" * 100_000, Outcome.UNPARSEABLE),
        (b"\xff\xfe\x00", Outcome.UNPARSEABLE),
        (b"", Outcome.UNPARSEABLE),
    ],
)
def test_odd_replies_have_an_outcome_and_can_be_written(
    stub: Any, tmp_path: Path, body: bytes, outcome: Outcome
) -> None:
    stub.faults["zz"].append(f"body:{body.hex()}")
    system = service(stub, tmp_path)
    if b'"c"' in body:
        system.categories_path = "c"
    decisions = system.moderate(texts_of("zz"))
    assert decisions.outcomes.tolist() == [outcome]
    decisions.to_frame().write_parquet(tmp_path / "decisions.parquet")
    "".join((decisions.version, *decisions.categories)).encode()


def test_a_batch_whose_reply_is_nested_too_deeply(stub: Any, tmp_path: Path) -> None:
    stub.faults["a"].append(f"body:{(b'[' * 100_000).hex()}")
    system = OpenAIModeration(
        model="omni-moderation-2024-09-26",
        base_url=f"{stub.url}/v1",
        key_env="",
        cache=tmp_path / "a.sqlite",
        run=RunSettings(batch=4, **QUICK),
    )
    # Each text gets a request of its own, since the reply to both cannot be divided.
    assert system.moderate(texts_of("a", "b")).outcomes.tolist() == [Outcome.ALLOWED] * 2
    assert stub.asked == {"a": 2, "b": 2}


def test_a_damaged_cache_is_a_sentence(stub: Any, tmp_path: Path) -> None:
    rows = [f"text {i}" for i in range(800)]
    service(stub, tmp_path).moderate(texts_of(*rows))
    path = tmp_path / "answers.sqlite"
    data = bytearray(path.read_bytes())
    data[8192:40_000] = b"\x07" * (40_000 - 8192)
    path.write_bytes(data)
    for act in (service(stub, tmp_path).quote, service(stub, tmp_path).moderate):
        with pytest.raises(ResultError, match=r"answers\.sqlite.*repair this one"):
            act(texts_of(*rows))
