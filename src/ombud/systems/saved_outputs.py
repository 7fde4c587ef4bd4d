"""Saved outputs of common tools as decisions: pipelines, Detoxify, and replies of services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from ombud.data.decisions import Decisions, Outcome, score_outcomes
from ombud.data.frames import Frame, MappedFile, open_frame
from ombud.data.reading import WORDS, Reading, file_type, note, read_json
from ombud.errors import DataError
from ombud.systems.moderators.answers import Answer, decisions_of, exclusions_of
from ombud.systems.moderators.mistral import MistralModeration
from ombud.systems.moderators.openai import OpenAIModeration
from ombud.systems.moderators.perspective import Perspective

Key = Literal["id", "row", "text"]
_HALF = 0.5

DETOXIFY = WORDS["detoxify"]
"""The classes of Detoxify and of the Jigsaw challenges; the first that is there is the score."""
FLAGGED, ALLOWED = WORDS["flagged"], WORDS["allowed"]
"""Words that usually mean that a text is, or should be, flagged; and that it is not."""


@dataclass(frozen=True)
class SavedOutput:
    """Decisions, and by what they name their texts."""

    decisions: Decisions
    # ``id``; ``row``, if they are in the order of the texts; ``text``, if they repeat the text.
    key: Key


def saved_form(names: Sequence[str]) -> Literal["", "pipeline", "classes", "replies", "severities"]:
    """Return which tool saved a table or records with these columns or keys; empty if none did.

    ``classes`` and ``severities`` hold scores only: without a threshold there is no decision.
    """
    found = set(names)
    if {"categories", "category_scores"} <= found:
        return "replies"
    if {"outcome", "flagged"} & found:
        return ""
    if "categoriesAnalysis" in found:
        return "severities"
    if {"custom_id", "response"} <= found or found & {"attributeScores", "category_scores"}:
        return "replies"
    if {"model", "results"} <= found:
        return "replies"
    if {"label", "score"} <= found:
        return "pipeline"
    return "classes" if len(found & set(DETOXIFY)) > 1 and "score" not in found else ""


def read_saved(
    frame: Frame, columns: Mapping[str, str], reading: Reading, threshold: float | None, name: str
) -> SavedOutput | None:
    """Return what a common tool saved; None if it is a table as `Decisions.from_frame` reads it.

    Parameters
    ----------
    frame
        A file, a frame, or records in memory.
    columns
        By ombud's name, the name in the file, where somebody said so.
    reading
        ``yes`` names the labels that mean flagged.
    threshold
        From which score on a text is flagged.
    name
        The file's name in messages.
    """
    if {"outcome", "flagged"} & set(columns):
        return None
    if isinstance(frame, list | tuple):
        records = list(frame)
    elif isinstance(frame, str | Path) and _is_json(frame):
        records = read_json(Path(frame), name)
    else:
        plain = replace(reading, items=(), labels=(), split="")
        lazy, _ = open_frame(MappedFile(frame, reading=plain))
        try:
            schema = lazy.collect_schema().to_polars()
        except Exception:  # the error comes where the table is read
            return None
        if not replies_in(schema) and saved_form(schema.names()) not in {"pipeline", "classes"}:
            return None
        records = lazy.collect(backend="polars").to_native().to_dicts()
    return _from_records(records, columns, reading, threshold, name) if records else None


def _is_json(frame: str | Path) -> bool:
    return file_type(Path(frame))[0] in {".json", ".jsonl", ".ndjson"} and Path(frame).is_file()


def _from_records(
    records: Sequence[Any],
    columns: Mapping[str, str],
    reading: Reading,
    threshold: float | None,
    name: str,
) -> SavedOutput | None:
    first = records[0]
    if isinstance(first, list):
        return read_nested(
            records, list(range(1, len(records) + 1)), "row", reading, threshold, name
        )
    if not isinstance(first, Mapping):
        return None
    results = first.get("results")
    if len(records) == 1 and isinstance(results, list) and len(results) > 1:
        records = results
    ids, key = _ids(records, columns)
    inner = [_reply(record) for record in records]
    if isinstance(inner[0], list) and inner[0] and "label" in inner[0][0]:
        return read_nested(inner, ids, key, reading, threshold, name)
    form = saved_form([*inner[0]]) if isinstance(inner[0], Mapping) else ""
    if form in {"pipeline", "classes"} and "score" in columns:
        return None
    if form == "pipeline" and isinstance(inner[0]["label"], str | None):
        return read_nested([[one] for one in inner], ids, key, reading, threshold, name)
    if form == "classes":
        return _classes(inner, ids, key, threshold, name)
    reader = _reader(inner, threshold, name)
    if reader is None:
        return None
    answers: list[Answer] = []
    for record, reply in zip(records, inner, strict=True):
        problem = record.get("error") if isinstance(record, Mapping) else None
        if not isinstance(reply, Mapping) or problem:
            words = problem.get("message", "") if isinstance(problem, Mapping) else str(problem)
            answers.append(Answer(Outcome.ERROR, reason=words or "there is no reply"))
            continue
        try:
            answers.append(reader(reply))
        except (KeyError, TypeError, ValueError, LookupError, AttributeError) as error:
            reason = f"the reply cannot be read: {error}"[:200]
            answers.append(Answer(Outcome.UNPARSEABLE, reason=reason))
    made = decisions_of(np.array(ids), answers)
    return SavedOutput(replace(made, exclusions=exclusions_of(answers)), key)


def _ids(records: Sequence[Any], columns: Mapping[str, str]) -> tuple[list[Any], Key]:
    """Return the ids of records: those of the texts, or numbers of rows."""
    if "id" in columns:
        return [record[columns["id"]] for record in records], "id"
    for name in ("custom_id", "text_id", "comment_id"):
        if all(isinstance(r, Mapping) and name in r for r in records):
            return [record[name] for record in records], "id"
    for name in ("input", "input_text", "text", "comment", "comment_text"):
        if all(isinstance(r, Mapping) and isinstance(r.get(name), str) for r in records):
            return [record[name] for record in records], "text"
    # A reply's own id (modr-...) is no id of a text: only one beside the reply is.
    if all("id" in r and not ({"results", "choices"} & set(r)) for r in records):
        return [record["id"] for record in records], "id"
    return list(range(1, len(records) + 1)), "row"


_REPLIES = ("response", "reply", "body", "output", "outputs", "result", "prediction", "predictions")


def replies_in(schema: pl.Schema) -> str:
    """Return the column that holds the labels of each text, as a pipeline returns them."""
    for name in _REPLIES:
        dtype = schema.get(name)
        inner = dtype.inner if isinstance(dtype, pl.List) else dtype
        if isinstance(inner, pl.Struct) and {"label", "score"} <= {f.name for f in inner.fields}:
            return name
    return ""


def _reply(record: Any) -> Any:
    """Return the reply within a record: as it is, or under the keys that tools put it."""
    for name in _REPLIES:
        if isinstance(record, Mapping) and name in record:
            return _reply(record[name])
    bare = isinstance(record, Mapping) and {"categories", "category_scores"} <= {*record}
    return {"model": "", "results": [record]} if bare else record


def _reader(inner: Sequence[Any], threshold: float | None, name: str) -> Any:
    """Return the function that reads replies of the service that these are from."""
    reply = next((one for one in inner if isinstance(one, Mapping)), {})
    results = reply.get("results")
    if isinstance(results, list) and results and {"category_scores", "categories"} & {*results[0]}:
        if "flagged" in results[0]:
            return OpenAIModeration(name=name, model="as recorded").read
        return MistralModeration(name=name, model="as recorded", threshold=threshold).read
    if not {"attributeScores", "categoriesAnalysis"} & set(reply):
        return None
    if "categoriesAnalysis" in reply:
        return lambda one: read_azure(one, threshold)
    attributes = list(reply["attributeScores"])
    return Perspective(name=name, attributes=attributes, threshold=threshold).read


def read_azure(reply: Mapping[str, Any], threshold: float | None) -> Any:
    """Return what a reply of Azure AI Content Safety means.

    A category whose severity reaches the threshold flags; so does a match of a blocklist. Without
    a threshold there is a score, the largest severity, and no decision.
    """
    # A severity may be absent by the schema, which does not say what that means.
    severities = {str(e["category"]): float(e["severity"]) for e in reply["categoriesAnalysis"]}
    if not severities:
        raise LookupError("no category has a severity")
    worst = max(severities.values())
    if threshold is None:
        return Answer(Outcome.SCORED, worst, severities)
    flagged = worst >= threshold or bool(reply.get("blocklistsMatch"))
    return Answer(Outcome(flagged), worst / threshold, severities)


def read_nested(
    rows: Sequence[Any],
    ids: Sequence[Any],
    key: Key,
    reading: Reading,
    threshold: float | None,
    name: str,
) -> SavedOutput:
    """Return outputs of a pipeline with ``top_k=None``: all labels of each text."""
    if all(len(row) == 1 for row in rows):
        best = pl.DataFrame([row[0] for row in rows], infer_schema_length=None)
        return _top_labels(best, np.array(ids), key, reading, threshold, name)
    tables = [{str(e["label"]): float(e["score"]) for e in row} for row in rows]
    labels = sorted({label for table in tables for label in table})
    yes = flagged_labels(labels, reading, name)
    matrix = np.array([[t.get(label, np.nan) for label in labels] for t in tables], np.float32)
    scores = combined(matrix, [labels.index(label) for label in yes])
    outcomes = score_outcomes(scores, threshold)
    if threshold is None:
        outcomes = decide_by_labels(matrix, [labels.index(label) for label in yes])
    return SavedOutput(Decisions(np.array(ids), outcomes, scores, tuple(labels), matrix), key)


def is_single_label(matrix: Any) -> bool:
    """Return whether a model chooses one of its labels: scores add up to 1 over all of them."""
    return bool(np.allclose(np.nansum(matrix, axis=1), 1.0, atol=0.02))


def decide_by_labels(matrix: Any, columns: Sequence[int]) -> Any:
    """Return what a model decides by itself: flagged where the label it chooses means flagged.

    A multi-label model chooses none, so that there are scores without decisions.

    `matrix` is texts x labels; `columns` are the labels that mean flagged.

    Examples
    --------
    >>> decide_by_labels(np.array([[0.3, 0.7], [0.8, 0.2]]), [1]).tolist()
    [1, 0]
    >>> decide_by_labels(np.array([[0.3, 0.9]]), [1]).tolist()
    [5]
    """
    lost = np.isnan(matrix[:, list(columns)]).all(axis=1)
    outcomes = np.full(len(matrix), Outcome.SCORED, dtype=np.int8)
    if is_single_label(matrix):
        chosen = np.nan_to_num(matrix, nan=-np.inf).argmax(axis=1)
        outcomes = np.isin(chosen, list(columns)).astype(np.int8)
    return np.where(lost, np.int8(Outcome.ERROR), outcomes)


def combined(matrix: Any, columns: Sequence[int], how: str = "auto") -> Any:
    """Return one score per text from those of the labels that mean flagged.

    Scores of a single-label model add up to 1 over all labels, so those of several labels are
    added. A multi-label model has a probability for each label, so the largest counts.

    `matrix` is texts x labels; `columns` are the labels that mean flagged.

    Examples
    --------
    >>> combined(np.array([[0.3, 0.3, 0.9]]), [0, 1]).tolist()
    [0.3]
    """
    if how == "auto":
        how = "sum" if is_single_label(matrix) else "max"
    part = matrix[:, list(columns)]
    return np.sum(part, axis=1) if how == "sum" else np.max(part, axis=1)


def flagged_labels(labels: Sequence[str], reading: Reading, name: str) -> list[str]:
    """Return the labels that mean flagged; refuse to guess."""
    if reading.yes:
        wanted = {word.strip().lower() for word in reading.yes}
        found = [label for label in labels if label.strip().lower() in wanted]
        if not found:
            fault = f"no label is {', '.join(map(repr, reading.yes))} (found: {', '.join(labels)})"
            raise DataError(name, [fault])
        return found
    plain = {label: label.strip().lower() for label in labels}
    yes = [label for label, word in plain.items() if word in FLAGGED]
    no = [label for label, word in plain.items() if word in ALLOWED]
    if set(labels) <= {*DETOXIFY} and labels:
        yes = [next(label for label in DETOXIFY if label in labels)]
    elif len(yes) + len(no) < len(labels) or (not yes and len(labels) != 1):
        shown = ", ".join(labels[:12])
        fault = f"which labels mean flagged? Set reading = {{yes = [...]}} (found: {shown})"
        raise DataError(name, [fault])
    note(name, f"label {', '.join(map(repr, yes))} means flagged", "assumed/flagged-labels")
    return yes


def _classes(
    rows: Sequence[Mapping[str, Any]],
    ids: Sequence[Any],
    key: Key,
    threshold: float | None,
    name: str,
) -> SavedOutput:
    """Return outputs with a score for each class, as of Detoxify: the first one decides."""
    classes = [one for one in DETOXIFY if one in rows[0]]
    cells = {one: [row[one] for row in rows] for one in classes}
    matrix = pl.DataFrame(cells, strict=False).cast(pl.Float32).to_numpy()
    scores = matrix[:, 0]
    note(name, f"the score is column {classes[0]!r}", "assumed/score-column")
    outcomes = score_outcomes(scores, threshold)
    made = Decisions(np.array(ids), outcomes, scores, tuple(classes), matrix)
    return SavedOutput(made, key)


def _top_labels(
    table: pl.DataFrame, ids: Any, key: Key, reading: Reading, threshold: float | None, name: str
) -> SavedOutput:
    """Return outputs of a pipeline with the best label of each text: its score is that label's.

    Without a threshold the label decides. Of two labels the better one has at least half of the
    probability; if not, labels do not exclude each other, and there is no decision.
    """
    words = table["label"].cast(pl.String)
    labels = sorted(words.drop_nulls().unique().to_list())
    yes = flagged_labels(labels, reading, name)
    given = table["score"].cast(pl.Float32).to_numpy()
    is_yes = words.is_in(yes).to_numpy()
    scores = np.where(is_yes, given, 1 - given if len(labels) <= 2 else np.nan).astype(np.float32)
    outcomes = is_yes.astype(np.int8)
    if threshold is not None:
        outcomes = (is_yes & (given >= threshold)).astype(np.int8)
    if len(labels) <= 2 and (threshold is not None or np.nanmin(given, initial=1.0) < _HALF):
        outcomes = score_outcomes(scores, threshold)
    missing = words.is_null().to_numpy() | np.isnan(given)
    outcomes = np.where(missing, np.int8(Outcome.ERROR), outcomes)
    return SavedOutput(Decisions(ids, outcomes, scores), key)


def matched(saved: SavedOutput, texts: Any, name: str) -> Decisions:
    """Return saved decisions with the ids of the texts that they are about."""
    past = saved.decisions
    if saved.key == "row":
        if len(past) != len(texts):
            fault = (
                f"it has {len(past):,} outputs without ids for {len(texts):,} texts; give each "
                "output the id of its text"
            )
            raise DataError(name, [fault])
        note(name, "outputs have no ids: they are in the order of the texts", "assumed/row-order")
        return replace(past, ids=np.asarray(texts.ids))
    if saved.key == "text":
        rows: dict[str, int] = {}
        for row, text in enumerate(past.ids.tolist()):
            first = rows.setdefault(text, row)
            if past.outcomes[first] != past.outcomes[row]:
                raise DataError(name, ["a text has two different decisions; give rows an id"])
        kept = [
            (one, rows[t]) for one, t in zip(texts.ids.tolist(), texts, strict=True) if t in rows
        ]
        order = np.array([row for _, row in kept], dtype=np.int64)
        scores = past.category_scores
        return replace(
            past,
            ids=np.array([one for one, _ in kept]),
            outcomes=past.outcomes[order],
            scores=past.scores[order],
            category_scores=None if scores is None else scores[order],
        )
    return past
