"""Rate limits, waits, estimates, the cache and the lean HTTP client, each alone."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import PlanError, ResultError
from ombud.http.pace import retry_after
from ombud.systems.moderators import AnswerCache, Price, RunSettings
from ombud.systems.moderators.cache import Call, default_path, text_hash
from ombud.systems.moderators.limits import RateLimit, backoff
from ombud.systems.moderators.local import without_surrogates
from ombud.systems.moderators.transport import (
    HttpxTransport,
    PlainTransport,
    TransportError,
    transport_for,
)


@given(
    st.floats(0.5, 50) | st.none(),
    st.floats(30, 3000) | st.none(),
    st.lists(st.floats(0, 0.5), min_size=2, max_size=60),
)
def test_no_window_ever_holds_more_than_its_limit(
    per_second: float | None, per_minute: float | None, gaps: list[float]
) -> None:
    now = [100.0]
    limit = RateLimit(per_second, per_minute, lambda: now[0])
    starts = []
    for gap in gaps:
        now[0] += gap
        starts.append(now[0] + limit.wait())
    for window, most in ((1.0, per_second), (60.0, per_minute)):
        if most is None:
            continue
        for start in starts:
            inside = sum(start <= s < start + window * (1 - 1e-9) for s in starts)
            assert inside <= most * 1.0 + 1


def test_a_pause_holds_everyone_back() -> None:
    now = [0.0]
    limit = RateLimit(None, None, lambda: now[0])
    assert limit.wait() == 0
    limit.pause(5)
    now[0] = 2
    assert limit.wait() == limit.wait() == 3
    now[0] = 6
    assert limit.wait() == 0


def test_waits_grow_are_capped_and_repeat_with_the_seed() -> None:
    waits = [backoff(i, 1, "a", 0.5, 8.0) for i in range(60)]
    for i, wait in enumerate(waits):
        most = min(8.0, 0.5 * 2.0**i)
        assert most / 2 <= wait <= most
    assert waits == [backoff(i, 1, "a", 0.5, 8.0) for i in range(60)]
    assert waits[:9] != [backoff(i, 2, "a", 0.5, 8.0) for i in range(9)]
    assert backoff(3, 1, "b", 0.5, 8.0) != waits[3]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", None),
        ("0", 0.0),
        ("1.5", 1.5),
        ("-3", None),
        ("soon", None),
        ("Sun, 15 Nov 2026 12:00:30 GMT", 30.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("Sun, 99 Nov 2026 11:00:00 GMT", None),
    ],
)
def test_retry_after(header: str, seconds: float | None) -> None:
    assert retry_after(header, datetime(2026, 11, 15, 12, tzinfo=UTC)) == seconds


def test_prices() -> None:
    assert Price(None).of(10, 1, 0) is None
    assert Price(2.0).of(10, 3, 0) == 6
    assert Price(2.0, "1k-characters").of(1500, 5, 100) == 4
    assert Price(3.0, "1m-tokens").of(4_000_000, 1, 0) == 3


def test_settings_say_all_faults() -> None:
    with pytest.raises(PlanError, match=r"concurrency is 0, retries is -1, timeout is 0"):
        RunSettings(concurrency=0, retries=-1, timeout=0)


@given(st.text(st.characters()))
def test_any_text_can_be_hashed_once_cleaned(text: str) -> None:
    clean = without_surrogates(text)
    assert len(text_hash(clean)) == 16
    assert clean == without_surrogates(clean)
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert clean == text


def call(attempt: int, outcome: str = "allowed") -> Call:
    return Call(attempt, 1.0, 2.0, 200, outcome, "", b"{}")


def test_the_cache_keeps_the_last_attempt_of_each_key_and_system(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.sqlite"
    key = (b"x" * 16, 0)
    with AnswerCache(path, "s", "1") as cache:
        cache.write([(key, 0, 1.0)], [])
        assert cache.latest()[key].answered is None
        cache.write([], [(key, call(0, "error"))])
        cache.write([(key, 1, 3.0)], [])
        assert cache.latest()[key].answered is None
        cache.write([], [(key, call(1))])
    with AnswerCache(path, "s", "1") as cache:
        assert cache.latest()[key].outcome == "allowed"
        with pytest.raises(sqlite3.IntegrityError):
            cache.write([(key, 1, 3.0)], [])
    with AnswerCache(path, "s", "2") as cache:
        assert cache.latest() == {}
    assert path.stat().st_mode & 0o077 == 0


def test_a_cache_of_a_newer_ombud_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    AnswerCache(path, "s", "1").close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(ResultError, match="newer ombud"):
        AnswerCache(path, "s", "1")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ResultError, match="Name another file"):
        AnswerCache(tmp_path / "file" / "a.sqlite", "s", "1")


def test_the_default_cache_can_be_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMBUD_CACHE", raising=False)
    assert default_path() == Path(".ombud/moderators.sqlite")
    monkeypatch.setenv("OMBUD_CACHE", "elsewhere")
    assert default_path() == Path("elsewhere/moderators.sqlite")


def serve_once(*replies: bytes) -> Any:
    """Post once to a server that sends these bytes, and return what the client made of them."""

    async def run() -> Any:
        handled = asyncio.Event()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            with suppress(OSError):
                for reply in replies:
                    writer.write(reply)
                    await writer.drain()
                    await asyncio.sleep(0.01)
            writer.close()
            handled.set()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = PlainTransport(f"http://127.0.0.1:{port}/x?y=1", {"A": "b"}, 1.0)
        try:
            return await client.post(b"")
        finally:
            await client.close()
            server.close()
            await handled.wait()
            await asyncio.sleep(0.01)

    return asyncio.run(run())


def test_the_lean_client_reads_replies_of_every_form() -> None:
    assert serve_once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok").body == b"ok"
    assert serve_once(b"HTTP/1.0 200 OK\r\n\r\nuntil", b" closed").body == b"until closed"
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
    assert (
        serve_once(chunked, b"3;x=y\r\nabc\r\n", b"2\r\nde\r\n0\r\nT: 1\r\n\r\n").body == b"abcde"
    )
    assert serve_once(b"HTTP/1.1 204 No\r\n\r\n").status == 204
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 Slow\r\nRetry-After: 3\r\n"
    reply = serve_once(early, b"Content-Length: 0\r\n\r\n")
    assert (reply.status, reply.retry_after) == (429, "3")


@pytest.mark.parametrize(
    "bad",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000,
    ],
)
def test_the_lean_client_turns_every_broken_reply_into_one_error(bad: bytes) -> None:
    with pytest.raises(TransportError):
        serve_once(bad)


def test_the_lean_client_sends_no_line_breaks_in_headers() -> None:
    with pytest.raises(ValueError, match="line break"):
        PlainTransport("http://127.0.0.1/", {"A": "b\r\nC: d"}, 1.0)


def test_the_world_goes_through_httpx(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(variable, raising=False)

    async def kind(url: str) -> type:
        transport = transport_for(url, {}, 1.0)
        await transport.close()
        return type(transport)

    assert asyncio.run(kind("https://example.org")) is HttpxTransport
    assert asyncio.run(kind("http://127.0.0.1:8000")) is PlainTransport
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:3128")
    assert asyncio.run(kind("http://models.internal:8000")) is HttpxTransport
