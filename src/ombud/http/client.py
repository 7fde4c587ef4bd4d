"""The one HTTP client: questions to services, files from servers.

It is aiohttp with what an audit needs around it: no cookies, no redirects of its own accord, no
compression (asked for as *identity*, and bounded before it is decoded where a server compresses
all the same), bounds on the size and on the whole time of a reply, a bound on the interim replies
(``100 Continue``) before it, a proxy never for this machine.

**A reply belongs to its question.** HTTP/1.1 tells which reply belongs to which question by their
order on the connection alone: one surplus reply, and every later answer on that connection goes
to the wrong text. So every question gets a connection of its own, and whatever else comes on it
is nobody's answer. Connections are kept only for services whose replies say which question they
answer, and only until one reply says another.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import ombud
from ombud.errors import PlanError
from ombud.http.keys import header_faults, proxy_for

if TYPE_CHECKING:
    import aiohttp


MAX_BODY = 16 * 1024 * 1024
"""The most bytes of a reply, unless a caller says otherwise."""

_POLL_SECONDS = 0.1
_MOST_INTERIM = 16
"""Replies of status 100 to 199 before the one that counts; aiohttp takes any number."""

_T = TypeVar("_T")


class RequestError(Exception):
    """No whole reply came back; the question may be asked again."""


class TooLargeError(RequestError):
    """A reply that is longer than it may be."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back over HTTP."""

    status: int
    body: bytes
    retry_after: str = ""
    content_type: str = ""


class Client:
    """Sends requests to one address, many at a time; belongs to the event loop it is made in.

    Parameters
    ----------
    url
        Where requests go; its query is sent as it is.
    headers
        Sent with every request. The key is among them, so they go nowhere else.
    timeout
        Seconds for a whole request; of `stream`, until the next byte.
    largest
        Refuse a reply of more bytes, before it is decoded and after.
    proxied
        Whether this machine's proxy settings count; never for addresses of this machine.
    kept
        Whether connections are used again: only where each reply is checked to be that of its
        question.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout: float,
        *,
        largest: int = MAX_BODY,
        proxied: bool = True,
        kept: bool = False,
    ) -> None:
        from yarl import URL

        if faults := header_faults(headers):
            raise PlanError(f"a request cannot be made: {'; '.join(faults)}")
        self._address = URL(url, encoded=True)
        if (self._address.host or "").lower() != urlsplit(url).hostname:
            raise PlanError("the address can be read in two ways; write it plainly")
        own = {"User-Agent": f"ombud/{ombud.__version__}", "Accept-Encoding": "identity"}
        self._headers = {**headers, **{n: v for n, v in own.items() if n not in headers}}
        self._closing = {**self._headers, "Connection": "close"}
        self._timeout = timeout
        self._largest = largest
        self._proxy = proxy_for(url) if proxied else None
        self._kept = kept
        self._open: aiohttp.ClientSession | None = None
        self._left: list[aiohttp.ClientSession] = []

    def distrust(self) -> None:
        """Use no connection again: a reply was that to another question."""
        if self._kept:
            self._kept = False
            if self._open is not None:
                self._left.append(self._open)
                self._open = None

    async def post(self, body: bytes) -> Reply:
        """Post a body and return the reply.

        Raises
        ------
        RequestError
            When no whole reply came back.
        """
        import aiohttp

        if self._open is None:
            self._open = self._session(kept=self._kept)
        headers = self._headers if self._kept else self._closing
        try:
            async with self._open.post(
                self._address, data=body, headers=headers, allow_redirects=False, proxy=self._proxy
            ) as response:
                content = await self._read(response)
                return Reply(
                    response.status,
                    content,
                    response.headers.get("Retry-After", ""),
                    response.headers.get("Content-Type", ""),
                )
        except TimeoutError:
            raise RequestError(f"no reply within {self._timeout:g} s") from None
        except aiohttp.ClientPayloadError:
            reason = "the connection was closed before the reply was whole"
            raise RequestError(reason) from None
        except (aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError) as fault:
            raise RequestError(f"{type(fault).__name__}: {fault}") from None
        except (OSError, ValueError) as fault:
            raise RequestError(f"{type(fault).__name__}: {fault}") from None

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        length = response.content_length
        if length is not None and length > self._largest:
            raise TooLargeError(f"the reply announces {length:,} bytes, over {self._largest:,}")
        if length is not None:
            body = await response.read()
        else:
            body = await self._read_on(response)
        encoding = response.headers.get("Content-Encoding", "").strip().lower()
        return body if encoding in {"", "identity"} else _decoded(body, encoding, self._largest)

    async def _read_on(self, response: aiohttp.ClientResponse) -> bytes:
        blocks, size = [], 0
        async for block in response.content.iter_any():
            size += len(block)
            if size > self._largest:
                raise TooLargeError(f"the reply is over {self._largest:,} bytes")
            blocks.append(block)
        return b"".join(blocks)

    def _session(self, streaming: bool = False, kept: bool = False) -> aiohttp.ClientSession:
        import aiohttp

        if streaming:
            limits = aiohttp.ClientTimeout(
                total=None, sock_connect=self._timeout, sock_read=self._timeout
            )
        else:
            limits = aiohttp.ClientTimeout(total=self._timeout)
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=not kept),
            timeout=limits,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            skip_auto_headers=("Accept",),
        )
        assert session.connector is not None
        session.connector._factory = partial(_handler, asyncio.get_running_loop())
        # It would ask a second time by itself, unseen and uncounted.
        session._retry_connection = False
        return session

    @asynccontextmanager
    async def stream(self, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        """Get what is at the address, on a connection of its own; its content is not decoded.

        Raises
        ------
        RequestError
            When the server does not answer, or stops in the middle.
        """
        import aiohttp

        try:
            async with AsyncExitStack() as stack:
                session = await stack.enter_async_context(self._session(streaming=True))
                request = session.get(
                    self._address,
                    headers={**self._closing, **headers},
                    allow_redirects=False,
                    proxy=self._proxy,
                )
                async with asyncio.timeout(self._timeout):  # of the headers; then, of each block
                    response = await stack.enter_async_context(request)
                yield response
        except TimeoutError:
            raise RequestError(f"nothing came for {self._timeout:g} s") from None
        except (aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError) as fault:
            raise RequestError(f"{type(fault).__name__} {fault}".strip()) from None

    async def get(self, path: str, query: Mapping[str, str]) -> Reply:
        """Get what is at a path below the address, on a connection of its own."""
        import aiohttp

        address = self._address.with_path(self._address.path.rstrip("/") + path).with_query(query)
        try:
            async with (
                self._session() as session,
                session.get(
                    address, headers=self._closing, allow_redirects=False, proxy=self._proxy
                ) as response,
            ):
                body = await self._read(response)
                wait = response.headers.get("Retry-After", "")
                return Reply(response.status, body, wait, response.headers.get("Content-Type", ""))
        except TimeoutError:
            raise RequestError(f"no reply within {self._timeout:g} s") from None
        except (aiohttp.ClientError, aiohttp.http_exceptions.HttpProcessingError) as fault:
            raise RequestError(f"{type(fault).__name__} {fault}") from None

    async def close(self) -> None:
        """Close all connections."""
        for session in (*self._left, self._open):
            if session is not None:
                await session.close()


def _handler(loop: asyncio.AbstractEventLoop) -> Any:
    """Return aiohttp's reader of a connection, with a bound on the interim replies to a request."""
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.http_exceptions import HttpProcessingError

    handler: Any = ResponseHandler(loop=loop)
    take, interim = handler.feed_data, 0

    def take_some(message: Any, *size: int) -> None:
        nonlocal interim
        interim = interim + 1 if 100 <= message[0].code < 200 else 0
        if interim <= _MOST_INTERIM:
            take(message, *size)
        elif interim == _MOST_INTERIM + 1:
            handler.abort()
            fault = f"more than {_MOST_INTERIM} interim replies (status 100 to 199)"
            handler.set_exception(HttpProcessingError(code=message[0].code, message=fault))

    handler.feed_data = take_some
    return handler


