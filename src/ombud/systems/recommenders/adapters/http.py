"""A recommender behind HTTP."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ombud.data.ids import Ids
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError, PlanError
from ombud.http.pace import retry_after
from ombud.registry import recommender
from ombud.systems.moderators.keys import check_address, read_key, redact
from ombud.systems.moderators.limits import RateLimit, backoff
from ombud.systems.recommenders.adapters.answers import Answer, Faults, gather
from ombud.systems.recommenders.adapters.protocol import GarbledReplyError, question, read_reply
from ombud.systems.recommenders.adapters.replies import Replies, default_path

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpRecommender"]

MAX_BODY = 64 * 1024 * 1024
LONGEST_BACKOFF = 60.0
LONGEST_WAIT = 600.0
_AGAIN = {408, 425, 429, 500, 502, 503, 504}


class _FailedError(Exception):
    """A batch for which no usable reply came, in words."""


@recommender("http")
@dataclass(kw_only=True)
class HttpRecommender:
    """A service that answers ``POST {"users": [...], "n": 10, "exclude_seen": true}``.

    The protocol is that of `ombud.systems.recommenders.adapters.protocol`. Every raw reply is
    kept in an SQLite file, and a question that was answered is never asked again. No reply, 408,
    425, 429 and most 5xx, and replies that are not the protocol's JSON are tried again, later
    each time and no sooner than a Retry-After asks; other statuses are not. Redirects are not
    followed.

    Parameters
    ----------
    url
        Where questions are posted.
    name
        The system's name in the report.
    key_env
        The *name* of an environment variable with a key, sent as ``Authorization: Bearer``. A
        key goes only to this machine and to hosts named in ``OMBUD_KEY_HOSTS``.
    version
        The version of the service; part of the cache's key, so a new version is asked anew.
    batch
        Users in one question.
    parallel
        Questions under way at a time.
    per_second, per_minute
        The most questions started in that time; None for no limit.
    timeout
        Seconds until a question counts as unanswered.
    retries
        How often a question is tried again.
    wait
        Seconds of the first wait before a retry; it doubles each time, up to a minute.
    faults
        What a faulty list, or a batch without a usable reply, does: ``error``, or ``exclude``
        the users and count them. When no batch at all is answered it is always an error.
    cache
        The file of replies; default ``$OMBUD_CACHE/recommenders.sqlite`` or
        ``.ombud/recommenders.sqlite``.
    seed
        Of the jitter of the waits.
    """

    url: str
    name: str = "http"
    key_env: str = ""
    version: str = ""
    batch: int = 100
    parallel: int = 4
    per_second: float | None = None
    per_minute: float | None = None
    timeout: float = 30.0
    retries: int = 5
    wait: float = 0.5
    faults: Faults = "error"
    cache: Path | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_address(self.url)
        wrong = [
            f"{name} is {value}; {least} or more was expected"
            for name, value, least in (
                ("batch", self.batch, 1),
                ("parallel", self.parallel, 1),
                ("retries", self.retries, 0),
                ("wait", self.wait, 0),
            )
            if value < least
        ]
        rates = {"timeout": self.timeout, "per_second": self.per_second}
        rates["per_minute"] = self.per_minute
        wrong += [
            f"{name} is {value}; a positive number was expected"
            for name, value in rates.items()
            if value is not None and not value > 0
        ]
        if wrong:
            raise PlanError(f"{self.name}: {'; '.join(wrong)}")

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the service's lists, from the cache where it has answered before."""
        import httpx

        key = read_key(self.key_env, self.url, "", self.name)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        asked = np.asarray(users).tolist()
        batches = [asked[start : start + self.batch] for start in range(0, len(asked), self.batch)]
        replies = Replies(self.cache or default_path())
        try:
            with httpx.Client(headers=headers, timeout=self.timeout) as client:
                session = _Session(self, client, replies, key)
                with ThreadPoolExecutor(self.parallel) as pool:
                    results = list(pool.map(lambda b: session.lists(b, n, exclude_seen), batches))
        finally:
            replies.close()
        failures = [r for r in results if isinstance(r, str)]
        if failures and len(failures) == len(results):
            raise AuditedSystemError(
                f"{self.name} answered none of {len(results):,} questions: {failures[0]}"
            )
        answers: list[Answer | None] = []
        for users_of, result in zip(batches, results, strict=True):
            answers += [Answer(fault=result)] * len(users_of) if isinstance(result, str) else result
        return gather(self.name, users, answers, n, self.faults)


