"""Ask Does the Dog Die about movies: slowly, once each, and going on where it was stopped."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from ombud.data.sources.ddd_answers import Answer, answers_of_json
from ombud.errors import DataError
from ombud.http.client import Client, Reply, RequestError, TooLargeError, blocking
from ombud.http.keys import check_source, is_loopback, redact
from ombud.http.pace import RateLimit, retry_after
from ombud.http.pace import backoff as wait_before
from ombud.http.store import check_structure, checksum, open_database

ADDRESS = "https://www.doesthedogdie.com"
KEY_VARIABLE = "OMBUD_DDD_KEY"

_LARGEST = 8 << 20
_LONGEST_WAIT = 900.0
_TABLE = """CREATE TABLE IF NOT EXISTS replies (
    kind TEXT NOT NULL, key TEXT NOT NULL, status INTEGER NOT NULL, at TEXT NOT NULL,
    body BLOB NOT NULL, checksum BLOB, PRIMARY KEY (kind, key)) WITHOUT ROWID"""


@dataclass(frozen=True)
class Collected:
    """What a run of `collect` did."""

    movies: int  # How many movies were to be looked up
    # Movies with an answer, and movies that the site does not have.
    found: int
    absent: int
    unlinked: int  # Movies without an IMDb id, which cannot be looked up
    requests: int  # How many requests this run made; the rest was there already


class _Asker:
    """Gets one reply at a time and keeps it before anything else happens."""

    def __init__(
        self,
        store: sqlite3.Connection,
        address: str,
        key: str,
        limit: RateLimit,
        sleep: Callable[[float], None],
        attempts: int,
        backoff: float,
    ) -> None:
        self._store, self._address, self._key = store, address, key
        self._limit, self._sleep = limit, sleep
        self._attempts, self._backoff = attempts, backoff
        self.requests = 0

    def get(
        self,
        kind: str,
        key: str,
        path: str,
        params: dict[str, str],
        about: Callable[[bytes], bool] = lambda _: True,
    ) -> tuple[int, bytes]:
        """Return status and body of a reply, from the store if it is there.

        `kind` and `key` are what the reply is known by in the store. `about` says whether a body is
        about what was asked for, as far as it says.
        """
        query = (
            "SELECT status, body FROM replies WHERE kind = ?1 AND key = ?2 "
            "AND checksum = ombud_checksum(?1, ?2, status, body)"
        )
        stored = self._store.execute(query, (kind, key)).fetchone()
        if stored is not None:
            return int(stored[0]), bytes(stored[1])
        status, body = self._ask(path, params, about)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._store:
            row = (kind, key, status, now, body, checksum(kind, key, status, body))
            self._store.execute("INSERT OR REPLACE INTO replies VALUES (?, ?, ?, ?, ?, ?)", row)
        return status, body

    def _ask(
        self, path: str, params: dict[str, str], about: Callable[[bytes], bool]
    ) -> tuple[int, bytes]:
        trouble, pause = "", 0.0
        for attempt in range(self._attempts):
            if (delay := max(pause, self._limit.wait())) > 0:
                self._sleep(delay)
            self.requests += 1
            asked: float | None = None
            try:
                reply = blocking(self._once(path, params))
            except TooLargeError:
                _stop(f"a reply has more than {_LARGEST:,} bytes")
            except RequestError as error:
                trouble = str(error)
            else:
                status, body = reply.status, redact(reply.body, self._key)
                if status in {401, 403}:
                    _stop(f"it refuses the key in {KEY_VARIABLE} (status {status})")
                # The site answers an unknown id with a page instead of JSON.
                if status == 404 or (status == 200 and "json" not in reply.content_type):
                    return 404, b""
                if status == 200 and about(body):
                    return status, body
                if status == 200:
                    trouble = "a reply about another title"
                elif status == 429 or status >= 500:
                    trouble, asked = f"status {status}", retry_after(reply.retry_after)
                else:
                    _stop(
                        f"it answers with status {status}, which ombud does not know how to treat"
                    )
            if asked is None:
                asked = wait_before(attempt, 0, path, self._backoff, 60.0)
            if asked > _LONGEST_WAIT:
                _stop(f"it asks to wait {asked:,.0f} seconds ({trouble})")
            self._limit.pause(pause := asked)
        _stop(f"{self._attempts} attempts failed, the last with {trouble}")

    async def _once(self, path: str, params: dict[str, str]) -> Reply:
        headers = {"X-API-KEY": self._key, "Accept": "application/json"}
        # Redirects are not followed: the key would go along.
        client = Client(self._address, headers, 30, largest=_LARGEST, proxied=False)
        return await client.get(path, params)


def _stop(reason: str) -> NoReturn:
    text = f"{reason}. What was answered is kept; run it again to go on"
    raise DataError("Does the Dog Die", [text])


def _key(address: str) -> str:
    host = check_source(address)
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        fault = f"no key; ask the site for one and set the environment variable {KEY_VARIABLE}"
        raise DataError("Does the Dog Die", [fault])
    if not key.isascii() or not key.isprintable():
        raise DataError("Does the Dog Die", [f"the key in {KEY_VARIABLE} cannot be sent"])
    if host != check_source(ADDRESS) and not is_loopback(host):
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

    `links` has ``item``, ``imdb`` and ``tmdb``; a movie takes two requests. The store is made if it
    is not there. After a failure the first wait is `backoff` seconds; Retry-After goes before it.
    `progress` is called with movies done, movies in all, and a note.
    """
    key = _key(address)
    if not 0 < per_second < math.inf:
        raise DataError("per_second", [f"it is {per_second}; it must be above 0"])
    known = links.filter(pl.col("imdb").is_not_null())
    result = absent = 0
    path = Path(store)
    path.parent.mkdir(parents=True, exist_ok=True)
    limit = RateLimit(per_second, None, time.monotonic)
    with closing(_open(path)) as connection:
        asker = _Asker(connection, address, key, limit, sleep, attempts, backoff)
        for number, (imdb, tmdb) in enumerate(known.select("imdb", "tmdb").iter_rows(), start=1):
            if _look_up(asker, imdb, tmdb):
                result += 1
            else:
                absent += 1
            if progress is not None:
                progress(number, known.height, f"tt{imdb:07d}")
    return Collected(links.height, result, absent, links.height - known.height, asker.requests)


