"""Which questions still have to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ombud.http.store import Call, Key

IN_FLIGHT = "in flight when an earlier run was killed; whether it was answered is unknown"
"""Why a question that was sent, and whose reply is not on disk, has no answer."""


@dataclass(slots=True)
class Question:
    """Something to be asked.

    Parameters
    ----------
    key
        What it is known by in the store.
    payload
        What is asked about: a text, some users.
    attempt
        The number of its next call; those before it are in the store.
    """

    key: Key
    payload: Any
    attempt: int = 0


@dataclass(frozen=True)
class Backlog:
    """Questions, split into answered, to be asked, and uncertain.

    Parameters
    ----------
    calls
        What the store holds.
    questions
        What is to be asked.
    uncertain
        Keys that were in flight when an earlier run was killed.
    """

    calls: Mapping[Key, Call]
    questions: tuple[Question, ...]
    uncertain: frozenset[Key]

    @classmethod
    def split(
        cls,
        payloads: Mapping[Key, Any],
        calls: Mapping[Key, Call],
        in_flight: Literal["leave", "ask"],
    ) -> Backlog:
        """Split questions by what the store knows of them.

        Parameters
        ----------
        payloads
            What is asked about, by key.
        calls
            The last call of each key.
        in_flight
            Whether what was in flight is asked again.
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
            if (open_call and in_flight == "ask") or (not open_call and call.outcome == "error"):
                questions.append(Question(key, payload, call.attempt + 1))
        return cls(calls, tuple(questions), frozenset(uncertain))
