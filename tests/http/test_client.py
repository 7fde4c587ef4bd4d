"""The client against servers that send too much, too late, too little, or something else."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import signal
import sys
import threading
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from ombud.errors import PlanError
from ombud.http import client
from ombud.http.client import Client, Reply, RequestError, TooLargeError, blocking, new_loop

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def serving(handler: Handler, ask: Callable[[str], Awaitable[Any]]) -> Any:
    """Ask a server that treats each connection as `handler` says."""

    async def run() -> Any:
        tasks: set[asyncio.Task[None]] = set()

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await handler(reader, writer)
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await ask(f"http://127.0.0.1:{port}/x?y=1")
        finally:
            server.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.02)

    return asyncio.run(run())


async def read_question(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return await reader.readexactly(int(found[1]) if found else 0)


def reply_of(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def serve_once(*replies: bytes, largest: int = 1 << 24) -> Reply:
    """Post once to a server that sends these bytes, and return what the client made of them."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_question(reader)
        for reply in replies:
            writer.write(reply)
            await writer.drain()
            await asyncio.sleep(0.01)

    async def ask(url: str) -> Reply:
        client = Client(url, {"A": "b"}, 60.0, largest=largest)
        try:
            return await client.post(b"")
        finally:
            await client.close()

    return serving(handle, ask)  # type: ignore[no-any-return]


def test_replies_of_every_form_are_read() -> None:
    assert serve_once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"ok").body == b"ok"
    assert serve_once(b"HTTP/1.0 200 OK\r\n\r\nuntil", b" closed").body == b"until closed"
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    reply = serve_once(chunked, b"3;x=y\r\nabc\r\n", b"2\r\nde\r\n0\r\nT: 1\r\n\r\n")
    assert reply.body == b"abcde"
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
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000,
    ],
)
def test_every_broken_reply_is_one_error(bad: bytes) -> None:
    with pytest.raises(RequestError):
        serve_once(bad)


INTERIM = {
    "100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n",
    "102 Processing": b"HTTP/1.1 102 Processing\r\n\r\n",
    "103 with headers": b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </x>\r\n" * 100 + b"\r\n",
}


@pytest.mark.parametrize("name", INTERIM)
def test_endless_interim_replies_end_at_a_count(name: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_question(reader)
        while True:
            writer.write(INTERIM[name] * 100)
            await writer.drain()

    async def ask(url: str) -> None:
        client = Client(url, {}, 600.0)
        try:
            with pytest.raises(RequestError, match="more than 16 interim replies"):
                await client.post(b"")
            with pytest.raises(RequestError, match="more than 16 interim replies"):
                async with client.stream({}):
                    pass
        finally:
            await client.close()

    serving(handle, ask)


def test_some_interim_replies_are_no_harm_on_every_request_of_a_connection() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_question(reader)
            writer.write(INTERIM["100 Continue"] * 10 + reply_of(b"{}"))
            await writer.drain()

    async def ask(url: str) -> None:
        client = Client(url, {}, 60.0, kept=True)
        for _ in range(5):
            assert (await client.post(b"")).body == b"{}"
        await client.close()

    serving(handle, ask)


FLOODS = {
    "headers": b"".join(b"X-%d: y\r\n" % i for i in range(2000)),
    "one header": b"y" * 100_000,
    "folded lines": b"X: y\r\n" + b" z\r\n" * 10_000,
    "trailers": b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 2000,
}


@pytest.mark.parametrize("name", FLOODS)
def test_floods_of_headers_are_one_error(name: str) -> None:
    with pytest.raises(RequestError):
        serve_once(b"HTTP/1.1 200 OK\r\n" + FLOODS[name])


def test_headers_that_drip_end_with_the_time_limit_of_a_download_too() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_question(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for i in range(10_000):
            writer.write(b"X-%d: y\r\n" % i)
            await writer.drain()
            await asyncio.sleep(0.05)

    async def ask(url: str) -> None:
        client = Client(url, {}, 0.3)
        with pytest.raises(RequestError, match=r"nothing came for 0\.3 s"):
            async with client.stream({}):
                pass

    serving(handle, ask)


def test_headers_that_cannot_be_sent_are_refused() -> None:
    for value in ("b\r\nC: d", "café", "nul\0"):
        with pytest.raises(PlanError, match="header"):
            Client("http://127.0.0.1/", {"A": value}, 1.0)
    with pytest.raises(PlanError, match="no name"):
        Client("http://127.0.0.1/", {"A b": "c"}, 1.0)


def test_compression_is_not_asked_for_and_bounded_all_the_same() -> None:
    asked = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(reply_of(b"{}"))
        await writer.drain()

    async def ask(url: str) -> None:
        client = Client(url, {}, 60.0)
        await client.post(b"")
        await client.close()

    serving(handle, ask)
    assert b"accept-encoding: identity" in asked[0].lower()
    packed = gzip.compress(b'{"a": 1}')
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    assert serve_once(head % (b"gzip", len(packed)) + packed).body == b'{"a": 1}'
    with pytest.raises(RequestError, match="cut short"):
        serve_once(head % (b"gzip", len(packed) - 9) + packed[:-9])


@pytest.mark.parametrize("encoding", [b"gzip", b"gzip, gzip", b"gzip, gzip, gzip", b"br", b"zstd"])
def test_a_bomb_takes_no_more_memory_than_a_reply_may(encoding: bytes) -> None:
    bomb = gzip.compress(bytes(200 << 20), 9)
    for _ in encoding.split(b",")[1:]:
        bomb = gzip.compress(bomb, 9)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    tracemalloc.start()
    try:
        with pytest.raises(RequestError, match="over 1,000,000 bytes|not asked for"):
            serve_once(head % (encoding, len(bomb)) + bomb, largest=1_000_000)
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


def test_size_is_bounded_announced_or_not() -> None:
    with pytest.raises(TooLargeError, match="announces 5,000 bytes"):
        serve_once(reply_of(bytes(5000)), largest=1000)
    with pytest.raises(TooLargeError, match="over 1,000 bytes"):
        serve_once(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(5000), largest=1000)


def test_a_reply_that_drips_ends_with_the_time_out() -> None:
    written = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_question(reader)
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        for _ in range(10_000):
            writer.write(b" ")
            written += 1
            await writer.drain()
            await asyncio.sleep(0.02)

    async def ask(url: str) -> int:
        client = Client(url, {}, 0.3)
        with pytest.raises(RequestError, match=r"no reply within 0\.3 s"):
            await client.post(b"")
        await client.close()
        return written

    assert serving(handle, ask) < 10_000


# ---------------------------------------------------------------- answers and their questions


def echo(question: bytes) -> bytes:
    return reply_of(json.dumps({"echo": question.decode()}).encode())


class Surplus:
    """Answers with what was asked; one question is answered twice, after a while."""

    def __init__(self, delay: float, at: int = 3, always: bool = False) -> None:
        self.delay, self.at, self.always = delay, at, always
        self.asked = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            question = await read_question(reader)
            self.asked += 1
            twice = self.always or self.asked == self.at
            await asyncio.sleep(0.005)
            writer.write(echo(question) + (echo(question) if twice and not self.delay else b""))
            if twice and self.delay:
                asyncio.get_running_loop().call_later(self.delay, writer.write, echo(question))


async def ask_many(url: str, n: int, at_once: int, timeout: float = 60.0) -> dict[str, str]:
    """Ask `n` questions and return what each was answered."""
    client = Client(url, {}, timeout)
    answers: dict[str, str] = {}

    async def work(names: Any) -> None:
        for name in names:
            while name not in answers:
                with suppress(RequestError):
                    reply = await client.post(name.encode())
                    answers[name] = json.loads(reply.body)["echo"]

    names = iter([f"question {i}" for i in range(n)])
    await asyncio.gather(*[work(names) for _ in range(at_once)])
    await client.close()
    return answers


@pytest.mark.parametrize("at_once", [1, 8])
@pytest.mark.parametrize("always", [False, True])
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.02, 0.045, 0.06, 0.09])
def test_a_surplus_reply_is_nobodys_answer(delay: float, always: bool, at_once: int) -> None:
    handler = Surplus(delay, always=always)
    answers = serving(handler, lambda url: ask_many(url, 40, at_once))
    assert len(answers) == 40
    assert {name: said for name, said in answers.items() if name != said} == {}


