"""Ask Does the Dog Die about movies: slowly, once each, and going on where it was stopped."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import httpx
import polars as pl

import ombud
from ombud.data.sources.ddd_answers import Answer, answers_of_json
from ombud.errors import DataError
from ombud.http.pace import Pace, check_address, retry_after, wait_before

__all__ = ["ADDRESS", "KEY_VARIABLE", "Collected", "cached_answers", "collect"]

ADDRESS = "https://www.doesthedogdie.com"
KEY_VARIABLE = "OMBUD_DDD_KEY"

_LARGEST = 8 << 20
_LONGEST_WAIT = 900.0
_TABLE = """CREATE TABLE IF NOT EXISTS replies (
    kind TEXT NOT NULL, key TEXT NOT NULL, status INTEGER NOT NULL, at TEXT NOT NULL,
    body BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"""


@dataclass(frozen=True)
class Collected:
    """What a run of `collect` did.

    Parameters
    ----------
    movies
        How many movies were to be looked up.
    found, absent
        Movies with an answer, and movies that the site does not have.
    unlinked
        Movies without an IMDb id, which cannot be looked up.
    requests
        How many requests this run made; the rest was there already.
    """

    movies: int
    found: int
    absent: int
    unlinked: int
    requests: int


class _Asker:
    """Gets one reply at a time and keeps it before anything else happens."""

    def __init__(
        self,
        store: sqlite3.Connection,
        client: httpx.Client,
        pace: Pace,
        attempts: int,
        backoff: float,
    ) -> None:
        self._store, self._client, self._pace = store, client, pace
        self._attempts, self._backoff = attempts, backoff
        self.requests = 0

    def get(self, kind: str, key: str, path: str, params: dict[str, str]) -> tuple[int, bytes]:
        """Return status and body of a reply, from the store if it is there."""
        query = "SELECT status, body FROM replies WHERE kind = ? AND key = ?"
        kept = self._store.execute(query, (kind, key)).fetchone()
        if kept is not None:
            return int(kept[0]), bytes(kept[1])
        status, body = self._ask(path, params)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._store:
            row = (kind, key, status, now, body)
            self._store.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?)", row)
        return status, body

    def _ask(self, path: str, params: dict[str, str]) -> tuple[int, bytes]:
        pause, trouble = 0.0, ""
        for attempt in range(self._attempts):
            self._pace.wait(pause)
            self.requests += 1
            try:
                status, header, body, kind = self._once(path, params)
            except httpx.TransportError as error:
                trouble = f"{type(error).__name__} {error}"
                pause = wait_before(attempt, self._backoff)
                continue
            if status in {401, 403}:
                _stop(f"it refuses the key in {KEY_VARIABLE} (status {status})")
            if status == 429 or status >= 500:
                trouble = f"status {status}"
                asked = retry_after(header)
                pause = wait_before(attempt, self._backoff) if asked is None else asked
                if pause > _LONGEST_WAIT:
                    _stop(f"it asks to wait {pause:,.0f} seconds (status {status})")
                continue
            # The site answers an unknown id with a page instead of JSON.
            if status == 404 or (status == 200 and "json" not in kind):
                return 404, b""
            if status != 200:
                _stop(f"it answers with status {status}, which ombud does not know how to treat")
            return status, body
        _stop(f"{self._attempts} attempts failed, the last with {trouble}")

    def _once(self, path: str, params: dict[str, str]) -> tuple[int, str | None, bytes, str]:
        with self._client.stream("GET", path, params=params) as reply:
            body = bytearray()
            for block in reply.iter_bytes():
                body += block
                if len(body) > _LARGEST:
                    _stop(f"a reply has more than {_LARGEST:,} bytes")
            kind = reply.headers.get("content-type", "")
            return reply.status_code, reply.headers.get("retry-after"), bytes(body), kind


def _stop(reason: str) -> NoReturn:
    text = f"{reason}. What was answered is kept; run it again to go on"
    raise DataError("Does the Dog Die", [text])


def _key(address: str) -> str:
    host = check_address(address)
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        fault = f"no key; ask the site for one and set the environment variable {KEY_VARIABLE}"
        raise DataError("Does the Dog Die", [fault])
    if not key.isascii() or not key.isprintable():
        raise DataError("Does the Dog Die", [f"the key in {KEY_VARIABLE} cannot be sent"])
    if host != check_address(ADDRESS) and not address.startswith("http://"):
        raise DataError("Does the Dog Die", [f"the key is not sent to {host}"])
    return key


def collect(
    links: pl.DataFrame,
    store: str | Path,
    *,
    address: str = ADDRESS,
    per_second: float = 1.0,
    attempts: int = 6,
    backoff: float = 2.0,
    progress: Callable[[int, int, str], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Collected:
    """Look movies up by IMDb id and keep every raw reply in one SQLite file.

    Killed at any moment, a later run asks nothing twice. The key comes from the environment
    variable ``OMBUD_DDD_KEY`` alone, goes to the site's own host (or to this machine) alone, and
    is written nowhere.

    Parameters
    ----------
    links
        ``item``, ``imdb`` and ``tmdb``.
    store
        The SQLite file; made if it is not there.
    address
        Where the service is.
    per_second
        How many requests a second at most. A movie takes two.
    attempts, backoff
        How often to ask again after a failure, and the first wait in seconds; Retry-After goes
        before it.
    progress
        Called with movies done, movies in all, and a note.
    sleep
        How to wait.
    """
    key = _key(address)
    headers = {
        "X-API-KEY": key,
        "Accept": "application/json",
        "User-Agent": f"ombud/{ombud.__version__}",
    }
    known = links.filter(pl.col("imdb").is_not_null())
    result = absent = 0
    path = Path(store)
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        closing(sqlite3.connect(path)) as connection,
        # Redirects are not followed: the key would go along.
        httpx.Client(base_url=address, headers=headers, timeout=30, trust_env=False) as client,
    ):
        connection.execute(_TABLE)
        pace = Pace(per_second, time.monotonic, sleep)
        asker = _Asker(connection, client, pace, attempts, backoff)
        for number, (imdb, tmdb) in enumerate(known.select("imdb", "tmdb").iter_rows(), start=1):
            if _look_up(asker, imdb, tmdb):
                result += 1
            else:
                absent += 1
            if progress is not None:
                progress(number, known.height, f"tt{imdb:07d}")
    return Collected(links.height, result, absent, links.height - known.height, asker.requests)


def _look_up(asker: _Asker, imdb: int, tmdb: int | None) -> bool:
    name = f"tt{imdb:07d}"
    status, body = asker.get("search", name, "/dddsearch", {"imdb": name})
    match = _matching(_parsed(body), imdb, tmdb) if status == 200 else None
    if match is None:
        return False
    status, _ = asker.get("media", str(match), f"/media/{match}", {})
    return status == 200


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return None


def _matching(reply: Any, imdb: int, tmdb: int | None) -> int | None:
    """Return the site's number of the title with one of our ids; a title alone proves nothing."""
    items = reply.get("items") if isinstance(reply, dict) else None
    for item in items if isinstance(items, list) else []:
        if isinstance(item, dict) and isinstance(item.get("id"), int):
            ids = {str(k).lower(): str(v).removeprefix("tt").lstrip("0") for k, v in item.items()}
            if ids.get("imdbid") == str(imdb) or (tmdb and ids.get("tmdbid") == str(tmdb)):
                return int(item["id"])
    return None


def cached_answers(store: str | Path) -> Iterator[Answer]:
    """Yield the answers that `collect` kept.

    Parameters
    ----------
    store
        The SQLite file.
    """
    path = Path(store)
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            result = _ids_by_title(connection)
            rows = connection.execute(
                "SELECT key, body FROM replies WHERE kind = 'media' AND status = 200 ORDER BY key"
            )
            for key, body in rows:
                reply = _parsed(bytes(body))
                if isinstance(reply, dict) and isinstance(reply.get("item"), dict):
                    # A reply may leave out the ids by which the search found it.
                    given = {k: v for k, v in reply["item"].items() if v is not None and v != ""}
                    reply["item"] = result.get(str(key), {}) | given
                yield from answers_of_json([reply], f"{path.name}, title {key}")
    except sqlite3.DatabaseError as error:
        raise DataError(path.name, [f"it is not a file of kept replies: {error}"]) from None


def _ids_by_title(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {}
    query = "SELECT key, body FROM replies WHERE kind = 'search' AND status = 200"
    for key, body in connection.execute(query):
        reply = _parsed(bytes(body))
        match = _matching(reply, int(str(key).removeprefix("tt")), None)
        if match is not None:
            result[str(match)] = {"imdbId": str(key)}
    return result
