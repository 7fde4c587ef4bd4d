"""A recommender behind HTTP."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError, DataError, PlanError
from ombud.http.dispatch import IN_FLIGHT, TRY_AGAIN, Backlog, Dispatcher, ReplyStatus
from ombud.http.keys import check_address, read_key, redact
from ombud.http.pace import RunSettings
from ombud.http.store import AnswerStore, Call, Key, default_path, hash_of
from ombud.registry import recommender
from ombud.systems.base import Recommender
from ombud.systems.quote import CostQuote, least_seconds
from ombud.systems.recommenders.adapters.answers import Answer, Faults, as_answer, gather, is_text


class GarbledReplyError(Exception):
    """A reply that is not what the protocol says, as a whole."""


def question(users: Sequence[Any], n: int, exclude_seen: bool) -> bytes:
    """Return the body of a question."""
    asked = {"users": list(users), "n": n, "exclude_seen": exclude_seen}
    text = json.dumps(asked, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        odd = next(user for user in users if isinstance(user, str) and not is_text(user))
        fault = f"the id {odd!r:.60} holds half a character, which UTF-8 cannot hold"
        raise DataError("users", [fault]) from None


def read_reply(raw: bytes, users: Sequence[Any]) -> list[Answer | None]:
    """Return the answer for each user asked; None where the reply has none.

    Raises
    ------
    GarbledReplyError
        When the reply as a whole cannot be used.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        start = raw[:40].decode("utf-8", "replace")
        raise GarbledReplyError(f"a reply that is not JSON; it begins {start!r}") from None
    rows = content.get("recommendations") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise GarbledReplyError("a reply without a list 'recommendations'")
    index = {_key(user): row for row, user in enumerate(users)}
    answers: list[Answer | None] = [None] * len(users)
    for number, entry in enumerate(rows, 1):
        if not isinstance(entry, dict) or "user" not in entry or "items" not in entry:
            raise GarbledReplyError(f"entry {number} is not an object with 'user' and 'items'")
        row = index.get(_key(entry["user"]))
        if row is None:
            raise GarbledReplyError(
                f"entry {number} is for user {entry['user']!r:.60}, who was not asked for "
                f"(the first asked for is {users[0]!r:.60})"
            )
        if answers[row] is not None:
            answers[row] = Answer(fault="two lists in one reply")
        else:
            answers[row] = as_answer(entry["items"], entry.get("scores"))
    return answers


def _key(user: Any) -> Any:
    """Return something that tells 1 from "1" and from true, and can be looked up."""
    return (type(user).__name__, user) if isinstance(user, int | str) else None


_MAX_BODY = 64 * 1024 * 1024
_LONGEST_BACKOFF = 60.0
_LONGEST_WAIT = 600.0
_USABLE = "usable"
_UNCERTAIN = f"{IN_FLIGHT}; in_flight = 'ask' asks again"


