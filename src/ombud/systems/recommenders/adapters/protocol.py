"""The JSON that a recommendation service and ombud exchange.

Question (POST)::

    {"users": [1, 2], "n": 10, "exclude_seen": true}

Answer (200)::

    {"recommendations": [{"user": 1, "items": [7, 3], "scores": [0.9, 0.4]},
                         {"user": 2, "items": [5]}]}

`items` are ids, best first, at most n, none twice; `scores` may be left out. A user may be left
out when the service has no list; then the user is counted as having none. No other users may be
in the answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ombud.errors import DataError
from ombud.systems.recommenders.adapters.answers import Answer, as_answer, is_text

__all__ = ["GarbledReplyError", "question", "read_reply"]


class GarbledReplyError(Exception):
    """A reply that is not what the protocol says, as a whole."""


def question(users: Sequence[Any], n: int, exclude_seen: bool) -> bytes:
    """Return the body of a question."""
    asked = {"users": list(users), "n": n, "exclude_seen": exclude_seen}
    text = json.dumps(asked, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode()
    except UnicodeEncodeError:
        odd = next(user for user in users if isinstance(user, str) and not is_text(user))
        fault = f"the id {odd!r:.60} holds half a character, which UTF-8 cannot hold"
        raise DataError("users", [fault]) from None


def read_reply(raw: bytes, users: Sequence[Any]) -> list[Answer | None]:
    """Return the answer for each user asked; None where the reply has none.

    Raises
    ------
    GarbledReplyError
        When the reply as a whole cannot be used.
    """
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        start = raw[:40].decode("utf-8", "replace")
        raise GarbledReplyError(f"a reply that is not JSON; it begins {start!r}") from None
    rows = content.get("recommendations") if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise GarbledReplyError("a reply without a list 'recommendations'")
    index = {_key(user): row for row, user in enumerate(users)}
    answers: list[Answer | None] = [None] * len(users)
    for number, entry in enumerate(rows, 1):
        if not isinstance(entry, dict) or "user" not in entry or "items" not in entry:
            raise GarbledReplyError(f"entry {number} is not an object with 'user' and 'items'")
        row = index.get(_key(entry["user"]))
        if row is None:
            raise GarbledReplyError(
                f"entry {number} is for user {entry['user']!r:.60}, who was not asked for "
                f"(the first asked for is {users[0]!r:.60})"
            )
        if answers[row] is not None:
            answers[row] = Answer(fault="two lists in one reply")
        else:
            answers[row] = as_answer(entry["items"], entry.get("scores"))
    return answers


def _key(user: Any) -> Any:
    """Return something that tells 1 from "1" and from true, and can be looked up."""
    return (type(user).__name__, user) if isinstance(user, int | str) else None
