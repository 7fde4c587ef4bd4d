"""Fetch a file: in one piece or in several sittings, checked, and whole or not at all."""

from __future__ import annotations

import hashlib
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from ombud.errors import DataError, RegistryError, ResultError
from ombud.files import read_json, write_json
from ombud.http.client import Client, RequestError, blocking
from ombud.http.keys import check_source
from ombud.http.pace import backoff as wait_before
from ombud.http.pace import retry_after

if TYPE_CHECKING:
    import aiohttp


Progress = Callable[[int, int, str], None]

_LONGEST_WAIT = 300.0
_SILENCE = 60.0
_MOST_REDIRECTS = 20


@dataclass(frozen=True)
class RemoteFile:
    """A file on a server, and what is known about it."""

    url: str  # where it is
    name: str  # what to call it here
    # Checksums that the source or others state; empty where ombud knows none.
    sha256: str = ""
    md5: str = ""
    largest: int = 8 << 30  # Refuse a file of more bytes


@dataclass(frozen=True)
class Download:
    """A data set that can be fetched."""

    name: str  # What to ask for
    title: str  # What it is
    files: tuple[RemoteFile, ...]  # Its files
    # The licence in a sentence, and where to read it.
    licence: str
    terms: str
    use: str = ""  # What to do with it next


_DOWNLOADS = tuple(
    Download(name, **{**facts, "files": tuple(RemoteFile(**file) for file in facts["files"])})
    for name, facts in tomllib.loads(
        Path(__file__).with_name("downloads.toml").read_text(encoding="utf-8")
    ).items()
)


def download_names() -> tuple[str, ...]:
    """Return what can be fetched.

    Examples
    --------
    >>> download_names()
    ('ao3', 'ddd-votes', 'movielens-100k', 'movielens-1m', 'movielens-25m', 'movielens-small')
    """
    return tuple(sorted(one.name for one in _DOWNLOADS))


def get_download(name: str) -> Download:
    """Return a download by name."""
    for one in _DOWNLOADS:
        if one.name == name:
            return one
    raise RegistryError(
        f"nothing to fetch is called {name!r}; known: {', '.join(download_names())}"
    )


@dataclass(frozen=True)
class Fetched:
    """What was fetched; written beside the file as ``NAME.download.json``."""

    # Where it is now, and where it came from (after redirects).
    path: str
    url: str
    # What was computed from the file here.
    size: int
    sha256: str
    md5: str
    check: str  # what the checksum was compared with, in words
    at: str  # when it was complete