@recommender("http")
@dataclass(kw_only=True)
class HttpRecommender(Recommender):
    """A service that answers ``POST {"users": [...], "n": 10, "exclude_seen": true}``.

    The protocol is that of `ombud.systems.recommenders.adapters.http`. Every raw reply is
    kept in an SQLite file, and a question that was answered is never asked again; one run at a
    time asks a service. No reply, 408, 425, 429 and most 5xx, and replies that are not the
    protocol's JSON are tried again, later each time and no sooner than a Retry-After asks; other
    statuses are not. Redirects are not followed.

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
        Seconds until a question counts as unanswered, however slowly its reply drips in.
    retries
        How often a question is tried again.
    wait
        Seconds of the first wait before a retry; it doubles each time, up to a minute.
    faults
        What a faulty list, or a batch without a usable reply, does: ``error``, or ``exclude``
        the users and count them. When no batch at all is answered it is always an error.
    in_flight
        Questions that were sent but whose reply was not on disk when an earlier run was killed:
        ``"leave"`` treats them as faults, so that nothing is asked twice; ``"ask"`` asks again.
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
    in_flight: Literal["leave", "ask"] = "leave"
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
        """Return the service's lists, from the cache where it has answered before.

        Raises
        ------
        AuditedSystemError
            When the service does not answer, or answers badly; what it answered is kept.
        KeyboardInterrupt
            On Ctrl-C, after the replies under way were awaited and kept. A second Ctrl-C does
            not wait.
        """
        asked = np.asarray(users).tolist()
        batches = [asked[start : start + self.batch] for start in range(0, len(asked), self.batch)]
        service = _Service(self, n, exclude_seen)
        keys = [service.key(batch) for batch in batches]
        path = self.cache or default_path("recommenders")
        # The version is part of each question's hash: one run at a time asks one address.
        with AnswerStore(path, "http", self.url) as store, store.lock():
            payloads = dict(zip(keys, batches, strict=True))
            backlog = Backlog.split(payloads, store.latest(payloads), self.in_flight)
            if backlog.uncertain and self.in_flight == "leave" and self.faults == "error":
                first = next(payloads[key] for key in keys if key in backlog.uncertain)
                raise self._failed(first, _UNCERTAIN)
            questions, damaged = backlog.questions, store.damaged
            dispatcher = Dispatcher(service, store, self._settings(), questions, _MAX_BODY)
            dispatcher.run()
        calls = {**backlog.calls, **dispatcher.calls}
        results = [service.result(calls.get(k), b) for k, b in zip(keys, batches, strict=True)]
        if dispatcher.interrupted:
            dispatcher.check(self.name)
        failures = [
            (batch, result)
            for key, batch, result in zip(keys, batches, results, strict=True)
            if isinstance(result, str) and key in calls
        ]
        if failures and self.faults == "error":
            raise self._failed(*failures[0])
        dispatcher.check(self.name)
        if failures and len(failures) == len(results):
            raise AuditedSystemError(
                f"{self.name} answered none of {len(results):,} questions: {failures[0][1]}"
            )
        answers: list[Answer | None] = []
        for batch, result in zip(batches, results, strict=True):
            answers += [Answer(fault=result)] * len(batch) if isinstance(result, str) else result
        lists = gather(self.name, users, answers, n, self.faults)
        if not damaged:
            return lists
        reason = "they were damaged on disk (their checksums did not match) and are not used"
        where = f"cache of {self.name}"
        notice = Exclusion(where, "cached replies", damaged, reason, key="cache/damaged")
        return replace(lists, exclusions=(*lists.exclusions, notice))

    def quote_lists(self, users: Ids, n: int, part: int) -> CostQuote:
        """Return how many questions asking for some users' lists would take; asks nothing.

        Parameters
        ----------
        users, n
            As in `recommend`.
        part
            So many users are asked about in one call of `recommend`.
        """
        asked = np.asarray(users).tolist()
        parts = [asked[start : start + part] for start in range(0, len(asked), part)]
        batches = [p[at : at + self.batch] for p in parts for at in range(0, len(p), self.batch)]
        payloads = {self._key(batch, n, exclude_seen=True): batch for batch in batches}
        path = self.cache or default_path("recommenders")
        with AnswerStore(path, "http", self.url) as store:
            backlog = Backlog.split(payloads, store.latest(payloads), self.in_flight)
        to_ask = sum(len(question.payload) for question in backlog.questions)
        uncertain = sum(len(payloads[key]) for key in backlog.uncertain)
        left = uncertain if self.in_flight == "leave" else 0
        requests = len(backlog.questions)
        times = [c.answered - c.asked for c in backlog.calls.values() if c.answered is not None]
        pace = (self.parallel, self.per_second, self.per_minute)
        seconds, note = least_seconds(requests, times, *pace)
        return CostQuote(
            system=self.name,
            host=urlsplit(self.url).netloc,
            texts=len(asked),
            known=len(asked) - to_ask - left,
            unsent=0,
            uncertain=uncertain,
            questions=to_ask,
            requests=requests,
            cost=None,
            currency="USD",
            seconds=seconds,
            note=note,
            what="users",
        )

    def _key(self, users: list[Any], n: int, exclude_seen: bool) -> Key:
        return hash_of(self.url, self.version, question(users, n, exclude_seen)), 0

    def _failed(self, batch: list[Any], reason: str) -> AuditedSystemError:
        more = f" and {len(batch) - 1} more" if len(batch) > 1 else ""
        return AuditedSystemError(f"{self.name}, asked for user {batch[0]!r}{more}: {reason}")

    def _settings(self) -> RunSettings:
        return RunSettings(
            concurrency=self.parallel,
            per_second=self.per_second,
            per_minute=self.per_minute,
            timeout=self.timeout,
            retries=self.retries,
            backoff=self.wait,
            longest_backoff=_LONGEST_BACKOFF,
            longest_wait=_LONGEST_WAIT,
            give_up_after=1 if self.faults == "error" else sys.maxsize,
            in_flight=self.in_flight,
            seed=self.seed,
        )


class _Service:
    """How one call of `HttpRecommender.recommend` asks, and what a reply means."""

    @property
    def echoes(self) -> bool:
        """Users may be left out of a reply, so it does not say which question it answers."""
        return False

    def __init__(self, asked: HttpRecommender, n: int, exclude_seen: bool) -> None:
        self._asked, self._n, self._exclude_seen = asked, n, exclude_seen
        self._secret = read_key(asked.key_env, asked.url, "", asked.name)

    @property
    def url(self) -> str:
        return self._asked.url

    def headers(self) -> Mapping[str, str]:
        headers = {"Accept": "application/json"}
        if self._secret:
            headers["Authorization"] = f"Bearer {self._secret}"
        return headers

    def key(self, users: list[Any]) -> Key:
        return self._asked._key(users, self._n, self._exclude_seen)

    def body(self, payloads: Sequence[list[Any]]) -> bytes:
        (users,) = payloads
        return question(users, self._n, self._exclude_seen)

    def split(self, body: bytes, count: int) -> list[bytes]:
        raise ValueError("a question is about one batch of users")

    def redact(self, body: bytes) -> bytes:
        return redact(body, self._secret)

    def judge(self, status: int, body: bytes, payload: list[Any]) -> ReplyStatus:
        if status != 200:
            again = status in TRY_AGAIN
            reason = f"status {status}" if again else f"the service answered with status {status}"
            stop = reason if not again and self._asked.faults == "error" else ""
            return ReplyStatus("error", reason, again, stop)
        try:
            read_reply(body, payload)
        except GarbledReplyError as problem:
            return ReplyStatus("error", str(problem), again=True)
        return ReplyStatus(_USABLE)

    def exhausted(self, reason: str, tries: int) -> str:
        return f"no usable reply in {tries} {'tries' if tries > 1 else 'try'}; the last: {reason}"

    def result(self, call: Call | None, users: list[Any]) -> list[Answer | None] | str:
        """Return the answers for one batch, or why there are none."""
        if call is None:
            return "it was not asked, because the run had stopped"
        if call.answered is None:
            return _UNCERTAIN
        if call.outcome != _USABLE or call.raw is None:
            return call.reason
        try:
            return read_reply(call.raw, users)
        except GarbledReplyError as problem:
            return f"the kept reply cannot be used: {problem}"
