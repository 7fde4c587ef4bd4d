"""Texts on their way into a project: columns, topics, and what is covered in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ombud.app.settings import ProjectSettings
from ombud.data.faults import first_rows, need_columns, readable
from ombud.data.frames import open_frame
from ombud.errors import DataError
from ombud.taxonomy import load_terms
from ombud.taxonomy.dictionary import Dictionary, dictionary_names, load_dictionary, read_dictionary
from ombud.taxonomy.terms import Term, read_terms
from ombud.text.matching import TermMatcher

LONGEST_TEXT = 100_000
"""Characters of a text; longer ones are cut into paragraphs before they are annotated."""

# The two worst severities of a dictionary are covered as slurs are.
_COVERED = 2
_PLAIN = (str, int, float, bool, type(None))


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text with its id, its known topics, and every other column."""

    name: str
    text: str
    topics: tuple[str, ...]
    about: dict[str, Any]


def split_topics(value: Any) -> tuple[str, ...]:
    """Return topics of a cell: a list, or words parted by ``|``.

    Examples
    --------
    >>> split_topics("age|sex"), split_topics(["age"]), split_topics(None)
    (('age', 'sex'), ('age',), ())
    """
    if value is None:
        return ()
    parts = value.split("|") if isinstance(value, str) else list(value)
    return tuple(dict.fromkeys(part.strip() for part in parts if part and part.strip()))


def read_texts(frame: Any, settings: ProjectSettings, *, source: str = "") -> list[TextRow]:
    """Return the texts of a file or frame, or all their faults in one error."""
    lazy, name = open_frame(frame, source)
    with readable(name):
        table: pl.DataFrame = lazy.collect(backend="polars").to_native()
    need_columns(name, {"text": ""}, table.columns)
    known = {topic.id for topic in settings.topics}
    faults: dict[str, list[int]] = {}
    rows: list[TextRow] = []
    seen: set[str] = set()
    for number, row in enumerate(table.iter_rows(named=True), start=1):
        text, given = row.pop("text"), row.pop("id", number)
        id = "" if given is None else str(given)
        topics = split_topics(row.pop("topics", None))
        strange = [topic for topic in topics if topic not in known]
        problems = {
            "the text is missing or empty": not isinstance(text, str) or not text.strip(),
            f"the text has more than {LONGEST_TEXT:,} characters": isinstance(text, str)
            and len(text) > LONGEST_TEXT,
            "the id is empty": not id,
            "the id stands already above": id in seen,
            f"topics that the project does not have ({', '.join(strange[:3])})": bool(strange),
        }
        for problem, found_it in problems.items():
            if found_it:
                faults.setdefault(problem, []).append(number)
        seen.add(id)
        rows.append(TextRow(id, text or "", topics, {k: _plain(v) for k, v in row.items()}))
    if not rows:
        raise DataError(name, ["the table has no rows"])
    if faults:
        raise DataError(name, [f"{what}: {first_rows(at, len(at))}" for what, at in faults.items()])
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, float) and value != value:
        return None
    return value if isinstance(value, _PLAIN) else str(value)


def spans_of(texts: Sequence[str], settings: ProjectSettings) -> list[list[tuple[int, int]]]:
    """Return where each text holds a slur of the project's term lists."""
    spans: list[list[tuple[int, int]]] = [[] for _ in texts]
    if settings.mask == "nothing":
        return spans
    terms = {term.text for term in _terms(settings.mask_terms) if term.kind == "slur"}
    for name in settings.dictionary:
        if (words := _dictionary(name)) is not None:
            worst = set(words.scale[:_COVERED])
            terms |= {term.text for term in words.terms if term.severity in worst}
    if not terms or not texts:
        return spans
    matches = TermMatcher(sorted(terms), suffixes=("", "s", "es")).match(texts, spans=True)
    assert matches.start is not None and matches.end is not None
    for text, start, end in zip(
        matches.text_index.tolist(), matches.start.tolist(), matches.end.tolist(), strict=True
    ):
        if (start, end) not in spans[text]:
            spans[text].append((start, end))
    return spans


def explicit_of(texts: Sequence[str], settings: ProjectSettings) -> list[int | None]:
    """Return whether any term of the project's dictionary stands in each text; None without one."""
    found_terms: set[str] = set()
    for name in settings.dictionary:
        words = _dictionary(name)
        listed = _terms([name]) if words is None else words.terms
        found_terms |= {term.text for term in listed}
    terms = sorted(found_terms)
    if not terms:
        return [None] * len(texts)
    found = set(TermMatcher(terms, suffixes=("", "s", "es")).match(texts).text_index.tolist())
    return [int(at in found) for at in range(len(texts))]


def _dictionary(name: str) -> Dictionary | None:
    """Return a dictionary of topics and severities, or None where the name is of a plain list."""
    if Path(name).suffix == ".csv":
        try:
            return read_dictionary(name)
        except DataError:
            return None  # a plain list of terms has other columns; its own reader tells its faults
    return load_dictionary(name) if name in dictionary_names() else None


def _terms(names: Sequence[str]) -> list[Term]:
    """Return the terms of shipped lists, and of files of one's own."""
    return [
        term
        for name in names
        for term in (read_terms(name) if Path(name).suffix == ".csv" else load_terms(name)).terms
    ]