def fetch(
    remote: RemoteFile,
    folder: str | Path,
    *,
    attempts: int = 6,
    backoff: float = 1.0,
    progress: Progress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Fetched:
    """Fetch a file into a folder; go on with what an earlier run left, if it still fits.

    The file appears under its name only when it is complete and its checksum (if one is known) is
    right. Until then it is ``NAME.part``. A file that is there already is checked, not fetched.

    Parameters
    ----------
    remote
        What to fetch.
    folder
        Where to.
    attempts
        How often to try again after a failure without a single new byte.
    backoff
        The first wait in seconds; a Retry-After header goes before it.
    progress
        Called with bytes done, bytes in all (0 when unknown), and the file's name.
    sleep
        How to wait.
    """
    check_source(remote.url)
    index = Path(folder)
    index.mkdir(parents=True, exist_ok=True)
    target, part = index / remote.name, index / f"{remote.name}.part"
    if target.exists():
        return _finish(remote, target, remote.url)
    sitting = _Sitting(remote, part, progress)
    failures, trouble, url = 0, "", remote.url
    while True:
        before = sitting.size
        try:
            url, pause = blocking(sitting.read())
        except RequestError as error:
            trouble, pause = str(error), None
        except OSError as error:
            raise _fault(remote, f"it cannot be written to {index}: {error}") from None
        else:
            trouble = sitting.trouble
        if sitting.done:
            break
        failures = 0 if sitting.size > before else failures + 1
        if failures >= attempts:
            kept = f"{sitting.size:,} bytes are kept; run it again to go on"
            raise _fault(remote, f"{failures} attempts brought nothing ({trouble}). {kept}")
        wait = wait_before(failures, 0, remote.name, backoff, 60.0) if pause is None else pause
        if wait > _LONGEST_WAIT:
            raise _fault(remote, f"the server asks to wait {wait:,.0f} seconds; try later")
        sleep(wait)
    fetched = _finish(remote, part, url)
    part.replace(target)
    sitting.forget()
    fetched = Fetched(**(asdict(fetched) | {"path": str(target)}))
    write_json(index / f"{remote.name}.download.json", asdict(fetched))
    return fetched


def _fault(remote: RemoteFile, words: str) -> DataError:
    return DataError(remote.name, [f"{remote.url}: {words}"])


class _Sitting:
    """One file in the making: what is there, and whether the server still has the same file."""

    def __init__(self, remote: RemoteFile, part: Path, progress: Progress | None) -> None:
        self._remote, self._part, self._progress = remote, part, progress
        self._state = part.with_name(f"{part.name}.json")
        self.done = False
        self.trouble = ""
        self._tag = ""
        try:
            known = read_json(self._state)
        except ResultError:
            known = {}
        # Without a mark of the version, what is there may be half of another file.
        if known.get("url") == remote.url and known.get("tag"):
            self._tag = str(known["tag"])
        else:
            part.unlink(missing_ok=True)

    @property
    def size(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def forget(self) -> None:
        self._state.unlink(missing_ok=True)

    def restart(self) -> None:
        self._part.unlink(missing_ok=True)
        self.forget()
        self._tag = ""

    async def read(self) -> tuple[str, float | None]:
        """Read on; return the address that answered and the wait it asks for."""
        start = self.size if self._tag else 0
        headers = {"Range": f"bytes={start}-", "If-Range": self._tag} if start else {}
        url = self._remote.url
        for _ in range(_MOST_REDIRECTS):
            check_source(url)
            client = Client(url, {}, _SILENCE, proxied=False)
            async with client.stream(headers) as reply:
                location = reply.headers.get("Location", "")
                if reply.status not in {301, 302, 303, 307, 308} or not location:
                    return url, await self._take(reply, start)
                url = urljoin(url, location)
        raise RequestError(f"over {_MOST_REDIRECTS} redirects")

    async def _take(self, reply: aiohttp.ClientResponse, start: int) -> float | None:
        """Write what a reply holds; return the wait that the server asks for."""
        status, headers = reply.status, reply.headers
        self.trouble = f"status {status}"
        if status == 416:
            self.restart()
            return 0.0
        if status == 429 or status >= 500:
            return retry_after(headers.get("Retry-After"))
        if status not in {200, 206}:
            raise _fault(self._remote, f"the server answers with status {status}")
        if headers.get("Content-Encoding", "identity").strip().lower() not in {"", "identity"}:
            raise _fault(self._remote, "the server encodes the file, though it was asked not to")
        if status == 206 and _first_byte(headers) != start:
            self.restart()
            self.trouble = "the server sent another part than was asked for"
            return 0.0
        start = start if status == 206 else 0
        total = self._length(headers, start)
        try:
            await self._write(reply, start, total)
        finally:
            self.trouble = f"the connection ended after {self.size:,} of {total:,} bytes"
        self.done = not total or self.size == total
        if total and self.size > total:
            self.restart()
        return None

    def _length(self, headers: Mapping[str, str], start: int) -> int:
        length = headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else 0
        if total > self._remote.largest:
            limit = f"at most {self._remote.largest:,} are fetched"
            raise _fault(self._remote, f"the file has {total:,} bytes; {limit}")
        return total

    async def _write(self, reply: aiohttp.ClientResponse, start: int, total: int) -> None:
        tag = reply.headers.get("ETag", "")
        tag = "" if tag.startswith("W/") else tag or reply.headers.get("Last-Modified", "")
        if start == 0:
            self._tag = tag
            write_json(self._state, {"url": self._remote.url, "tag": tag})
        done = start
        with self._part.open("ab" if start else "wb") as file:
            async for block in reply.content.iter_any():
                file.write(block)
                done += len(block)
                if done > self._remote.largest:
                    limit = f"more than {self._remote.largest:,} bytes"
                    raise _fault(self._remote, f"the server sends {limit}; it is refused")
                if self._progress is not None:
                    self._progress(done, total, self._remote.name)


def _first_byte(headers: Mapping[str, str]) -> int | None:
    unit, _, rest = headers.get("Content-Range", "").partition(" ")
    first = rest.partition("-")[0]
    return int(first) if unit == "bytes" and first.isdecimal() else None


def _finish(remote: RemoteFile, path: Path, url: str) -> Fetched:
    """Compute the checksums and compare them with what is known; a wrong file is removed."""
    sha256, md5, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            sha256.update(block)
            md5.update(block)
            size += len(block)
    result = {"sha256": sha256.hexdigest(), "md5": md5.hexdigest()}
    for kind, value in result.items():
        expected = getattr(remote, kind)
        if expected and expected != value:
            if path.suffix == ".part":
                path.unlink()
                path.with_name(f"{path.name}.json").unlink(missing_ok=True)
            raise _fault(
                remote,
                f"the {kind} of {path.name} is {value}; {expected} was expected. The file is "
                "damaged, or the source has changed it; remove it and fetch it again",
            )
    checked = [kind for kind in result if getattr(remote, kind)]
    text = (
        f"{' and '.join(checked)} as listed by ombud"
        if checked
        else "ombud knows no checksum of this file: compare the computed one with your source"
    )
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Fetched(str(path), url, size, result["sha256"], result["md5"], text, now)
