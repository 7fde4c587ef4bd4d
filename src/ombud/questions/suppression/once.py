"""One answer for each text, where a moderator was asked repeatedly."""

from __future__ import annotations

from ombud.data.decisions import Decisions


def first_answers(decisions: Decisions) -> Decisions:
    """Return the first answer about each text: pairs are of one answer each."""
    if decisions.repeats is None:
        return decisions
    first = decisions.repeats == 0
    return Decisions(decisions.ids[first], decisions.outcomes[first], decisions.scores[first])
