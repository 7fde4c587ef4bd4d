"""What every reply carries and every request must satisfy."""

from __future__ import annotations

import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The content security policy of every page but reports, which bring their own."""

MAX_BODY = 1 << 20
"""Bytes of a request; guidelines are the longest thing that is sent."""

_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}


class Guesses:
    """Counts tokens that were not valid, by their beginning and in all; says when it is enough.

    Nothing is counted by address: behind a proxy all people share one, and whoever floods the app
    would lock them out. A valid link stops only when its own beginning was guessed too often, and
    the limit of all guesses together only changes the reply to links that are not valid.

    So many failures within so many seconds are enough.
    """

    _MOST_BEGINNINGS = 10_000
    _BEGINNING = 8  # 48 of 256 bits: guessing it for a given link is out of reach

    def __init__(
        self,
        limit: int = 10,
        seconds: float = 600,
        clock: Callable[[], float] = time.monotonic,
        in_all: int = 300,
    ) -> None:
        self.limit, self.seconds, self._clock = limit, seconds, clock
        self._failed: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque(maxlen=in_all)

    @property
    def wait_of_all(self) -> float:
        """For how many seconds links that are not valid get no better answer than to wait."""
        now = self._clock()
        full = len(self._all) == self._all.maxlen
        return max(0.0, self._all[0] + self.seconds - now) if full else 0.0

    def wait(self, token: str) -> float:
        """Return for how many seconds tokens that begin like this may not be tried."""
        start = token[: self._BEGINNING]
        times = self._failed.get(start)
        if times is None:
            return 0.0
        now = self._clock()
        while times and times[0] <= now - self.seconds:
            times.popleft()
        if not times:
            del self._failed[start]
        return times[0] + self.seconds - now if len(times) >= self.limit else 0.0

    def failed(self, token: str) -> None:
        """Note a token that was not valid."""
        start = token[: self._BEGINNING]
        self._all.append(self._clock())
        times = self._failed.setdefault(start, deque(maxlen=self.limit))
        times.append(self._clock())
        self._failed.move_to_end(start)
        if len(self._failed) > self._MOST_BEGINNINGS:
            self._failed.popitem(last=False)


class Guard:
    """Refuses strange hosts, requests from other sites and large bodies; adds headers.

    `hosts` are names under which the server may be asked: another name would be a web page that had
    its own name pointed here.
    """

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        fault = self._fault(scope)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("content-security-policy", POLICY)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        if fault is not None:
            status, words = fault
            await PlainTextResponse(words, status)(scope, receive, send_guarded)
        else:
            await self._app(scope, _Limited(receive), send_guarded)

    def _fault(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return 400, "The name of the server in this request cannot be read."
        if name not in self._hosts:
            return 421, "This server does not answer to that name; see --name of ombud app."
        if scope["method"] not in {"GET", "HEAD"}:
            site = headers.get("sec-fetch-site", "same-origin")
            origin = headers.get("origin")
            foreign = origin is not None and origin.lower().partition("://")[2] != host
            if site not in {"same-origin", "none"} or foreign:
                return 403, "This came from another site and was refused."
            length = headers.get("content-length", "0")
            if not re.fullmatch("[0-9]{1,18}", length) or int(length) > MAX_BODY:
                return 413, "This is too long."
        return None


class _Limited:
    """Ends a body that is longer than its header said."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._seen += len(message.get("body", b""))
            if self._seen > MAX_BODY:
                return {"type": "http.disconnect"}
        return message
