"""Hostile replies: what a service sends, byte by byte -> what is made of it.

A text that got no usable reply is an error or unparseable, with a reason; nothing is made up, and
nothing that comes next is mixed up with it.
"""

from __future__ import annotations

import gzip
import json
import re
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError
from ombud.http.dispatch import RunStoppedError
from ombud.systems.moderators import HttpModerator, RunSettings
from ombud.systems.recommenders.adapters import HttpRecommender


class Server(socketserver.ThreadingTCPServer):
    """Sends the same bytes to whoever asks, and closes."""

    daemon_threads = True
    allow_reuse_address = True
    reply = b""


class Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return
            head += line
        found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        self.rfile.read(int(found[1]) if found else 0)
        assert isinstance(self.server, Server)
        self.wfile.write(self.server.reply)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as made:
        made.handle_error = lambda *_: None  # type: ignore[method-assign, assignment]
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def http(
    body: bytes | str, head: str = "", status: str = "200 OK", length: int | None = None
) -> bytes:
    raw = body.encode() if isinstance(body, str) else body
    size = f"Content-Length: {len(raw) if length is None else length}\r\n"
    return f"HTTP/1.1 {status}\r\n{size}{head}Connection: close\r\n\r\n".encode() + raw


def bomb() -> bytes:
    raw = b"0" * (1 << 20)
    for _ in range(3):
        raw = gzip.compress(raw, mtime=0)
    return raw


OK = '{"score": 0.9}'
ALLOWED, FLAGGED, ERROR, UNPARSEABLE = (
    Outcome.ALLOWED,
    Outcome.FLAGGED,
    Outcome.ERROR,
    Outcome.UNPARSEABLE,
)

