"""Ask a service about many texts, once each, and lose nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

import numpy as np

from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.http.dispatch import ASK_LATER, IN_FLIGHT, Backlog, Dispatcher, Endpoint, RunStoppedError
from ombud.http.pace import RunSettings, tokens_in
from ombud.http.store import AnswerStore, Call, Key, hash_of
from ombud.systems.base import Progress
from ombud.systems.moderators.answers import (
    Answer,
    decisions_of,
    error,
    exclusions_of,
    unparseable,
    without_surrogates,
)
from ombud.systems.quote import CostQuote, Price, least_seconds

OK = 200


class Asker(Endpoint, Protocol):
    """What the runner needs to know of a moderation service, without any networking.

    The adapters speak the services' documented wire formats themselves. The official SDKs would
    each bring their own client, retries, logging and model classes; an audit needs one place that
    limits, retries, records raw replies and keeps keys out of sight, and it must read the replies
    of years ago with today's code.

    Attributes
    ----------
    name
        The system's name in messages and reports.
    cache_name
        What kind of service it is: the system in the cache's key.
    identity
        Everything that changes what the service would answer (model, prompt, attributes asked
        for), as one string: the version in the cache's key. Thresholds are not part of it: they
        are applied when a reply is read, so changing one asks nothing again.
    max_bytes, max_characters
        The longest text that is sent, in bytes of UTF-8 and in characters.
    price
        What a question costs.
    prompt_characters
        What the prompt adds to each text.
    known_categories
        The categories that its documentation names; empty when any may come.
    steady_categories
        Whether every good reply scores the same categories.
    answer_tokens
        The longest answer, in tokens.
    first_replies
        How many replies are examined before the run continues.
    notices
        What a reader of the decisions should know of the service itself.
    """

    name: str
    price: Price
    max_bytes: int
    max_characters: int | None
    steady_categories: ClassVar[bool]

    @property
    def cache_name(self) -> str: ...  # noqa: D102

    @property
    def identity(self) -> str: ...  # noqa: D102

    @property
    def prompt_characters(self) -> int: ...  # noqa: D102

    @property
    def known_categories(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def answer_tokens(self) -> int:
        """The longest answer, in tokens."""
        ...

    @property
    def first_replies(self) -> int:
        """How many replies are examined first."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader should know of the service."""
        ...

    def check_model(self) -> None:
        """Refuse to send texts to a model that is no longer served."""
        ...

    def suspect(self, reply: Any, answer: Answer) -> str:
        """Return why a reply may be misread; empty when nothing speaks for that."""
        ...

    def parse(self, status: int, body: bytes) -> Answer:
        """Return what a reply to one text means; never raises."""
        ...


def read_reply(asker: Asker, status: int, body: bytes) -> Answer:
    """Return what a reply means, also when the service's own reader fails."""
    try:
        return asker.parse(status, body)
    except Exception as fault:  # a plugin's reader may fail in any way; the reply is kept
        return unparseable(f"the reader failed: {type(fault).__name__}: {fault}")


