"""Group commit: calls of many workers reach the disk together, and each learns when."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from ombud.systems.moderators.cache import AnswerCache, Call, Key

__all__ = ["Recorder"]


class Recorder:
    """Writes calls to a cache from one thread, as many as have gathered at a time.

    While one transaction is being committed the next gathers, so the file is written as often as
    the disk allows and a reply waits for at most two commits.

    Parameters
    ----------
    cache
        Where to.
    """

    def __init__(self, cache: AnswerCache) -> None:
        self.committed = 0
        self.answers = 0
        self.failure: Exception | None = None
        self._cache = cache
        self._asked: list[tuple[Key, int, float]] = []
        self._answered: list[tuple[Key, Call]] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._news = asyncio.Event()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ombud-cache")
        self._task = asyncio.create_task(self._write_all())

    async def asked(self, calls: list[tuple[Key, int, float]]) -> None:
        """Return when it is on disk that some texts are about to be sent."""
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
                await loop.run_in_executor(self._thread, self._cache.write, asked, answered)
            except Exception as fault:  # a full disk among others; the workers learn of it
                self.failure = fault
                await self._rescue(answered)
            else:
                self.failure = None
                self._count(answered)
            for done in waiting:
                if not done.done():
                    if self.failure is None:
                        done.set_result(None)
                    else:
                        done.set_exception(self.failure)

    async def _rescue(self, answered: list[tuple[Key, Call]]) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(self._thread, self._cache.rescue, answered)
        except Exception:  # tried again with the next commit, the last of them in `close`
            self._answered = answered + self._answered
        else:
            self._count(answered)

    def _count(self, answered: list[tuple[Key, Call]]) -> None:
        self.committed += len(answered)
        self.answers += sum(call.outcome != "error" for _, call in answered)

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
