"""Vote totals of Does the Dog Die, from the published dictionary or from answers of the web API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.restricted_pickle import load_dictionary
from ombud.data.sources.ddd_answers import Answer
from ombud.errors import DataError
from ombud.taxonomy import Taxonomy, load_taxonomy

_MOST_WARNINGS = 10_000
_MOST_PAIRS = 200_000_000
_MOST_VOTES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class Votes:
    """Votes on items x labels, dense, with what was excluded."""

    items: NDArray[np.int64]  # Sorted ids of the items that were looked up, with votes or without
    names: tuple[str, ...]  # Ids of the labels, in the order of the taxonomy
    # Vote counts, items x labels.
    yes: NDArray[np.int32]
    no: NDArray[np.int32]
    exclusions: tuple[Exclusion, ...] = ()  # What was excluded


def _taxonomy() -> Taxonomy:
    return load_taxonomy("warnings-ddd@1")


class _Topics:
    """Finds the label of a topic, and counts what is refused or unknown."""

    def __init__(self) -> None:
        self._taxonomy = _taxonomy()
        self.places = {name: index for index, name in enumerate(self._taxonomy.ids)}
        self.refused_rows = 0
        self.refused: set[str] = set()
        self.unknown: Counter[str] = Counter()

    def place(self, name: str, number: int | None = None, rows: int = 1) -> int | None:
        """Return the column of a topic, or None after counting its rows as left out."""
        spellings = [name] if number is None else [name, f"topic {number}"]
        if any(self._taxonomy.is_refused(spelling) for spelling in spellings):
            self.refused_rows += rows
            self.refused.add(name)
            return None
        for spelling in reversed(spellings):
            result = self._taxonomy.resolve(spelling)
            if result is not None and result in self.places:
                return self.places[result]
        self.unknown[name] += rows
        return None

    def exclusions(self) -> tuple[Exclusion, ...]:
        result = []
        if self.refused:
            reason = f"{len(self.refused)} labels that ombud refuses to store"
            result.append(Exclusion("votes", "rows", self.refused_rows, reason))
        if self.unknown:
            names = ", ".join(sorted(self.unknown)[:5])
            more = ", ..." if len(self.unknown) > 5 else ""
            reason = f"{len(self.unknown)} topics are not in {self._taxonomy.key}: {names}{more}"
            result.append(Exclusion("votes", "rows", sum(self.unknown.values()), reason))
        return tuple(result)


def read_dictionary(path: str | Path) -> Votes:
    """Read the published dictionary ``{warning: {movieId: {"yesSum": n, "noSum": n}}}``.

    The file is a pickle; it is read by `ombud.data.restricted_pickle`, which runs nothing.

    It was published as ``ddd_dict.pkl``.
    """
    name = Path(path).name
    content = load_dictionary(path)
    faults = _shape_faults(content)
    if faults:
        raise DataError(name, faults)
    topics = _Topics()
    columns: list[tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    while content:
        warning, votes = content.popitem()  # freed as it is converted
        index = topics.place(warning, rows=len(votes))
        if index is not None:
            columns.append((index, *_columns_of(votes, warning, faults)))
        del votes
    if faults:
        raise DataError(name, faults[:20])
    if not columns:
        raise DataError(name, [f"none of its warnings is in {_taxonomy().key}"])
    twice = [index for index, n in Counter(column[0] for column in columns).items() if n > 1]
    if twice:
        names = [_taxonomy().ids[index] for index in twice]
        raise DataError(name, [f"two of its warnings are the label {label!r}" for label in names])
    items = np.unique(np.concatenate([column[1] for column in columns]))
    yes, no = (np.zeros((len(items), len(topics.places)), dtype=np.int32) for _ in range(2))
    for index, movies, for_, against in columns:
        rows = np.searchsorted(items, movies)
        yes[rows, index], no[rows, index] = for_, against
    return Votes(items, _taxonomy().ids, yes, no, topics.exclusions())


def _shape_faults(content: Mapping[Any, Any]) -> list[str]:
    """Check the outer two levels, and count before anything is written out."""
    if len(content) > _MOST_WARNINGS:
        return [f"it has {len(content):,} warnings; at most {_MOST_WARNINGS:,} are read"]
    wrong = [key for key, value in content.items() if not _is_votes(key, value)]
    if wrong or not content:
        form = '{warning: {movieId: {"yesSum": number, "noSum": number}}}'
        return [f"{len(wrong)} of {len(content)} entries are not of the form {form}"]
    pairs = sum(len(value) for value in content.values())
    if pairs > _MOST_PAIRS:
        return [f"it has {pairs:,} pairs; at most {_MOST_PAIRS:,} are read"]
    return []


def _is_votes(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, dict)


def _columns_of(
    votes: Mapping[Any, Any], warning: str, faults: list[str]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    try:
        movies = np.fromiter((int(key) for key in votes), dtype=np.int64, count=len(votes))
        counts = [
            np.fromiter((pair[key] for pair in votes.values()), dtype=np.int64, count=len(votes))
            for key in ("yesSum", "noSum")
        ]
    except (ValueError, TypeError, KeyError, IndexError, OverflowError) as error:
        faults.append(f"warning {warning!r:.80}: {type(error).__name__} {error}")
        empty = np.empty(0, dtype=np.int64)
        return empty, empty, empty
    for column in counts:
        if len(column) and (column.min() < 0 or column.max() > _MOST_VOTES):
            faults.append(f"warning {warning!r:.80}: votes must be 0 or more")
    if len(np.unique(movies)) < len(movies):
        faults.append(f"warning {warning!r:.80}: a movie is in it twice (as number and as text)")
    return movies, counts[0], counts[1]


def match_answers(answers: Iterable[Answer], links: pl.DataFrame) -> Votes:
    """Give each answer to the movie with the same IMDb id, or else the same TMDB id.

    There is one answer for each title. `links` has ``item``, ``imdb`` and ``tmdb``, as
    `ombud.data.sources.movielens.read_links` returns.
    """
    by_imdb = {i: item for item, i in links.select("item", "imdb").drop_nulls().iter_rows()}
    by_tmdb = {t: item for item, t in links.select("item", "tmdb").drop_nulls().iter_rows()}
    topics = _Topics()
    result: dict[int, dict[int, tuple[int, int]]] = {}
    unmatched = again = 0
    for answer in answers:
        item = by_imdb.get(answer.imdb) if answer.imdb is not None else None
        if item is None and answer.tmdb is not None:
            item = by_tmdb.get(answer.tmdb)
        if item is None:
            unmatched += 1
        elif item in result:
            again += 1
        else:
            pairs = result.setdefault(item, {})
            for code, name, yes, no in answer.topics:
                index = topics.place(name, code)
                if index is not None:
                    pairs[index] = (yes, no)
    if not result:
        fault = f"none of {unmatched} answers has an IMDb or TMDB id of the links"
        raise DataError("answers", [fault])
    items = np.array(sorted(result), dtype=np.int64)
    ayes, noes = (np.zeros((len(items), len(topics.places)), dtype=np.int32) for _ in range(2))
    for row, item in enumerate(items.tolist()):
        for index, pair in result[item].items():
            ayes[row, index], noes[row, index] = pair
    dropped = list(topics.exclusions())
    for count, reason in (
        (unmatched, "no movie has their IMDb or TMDB id"),
        (again, "an earlier answer is about the same movie"),
    ):
        if count:
            total = len(result) + unmatched + again
            dropped.append(Exclusion("votes", "answers", count, reason, total))
    return Votes(items, _taxonomy().ids, ayes, noes, tuple(dropped))