@dataclass(frozen=True)
class RunReport:
    """What came of a run."""

    decisions: Decisions  # one outcome for each text and repeat
    # Why a row is no decision, in the order of the decisions; empty for decisions.
    reasons: tuple[str, ...]
    estimate: CostQuote  # what was expected before
    asked: int  # Questions answered in this run
    # What a reader of the decisions should know, in words.
    notices: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class _Work:
    """The texts of a run: their hashes, what is never sent, and what is to be asked."""

    hashes: list[bytes]
    unsendable: dict[bytes, Answer]
    repaired: int
    backlog: Backlog
    damaged: int

    @property
    def keys(self) -> list[Key]:
        """The first question about each text."""
        return [(digest, 0) for digest in dict.fromkeys(self.hashes)]

    @classmethod
    def of(
        cls, texts: Iterable[str], store: AnswerStore, asker: Asker, settings: RunSettings
    ) -> _Work:
        raw = [str(text) for text in texts]
        cleaned = [without_surrogates(text) for text in raw]
        hashes = [hash_of(text) for text in cleaned]
        unsendable: dict[bytes, Answer] = {}
        payloads: dict[Key, str] = {}
        for text, digest in dict(zip(cleaned, hashes, strict=True)).items():
            if (fault := _fault_of(text, asker.max_bytes, asker.max_characters)) is not None:
                unsendable[digest] = error(fault)
            else:
                payloads.update({(digest, repeat): text for repeat in range(settings.repeats)})
        repaired = sum(a != b for a, b in zip(raw, cleaned, strict=True))
        calls = store.latest()
        backlog = Backlog.split(payloads, calls, settings.in_flight)
        return cls(hashes, unsendable, repaired, backlog, store.damaged)

    def quote(self, asker: Asker, s: RunSettings) -> CostQuote:
        """Return what the questions would cost and take."""
        questions = {question.key for question in self.backlog.questions}
        requests = -(-len(questions) // s.batch)
        calls = self.backlog.calls.values()
        times = [c.answered - c.asked for c in calls if c.answered is not None]
        lengths = [len(question.payload) for question in self.backlog.questions]
        sizes = (len(question.payload.encode()) for question in self.backlog.questions)
        tokens = tokens_in(sum(sizes) + len(lengths) * asker.prompt_characters)
        pace = (s.concurrency, s.per_second, s.per_minute, tokens, s.tokens_per_minute)
        seconds, note = least_seconds(requests, times, *pace)
        note = "; ".join(filter(None, (note, *asker.notices)))
        unsent = sum(h in self.unsendable for h in self.hashes) * s.repeats
        keys = [(h, r) for h in self.hashes for r in range(s.repeats)]
        waiting = sum(key in questions for key in keys)
        uncertain = sum(key in self.backlog.uncertain for key in keys)
        left = uncertain if s.in_flight == "leave" else 0
        return CostQuote(
            system=asker.name,
            host=urlsplit(asker.url).netloc,
            texts=len(keys),
            known=len(keys) - unsent - waiting - left,
            unsent=unsent,
            uncertain=uncertain,
            questions=len(questions),
            requests=requests,
            cost=asker.price.of(lengths, asker.prompt_characters, asker.answer_tokens),
            currency=asker.price.currency,
            seconds=seconds,
            note=note,
        )


def _fault_of(text: str, max_bytes: int, max_characters: int | None) -> str | None:
    if not text.strip():
        return "the text is empty; it was not sent"
    if max_characters is not None and len(text) > max_characters:
        over = f"over the limit of {max_characters:,}"
        return f"the text has {len(text):,} characters, {over}; it was not sent"
    if 4 * len(text) > max_bytes and (size := len(text.encode())) > max_bytes:
        return f"the text has {size:,} bytes, over the limit of {max_bytes:,}; it was not sent"
    return None


class Runner:
    """Asks one service about texts."""

    def __init__(self, asker: Asker, cache: Path, settings: RunSettings | None = None) -> None:
        self.asker = asker
        self.cache = Path(cache)
        self.settings = settings or RunSettings()

    def quote(self, texts: Texts) -> CostQuote:
        """Return what a run would ask, cost and take; asks nothing."""
        with self._open() as store:
            return self._work(texts, store).quote(self.asker, self.settings)

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
        with self._open() as store, store.lock():
            work = self._work(texts, store)
            estimate = work.quote(self.asker, self.settings)
            estimate.check_budget(self.settings.max_cost)
            questions = work.backlog.questions
            if progress is not None:
                progress(0, len(questions), str(estimate))
            calls, asked = dict(work.backlog.calls), 0
            first = self.asker.first_replies
            if questions:
                self.asker.check_model()
                self._examine([calls[key] for key in work.keys if key in calls][:first])
            for part in filter(None, (questions[:first], questions[first:])):
                dispatcher = Dispatcher(self.asker, store, self.settings, part)
                dispatcher.run(_after(progress, asked, len(questions)))
                calls |= dispatcher.calls
                dispatcher.check(self.asker.name, asked, len(questions))
                asked += dispatcher.answered
                if part[-1] is not questions[-1]:
                    self._examine(list(dispatcher.calls.values())[:first])
            return self._report(texts, work, calls, estimate, asked)

    def _examine(self, calls: Sequence[Call]) -> None:
        """Stop before the run continues if first replies are, or may be, misread."""
        found: Counter[str] = Counter()
        for call in calls:
            if call.raw is not None and call.status == OK and call.outcome not in ASK_LATER:
                found.update(filter(None, [self._suspicion(call.raw)]))
        if not found:
            return
        why = "; ".join(f"{count:,} of {len(calls):,}: {reason}" for reason, count in found.items())
        raise RunStoppedError(
            f"{self.asker.name} stopped after its first replies, before it queries more texts: "
            f"{why}. They are kept in {self.cache}. Correct the paths, or set check_first = 0 to "
            "run all texts as the plan is"
        )

    def _suspicion(self, raw: bytes) -> str:
        answer = read_reply(self.asker, OK, raw)
        if answer.outcome == Outcome.UNPARSEABLE:
            return answer.reason
        return self.asker.suspect(json.loads(raw), answer)

    def collect(self, texts: Texts) -> RunReport:
        """Return the answers that are in the cache, and ask nothing.

        A text that was not asked yet is an error with that reason.
        """
        with self._open() as store:
            work = self._work(texts, store)
            estimate = work.quote(self.asker, self.settings)
            return self._report(texts, work, work.backlog.calls, estimate, 0)

    def replies(self, texts: Texts) -> list[Any]:
        """Return the JSON of each good reply in the cache, by repeat and text; None without one."""
        with self._open() as store:
            calls = store.latest()
        hashes = [hash_of(without_surrogates(str(text))) for text in texts.texts]
        found = [calls.get((h, r)) for r in range(self.settings.repeats) for h in hashes]
        return [
            json.loads(call.raw) if call and call.raw and call.status == 200 else None
            for call in found
        ]

    def seconds(self) -> list[float]:
        """Return how long the service took for each reply that is in the cache."""
        with self._open() as store:
            calls = store.latest().values()
        return [call.answered - call.asked for call in calls if call.answered is not None]

    def _open(self) -> AnswerStore:
        return AnswerStore(self.cache, self.asker.cache_name, self.asker.identity)

    def _work(self, texts: Texts, store: AnswerStore) -> _Work:
        return _Work.of(texts.texts, store, self.asker, self.settings)

    def _report(
        self, texts: Texts, work: _Work, calls: Mapping[Key, Call], estimate: CostQuote, asked: int
    ) -> RunReport:
        rounds = range(self.settings.repeats)
        parsed = {
            (h, r): work.unsendable.get(h) or self._answer(calls.get((h, r)))
            for h in dict.fromkeys(work.hashes)
            for r in rounds
        }
        answers = [parsed[h, r] for r in rounds for h in work.hashes]
        decisions = decisions_of(texts.ids, answers, self.settings.repeats)
        notes = self._notes(work, decisions, answers)
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

    def _notes(
        self, work: _Work, decisions: Decisions, answers: Sequence[Answer]
    ) -> tuple[str, ...]:
        notices = list(self.asker.notices)
        uncertain = len(work.backlog.uncertain)
        if uncertain and self.settings.in_flight == "leave":
            notices.append(
                f"{uncertain:,} texts were in flight when an earlier run was killed. "
                "They count as errors, so that nothing is paid twice; in_flight = 'ask' asks again"
            )
        if work.damaged:
            notices.append(
                f"{work.damaged:,} cached replies were damaged on disk (their checksums did not "
                "match); they are not used, and their texts count as never sent"
            )
        if work.repaired:
            notices.append(f"{work.repaired:,} texts held lone surrogates, sent as U+FFFD")
        counts: dict[str, int] = {}
        total = int(np.count_nonzero(decisions.answered))
        if decisions.category_scores is not None:
            scored = ~np.isnan(decisions.category_scores[decisions.answered])
            counts = dict(zip(decisions.categories, scored.sum(axis=0).tolist(), strict=True))
        known = self.asker.known_categories or decisions.categories
        if new := _counted({c: n for c, n in counts.items() if c not in known}):
            notices.append(
                f"the service named categories that are new to ombud: {new} of {total:,} replies; "
                "they are kept; 'categories' says which ones count"
            )
        versions = Counter(answer.version for answer in answers if answer.version)
        if len(versions) > 1:
            notices.append(f"more than one model version answered: {_counted(versions)}")
        some = {c: n for c, n in counts.items() if n < total and c in known}
        if some and self.asker.steady_categories:
            fault = "not all replies score the same categories"
            notices.append(f"{fault}: {_counted(some)} of {total:,}")
        return tuple(notices)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count:,})" for name, count in sorted(counts.items()))


def _after(progress: Progress | None, done: int, total: int) -> Progress | None:
    """Return how to show the progress of a part of a run as that of the whole."""
    if progress is None:
        return None
    return lambda more, _, note: progress(done + more, total, note)


def _undecided(answers: Sequence[Answer]) -> list[str]:
    result = []
    for outcome in (Outcome.ERROR, Outcome.REFUSED, Outcome.UNPARSEABLE):
        reasons = [answer.reason for answer in answers if answer.outcome == outcome]
        if reasons:
            result.append(f"{len(reasons):,} {outcome.name.lower()}; the first: {reasons[0]}")
    return result
