"""What Does the Dog Die says about single titles, in the forms in which it comes."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ombud.errors import DataError

_MOST_VOTES = 2**31 - 1
_IMDB = re.compile(r"^(?:tt)?0*(\d{1,10})$")


@dataclass(frozen=True)
class Answer:
    """What the web API says about one title."""

    # Its ids elsewhere; None where the answer has none.
    imdb: int | None
    tmdb: int | None
    # ``(topic number, topic name, yes votes, no votes)``, as answered.
    topics: tuple[tuple[int | None, str, int, int], ...]


def _number(value: Any) -> int | None:
    result = _IMDB.match(str(value).strip()) if value is not None else None
    return int(result[1]) if result else None


def answers_of_json(replies: Iterable[Any], source: str = "answers") -> Iterator[Answer]:
    """Read answers of ``/media/ID``: an ``item`` with its ids and ``topicItemStats`` with votes.

    Parameters
    ----------
    replies
        Parsed JSON, one object for each title.
    source
        The name in messages.
    """
    for number, reply in enumerate(replies, start=1):
        item = reply.get("item") if isinstance(reply, dict) else None
        stats = reply.get("topicItemStats") if isinstance(reply, dict) else None
        if not isinstance(item, dict) or not isinstance(stats, list):
            fault = f"answer {number} has no 'item' with a list 'topicItemStats'"
            raise DataError(source, [fault])
        ids = {str(key).lower(): value for key, value in item.items()}
        topics = tuple(_topic(stat, number, source) for stat in stats)
        yield Answer(_number(ids.get("imdbid")), _number(ids.get("tmdbid")), topics)


def _topic(stat: Any, number: int, source: str) -> tuple[int | None, str, int, int]:
    try:
        topic = stat.get("topic") or {}
        name = str(topic.get("name") or stat.get("topicName") or topic.get("doesName") or "")
        code = topic.get("id", stat.get("TopicId", stat.get("topicId")))
        yes, no = int(stat.get("yesSum") or 0), int(stat.get("noSum") or 0)
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            source, [f"answer {number} holds a topic that cannot be read: {error}"]
        ) from None
    if yes < 0 or no < 0 or yes + no > _MOST_VOTES:
        raise DataError(source, [f"answer {number} has {yes} yes and {no} no votes on a topic"])
    return _number(code), name, yes, no


def answers_of_csv(path: str | Path) -> list[Answer]:
    """Read a table of topic votes: one row for each title and topic.

    Columns: `imdbId`, `tmdbId`, `topic_id`, `topic_name`, `yes_votes`, `no_votes`.
    """
    needed = {"imdbId", "tmdbId", "topic_id", "topic_name", "yes_votes", "no_votes"}
    titles: dict[tuple[int | None, int | None], list[tuple[int | None, str, int, int]]] = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        absent = sorted(needed - set(reader.fieldnames or ()))
        if absent:
            raise DataError(Path(path).name, [f"column {name!r} is missing" for name in absent])
        for row in reader:
            key = _number(row["imdbId"]), _number(row["tmdbId"])
            try:
                votes = int(row["yes_votes"]), int(row["no_votes"])
            except ValueError:
                fault = f"line {reader.line_num}: votes must be whole numbers"
                raise DataError(Path(path).name, [fault]) from None
            topic = (_number(row["topic_id"]), row["topic_name"], *votes)
            titles.setdefault(key, []).append(topic)
    return [Answer(imdb, tmdb, tuple(topics)) for (imdb, tmdb), topics in titles.items()]


def json_lines(path: Path) -> Iterator[Any]:
    """Yield the objects of a file with one JSON object a line."""
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise DataError(path.name, [f"line {number} is not JSON: {error}"]) from None
