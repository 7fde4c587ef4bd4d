"""One run's traffic: workers, limits, retries, what is on disk, and when to stop."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, Protocol

from ombud.errors import AuditedSystemError
from ombud.http.client import MAX_BODY, Client, Reply, RequestError, new_loop, wait_in_thread
from ombud.http.pace import RateLimit, RunSettings, backoff, retry_after, tokens_in
from ombud.http.store import AnswerStore, Call, Key

IN_FLIGHT = "in flight when an earlier run was killed; whether it was answered is unknown"
"""Why a question that was sent, and whose reply is not on disk, has no answer."""


@dataclass(slots=True)
class Question:
    """Something to be asked."""

    key: Key  # what it is known by in the store
    payload: Any  # what is asked about: a text, some users
    attempt: int = 0  # the number of its next call; those before it are in the store


@dataclass(frozen=True)
class Backlog:
    """Questions, split into answered, to be asked, and uncertain."""

    calls: Mapping[Key, Call]  # what the store holds
    questions: tuple[Question, ...]  # what is to be asked
    uncertain: frozenset[Key]  # keys that were in flight when an earlier run was killed

    @classmethod
    def split(
        cls,
        payloads: Mapping[Key, Any],
        calls: Mapping[Key, Call],
        in_flight: Literal["leave", "ask"],
    ) -> Backlog:
        """Split questions by what the store knows of them.

        `calls` has the last call of each key; with `in_flight`, what was under way is asked again.
        """
        questions, uncertain = [], set()
        for key, payload in payloads.items():
            call = calls.get(key)
            if call is None:
                questions.append(Question(key, payload))
                continue
            open_call = call.answered is None
            if open_call:
                uncertain.add(key)
            later = not open_call and call.outcome in ASK_LATER
            if later or (open_call and in_flight == "ask"):
                questions.append(Question(key, payload, call.attempt + 1))
        return cls(calls, tuple(questions), frozenset(uncertain))


ASK_LATER = frozenset({"error", "malformed"})
"""Words for replies of which a later run asks again: none, and one that is cut off or no JSON."""

REJECTED = "rejected"
"""The word for a question that the service will never answer, so that no run asks it again."""

TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
"""Statuses after which the same question may be answered."""

_REASON_LENGTH = 200


class RunStoppedError(AuditedSystemError):
    """A run ended early; what was answered is in the cache, and the same run goes on from there."""


@dataclass(frozen=True, slots=True)
class ReplyStatus:
    """What a reply to one question means for the run."""

    outcome: str  # a word that is stored; with those of `ASK_LATER` a later run asks again
    reason: str = ""  # why it is no answer, in words
    again: bool = False  # whether the question is worth another try at once
    stop: str = ""  # why there is no point in asking anything else; empty when there is
    stray: bool = False  # whether the reply says that it is that to another question


class Endpoint(Protocol):
    """One service, without any networking: how a question looks, and what a reply means."""

    @property
    def url(self) -> str:
        """Where questions are posted."""
        ...

    @property
    def echoes(self) -> bool:
        """Whether replies say which question they answer, and `judge` checks it."""
        ...

    def headers(self) -> Mapping[str, str]:
        """Return the headers of every question, the key among them."""
        ...

    def body(self, payloads: Sequence[Any]) -> bytes:
        """Return the body of a question about some payloads (one, unless it takes more)."""
        ...

    def split(self, body: bytes, count: int) -> list[bytes]:
        """Return the reply to several payloads as one reply each; ValueError when it is not."""
        ...

    def redact(self, body: bytes) -> bytes:
        """Return a reply without the key, should the service have repeated it."""
        ...

    def judge(self, status: int, body: bytes, payload: Any) -> ReplyStatus:
        """Return what a reply to one payload means; never raises."""
        ...

    def exhausted(self, reason: str, tries: int) -> str:
        """Return how to say that all tries failed, the last of them for a reason."""
        ...


class CommitQueue:
    """Group commit: calls of many workers reach the disk together, and each learns when.

    While one transaction is being committed the next gathers, so the file is written as often as
    the disk allows and a reply waits for at most two commits.
    """

    def __init__(self, store: AnswerStore) -> None:
        self.written: dict[Key, Call] = {}
        self.failure: Exception | None = None
        self._store = store
        self._asked: list[tuple[Key, int, float]] = []
        self._answered: list[tuple[Key, Call]] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._news = asyncio.Event()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ombud-cache")
        self._task = asyncio.create_task(self._write_all())

    async def asked(self, calls: list[tuple[Key, int, float]]) -> None:
        """Return when it is on disk that some questions are about to be sent."""
        if self.failure is not None:
            raise self.failure
        self._asked.extend(calls)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(done)
        self._news.set()
        await done

    def answered(self, calls: list[tuple[Key, Call]]) -> None:
        """Put replies into the next commit; they are on disk before the next `asked` returns."""
        self._answered.extend(calls)
        self._news.set()

    async def _write_all(self) -> None:
        loop = asyncio.get_running_loop()
        closing = False
        while not closing:
            await self._news.wait()
            self._news.clear()
            closing = self._closing
            asked, self._asked = self._asked, []
            answered, self._answered = self._answered, []
            waiting, self._waiting = self._waiting, []
            try:
                await loop.run_in_executor(self._thread, self._store.write, asked, answered)
            except Exception as fault:  # a full disk among others; the workers learn of it
                self.failure = fault
                await self._rescue(answered)
            else:
                self.failure = None
                self.written.update(answered)
            for done in waiting:
                if not done.done():
                    if self.failure is None:
                        done.set_result(None)
                    else:
                        done.set_exception(self.failure)

    async def _rescue(self, answered: list[tuple[Key, Call]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._store.rescue, answered)
        except Exception:  # tried again with the next commit, the last of them in `close`
            self._answered = answered + self._answered
        else:
            self.written.update(answered)

    @property
    def unwritten(self) -> int:
        """How many replies are there but not on disk."""
        return len(self._answered)

    async def close(self) -> None:
        """Write what is left, that of a failed commit again, then stop."""
        self._closing = True
        self._news.set()
        await self._task
        self._thread.shutdown()


class Dispatcher:
    """Asks a set of questions, each until it has an answer or the run must stop."""

    def __init__(
        self,
        endpoint: Endpoint,
        store: AnswerStore,
        settings: RunSettings,
        questions: Sequence[Question],
        largest: int = MAX_BODY,
    ) -> None:
        self.total = len(questions)
        self.stopped = ""
        self.interrupted = False
        self.lost = 0
        self._endpoint = endpoint
        self._store = store
        self._settings = settings
        self._queue: Iterator[Question] = iter(questions)
        self._largest = largest
        self._failures_in_a_row = 0
        self._refused_in_a_row = 0
        self._was_answered = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._commits: CommitQueue | None = None

    @property
    def calls(self) -> dict[Key, Call]:
        """The calls of this run that are on disk, errors included."""
        return self._commits.written if self._commits else {}

    @property
    def answered(self) -> int:
        """Questions whose answer is on disk, errors not included."""
        return sum(call.outcome not in ASK_LATER for call in self.calls.values())

    def run(self, progress: Callable[[int, int, str], None] | None = None) -> None:
        """Ask everything; returns when all is answered or the run was stopped.

        `progress` is called with questions done, questions in all, and why the run is being
        stopped.
        """
        if not self.total:
            return
        self._store.reserve()

        def tick() -> None:
            if progress is not None:
                progress(len(self.calls), self.total, self.stopped)

        wait_in_thread(self._run_to_end, self._interrupt, tick)

    def check(self, name: str, before: int = 0, total: int | None = None) -> None:
        """Raise what ended the run early, if anything did.

        `before` is how many questions an earlier part of the run has answered, and `total` those
        of all parts.

        Raises
        ------
        RunStoppedError
            When the service turns the key away, is down, or the disk is full.
        KeyboardInterrupt
            On Ctrl-C and SIGTERM.
        """
        if not self.stopped:
            return
        lost = f" {self.lost:,} replies could not be written." if self.lost else ""
        message = (
            f"{name} stopped: {self.stopped}. {before + self.answered:,} of "
            f"{self.total if total is None else total:,} questions of "
            f"this run were answered and are kept in {self._store.path}.{lost} "
            "Run it again to go on from there"
        )
        raise KeyboardInterrupt(message) if self.interrupted else RunStoppedError(message)

    def _interrupt(self) -> bool:
        """Start nothing new, wait for the replies under way; the second time, do not wait."""
        if self.interrupted:
            return False
        self.interrupted = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, "interrupted")
        return True

    def _stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._halt.set()

    def _run_to_end(self) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(self._run())

    async def _run(self) -> None:
        s = self._settings
        self._loop = asyncio.get_running_loop()
        self._halt = asyncio.Event()
        pace = (s.per_second, s.per_minute, time.monotonic, s.tokens_per_minute)
        self._limit = RateLimit(*pace)
        if self.interrupted:
            self._stop("interrupted")
        headers = {"Content-Type": "application/json", **self._endpoint.headers()}
        client = Client(
            self._endpoint.url,
            headers,
            s.timeout,
            largest=self._largest,
            kept=self._endpoint.echoes,
        )
        self._commits = commits = CommitQueue(self._store)
        try:
            workers = min(s.concurrency, self.total)
            await self._work_all(workers, client, commits)
        finally:
            await commits.close()
            self.lost = commits.unwritten
            await client.close()

    async def _work_all(self, workers: int, client: Client, commits: CommitQueue) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(client, commits))

    async def _work(self, client: Client, commits: CommitQueue) -> None:
        try:
            while not self._halt.is_set():
                await self._turn()
                if self._halt.is_set():
                    return
                batch = list(islice(self._queue, self._settings.batch))
                if not batch:
                    return
                await self._ask(batch, client, commits)
        except (sqlite3.Error, OSError) as fault:
            self._stop(f"the answer cache cannot be written ({fault}); make room or repair it")

    async def _sent(self, batch: list[Question], commits: CommitQueue) -> float:
        now = time.time()
        await commits.asked([(q.key, q.attempt, now) for q in batch])
        return now

    async def _turn(self) -> None:
        if (delay := self._limit.wait()) > 0:
            await self._sleep(delay)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._halt.wait()
        except TimeoutError:
            pass

    async def _ask(self, batch: list[Question], client: Client, commits: CommitQueue) -> None:
        """Ask until there is an answer; each try is on disk before it is made."""
        s = self._settings
        now = await self._sent(batch, commits)
        try:
            body = self._endpoint.body([q.payload for q in batch])
        except Exception as fault:  # a plugin's may fail in any way; the others go on
            reason = f"no question could be made of it: {type(fault).__name__}: {fault}"
            commits.answered(_calls(batch, now, None, [self._error(reason)] * len(batch)))
            return
        digest, repeat = batch[0].key
        name = f"{digest.hex()}.{repeat}"
        for attempt in range(s.retries + 1):
            if attempt:
                await self._sleep(backoff(attempt - 1, s.seed, name, s.backoff, s.longest_backoff))
                await self._turn()
                if self._halt.is_set():
                    return
                for question in batch:
                    question.attempt += 1
                now = await self._sent(batch, commits)
            self._limit.spend(tokens_in(len(body)))
            replies, verdicts = await self._try(batch, body, client)
            if len(batch) > 1 and replies[0] is not None and _spoilt(replies[0], verdicts):
                # One of them may have spoilt the request: each gets its own.
                commits.answered(_calls(batch, now, replies, verdicts))
                for question in batch:
                    question.attempt += 1
                    await self._ask([question], client, commits)
                return
            verdict = verdicts[0]
            if verdict.again and (too_long := self._hold(replies[0], verdict.reason)):
                verdicts = [self._error(too_long, stop=too_long)] * len(batch)
            elif verdict.again and attempt == s.retries:
                self._count_failure(verdict.reason)
                reason = self._endpoint.exhausted(verdict.reason, attempt + 1)
                verdicts = [self._error(reason)] * len(batch)
            elif not verdict.again:
                self._failures_in_a_row = 0
                self._count_refusal(verdicts)
            commits.answered(_calls(batch, now, replies, verdicts))
            if verdicts[0].stop:
                self._stop(verdicts[0].stop)
            if self._halt.is_set() or not verdicts[0].again:
                return

    def _count_failure(self, reason: str) -> None:
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= self._settings.give_up_after:
            self._stop(f"{self._failures_in_a_row} questions failed in a row, the last: {reason}")

    def _count_refusal(self, verdicts: Sequence[ReplyStatus]) -> None:
        if any(verdict.outcome not in ASK_LATER | {REJECTED} for verdict in verdicts):
            self._refused_in_a_row, self._was_answered = 0, True
            return
        if self._was_answered and verdicts[0].outcome == REJECTED:
            return  # the service takes other texts, so it is this one that it does not take
        self._refused_in_a_row += 1
        if self._refused_in_a_row >= self._settings.give_up_after:
            last = f"the last: {verdicts[0].reason}"
            self._stop(f"{self._refused_in_a_row} replies in a row were of no use, {last}")

    def _hold(self, reply: Reply | None, reason: str) -> str:
        """Hold all questions back as long as the service asks for; say so when that is too long."""
        wait = (retry_after(reply.retry_after) or 0.0) if reply is not None else 0.0
        if wait > self._settings.longest_wait:
            return f"{reason} and asks to wait {wait:,.0f} s: a quota may be used up"
        self._limit.pause(wait)
        return ""

    async def _try(
        self, batch: list[Question], body: bytes, client: Client
    ) -> tuple[list[Reply | None], list[ReplyStatus]]:
        """Ask once; return the reply and the verdict for each question."""
        try:
            whole = await client.post(body)
        except RequestError as fault:
            return [None] * len(batch), [self._error(str(fault), again=True)] * len(batch)
        shown = self._endpoint.redact(whole.body)
        bodies = [shown] * len(batch)
        if len(batch) > 1 and whole.status == 200:
            try:
                bodies = self._endpoint.split(shown, len(batch))
            except Exception as fault:  # a plugin's may fail in any way
                reason = f"the reply to {len(batch)} questions cannot be divided: {fault}"
                spoilt = ReplyStatus("malformed", " ".join(reason.split())[:_REASON_LENGTH])
                reply = Reply(whole.status, shown, whole.retry_after)
                return [reply] * len(batch), [spoilt] * len(batch)
        judge, status, wait = self._endpoint.judge, whole.status, whole.retry_after
        pairs = list(zip(bodies, batch, strict=True))
        replies: list[Reply | None] = [Reply(status, one, wait) for one, _ in pairs]
        verdicts = [judge(status, one, question.payload) for one, question in pairs]
        if any(verdict.stray for verdict in verdicts):
            client.distrust()
        return replies, verdicts

    def _error(self, reason: str, again: bool = False, stop: str = "") -> ReplyStatus:
        shown = self._endpoint.redact(reason.encode(errors="replace")).decode(errors="replace")
        return ReplyStatus("error", " ".join(shown.split())[:_REASON_LENGTH], again, stop)


def _spoilt(reply: Reply, verdicts: Sequence[ReplyStatus]) -> bool:
    refused = 400 <= reply.status < 500 or verdicts[0].outcome == "malformed"
    return refused and not (verdicts[0].again or verdicts[0].stop)


def _calls(
    batch: Sequence[Question],
    asked: float,
    replies: Sequence[Reply | None] | None,
    verdicts: Sequence[ReplyStatus],
) -> list[tuple[Key, Call]]:
    now = time.time()
    replies = replies if replies is not None else [None] * len(batch)
    return [
        (
            question.key,
            Call(
                question.attempt,
                asked,
                now,
                reply.status if reply is not None else None,
                verdict.outcome,
                verdict.reason,
                reply.body if reply is not None else None,
            ),
        )
        for question, reply, verdict in zip(batch, replies, verdicts, strict=True)
    ]
