"""Thresholds of a moderation service, from its replies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud.cli.console import JsonOption, print_json, reports_errors, say
from ombud.errors import DataError
from ombud.report.display import count, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

_Bounds = tuple[float | None, float | None]


def _replies(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the model and the raw reply of every reply with scores by category."""
    from ombud.data.sources.stories import json_objects
    from ombud.http.store import open_database

    if path.suffix == ".sqlite":
        try:
            with closing(open_database(path, read_only=True)) as store:
                query = "SELECT raw FROM calls WHERE raw IS NOT NULL"
                rows = [bytes(raw) for (raw,) in store.execute(query)]
        except (OSError, sqlite3.Error) as error:
            raise DataError(path.name, [f"it is not an answer cache: {error}"]) from None
        found: Any = []
        for raw in rows:
            try:
                found.append(json.loads(raw))
            except ValueError:
                continue  # a cache also holds bodies of errors
    else:
        found = json_objects(path)
    for one in found:
        parts = [one, *one.values()] if isinstance(one, dict) else []
        reply = next((p for p in parts if isinstance(p, dict) and "results" in p), None)
        results = reply["results"] if reply else []
        if reply and isinstance(results, list) and "category_scores" in str(results[:1]):
            yield str(reply.get("model") or "unnamed model"), json.dumps(reply).encode()


@reports_errors
def thresholds(
    replies: Annotated[
        Path, typer.Argument(help="An answer cache (.sqlite), or raw replies (.jsonl, .json).")
    ],
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Find the flagging threshold of each category in stored replies of OpenAI's moderation.

    The threshold of a category lies between the highest score that was not flagged and the lowest
    that was. Scores divided by thresholds are comparable between categories.

    \b
    Example:
      ombud thresholds .ombud/moderators.sqlite
    """
    from ombud.systems.moderators.openai import thresholds_from_replies

    models: dict[str, list[bytes]] = {}
    for model, raw in _replies(replies):
        models.setdefault(model, []).append(raw)
    if not models:
        fault = "no reply has category_scores; expected replies of OpenAI's moderation endpoint"
        raise DataError(replies.name, [fault])
    found: dict[str, dict[str, _Bounds]] = {}
    for model, some in models.items():
        try:
            found[model] = thresholds_from_replies(some)
        except (TypeError, AttributeError) as error:
            raise DataError(replies.name, [f"a reply of {model} is damaged: {error}"]) from None
    if as_json:
        print_json(found)
        return
    for model, bounds in found.items():
        say(visible(f"{model}: {count(len(models[model]), 'reply')}"))
        say("  category, highest score not flagged, lowest score flagged")
        for category, (low, high) in bounds.items():
            note = "only one side was seen" if low is None or high is None else ""
            if low is not None and high is not None and low >= high:
                note = "no single threshold: higher scores were not flagged"
            ends = ("-" if end is None else f"{end:.6f}" for end in (low, high))
            say(visible("  ".join(filter(None, (f"  {category:24}", *ends, note)))))
        known = {c: high for c, (low, high) in bounds.items() if low and high and low < high}
        lines = [f'"{category}" = {high:.6f}' for category, high in known.items()]
        for line in ["For the plan:", "[systems.NAME.thresholds]", *lines] if known else []:
            say(visible(line))
