"""A recommender behind HTTP that answers a history with a list.

Question (POST)::

    {"history": [{"item": 7, "value": 4.0}], "n": 10}

Answer (200)::

    {"items": [3, 5]}

The history travels in the question, so nothing is stored anywhere; a service that stores it is
``writes = true`` and refused unless ``sandbox = true``. Where edits may change fields
(`ombud.probes.Fields`), the question has ``"fields": {"country": "FR"}`` too.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ombud.errors import AuditedSystemError, PlanError
from ombud.http.client import Client, Reply, RequestError, blocking
from ombud.http.keys import check_address, read_key, redact
from ombud.http.pace import RateLimit
from ombud.probes.blackbox.systems import HistoryOf, TryAgainError, check_writes

_AGAIN = {408, 425, 429, 500, 502, 503, 504}


@dataclass(kw_only=True)
class HttpHistorySystem:
    """A service that is asked about histories.

    No reply, 408, 425, 429 and most 5xx may be tried again (by `Questions`, which counts every
    try); redirects are not followed.

    Parameters
    ----------
    url
        Where questions are posted.
    name, version
        The system's name in the report, and its version, part of the cache's key.
    key_env
        The *name* of an environment variable with a key, sent as ``Authorization: Bearer``.
    writes
        Whether the service stores what it is asked, for instance in an account.
    sandbox
        Whether no real account can be touched; needed when `writes`.
    timeout, wait
        Seconds until a question counts as unanswered, and of the first wait before the next try.
    per_second
        The most questions started in a second; None for no limit.
    in_flight
        What `Questions` does with those that were under way when a run was killed: ``leave``
        them without an answer, or ``ask`` again.
    """

    url: str
    name: str = "http"
    version: str = ""
    key_env: str = ""
    writes: bool = False
    sandbox: bool = False
    timeout: float = 30.0
    wait: float = 0.5
    per_second: float | None = None
    in_flight: Literal["leave", "ask"] = "leave"

    def __post_init__(self) -> None:
        check_address(self.url)
        if not self.timeout > 0 or self.wait < 0:
            raise PlanError(f"{self.name}: timeout must be positive, and wait not negative")
        if self.in_flight not in {"leave", "ask"}:
            raise PlanError(f"{self.name}: in_flight must be 'leave' or 'ask'")
        check_writes(self, self.sandbox)
        self._limit = RateLimit(self.per_second, None, time.monotonic)
        self._lock = threading.Lock()

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return the service's list for a history."""
        return self.recommend_with(history, {}, n)

    def recommend_with(
        self, history: HistoryOf, fields: Mapping[str, Any], n: int
    ) -> Sequence[Any]:
        """Return the service's list for a history and fields."""
        entries = [{"item": item, "value": float(value)} for item, value in history.items()]
        told = {"fields": dict(fields)} if fields else {}
        body = json.dumps({"history": entries, "n": n, **told}).encode()
        self._pace()
        key = read_key(self.key_env, self.url, "", self.name)
        try:
            reply = blocking(self._post(body, key))
        except RequestError as problem:
            raise TryAgainError(f"{self.name}: {problem}", self.wait) from None
        if reply.status in _AGAIN:
            raise TryAgainError(f"{self.name} answered with status {reply.status}", self.wait)
        if reply.status != 200:
            raise AuditedSystemError(f"{self.name} answered with status {reply.status}")
        return self._read(redact(reply.body, key))

    def _pace(self) -> None:
        with self._lock:
            seconds = self._limit.wait()
        if seconds > 0:
            time.sleep(seconds)

    async def _post(self, body: bytes, key: str) -> Reply:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        client = Client(self.url, headers, self.timeout)
        try:
            return await client.post(body)
        finally:
            await client.close()

    def _read(self, raw: bytes) -> Sequence[Any]:
        try:
            content = json.loads(raw)
        except (ValueError, RecursionError):
            raise AuditedSystemError(f"{self.name} answered with no JSON") from None
        items = content.get("items") if isinstance(content, dict) else None
        if not isinstance(items, list):
            raise AuditedSystemError(f"{self.name} answered without a list 'items'")
        return items

    def close(self) -> None:
        """Nothing stays open: each question has a connection of its own."""