class _Session:
    """The state of one call: client, pace and cache, shared by the threads."""

    def __init__(
        self, asked: HttpRecommender, client: httpx.Client, replies: Replies, key: str
    ) -> None:
        self.asked, self.client, self.replies, self.secret = asked, client, replies, key
        self.limit = RateLimit(asked.per_second, asked.per_minute, time.monotonic)
        self.lock = threading.Lock()
        self.broken: AuditedSystemError | None = None

    def lists(self, users: list[Any], n: int, exclude_seen: bool) -> list[Answer | None] | str:
        """Return the answers for one batch, or why there are none."""
        body = question(users, n, exclude_seen)
        key = Replies.key(self.asked.url.encode(), self.asked.version.encode(), body)
        known = self.replies.get(key)
        if known is not None:
            return read_reply(known, users)
        if self.broken is not None:
            raise self.broken
        try:
            return self._ask(users, body, key)
        except _FailedError as failure:
            if self.asked.faults == "exclude":
                return str(failure)
            more = f" and {len(users) - 1} more" if len(users) > 1 else ""
            message = f"{self.asked.name}, asked for user {users[0]!r}{more}: {failure}"
            self.broken = AuditedSystemError(message)  # other threads stop asking
            raise self.broken from None

    def _ask(self, users: list[Any], body: bytes, key: bytes) -> list[Answer | None]:
        fault = ""
        for attempt in range(self.asked.retries + 1):
            if attempt:
                time.sleep(
                    backoff(
                        attempt - 1, self.asked.seed, key.hex(), self.asked.wait, LONGEST_BACKOFF
                    )
                )
            self._pace()
            when = time.time()
            try:
                status, raw, wait = self._post(body)
            except ConnectionError as problem:
                fault = str(problem)
                continue
            raw = redact(raw, self.secret)
            try:
                if status != 200:
                    raise GarbledReplyError(f"status {status}")
                answers = read_reply(raw, users)
            except GarbledReplyError as problem:
                self.replies.put(key, self.asked.url, when, status, False, raw)
                fault = str(problem)
                if status != 200 and status not in _AGAIN:
                    raise _FailedError(f"the service answered with {fault}") from None
                self._hold(retry_after(wait))
                continue
            self.replies.put(key, self.asked.url, when, status, True, raw)
            return answers
        tries = f"{self.asked.retries + 1} tries" if self.asked.retries else "1 try"
        raise _FailedError(f"no usable reply in {tries}; the last: {fault}")

    def _pace(self) -> None:
        with self.lock:
            seconds = self.limit.wait()
        if seconds > 0:
            time.sleep(seconds)

    def _hold(self, seconds: float | None) -> None:
        if seconds is None:
            return
        if seconds > LONGEST_WAIT:
            raise _FailedError(
                f"the service asks to wait {seconds:.0f} s, which is over {LONGEST_WAIT:.0f}: a "
                "quota is used up; run the audit again later, answers so far are kept"
            )
        with self.lock:
            self.limit.pause(seconds)

    def _post(self, body: bytes) -> tuple[int, bytes, str]:
        import httpx

        try:
            with self.client.stream("POST", self.asked.url, content=body) as response:
                parts, size = [], 0
                for part in response.iter_bytes():
                    size += len(part)
                    if size > MAX_BODY:
                        raise ConnectionError(f"the reply is over {MAX_BODY:,} bytes")
                    parts.append(part)
                wait = response.headers.get("retry-after", "")
                return response.status_code, b"".join(parts), wait
        except httpx.TimeoutException:
            raise ConnectionError(f"no reply within {self.asked.timeout:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise ConnectionError(f"{type(problem).__name__}: {problem}") from None
