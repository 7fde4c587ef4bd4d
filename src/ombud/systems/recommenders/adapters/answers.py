"""From lists as a foreign system gives them to checked recommendations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids, Vocabulary
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError

_LARGEST_SCORE = 3.4e38  # of the 32 bits in which scores are kept

Faults: TypeAlias = Literal["error", "exclude"]
"""What a faulty list does: it ends the audit, or the user has no list and is counted."""


_REMEDY = "Mend the system, or choose faults='exclude' to leave such users out and count them."


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system answered for one user."""

    items: Sequence[Any] = ()  # item ids, best first
    scores: Sequence[float] | None = None  # their scores, or None
    # What is wrong with the answer; empty when nothing is. It names no user and no item, so that
    # equal faults can be counted together.
    fault: str = ""
    detail: str = ""  # the item or value at fault


def as_answer(items: Any, scores: Any = None) -> Answer:
    """Return a system's list as an answer, with the first fault found in it."""
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        fault = "something else where a list of items was expected"
        return Answer(fault=fault, detail=_kind(items))
    wrong = [i for i in items if not isinstance(i, int | str) or isinstance(i, bool)]
    if wrong:
        fault = "an item id that is neither a whole number nor text"
        return Answer(fault=fault, detail=_kind(wrong[0]))
    if len({isinstance(item, str) for item in items}) > 1:
        return Answer(fault="item ids of two types in one list", detail=repr(items[0])[:80])
    if any(isinstance(item, int) and not -(2**63) <= item < 2**63 for item in items):
        return Answer(fault="an item id beyond 64 bits", detail="")
    if any(isinstance(item, str) and not is_text(item) for item in items):
        return Answer(fault="an item id with half a character, which UTF-8 cannot hold", detail="")
    if len(set(items)) < len(items):
        twice = Counter(items).most_common(1)[0][0]
        return Answer(fault="a list that holds an item more than once", detail=repr(twice)[:80])
    if scores is None:
        return Answer(items)
    if not isinstance(scores, Sequence) or len(scores) != len(items):
        return Answer(fault="scores that are not one number for each item", detail=_kind(scores))
    if not all(isinstance(s, int | float) and abs(s) <= _LARGEST_SCORE for s in scores):
        return Answer(fault="a score that is not a finite number", detail="")
    return Answer(items, scores)


def is_text(item: str) -> bool:
    """Return whether UTF-8 can hold a text: whether it has no lone surrogates."""
    return item.isascii() or not any("\ud800" <= character <= "\udfff" for character in item)


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r:.60}"


def gather(
    name: str,
    users: Ids,
    answers: Sequence[Answer | None],
    n: int,
    faults: Faults | Literal["refuse"] = "error",
) -> Recommendations:
    """Return answers as recommendations.

    Parameters
    ----------
    name
        The system's name in messages.
    users, answers
        One answer per user; None where the system gave none.
    n
        The length asked for; longer lists are cut, and the places are counted.
    faults
        Whether a faulty answer is an error, or an exclusion; ``refuse`` is an error of a system
        whose user has no such choice.

    Raises
    ------
    AuditedSystemError
        With `faults` ``error``: every kind of fault, how often, and the first user of each.
    """
    asked = np.asarray(users)
    wrong: dict[str, list[int]] = {}
    for row, answer in enumerate(answers):
        if answer is not None and answer.fault:
            wrong.setdefault(answer.fault, []).append(row)
    if wrong and faults != "exclude":
        lines = _complaint(name, asked.tolist(), answers, wrong)
        raise AuditedSystemError("\n".join([*lines, _REMEDY] if faults == "error" else lines))
    where = f"recommendations of {name}"
    result = [Exclusion(where, "users", len(r), f, len(asked)) for f, r in wrong.items()]
    absent = sum(answer is None for answer in answers)
    if absent:
        reason = "the system gave no list for the user"
        result.append(Exclusion(where, "users", absent, reason, len(asked)))
    lists = [() if a is None or a.fault else a.items[:n] for a in answers]
    over = sum(len(a.items) - n for a in answers if a is not None and len(a.items) > n)
    if over:
        reason = f"the list is longer than the {n} items asked for"
        result.append(Exclusion(where, "places", over, reason))
    items, catalogue = _matrix(name, asked.tolist(), lists, n)
    scores = _scores(answers, lists, n)
    return Recommendations(asked, items, catalogue, scores, tuple(result))


def _complaint(
    name: str, users: Sequence[Any], answers: Sequence[Answer | None], wrong: dict[str, list[int]]
) -> list[str]:
    lines = []
    for fault, rows in wrong.items():
        first = answers[rows[0]]
        detail = f" ({first.detail})" if first is not None and first.detail else ""
        more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        lines.append(f"  - user {users[rows[0]]!r}{more}: {fault}{detail}")
    return [f"{name} did not answer as its protocol says", *lines]


def _matrix(
    name: str, users: Sequence[Any], lists: Sequence[Sequence[Any]], n: int
) -> tuple[NDArray[np.int32], Vocabulary]:
    lengths = np.array([len(items) for items in lists], dtype=np.int64)
    matrix = np.full((len(lists), n), -1, dtype=np.int32)
    flat = [item for items in lists for item in items]
    if not flat:
        return matrix, Vocabulary(pa.array([], type=pa.int64()))
    text = [row for row, items in enumerate(lists) if items and isinstance(items[0], str)]
    if text and len(text) < np.count_nonzero(lengths):
        whole = next(r for r, items in enumerate(lists) if items and not isinstance(items[0], str))
        raise AuditedSystemError(
            f"{name}: item ids are text in the list of user {users[text[0]]!r} and whole numbers "
            f"in that of user {users[whole]!r}; one type was expected"
        )
    catalogue, codes = Vocabulary.encode(pa.array(flat))
    matrix[np.arange(n) < lengths[:, None]] = codes
    return matrix, catalogue


def _scores(
    answers: Sequence[Answer | None], lists: Sequence[Sequence[Any]], n: int
) -> NDArray[np.float32] | None:
    """Return the scores; None unless every list that holds an item has them."""
    given = [a for a, items in zip(answers, lists, strict=True) if items and a is not None]
    if not given or any(answer.scores is None for answer in given):
        return None
    matrix = np.full((len(lists), n), np.nan, dtype=np.float32)
    for row, (answer, items) in enumerate(zip(answers, lists, strict=True)):
        if answer is not None and items and answer.scores is not None:
            matrix[row, : len(items)] = answer.scores[: len(items)]
    return matrix