def _decoded(body: bytes, encoding: str, largest: int) -> bytes:
    """Return what one layer of gzip or deflate holds, at most so many bytes of it."""
    if encoding not in {"gzip", "x-gzip", "deflate"}:
        raise RequestError(f"the reply is encoded as {encoding!r:.40}, which was not asked for")
    # 32 is for the header of either gzip or zlib.
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        result = inflate.decompress(body, largest + 1)
    except zlib.error as fault:
        raise RequestError(f"the reply is not {encoding}: {fault}") from None
    if len(result) > largest:
        raise TooLargeError(f"the reply is over {largest:,} bytes when it is decoded")
    if not inflate.eof:
        raise RequestError("the compressed reply was cut short")
    return result


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, where this thread may and nobody else does."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def wait_in_thread(
    work: Callable[[], None], interrupt: Callable[[], bool], tick: Callable[[], None] | None = None
) -> None:
    """Run something in a thread of its own and wait for it; Ctrl-C and SIGTERM reach the waiter.

    So it works inside a notebook's event loop too, and Ctrl-C does not tear requests under way.

    Parameters
    ----------
    work
        What to do; what it raises is raised here.
    interrupt
        Called on Ctrl-C, from this thread; False when there is nothing more to wait for.
    tick
        Called now and then while waiting, and once at the end.
    """
    # An event, because a Thread.join that Ctrl-C interrupts takes the thread for ended (3.11).
    failures: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)
        finally:
            ended.set()

    with _terminable():
        threading.Thread(target=run, name="ombud-http", daemon=True).start()
        while True:
            try:
                while not ended.wait(_POLL_SECONDS):
                    if tick is not None:
                        tick()
                if tick is not None:
                    tick()
                break
            except KeyboardInterrupt:
                if not interrupt():
                    raise
    if failures:
        raise failures[0]


def new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop of its own: uvloop's where it is installed, which asks faster."""
    try:
        import uvloop
    except ImportError:  # an extra, and not for every platform
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def blocking(work: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in a thread of its own and return what it returns; Ctrl-C cancels it."""
    loop = new_loop()
    task = loop.create_task(work)
    pressed = False

    def run() -> None:
        try:
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()

    def interrupt() -> bool:
        nonlocal pressed
        if pressed:
            return False
        pressed = True
        with suppress(RuntimeError):  # it has ended meanwhile
            loop.call_soon_threadsafe(task.cancel)
        return True

    wait_in_thread(run, interrupt)
    if pressed:
        raise KeyboardInterrupt
    return task.result()
