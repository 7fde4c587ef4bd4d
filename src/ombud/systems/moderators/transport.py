"""How questions travel: httpx for the world, a lean client for plain HTTP nearby.

Measured on two busy cores against a stub that answers in 20 ms, 128 questions at a time
(``benchmarks/moderators.py`` measures it again): httpx 0.28 carries 60 to 130 a second with one
client, 240 with a client for each request under way; aiohttp 3,500; `PlainTransport` 4,100.
A paid service behind TLS allows far fewer than httpx can carry, and there proxies, certificates
and HTTP details matter more than speed. A model server on the own network is the other way round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from ombud.systems.moderators.asker import Reply

__all__ = ["HttpxTransport", "PlainTransport", "Transport", "TransportError", "transport_for"]

MAX_HEAD = 64 * 1024
MAX_BODY = 16 * 1024 * 1024


class TransportError(Exception):
    """No whole reply came back; the question may be asked again."""


class Transport(Protocol):
    """Posts a body and returns the reply, or raises `TransportError`."""

    async def post(self, body: bytes) -> Reply:
        """Post a body."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class HttpxTransport:
    """Posts through httpx: TLS, proxies, HTTP as it is in the world. Redirects are not followed.

    Each request under way has a client of its own: the pool of one client with many connections
    looks through all of them for every request.
    """

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        import httpx

        self._url = url
        self._timeout = timeout
        self._verify = httpx.create_ssl_context()
        self._options = {"headers": dict(headers), "timeout": timeout}
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, body: bytes) -> Reply:
        """Post a body."""
        import httpx

        options: dict[str, Any] = {"verify": self._verify, **self._options}
        client = self._idle.pop() if self._idle else httpx.AsyncClient(**options)
        try:
            async with (
                asyncio.timeout(self._timeout),
                client.stream("POST", self._url, content=body) as response,
            ):
                chunks, size = [], 0
                async for chunk in response.aiter_bytes():
                    size += len(chunk)
                    if size > MAX_BODY:
                        raise TransportError(f"the reply is over {MAX_BODY:,} bytes")
                    chunks.append(chunk)
                wait = response.headers.get("retry-after", "")
                return Reply(response.status_code, b"".join(chunks), wait)
        except (TimeoutError, httpx.TimeoutException):
            raise TransportError("no reply in time") from None
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise TransportError(f"{type(fault).__name__}: {fault}") from None
        finally:
            self._idle.append(client)

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            await self._idle.pop().aclose()


_Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class PlainTransport:
    """Posts over HTTP/1.1 without TLS on connections that stay open; no proxies, no redirects."""

    def __init__(self, url: str, headers: Mapping[str, str], timeout: float) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._timeout = timeout
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        lines = [f"POST {target} HTTP/1.1", f"Host: {parts.netloc}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if any("\r" in line or "\n" in line for line in lines):
            raise ValueError("a header or address holds a line break")
        self._head = "\r\n".join(lines).encode("ascii") + b"\r\nContent-Length: "
        self._idle: list[_Connection] = []

    async def post(self, body: bytes) -> Reply:
        """Post a body."""
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(self._timeout):
                connection = await self._connect()
                reader, writer = connection
                writer.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
                reply, stays_open = await _read_reply(reader)
        except TimeoutError:
            raise TransportError("no reply in time") from None
        except asyncio.IncompleteReadError:
            raise TransportError("the connection was closed before the reply was whole") from None
        except (OSError, ValueError, asyncio.LimitOverrunError) as fault:
            raise TransportError(f"{type(fault).__name__}: {fault}") from None
        else:
            if stays_open:
                self._idle.append(connection)
                connection = None
            return reply
        finally:
            if connection is not None:
                connection[1].close()

    async def _connect(self) -> _Connection:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(*self._address, limit=MAX_HEAD)

    async def close(self) -> None:
        """Close all connections."""
        while self._idle:
            _, writer = self._idle.pop()
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _read_reply(reader: asyncio.StreamReader) -> tuple[Reply, bool]:
    status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
    while 100 <= status < 200:
        status, headers = _read_head(await reader.readuntil(b"\r\n\r\n"))
    stays_open = headers.get(b"connection", b"").lower() != b"close"
    if b"chunked" in headers.get(b"transfer-encoding", b"").lower():
        body = await _read_chunks(reader)
    elif b"content-length" in headers:
        size = int(headers[b"content-length"])
        if not 0 <= size <= MAX_BODY:
            raise ValueError(f"the reply announces {size:,} bytes")
        body = await reader.readexactly(size)
    elif status in {204, 304}:
        body = b""
    else:
        stays_open = False
        body = await _read_to_end(reader)
    return Reply(status, body, headers.get(b"retry-after", b"").decode("latin-1")), stays_open


def _read_head(head: bytes) -> tuple[int, dict[bytes, bytes]]:
    first, *lines = head[:-4].split(b"\r\n")
    if not first.startswith(b"HTTP/1."):
        raise ValueError("the reply is not HTTP/1.1")
    pairs = (line.partition(b":") for line in lines)
    return int(first[9:12]), {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    chunks, total = [], 0
    while chunk := await reader.read(MAX_HEAD):
        total += len(chunk)
        if total > MAX_BODY:
            raise ValueError(f"the reply is over {MAX_BODY:,} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks, total = [], 0
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        total += size
        if size < 0 or total > MAX_BODY:
            raise ValueError(f"the reply is over {MAX_BODY:,} bytes")
        chunks.append((await reader.readexactly(size + 2))[:-2])
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass
    return b"".join(chunks)


def transport_for(url: str, headers: Mapping[str, str], timeout: float) -> Transport:
    """Return the lean client for plain HTTP without a proxy, httpx for everything else."""
    parts = urlsplit(url)
    proxied = parts.scheme in getproxies() and not proxy_bypass(parts.hostname or "")
    if parts.scheme == "http" and not proxied:
        return PlainTransport(url, headers, timeout)
    return HttpxTransport(url, headers, timeout)
