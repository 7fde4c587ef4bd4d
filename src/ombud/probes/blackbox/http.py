"""A recommender behind HTTP that answers a history with a list.

Question (POST)::

    {"history": [{"item": 7, "value": 4.0}], "n": 10}

Answer (200)::

    {"items": [3, 5]}

The history travels in the question, so nothing is stored anywhere; a service that stores it is
``writes = true`` and refused unless ``sandbox = true``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ombud.errors import AuditedSystemError, PlanError
from ombud.probes.blackbox.systems import HistoryOf, TryAgainError, check_writes
from ombud.systems.moderators.keys import check_address, read_key
from ombud.systems.moderators.limits import RateLimit

__all__ = ["HttpHistorySystem"]

_LARGEST = 16 * 1024 * 1024
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

    def __post_init__(self) -> None:
        check_address(self.url)
        if not self.timeout > 0 or self.wait < 0:
            raise PlanError(f"{self.name}: timeout must be positive, and wait not negative")
        check_writes(self, self.sandbox)
        self._limit = RateLimit(self.per_second, None, time.monotonic)
        self._lock = threading.Lock()
        self._client: Any = None

    def recommend(self, history: HistoryOf, n: int) -> Sequence[Any]:
        """Return the service's list for a history."""
        entries = [{"item": item, "value": float(value)} for item, value in history.items()]
        body = json.dumps({"history": entries, "n": n}).encode()
        self._pace()
        try:
            status, raw = self._post(body)
        except ConnectionError as problem:
            raise TryAgainError(f"{self.name}: {problem}", self.wait) from None
        if status in _AGAIN:
            raise TryAgainError(f"{self.name} answered with status {status}", self.wait)
        if status != 200:
            raise AuditedSystemError(f"{self.name} answered with status {status}")
        return self._read(raw)

    def _pace(self) -> None:
        with self._lock:
            seconds = self._limit.wait()
        if seconds > 0:
            time.sleep(seconds)

    def _connected(self) -> Any:
        import httpx

        with self._lock:
            if self._client is None:
                headers = {"Content-Type": "application/json", "Accept": "application/json"}
                key = read_key(self.key_env, self.url, "", self.name)
                if key:
                    headers["Authorization"] = f"Bearer {key}"
                self._client = httpx.Client(headers=headers, timeout=self.timeout)
            return self._client

    def _post(self, body: bytes) -> tuple[int, bytes]:
        import httpx

        try:
            with self._connected().stream("POST", self.url, content=body) as response:
                parts, size = [], 0
                for part in response.iter_bytes():
                    size += len(part)
                    if size > _LARGEST:
                        raise ConnectionError(f"the reply is over {_LARGEST:,} bytes")
                    parts.append(part)
                return response.status_code, b"".join(parts)
        except httpx.HTTPError as problem:
            raise ConnectionError(f"{type(problem).__name__}") from None

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
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None
