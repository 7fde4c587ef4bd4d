"""Which texts still have to be asked about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from urllib.parse import urlsplit

from ombud.systems.moderators.answers import Answer, error
from ombud.systems.moderators.asker import Asker
from ombud.systems.moderators.cache import Call, Key, text_hash
from ombud.systems.moderators.local import without_surrogates
from ombud.systems.moderators.quote import CostQuote
from ombud.systems.moderators.settings import RunSettings

__all__ = ["Work"]

ASSUMED_SECONDS = 0.5


@dataclass(frozen=True)
class Work:
    """The texts of a run, sorted into answered, to be asked, and never to be sent.

    Parameters
    ----------
    hashes
        The hash of each text, in the order of the texts.
    unsendable
        By hash: why a text is not sent.
    calls
        What the cache holds.
    questions
        Text and number of the attempt, by key.
    uncertain
        Keys that were in flight when an earlier run was killed.
    repaired
        Texts that held lone surrogates.
    """

    hashes: list[bytes]
    unsendable: dict[bytes, Answer]
    calls: dict[Key, Call]
    questions: dict[Key, tuple[str, int]]
    uncertain: frozenset[Key]
    repaired: int

    @classmethod
    def sort(
        cls, texts: Iterable[str], calls: dict[Key, Call], asker: Asker, settings: RunSettings
    ) -> Work:
        """Sort texts by what the cache knows of them."""
        raw = [str(text) for text in texts]
        cleaned = [without_surrogates(text) for text in raw]
        hashes = [text_hash(text) for text in cleaned]
        unsendable: dict[bytes, Answer] = {}
        questions: dict[Key, tuple[str, int]] = {}
        uncertain: set[Key] = set()
        for text, digest in dict(zip(cleaned, hashes, strict=True)).items():
            if (fault := _fault_of(text, asker.max_bytes)) is not None:
                unsendable[digest] = error(fault)
                continue
            for repeat in range(settings.repeats):
                call = calls.get((digest, repeat))
                if call is None:
                    questions[digest, repeat] = (text, 0)
                    continue
                in_flight = call.answered is None
                if in_flight:
                    uncertain.add((digest, repeat))
                if call.outcome == "error" or (in_flight and settings.in_flight == "ask"):
                    questions[digest, repeat] = (text, call.attempt + 1)
        repaired = sum(a != b for a, b in zip(raw, cleaned, strict=True))
        return cls(hashes, unsendable, calls, questions, frozenset(uncertain), repaired)

    def quote(self, asker: Asker, s: RunSettings) -> CostQuote:
        """Return what the questions would cost and take."""
        asked = len(self.questions)
        requests = -(-asked // s.batch)
        times = [c.answered - c.asked for c in self.calls.values() if c.answered is not None]
        seconds = requests * (median(times) if times else ASSUMED_SECONDS) / s.concurrency
        rates = [r for r in (s.per_second, s.per_minute and s.per_minute / 60) if r]
        if rates:
            seconds = max(seconds, requests / min(rates))
        characters = sum(len(text) for text, _ in self.questions.values())
        unsent = sum(h in self.unsendable for h in self.hashes) * s.repeats
        keys = [(h, r) for h in self.hashes for r in range(s.repeats)]
        waiting = sum(key in self.questions for key in keys)
        uncertain = sum(key in self.uncertain for key in keys)
        left = uncertain if s.in_flight == "leave" else 0
        return CostQuote(
            system=asker.name,
            host=urlsplit(asker.url).netloc,
            texts=len(keys),
            known=len(keys) - unsent - waiting - left,
            unsent=unsent,
            uncertain=uncertain,
            questions=asked,
            requests=requests,
            cost=asker.price.of(characters, asked, asker.prompt_characters),
            currency=asker.price.currency,
            seconds=seconds,
            note=f"assuming replies in {ASSUMED_SECONDS} s" if asked and not times else "",
        )


def _fault_of(text: str, max_bytes: int) -> str | None:
    if not text.strip():
        return "the text is empty; it was not sent"
    if 4 * len(text) > max_bytes and (size := len(text.encode())) > max_bytes:
        return f"the text has {size:,} bytes, over the limit of {max_bytes:,}; it was not sent"
    return None
