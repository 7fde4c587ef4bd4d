"""Label Studio: its labelling configuration, its tasks, and its exports.

Formats as its documentation gives them: a configuration of XML tags (``Choices`` with
``visibleWhen``), tasks as ``{"data": {...}, "annotations": [...]}``, results with ``from_name``,
``to_name``, ``type`` and ``value``; ``completed_by`` is a user's number, or an object with its
email; a skipped task has ``was_cancelled``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import polars as pl

from ombud.app.settings import ANSWERS, TARGETS, ProjectSettings
from ombud.app.tables import ratings_table, texts_table
from ombud.errors import DataError
from ombud.files import read_plain
from ombud.questions.delicate.ratings import HIGHEST_RISK

_ANCHORS = (
    "a term without engagement",
    "own facts with little stigma; several readings; mild insults",
    "neutral tone on a delicate topic",
    "ill will towards a group; a stance; a tragic event in passing",
    "painful experience; dangerous advice; shaming; threats",
)
_NAMES = ("step", "risk", "topics", "target")


@dataclass(frozen=True, slots=True)
class ImportedRating:
    """One rating, or one skip, on its way into a project."""

    text: str
    rater: str
    skipped: bool
    answer: str
    risk: int | None
    topics: tuple[str, ...]
    target: str
    time: float | None
    seconds: float | None


def _choices(name: str, choices: Sequence[tuple[str, str, str]], options: str) -> list[str]:
    lines = [f'    <Choices name="{name}" toName="text" showInline="false" {options}>']
    for value, hotkey, hint in choices:
        key = f" hotkey={quoteattr(hotkey)}" if hotkey else ""
        tip = f" hint={quoteattr(hint)}" if hint else ""
        lines.append(f"      <Choice value={quoteattr(value)}{key}{tip}/>")
    return [*lines, "    </Choices>"]


def labelling_config(settings: ProjectSettings) -> str:
    """Return the labelling configuration of a project, as Label Studio's XML.

    Examples
    --------
    >>> print(labelling_config(ProjectSettings())[:6])
    <View>
    """
    when = 'visibleWhen="choice-selected" whenTagName="step" whenChoiceValue="delicate"'
    keys = {"not delicate": "n", "delicate": "d", "cannot be judged": "c"}
    lines = ["<View>", '  <Text name="text" value="$text"/>', '  <Header value="Step I"/>']
    steps = [(answer, keys[answer], "") for answer in ANSWERS]
    lines += _choices("step", steps, 'choice="single-radio" required="true"')
    lines += [f"  <View {when}>", '    <Header value="Step II: risk"/>']
    risks = [(str(r + 1), str(r + 1), anchor) for r, anchor in enumerate(_ANCHORS)]
    lines += _choices("risk", risks, f'choice="single-radio" required="true" {when}')
    if settings.ask_topics:
        lines.append('    <Header value="Topics"/>')
        topics = [(topic.id, "", topic.title) for topic in settings.topics]
        lines += _choices("topics", topics, 'choice="multiple"')
    if settings.ask_target:
        lines.append('    <Header value="Target"/>')
        lines += _choices("target", [(t, "", "") for t in TARGETS], 'choice="single-radio"')
    return "\n".join([*lines, "  </View>", "</View>"]) + "\n"


def tasks(db: sqlite3.Connection, *, annotations: bool = False) -> list[dict[str, Any]]:
    """Return the texts of the main round as tasks, on request with what was rated here."""
    texts = texts_table(db).filter(pl.col("round") == "main")
    found: list[dict[str, Any]] = []
    by_text: dict[str, list[dict[str, Any]]] = {}
    if annotations:
        rows = ratings_table(db).filter(
            pl.col("round") == "main", ~pl.col("repeat"), pl.col("attempt") == 1
        )
        numbers = {name: at for at, name in enumerate(rows["rater"].unique().sort(), start=1)}
        for at, row in enumerate(rows.iter_rows(named=True), start=1):
            one = _annotation(row, numbers[row["rater"]], at)
            by_text.setdefault(row["id"], []).append(one)
    for at, row in enumerate(texts.iter_rows(named=True), start=1):
        data = {k: v for k, v in row.items() if k not in {"round", "state"} and v is not None}
        if annotations:
            # Numbers as in an export: its readers ask for them. New tasks get theirs there.
            rated = by_text.get(row["id"], [])
            rated = [one | {"task": at} for one in rated]
            found.append({"id": at, "data": data, "annotations": rated})
        else:
            found.append({"data": data})
    return found


def _annotation(row: Mapping[str, Any], number: int, at: int) -> dict[str, Any]:
    values: dict[str, list[str]] = {}
    if not row["skipped"]:
        values["step"] = [row["answer"]]
        if row["answer"] == "delicate":
            values["risk"] = [str(row["risk"])]
            values |= {"topics": row["topics"]} if row["topics"] else {}
            values |= {"target": [row["target"]]} if row["target"] else {}
    return {
        "id": at,
        "completed_by": {"id": number, "email": row["rater"]},
        "was_cancelled": row["skipped"],
        "created_at": row["time"].isoformat(),
        "lead_time": row["seconds"],
        "result": [
            {
                "id": f"{at}-{name}",
                "from_name": name,
                "to_name": "text",
                "type": "choices",
                "value": {"choices": chosen},
            }
            for name, chosen in values.items()
        ],
    }


def read_export(
    path: Path | str, settings: ProjectSettings, *, raters: Mapping[str, str] | None = None
) -> list[ImportedRating]:
    """Read a JSON export of Label Studio: the full form, not the short one without raters.

    The settings of the project say which topics there are. `raters` has names of raters by their
    number or email in Label Studio; others keep what they have there.

    Raises
    ------
    DataError
        With every fault: labels that the configuration does not have, annotations without a rater
        or an answer, texts without an id. Nothing is read in part.
    """
    source = Path(path).name
    try:
        content = json.loads(read_plain(path).decode("utf-8"))
    except FileNotFoundError:
        raise DataError(source, [f"there is no file {path}"]) from None
    except (ValueError, RecursionError) as error:
        raise DataError(source, [f"it is not JSON: {error}"]) from None
    if not isinstance(content, list):
        raise DataError(source, ["a list of tasks was expected, as Label Studio exports it"])
    reader = _Reader(settings, dict(raters or {}))
    for at, task in enumerate(content, start=1):
        reader.task(task, f"task {at}")
    unused = sorted(set(raters or {}) - reader.met)
    if unused:
        reader.faults.append(f"raters named but not in the export: {', '.join(unused)}")
    if reader.faults:
        raise DataError(source, reader.faults)
    return reader.ratings


class _Reader:
    """Collects ratings and faults of an export."""

    def __init__(self, settings: ProjectSettings, raters: dict[str, str]) -> None:
        self.allowed: dict[str, set[str]] = {
            "step": set(ANSWERS),
            "risk": {str(r) for r in range(1, HIGHEST_RISK + 1)},
            "topics": {topic.id for topic in settings.topics},
            "target": set(TARGETS),
        }
        self.raters = raters
        self.met: set[str] = set()
        self.ratings: list[ImportedRating] = []
        self.faults: list[str] = []

    def task(self, task: Any, place: str) -> None:
        data = task.get("data") if isinstance(task, dict) else None
        if data is None and isinstance(task, dict) and "annotation_id" in task:
            fault = "this is the short form, JSON-MIN, which has no raters; export as JSON"
            self.faults += [fault] if fault not in self.faults else []
            return
        if not isinstance(data, dict) or "id" not in data:
            self.faults.append(f"{place}: no data.id; ids come with the tasks that ombud writes")
            return
        annotations = task.get("annotations")
        if not isinstance(annotations, list):
            self.faults.append(f"{place}: no annotations; export as JSON, not as JSON-MIN")
            return
        for at, one in enumerate(annotations, start=1):
            where = f"{place}, annotation {at}"
            if not isinstance(one, dict):
                self.faults.append(f"{where}: not an object")
                continue
            rating = self._annotation(one, str(data["id"]), where)
            if rating is not None:
                self.ratings.append(rating)

    def _annotation(self, one: dict[str, Any], text: str, where: str) -> ImportedRating | None:
        before = len(self.faults)
        rater = self._rater(one.get("completed_by"), where)
        skipped = one.get("was_cancelled") is True
        values = {} if skipped else self._values(one.get("result"), where)
        answer = (values.get("step") or [""])[0]
        risk = (values.get("risk") or [""])[0]
        if not skipped and not answer and len(self.faults) == before:
            self.faults.append(f"{where}: step I has no answer")
        if answer == "delicate" and not risk and len(self.faults) == before:
            self.faults.append(f"{where}: delicate, but without a risk")
        if answer != "delicate" and risk:
            self.faults.append(f"{where}: a risk, but not delicate")
        if len(self.faults) > before:
            return None
        return ImportedRating(
            text=text,
            rater=rater,
            skipped=skipped,
            answer=answer,
            risk=int(risk) if risk else None,
            topics=tuple(values.get("topics", ())) if answer == "delicate" else (),
            target=(values.get("target") or [""])[0] if answer == "delicate" else "",
            time=_seconds(one.get("created_at")),
            seconds=one["lead_time"] if isinstance(one.get("lead_time"), int | float) else None,
        )

    def _rater(self, value: Any, where: str) -> str:
        keys: list[str] = []
        if isinstance(value, dict):
            keys = [str(value[k]) for k in ("email", "id") if value.get(k) not in (None, "")]
        elif isinstance(value, int | str) and not isinstance(value, bool):
            keys = [str(value)]
        if not keys:
            self.faults.append(f"{where}: completed_by names nobody")
            return ""
        named = [key for key in keys if key in self.raters]
        self.met.update(named)
        return self.raters[named[0]] if named else keys[0]

    def _values(self, result: Any, where: str) -> dict[str, list[str]]:
        values: dict[str, list[str]] = {}
        if not isinstance(result, list):
            self.faults.append(f"{where}: no result")
            return values
        for part in result:
            name = part.get("from_name") if isinstance(part, dict) else None
            if name not in _NAMES:
                self.faults.append(f"{where}: unknown control {name!r}; known: {', '.join(_NAMES)}")
                continue
            value = part.get("value")
            value = value if isinstance(value, dict) else {}
            if part.get("type") == "rating":
                found = [str(value.get("rating"))]
            else:
                choices = value.get("choices")
                found = [str(c) for c in choices] if isinstance(choices, list) else []
            strange = [choice for choice in found if choice not in self.allowed[name]]
            if strange:
                self.faults.append(f"{where}: unknown label {strange[0]!r} of {name}")
            elif name in values or (name != "topics" and len(found) > 1):
                self.faults.append(f"{where}: more than one answer for {name}")
            else:
                values[name] = found
        return values


def _seconds(moment: Any) -> float | None:
    if not isinstance(moment, str):
        return None
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None