def _open(path: Path) -> sqlite3.Connection:
    try:
        connection = open_database(path)
    except (OSError, sqlite3.Error) as error:
        raise DataError(path.name, [f"it cannot be opened: {error}"]) from None
    try:
        connection.execute(_TABLE)
        check_structure(connection)
        connection.execute("SELECT kind, key, status, at, body FROM replies LIMIT 1")
        if not _has_checksums(connection):
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ALTER TABLE replies ADD COLUMN checksum BLOB")
                connection.execute(
                    "UPDATE replies SET checksum = ombud_checksum(kind, key, status, body)"
                )
        with connection:  # damaged replies are asked for again
            connection.execute(
                "DELETE FROM replies WHERE checksum IS NOT ombud_checksum(kind, key, status, body)"
            )
    except sqlite3.Error as error:
        connection.close()
        raise DataError(path.name, [f"it is not a file of kept replies: {error}"]) from None
    return connection


def _has_checksums(connection: sqlite3.Connection) -> bool:
    return len(connection.execute("PRAGMA table_info(replies)").fetchall()) > 5


def _look_up(asker: _Asker, imdb: int, tmdb: int | None) -> bool:
    name = f"tt{imdb:07d}"
    status, body = asker.get("search", name, "/dddsearch", {"imdb": name})
    match = _matching(_parsed(body), imdb, tmdb) if status == 200 else None
    if match is None:
        return False

    def about(body: bytes) -> bool:
        """Whether the title that the reply names is the one that was asked for."""
        reply = _parsed(body)
        item = reply.get("item") if isinstance(reply, dict) else None
        return not isinstance(item, dict) or item.get("id", match) == match

    status, _ = asker.get("media", str(match), f"/media/{match}", {}, about)
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
    """Yield the answers that `collect` kept."""
    path = Path(store)
    try:
        with closing(open_database(path, read_only=True)) as connection:
            _refuse_damage(connection, path)
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
    except (OSError, sqlite3.Error) as error:
        raise DataError(path.name, [f"it is not a file of kept replies: {error}"]) from None


def _refuse_damage(connection: sqlite3.Connection, path: Path) -> None:
    if not _has_checksums(connection):
        return  # written by an older ombud
    rows = connection.execute("SELECT checksum, kind, key, status, body FROM replies")
    if damaged := sum(stored != checksum(*row) for stored, *row in rows):
        fault = (
            f"{damaged:,} replies are damaged (their checksums do not match); collect them again"
        )
        raise DataError(path.name, [fault])


def _ids_by_title(connection: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    result: dict[str, dict[str, Any]] = {}
    query = "SELECT key, body FROM replies WHERE kind = 'search' AND status = 200"
    for key, body in connection.execute(query):
        reply = _parsed(bytes(body))
        match = _matching(reply, int(str(key).removeprefix("tt")), None)
        if match is not None:
            result[str(match)] = {"imdbId": str(key)}
    return result
