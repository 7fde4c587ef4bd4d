"""What replies of a moderation service mean, and what a reader of them should know."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion

_REASON_LENGTH = 200
_MOST_REASONS = 5
_WHERE = "answers"
_REFUSAL = re.compile(
    r"^(i'm sorry|i am sorry|sorry,|i apologi[sz]e|i (can't|cannot|can not|won't|will not)\b"
    r"|i'm (not able|unable)|i am (not able|unable)|i do not feel|i don't feel"
    r"|es tut mir leid|ich kann (das|diese|dabei|hier) |tut mir leid"
    r"|(je suis )?désolée?\b|je ne peux pas|lo siento|no puedo |(mi )?spiace|non posso "
    r"|(sinto muito|desculpe)\b|não posso |het spijt me|ik kan (dat|dit|hier) "
    r"|извините|я не могу|抱歉|对不起|我无法|申し訳|죄송)"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of asking once about one text."""

    outcome: Outcome  # what became of the text
    score: float = math.nan  # Higher means more likely flagged; NaN when the service gives none
    # Score by category, as the service names them.
    categories: Mapping[str, float] = field(default_factory=dict)
    # The model that answered, as the service reported it; empty when it does not say.
    version: str = ""
    reason: str = ""  # why there is no decision, in words
    # Whether the service will never decide about this text, so that it is not sent again.
    final: bool = False


def without_surrogates(text: str) -> str:
    """Return a text that UTF-8 can hold: pairs joined, lone surrogates as U+FFFD.

    Examples
    --------
    >>> without_surrogates("a" + chr(0xD800)) == "a" + chr(0xFFFD)
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _plain(text: str) -> str:
    printable = "".join(c if c.isprintable() else " " for c in text[: 4 * _REASON_LENGTH])
    return " ".join(printable.split())[:_REASON_LENGTH]


def error(reason: str) -> Answer:
    """Return an answer that says the service could not be asked or did not answer."""
    return Answer(Outcome.ERROR, reason=_plain(reason))


def rejected(reason: str, version: str = "") -> Answer:
    """Return an answer that says the service does not take this text: too long, or its language."""
    return Answer(Outcome.ERROR, version=version, reason=_plain(reason), final=True)


def unparseable(reason: str, version: str = "") -> Answer:
    """Return an answer that says the service replied with something it does not document."""
    return Answer(Outcome.UNPARSEABLE, version=version, reason=_plain(reason))


def is_refusal(text: str) -> bool:
    """Return whether an answer begins the way models begin to decline."""
    return _REFUSAL.match(text.strip().lower().replace("\u2019", "'")) is not None


def highest_ratio(
    scores: Mapping[str, float], categories: Iterable[str], thresholds: Mapping[str, float]
) -> float:
    """Return the largest score divided by its threshold, over the categories that count.

    A category without a threshold is divided by 1. NaN when none of the categories was scored.

    Examples
    --------
    >>> highest_ratio({"hate": 0.2, "violence": 0.3}, ["hate", "violence"], {"hate": 0.4})
    0.5
    """
    return max(
        (scores[c] / thresholds.get(c, 1.0) for c in categories if c in scores), default=math.nan
    )


def decisions_of(ids: Any, answers: Sequence[Answer], repeats: int = 1) -> Decisions:
    """Return answers as decisions.

    Answers hold all texts asked for the first time, then all for the second time, and so on.
    """
    names = tuple(sorted({name for answer in answers for name in answer.categories}))
    matrix = None
    if names:
        column = {name: i for i, name in enumerate(names)}
        matrix = np.full((len(answers), len(names)), np.nan, dtype=np.float32)
        for row, answer in enumerate(answers):
            for name, score in answer.categories.items():
                matrix[row, column[name]] = score
    ids = np.asarray(ids)
    rounds = np.repeat(np.arange(repeats, dtype=np.int32), len(ids)) if repeats > 1 else None
    return Decisions(
        np.tile(ids, repeats),
        np.array([answer.outcome for answer in answers], dtype=np.int8),
        np.array([answer.score for answer in answers], dtype=np.float32),
        names,
        matrix,
        rounds,
        version=", ".join(sorted({answer.version for answer in answers if answer.version})),
    )


def exclusions_of(answers: Sequence[Answer], notes: Sequence[str] = ()) -> tuple[Exclusion, ...]:
    """Return how many answers are no decision, by reason, and what else was noticed.

    The most frequent reasons of each outcome are named, the others are counted together: a
    service may say something else each time. A note leaves out nothing, so its count is 0.

    Examples
    --------
    >>> refused = Answer(Outcome.REFUSED, reason="the model refused")
    >>> for one in exclusions_of([Answer(Outcome.ALLOWED), refused], ["two versions answered"]):
    ...     print(one)
    answers: 1 of 2 answers excluded: refused: the model refused
    answers: 0 of 2 answers excluded: note: two versions answered
    """
    result = []
    for outcome in (Outcome.ERROR, Outcome.REFUSED, Outcome.UNPARSEABLE):
        counts = Counter(answer.reason for answer in answers if answer.outcome == outcome)
        word = outcome.name.lower()
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        for reason, count in ranked[:_MOST_REASONS]:
            why = f"{word}: {reason or 'no reason was given'}"
            result.append(Exclusion(_WHERE, "answers", count, why, len(answers)))
        if others := ranked[_MOST_REASONS:]:
            why = f"{word}: {len(others):,} other reasons"
            rest = sum(count for _, count in others)
            result.append(Exclusion(_WHERE, "answers", rest, why, len(answers)))
    result += [Exclusion(_WHERE, "answers", 0, f"note: {note}", len(answers)) for note in notes]
    return tuple(result)
