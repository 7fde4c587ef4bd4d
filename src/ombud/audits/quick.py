"""One call from tables to a result: ``ombud.audit(interactions=..., recommendations=...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from inspect import isroutine
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ombud.audits.audit import Audit
from ombud.audits.headers import Answers, FileRole, read_role, unused_answers
from ombud.audits.result import Result
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.reading import noting
from ombud.data.tables import TABLES, TableOptions, read_table_file
from ombud.errors import PlanError
from ombud.systems.own import OwnModerator
from ombud.systems.recorded import RecordedDecisions, RecordedRecommendations

_LENGTH = 10
_IN_PYTHON = (
    "In Python: columns={...} for --map, yes_values=[...], reading={...} for --read, and arguments "
    "of the options' names."
)


def audit(
    *,
    interactions: Any = None,
    recommendations: Any = None,
    labels: Any = None,
    texts: Any = None,
    decisions: Any = None,
    test: Any = None,
    items: Any = None,
    users: Any = None,
    text_groups: Any = None,
    metrics: Sequence[Any] | None = None,
    by: Sequence[str] | None = None,
    columns: Mapping[str, str] | None = None,
    yes_values: Sequence[str] = (),
    reading: Mapping[str, Mapping[str, Any]] | None = None,
    unlabeled: Literal["no", "unknown"] | None = None,
    threshold: float | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
) -> Result:
    """Audit recommendations or decisions, and return the result.

    Parameters
    ----------
    interactions, labels, test, items, users, texts, text_groups
        The tables of the data: pandas, Polars or Arrow frames, paths, or tables of `ombud.data`.
    recommendations, decisions
        What is audited: a frame or path of past outputs, a fitted model, a pipeline, a function,
        or several of them in a mapping by name. Objects are used as they are.
    metrics
        Metrics, or their registered names; default, by the tables that are given.
    by
        The attributes to compare by; default, all that the data has.
    columns
        By ombud's name, the name of a column: ``{"user": "member_no"}``.
    yes_values
        Words that mean flagged, or that a label applies.
    reading
        How a table is written, as in a plan: ``{"texts": {"missing": ["-1"]}}``.
    unlabeled
        What an item without a row in the labels means.
    threshold
        From which score on a text is flagged.
    seed
        The seed of everything random.
    folder
        Where to store the result; default, in memory only.

    Examples
    --------
    >>> import polars as pl
    >>> texts = pl.DataFrame({"id": range(40), "text": ["some words"] * 40, "toxic": [0, 1] * 20})
    >>> flags = pl.DataFrame({"id": range(40), "flagged": [0, 1, 1, 1] * 10})
    >>> result = audit(texts=texts, decisions=flags, metrics=["false-positive-rate"])
    >>> [round(e.value, 2) for e in result.estimates if e.kind == "level"]
    [0.5]
    """
    answered = dict(columns or {}), tuple(yes_values), dict(reading or {})
    answers = Answers(*answered, unlabeled, threshold, True)
    given = {
        "interactions": interactions, "test": test, "labels": labels, "items": items,
        "users": users, "texts": texts, "text_groups": text_groups,
    }  # fmt: skip
    outputs = recommendations if recommendations is not None else decisions
    if outputs is None:
        raise PlanError("what is audited? Give recommendations=, or decisions=")
    notes: list[Exclusion]
    with noting() as notes:
        unread = ("rating",) if metrics is None else ()  # no metric chosen here reads ratings
        options = TableOptions(
            unlabeled=unlabeled, by=None if by is None else tuple(by), duplicates="last",
            unread=unread,
        )  # fmt: skip
        roles: list[FileRole] = []
        data = _data({k: v for k, v in given.items() if v is not None}, answers, options, roles)
        kind = "recommendations" if recommendations is not None else "decisions"
        systems = _systems(outputs, kind, answers, roles)
    # Lists of replies and functions take these answers, if need be.
    takes = isinstance(outputs, list) or isroutine(outputs)
    left = replace(answers, threshold=None, yes_values=()) if takes else answers
    if faults := [question.text for question in unused_answers(roles, left)]:
        raise PlanError("\n".join([*faults, _IN_PYTHON]))
    main = "interactions" if data.interactions is not None else "texts"
    table: Any = getattr(data, main)
    if table is None:
        raise PlanError(
            "an audit needs interactions= with recommendations, or texts= with decisions"
        )
    # A result has the exclusions of its tables: what was noted while reading goes along there.
    data = replace(data, **{main: replace(table, exclusions=(*table.exclusions, *notes))})
    chosen = metrics if metrics is not None else _metrics(data, systems)
    return Audit(data, systems, chosen, seed=seed).run(folder)


def _is_table(value: Any) -> bool:
    """Whether a value is a path or a frame, and not an object that recommends or moderates."""
    if isinstance(value, str | PathLike | dict | list):
        return True
    return hasattr(value, "columns") or hasattr(value, "column_names")


def _role(value: Any, role: str, name: str, answers: Answers) -> FileRole:
    path = isinstance(value, str | PathLike)
    where = Path(value) if path else Path(name)
    found = read_role(where, role, answers, None if path else value)
    if faults := [f"{q.text} ({q.flag})" for q in found.questions if not q.proposal]:
        raise PlanError("\n".join([*faults, _IN_PYTHON]))
    return found


def _data(
    given: Mapping[str, Any], answers: Answers, options: TableOptions, roles: list[FileRole]
) -> Dataset:
    tables: dict[str, Any] = {}
    for name in TABLES:
        if name not in given:
            continue
        if not _is_table(given[name]):
            tables[name] = given[name]
            continue
        roles.append(_role(given[name], name, name, answers))
        tables[name] = read_table_file(name, roles[-1].source, options)
    return Dataset(**{name: table for name, table in tables.items() if table is not None})


def _systems(outputs: Any, kind: str, answers: Answers, roles: list[FileRole]) -> dict[str, Any]:
    # A mapping of columns, or of ids to flags or scores, is a table; one of names holds systems.
    several = isinstance(outputs, Mapping) and not all(
        isinstance(one, Sequence | int | float) and not isinstance(one, str)
        for one in outputs.values()
    )
    named = dict(outputs) if several else {"audited": outputs}
    made: dict[str, Any] = {}
    for name, value in named.items():
        if not _is_table(value):
            made[name] = value
            if kind == "decisions" and isroutine(value):
                least = 0.5 if answers.threshold is None else answers.threshold
                made[name] = OwnModerator(value, name, least, answers.yes_values)
            continue
        if isinstance(value, list):
            replies: Any = value
            said = {"yes": answers.yes_values}
            made[name] = RecordedDecisions(replies, name, answers.threshold, {}, said)
            continue
        role = _role(value, kind, name, answers)
        roles.append(role)
        frame = role.path if role.frame is None else role.frame
        renamed = dict(role.columns) if role.renamed else {}
        column, values = role.systems
        for one in values or ("",):
            own = {"where": {column: one}} if column else {"items": [one]} if one else {}
            reading = {**role.reading, **own}
            if kind == "recommendations":
                made[one or name] = RecordedRecommendations(frame, one or name, renamed, reading)
            else:
                limit = answers.threshold if role.is_scored else None
                made[one or name] = RecordedDecisions(frame, one or name, limit, renamed, reading)
    return made


def _metrics(data: Dataset, systems: Mapping[str, Any]) -> list[dict[str, Any]]:
    if data.texts is not None:
        recorded = [one for one in systems.values() if isinstance(one, RecordedDecisions)]
        scores = any(one.decisions.lacks_decisions for one in recorded)
        median = [{"name": "median-score"}] if scores else []
        return [*median, {"name": "false-positive-rate"}, {"name": "undecided-share"}]
    longest = [
        int(one.lists.lengths.max()) for one in systems.values()
        if isinstance(one, RecordedRecommendations)
    ]  # fmt: skip
    k = min([_LENGTH, *longest])
    if data.labels is None:
        return [{"name": "coverage", "k": k}, {"name": "gini", "k": k}]
    shown = [{"name": "share-gap", "k": k}]
    return [*shown, {"name": "ndcg", "k": k}] if data.test is not None else shown
