"""What a reader of decisions should know of the run that made them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ombud.data.decisions import Outcome
from ombud.data.exclusions import Exclusion
from ombud.systems.moderators.answers import Answer

__all__ = ["exclusions_of"]

_WHERE = "answers"
_MOST_REASONS = 5


def exclusions_of(answers: Sequence[Answer], notes: Sequence[str] = ()) -> tuple[Exclusion, ...]:
    """Return how many answers are no decision, by reason, and what else was noticed.

    The most frequent reasons of each outcome are named, the others are counted together: a
    service may say something else each time. A note leaves out nothing, so its count is 0.

    Parameters
    ----------
    answers
        All answers of a run.
    notes
        What was noticed, in words.

    Examples
    --------
    >>> refused = Answer(Outcome.REFUSED, reason="the model refused")
    >>> for one in exclusions_of([Answer(Outcome.ALLOWED), refused], ["two versions answered"]):
    ...     print(one)
    answers: 1 of 2 answers left out: refused: the model refused
    answers: 0 of 2 answers left out: note: two versions answered
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
