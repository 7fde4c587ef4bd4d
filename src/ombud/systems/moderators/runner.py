"""Ask a service about many texts, once each, and lose nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ombud.data.decisions import Decisions, Outcome
from ombud.errors import AuditedSystemError
from ombud.systems.moderators.answers import Answer, decisions_of, error
from ombud.systems.moderators.asker import Asker, read_reply
from ombud.systems.moderators.cache import AnswerCache, Call, Key
from ombud.systems.moderators.notes import exclusions_of
from ombud.systems.moderators.quote import CostQuote
from ombud.systems.moderators.session import Session
from ombud.systems.moderators.settings import RunSettings
from ombud.systems.moderators.work import Work

if TYPE_CHECKING:
    from ombud.data.texts import Texts
    from ombud.systems.base import Progress

__all__ = ["RunReport", "RunStoppedError", "Runner"]

IN_FLIGHT = "in flight when an earlier run was killed; whether it was answered is unknown"
POLL_SECONDS = 0.1


class RunStoppedError(AuditedSystemError):
    """A run ended early; what was answered is in the cache, and the same run goes on from there."""


@dataclass(frozen=True)
class RunReport:
    """What came of a run.

    Parameters
    ----------
    decisions
        One outcome for each text and repeat.
    reasons
        Why a row is no decision, in the order of the decisions; empty for decisions.
    estimate
        What was expected before.
    asked
        Questions answered in this run.
    notices
        What a reader of the decisions should know, in words.
    """

    decisions: Decisions
    reasons: tuple[str, ...]
    estimate: CostQuote
    asked: int
    notices: tuple[str, ...] = field(default=())


class Runner:
    """Asks one service about texts.

    Parameters
    ----------
    asker
        The service.
    cache
        The file that holds its answers.
    settings
        How to ask.
    """

    def __init__(self, asker: Asker, cache: Path, settings: RunSettings | None = None) -> None:
        self.asker = asker
        self.cache = Path(cache)
        self.settings = settings or RunSettings()

    def quote(self, texts: Texts) -> CostQuote:
        """Return what a run would ask, cost and take; asks nothing."""
        with self._open() as cache:
            return self._estimate(self._sort(texts, cache))

    def run(self, texts: Texts, *, progress: Progress | None = None) -> RunReport:
        """Ask about every text that has no answer yet, and return the answers of all.

        Raises
        ------
        RunStoppedError
            When the service turns the key away, is down, or the disk is full. Everything
            answered until then is in the cache.
        KeyboardInterrupt
            On Ctrl-C, after the replies under way were awaited and kept. A second Ctrl-C does
            not wait.
        """
        with self._open() as cache, cache.lock():
            work = self._sort(texts, cache)
            estimate = self._estimate(work)
            estimate.check_budget(self.settings.max_cost)
            if progress is not None:
                progress(0, len(work.questions), str(estimate))
            session = Session(self.asker, cache, self.settings, work.questions)
            if work.questions:
                cache.reserve()
                _in_thread(session, progress)
            if session.stopped:
                raise self._stopped(session)
            return self._report(texts, work, cache.latest(), estimate, session.answered)

    def collect(self, texts: Texts) -> RunReport:
        """Return the answers that are in the cache, and ask nothing.

        A text that was not asked yet is an error with that reason.
        """
        with self._open() as cache:
            work = self._sort(texts, cache)
            return self._report(texts, work, work.calls, self._estimate(work), 0)

    def _open(self) -> AnswerCache:
        return AnswerCache(self.cache, self.asker.cache_name, self.asker.identity)

    def _sort(self, texts: Texts, cache: AnswerCache) -> Work:
        return Work.sort(texts.texts, cache.latest(), self.asker, self.settings)

    def _estimate(self, work: Work) -> CostQuote:
        return work.quote(self.asker, self.settings)

    def _report(
        self, texts: Texts, work: Work, calls: dict[Key, Call], estimate: CostQuote, asked: int
    ) -> RunReport:
        rounds = range(self.settings.repeats)
        parsed = {
            (h, r): work.unsendable.get(h) or self._answer(calls.get((h, r)))
            for h in dict.fromkeys(work.hashes)
            for r in rounds
        }
        answers = [parsed[h, r] for r in rounds for h in work.hashes]
        decisions = decisions_of(texts.ids, answers, self.settings.repeats)
        notes = self._notes(work, decisions)
        decisions = replace(decisions, exclusions=exclusions_of(answers, notes))
        notices = (*notes, *_undecided(answers))
        return RunReport(decisions, tuple(a.reason for a in answers), estimate, asked, notices)

    def _answer(self, call: Call | None) -> Answer:
        if call is None:
            return error("not asked yet")
        if call.answered is None:
            return error(IN_FLIGHT)
        if call.raw is None or call.outcome == "error":
            return error(call.reason)
        return read_reply(self.asker, call.status or 0, call.raw)

    def _notes(self, work: Work, decisions: Decisions) -> tuple[str, ...]:
        notices = []
        if work.uncertain and self.settings.in_flight == "leave":
            notices.append(
                f"{len(work.uncertain):,} texts were in flight when an earlier run was killed. "
                "They count as errors, so that nothing is paid twice; in_flight = 'ask' asks again"
            )
        if work.repaired:
            notices.append(f"{work.repaired:,} texts held lone surrogates, sent as U+FFFD")
        known = getattr(self.asker, "known_categories", ())
        if known and (new := sorted(set(decisions.categories) - set(known))):
            notices.append(
                f"the service named categories that are new to ombud: {', '.join(new)}; they are "
                "kept; 'categories' says which ones count"
            )
        if ", " in decisions.version:
            notices.append(f"more than one model version answered: {decisions.version}")
        return tuple(notices)

    def _stopped(self, session: Session) -> BaseException:
        lost = f" {session.lost:,} replies could not be written." if session.lost else ""
        message = (
            f"{self.asker.name} stopped: {session.stopped}. {session.answered:,} of "
            f"{session.total:,} questions of this run were answered and are kept in "
            f"{self.cache}.{lost} Run it again to go on from there"
        )
        return KeyboardInterrupt(message) if session.interrupted else RunStoppedError(message)


def _undecided(answers: Sequence[Answer]) -> list[str]:
    result = []
    for outcome in (Outcome.ERROR, Outcome.REFUSED, Outcome.UNPARSEABLE):
        reasons = [answer.reason for answer in answers if answer.outcome == outcome]
        if reasons:
            result.append(f"{len(reasons):,} {outcome.name.lower()}; the first: {reasons[0]}")
    return result


def _in_thread(session: Session, progress: Progress | None) -> None:
    # An own thread, so that a run works inside a notebook's event loop too, and so that Ctrl-C
    # reaches this thread and not the requests under way.
    # An event, because a Thread.join that Ctrl-C interrupts takes the thread for ended (3.11).
    failures: list[BaseException] = []
    ended = threading.Event()

    def work() -> None:
        try:
            session.run()
        except BaseException as failure:
            failures.append(failure)
        finally:
            ended.set()

    threading.Thread(target=work, name="ombud-runner", daemon=True).start()
    while True:
        try:
            while not ended.wait(POLL_SECONDS):
                if progress is not None:
                    progress(session.done, session.total, session.stopped)
            if progress is not None:
                progress(session.done, session.total, session.stopped)
            break
        except KeyboardInterrupt:
            if session.interrupted:
                raise
            session.interrupt()
    if failures:
        raise failures[0]