# what is sent, what becomes of the text, what the reason says
MODERATOR: list[tuple[bytes, Outcome, str]] = [
    (http(OK), FLAGGED, ""),
    (http('{"score": 0.1}'), ALLOWED, ""),
    # no HTTP, or half of it
    (b"", ERROR, "Server disconnected"),
    (b"\0" * 100, ERROR, "Bad status line"),
    (b"SSH-2.0-OpenSSH_9.6\r\n", ERROR, "Bad status line"),
    (b"HTTP/1.1 200 OK\r\n", ERROR, "ServerDisconnectedError"),
    (b"HTTP/9.9 999 \r\n\r\n", ERROR, "Invalid HTTP version"),
    (b"HTTP/1.1 abc OK\r\n\r\n", ERROR, "Invalid status code"),
    (http(OK, length=1000), ERROR, "closed before the reply was whole"),
    (http(OK, length=3), ERROR, 'Data after'),
    (http(OK, head="Content-Length: 5\r\n"), ERROR, "Duplicate Content-Length"),
    (http(OK).replace(b"Content-Length: 14", b"Content-Length: -14"), ERROR, "Invalid character in Content-Length"),
    (http(OK).replace(b"Content-Length: 14", b"Content-Length: " + b"9" * 30), ERROR, "Content-Length overflow"),
    (http(OK, head="Transfer-Encoding: chunked\r\n"), ERROR, "can't be present with Content-Length"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n{", ERROR, "closed before the reply was whole"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n{", ERROR, "Invalid character in chunk size"),
    (http(OK, head="X: " + "a" * 100_000 + "\r\n"), ERROR, "Got more than 8190 bytes"),
    (http(OK, head="".join(f"X{i}: a\r\n" for i in range(5000))), ERROR, "Too many headers"),
    (http(OK, head="X: a\0b\r\n"), ERROR, "Invalid HTTP header"),
    (http(OK) + http('{"score": 0.1}'), ERROR, 'Data after'),
    # statuses
    (http("", status="204 No Content"), ERROR, 'answered 204'),
    (http(OK, status="301 Moved", head="Location: http://169.254.169.254/\r\n"), ERROR, "redirects elsewhere (301)"),
    (http(OK, status="302 Found", head="Location: file:///etc/passwd\r\n"), ERROR, "redirects elsewhere (302)"),
    (http(OK, status="400 Bad"), ERROR, "answered 400"),
    (http(OK, status="401 Who"), ERROR, "does not accept the key (401)"),
    (http(OK, status="418 Teapot"), ERROR, "answered 418"),
    (http(OK, status="500 Oh"), ERROR, "answered 500"),
    (http(OK, status="599 Odd"), ERROR, "answered 599"),
    (http(OK, status="429 Slow", head="Retry-After: -5\r\n"), ERROR, "answered 429"),
    (http(OK, status="503 Down", head="Retry-After: nan\r\n"), ERROR, "answered 503"),
    (http(OK, status="503 Down", head="Retry-After: Sun, 99 Foo 2024\r\n"), ERROR, "answered 503"),
    # bodies that are packed
    (http(bomb(), head="Content-Encoding: gzip, gzip, gzip\r\n"), ERROR, "'gzip, gzip, gzip', which was not asked for"),
    (http(gzip.compress(OK.encode(), mtime=0), head="Content-Encoding: gzip\r\n"), FLAGGED, ""),
    (http(OK, head="Content-Encoding: gzip\r\n"), ERROR, "the reply is not gzip"),
    (http(OK, head="Content-Encoding: nonsense\r\n"), ERROR, "'nonsense', which was not asked for"),
    # bodies that are no JSON, or odd JSON
    (http(""), UNPARSEABLE, "the reply is not JSON"),
    (http("<html>log in</html>", head="Content-Type: text/html\r\n"), UNPARSEABLE, "the reply is not JSON"),
    (http(b"\xff\xfe\x00"), UNPARSEABLE, "the reply is not JSON"),
    (http(OK.encode("utf-16")), FLAGGED, ""),
    (http("\ufeff" + OK), FLAGGED, ""),
    (http("[" * 100_000), UNPARSEABLE, "the reply is not JSON"),
    (http('{"score": ' * 100_000), UNPARSEABLE, "the reply is not JSON"),
    (http('{"score": 0.9'), UNPARSEABLE, "the reply is not JSON"),
    (http(OK + OK), UNPARSEABLE, "the reply is not JSON"),
    (http("null"), UNPARSEABLE, "nothing stands at 'score'"),
    (http('"score"'), UNPARSEABLE, "nothing stands at 'score'"),
    (http("[0.9]"), UNPARSEABLE, "not as documented"),
    (http("{}"), UNPARSEABLE, "nothing stands at 'score'"),
    (http('{"Score": 0.9}'), UNPARSEABLE, "nothing stands at 'score'"),
    (http('{"score": null}'), UNPARSEABLE, "not NoneType"),
    (http('{"score": "0.9"}'), UNPARSEABLE, "not str"),
    (http('{"score": true}'), UNPARSEABLE, "not bool"),
    (http('{"score": [0.9]}'), UNPARSEABLE, "not list"),
    (http('{"score": {"score": 0.9}}'), UNPARSEABLE, "not dict"),
    (http('{"score": NaN}'), UNPARSEABLE, "not finite"),
    (http('{"score": Infinity}'), UNPARSEABLE, "not finite"),
    (http('{"score": 1e999}'), UNPARSEABLE, "not finite"),
    (http('{"score": 1e39}'), UNPARSEABLE, "beyond 3.4e+38"),
    (http('{"score": -1e300}'), UNPARSEABLE, "beyond 3.4e+38"),
    (http('{"score": ' + "9" * 5000 + "}"), UNPARSEABLE, "the reply is not JSON"),
    (http('{"score": ' + "9" * 400 + "}"), UNPARSEABLE, "OverflowError"),
    (http('{"score": 0.9, "score": 0.1}'), UNPARSEABLE, "names 'score' twice"),
    (http('{"score": 0.9, "x": "\\ud800"}'), FLAGGED, ""),
    (http('{"score": "\\u001b[31m\\u202e"}'), UNPARSEABLE, "not str"),
]  # fmt: skip

USERS = [1, 2]
GOOD = {"recommendations": [{"user": 1, "items": [5]}, {"user": 2, "items": [6, 7]}]}


def lists(*rows: Any) -> bytes:
    return http(json.dumps({"recommendations": list(rows)}))


ONE, TWO = GOOD["recommendations"]

# what is sent, how many lists are kept of two, what is said of the others
RECOMMENDER: list[tuple[bytes, int, str]] = [
    (http(json.dumps(GOOD)), 2, ""),
    (b"", 0, "Server disconnected"),
    (http("[]"), 0, "without a list 'recommendations'"),
    (http("{"), 0, "not JSON; it begins"),
    (http('{"recommendations": 5}'), 0, "without a list 'recommendations'"),
    (http('{"recommendations": ' + "[" * 50_000), 0, "not JSON"),
    (lists(), 0, "2 of 2 users excluded"),
    (lists(5), 0, "entry 1 is not an object"),
    (lists(ONE), 1, "gave no list for the user"),
    (lists(ONE, ONE), 0, "two lists in one reply"),
    (lists(ONE, {"user": 3, "items": [1]}), 0, "user 3, who was not asked for"),
    (lists(ONE, {"user": "2", "items": [1]}), 0, "user '2', who was not asked for"),
    (lists(ONE, {"user": True, "items": [1]}), 0, "user True, who was not asked for"),
    (lists(ONE, {"user": [2], "items": [1]}), 0, "user [2], who was not asked for"),
    (lists(ONE, {"user": 2, "items": "567"}), 1, "where a list of items was expected"),
    (lists(ONE, {"user": 2, "items": [1, 1]}), 1, "an item more than once"),
    (lists(ONE, {"user": 2, "items": [1, 2, 3, 4]}), 1, "longer than the 3 items asked for"),
    (lists(ONE, {"user": 2, "items": [None]}), 1, "neither a whole number nor text"),
    (lists(ONE, {"user": 2, "items": [1.5]}), 1, "neither a whole number nor text"),
    (lists(ONE, {"user": 2, "items": [[1]]}), 1, "neither a whole number nor text"),
    (lists(ONE, {"user": 2, "items": [2**70]}), 1, "beyond 64 bits"),
    (lists(ONE, {"user": 2, "items": ["a", 5]}), 1, "of two types in one list"),
    (lists(ONE, {"user": 2, "items": ["\ud800"]}), 1, "half a character"),
    (lists(ONE, {"user": 2, "items": [6], "scores": [0.5, 0.4]}), 1, "not one number for each item"),
    (lists(ONE, {"user": 2, "items": [6], "scores": ["high"]}), 1, "not a finite number"),
    (lists(ONE, {"user": 2, "items": [6], "scores": [1e300]}), 1, "not a finite number"),
    (http('{"recommendations": [{"user": 1, "items": [5], "scores": [NaN]}, {"user": 2, "items": [6], "scores": [Infinity]}]}'), 0, "not a finite number"),
    (lists(ONE, {"user": 2, "items": []}), 2, ""),
]  # fmt: skip


def numbered(rows: Any) -> list[str]:
    return [f"{i:02d}" for i in range(len(rows))]


def asked(server: Server, reply: bytes, folder: Path) -> tuple[Outcome, str]:
    """Ask about one text, and return what became of it."""
    server.reply = reply
    system = HttpModerator(
        name="m",
        base_url=f"http://127.0.0.1:{server.server_address[1]}/",
        score_path="score",
        threshold=0.5,
        cache=folder / "a.sqlite",
        run=RunSettings(retries=0, backoff=0.0, timeout=120.0),
    )
    texts = Texts(np.array([7]), np.array(["x"], dtype=object), np.array([-1], dtype=np.int8))
    try:
        found = system.runner().run(texts)
    except RunStoppedError as stopped:
        return Outcome.ERROR, str(stopped)
    return Outcome(found.decisions.outcomes[0]), found.reasons[0]


@pytest.mark.parametrize(("reply", "outcome", "said"), MODERATOR, ids=numbered(MODERATOR))
def test_a_hostile_reply_about_a_text(
    reply: bytes, outcome: Outcome, said: str, server: Server, tmp_path: Path
) -> None:
    found, reason = asked(server, reply, tmp_path)
    assert (found, bool(reason)) == (outcome, outcome in {ERROR, UNPARSEABLE}), reason
    assert said in reason and len(reason) < 1000


@pytest.mark.parametrize(("reply", "kept", "said"), RECOMMENDER, ids=numbered(RECOMMENDER))
def test_a_hostile_reply_with_lists(
    reply: bytes, kept: int, said: str, server: Server, tmp_path: Path
) -> None:
    count, text = recommended(server, reply, tmp_path)
    assert (count, bool(text)) == (kept, kept < len(USERS)), text
    assert said in text and len(text) < 1000


def recommended(server: Server, reply: bytes, folder: Path) -> tuple[int, str]:
    """Ask for two lists, and return how many came and what is said of the others."""
    server.reply = reply
    system = HttpRecommender(
        url=f"http://127.0.0.1:{server.server_address[1]}/",
        cache=folder / "a.sqlite",
        faults="exclude",
        retries=0,
        wait=0.0,
        timeout=120.0,
    )
    try:
        found = system.recommend(USERS, 3)
    except AuditedSystemError as error:
        return 0, str(error)
    text = "; ".join(map(str, found.exclusions))
    return len(USERS) - sum(e.count for e in found.exclusions), text