@pytest.mark.parametrize("kept", [False, True])
def test_connections_are_used_again_only_where_replies_are_checked(kept: bool) -> None:
    connections = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        while True:
            writer.write(echo(await read_question(reader)))

    async def ask(url: str) -> None:
        client = Client(url, {}, 60.0, kept=kept)
        for _ in range(6):
            await client.post(b"q")
        assert len(connections) == (1 if kept else 6)
        client.distrust()
        for _ in range(3):
            await client.post(b"q")
        assert len(connections) == (4 if kept else 9)
        await client.close()

    serving(handle, ask)


def test_a_reply_after_the_time_out_is_nobodys_answer() -> None:
    asked = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while True:
            question = await read_question(reader)
            asked += 1
            await asyncio.sleep(0.4 if asked % 7 == 3 else 0.002)
            writer.write(echo(question))

    answers = serving(handle, lambda url: ask_many(url, 40, 4, timeout=0.25))
    assert len(answers) == 40 and all(name == said for name, said in answers.items())


def test_a_reply_cut_short_is_no_answer() -> None:
    asked = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        while True:
            whole = echo(await read_question(reader))
            asked += 1
            if asked % 5 == 2:
                writer.write(whole[: -(asked % 9) - 1])
                return
            writer.write(whole)

    answers = serving(handle, lambda url: ask_many(url, 40, 4))
    assert len(answers) == 40 and all(name == said for name, said in answers.items())


# ---------------------------------------------------------------- proxies and interruption


def test_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    reached = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await read_question(reader))
        writer.write(reply_of(b"{}"))
        await writer.drain()

    async def ask(url: str) -> None:
        for variable in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(variable, "http://127.0.0.1:9")
        for variable in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(variable, raising=False)
        client = Client(url, {"Authorization": "Bearer secret"}, 60.0)
        await client.post(b"q")
        await client.close()

    serving(handle, ask)
    assert reached == [b"q"]


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_wait_ends_at_once_on_a_signal(
    sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, cancelled, pressed = threading.Event(), [], []

    async def long() -> None:
        begun.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    def press() -> None:
        if begun.is_set() and not pressed:
            pressed.append(True)
            os.kill(os.getpid(), sent)

    waiting = client.wait_in_thread
    monkeypatch.setattr(client, "wait_in_thread", lambda *how: waiting(*how, tick=press))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            blocking(long())
    finally:
        signal.signal(signal.SIGINT, before)
    assert cancelled  # the sleep did not run out
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("name", ["uvloop", "asyncio"])
def test_the_loop_is_uvloops_where_it_is_installed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "uvloop":
        pytest.importorskip("uvloop")
    else:
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def asked() -> str:
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    assert blocking(asked()) == name
    loop = new_loop()
    loop.close()
    assert type(loop).__module__.startswith(name)


def test_what_goes_wrong_in_the_other_thread_is_raised_here() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        blocking(fails())
