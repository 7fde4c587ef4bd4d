"""One run's traffic: workers, limits, retries, and when to stop."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ombud.data.decisions import Outcome
from ombud.http.pace import retry_after
from ombud.systems.moderators.answers import Answer, error
from ombud.systems.moderators.asker import Asker, Reply, read_reply
from ombud.systems.moderators.cache import AnswerCache, Call, Key
from ombud.systems.moderators.limits import RateLimit, backoff
from ombud.systems.moderators.recorder import Recorder
from ombud.systems.moderators.settings import RunSettings
from ombud.systems.moderators.transport import Transport, TransportError, transport_for

__all__ = ["Session"]

TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529})
STOP = {
    401: "the service does not accept the key (401)",
    403: "the service does not allow this key or this address (403)",
    404: "there is nothing at this address, or no such model (404)",
    405: "this address takes no questions (405)",
    402: "the service wants to be paid first (402)",
}

Question = tuple[Key, str, int]


class Session:
    """Asks a set of questions, each until it has an answer or the run must stop.

    Parameters
    ----------
    asker
        The service.
    cache
        Where calls are recorded.
    settings
        How to ask.
    questions
        Text and attempt by key.
    """

    def __init__(
        self,
        asker: Asker,
        cache: AnswerCache,
        settings: RunSettings,
        questions: dict[Key, tuple[str, int]],
    ) -> None:
        self.total = len(questions)
        self.stopped = ""
        self.interrupted = False
        self.lost = 0
        self._asker = asker
        self._cache = cache
        self._settings = settings
        self._questions = questions
        self._failures_in_a_row = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._recorder: Recorder | None = None

    @property
    def done(self) -> int:
        """Questions whose outcome is on disk, errors included."""
        return self._recorder.committed if self._recorder else 0

    @property
    def answered(self) -> int:
        """Questions whose answer is on disk, errors not included."""
        return self._recorder.answers if self._recorder else 0

    def run(self) -> None:
        """Ask everything; returns when all is answered or the session was stopped."""
        asyncio.run(self._run())

    def interrupt(self) -> None:
        """Start nothing new, wait for the replies under way; from any thread."""
        self.interrupted = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop, "interrupted")

    def _stop(self, why: str) -> None:
        self.stopped = self.stopped or why
        self._halt.set()

    async def _run(self) -> None:
        s = self._settings
        self._loop = asyncio.get_running_loop()
        self._halt = asyncio.Event()
        self._limit = RateLimit(s.per_second, s.per_minute, time.monotonic)
        if self.interrupted:
            self._stop("interrupted")
        headers = {"Content-Type": "application/json", **self._asker.headers()}
        transport = transport_for(self._asker.url, headers, s.timeout)
        self._recorder = recorder = Recorder(self._cache)
        queue: Iterator[Question] = (
            (key, text, attempt) for key, (text, attempt) in self._questions.items()
        )
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(s.concurrency, self.total)):
                    group.create_task(self._work(queue, transport, recorder))
        finally:
            await recorder.close()
            self.lost = recorder.unwritten
            await transport.close()

    async def _work(
        self, queue: Iterator[Question], transport: Transport, recorder: Recorder
    ) -> None:
        try:
            while not self._halt.is_set():
                await self._turn()
                batch = [] if self._halt.is_set() else list(islice(queue, self._settings.batch))
                if not batch:
                    return
                now = time.time()
                await recorder.asked([(key, attempt, now) for key, _, attempt in batch])
                recorder.answered(await self._ask(batch, now, transport))
        except (sqlite3.Error, OSError) as fault:
            self._stop(f"the answer cache cannot be written ({fault}); make room or repair it")

    async def _turn(self) -> None:
        if (delay := self._limit.wait()) > 0:
            await self._sleep(delay)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._halt.wait()
        except TimeoutError:
            pass

    async def _ask(
        self, batch: list[Question], asked: float, transport: Transport
    ) -> list[tuple[Key, Call]]:
        reply = await self._exchange(batch, transport)
        if isinstance(reply, Answer):
            return [(key, _call(attempt, asked, None, reply)) for key, _, attempt in batch]
        if len(batch) > 1 and 400 <= reply.status < 500 and reply.status not in STOP:
            # One text may have spoilt the request: each gets its own.
            singles = [await self._ask([question], asked, transport) for question in batch]
            return [call for single in singles for call in single]
        bodies = [reply.body] * len(batch)
        if len(batch) > 1 and reply.status == 200:
            # Failing that, each text keeps the whole reply, which no parser takes for its own.
            with suppress(ValueError):
                bodies = self._asker.split(reply.body, len(batch))
        calls = []
        for (key, _, attempt), body in zip(batch, bodies, strict=True):
            answer = read_reply(self._asker, reply.status, body)
            calls.append((key, _call(attempt, asked, Reply(reply.status, body), answer)))
        return calls

    async def _exchange(self, batch: list[Question], transport: Transport) -> Reply | Answer:
        s = self._settings
        try:
            body = self._asker.body([text for _, text, _ in batch])
        except Exception as fault:  # a plugin's may fail in any way; the other texts go on
            return error(f"no question could be made of it: {type(fault).__name__}: {fault}")
        (digest, repeat), reason = batch[0][0], ""
        name = f"{digest.hex()}.{repeat}"
        for attempt in range(s.retries + 1):
            if attempt:
                await self._sleep(backoff(attempt - 1, s.seed, name, s.backoff, s.longest_backoff))
                await self._turn()
                if self._halt.is_set():
                    return error(f"the run stopped while this was being retried: {reason}")
            try:
                reply = await transport.post(body)
            except TransportError as fault:
                reason = str(fault)
                continue
            reply = Reply(reply.status, self._asker.redact(reply.body), reply.retry_after)
            if reply.status in STOP or 300 <= reply.status < 400:
                return self._turned_away(reply)
            if reply.status not in TRY_AGAIN:
                self._failures_in_a_row = 0
                return reply
            reason = f"the service answered {reply.status}"
            wait = retry_after(reply.retry_after) or 0.0
            if wait > s.longest_wait:
                self._stop(f"{reason} and asks to wait {wait:,.0f} s: a quota may be used up")
                return error(reason)
            self._limit.pause(wait)
        self._failures_in_a_row += 1
        if self._failures_in_a_row >= s.give_up_after:
            self._stop(f"{self._failures_in_a_row} questions failed in a row, the last: {reason}")
        return error(f"{reason}, {s.retries + 1} times")

    def _turned_away(self, reply: Reply) -> Answer:
        reason = STOP.get(reply.status, f"the service redirects elsewhere ({reply.status})")
        answer = read_reply(self._asker, reply.status, reply.body)
        said = f": {answer.reason}" if answer.reason else ""
        self._stop(f"{reason}{said}")
        return error(f"{reason}{said}")


def _call(attempt: int, asked: float, reply: Reply | None, answer: Answer) -> Call:
    return Call(
        attempt,
        asked,
        time.time(),
        reply.status if reply else None,
        Outcome(answer.outcome).name.lower(),
        answer.reason,
        reply.body if reply else None,
    )
