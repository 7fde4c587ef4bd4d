"""Published lists of films and series by identity, joined to texts by title and year."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import numpy as np
import polars as pl

from ombud.data.exclusions import Exclusion
from ombud.data.frames import open_frame
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.sources.labelled import read_csv
from ombud.errors import DataError
from ombud.taxonomy.terms import ATTRIBUTES

_KIND = r"\s*\((?:[^()]*\b(?:film|movie|series|serial|season|miniseries|tv|show)\b[^()]*|\d{4})\)$"
_TITLES = ("title", "name", "movie", "show", "primarytitle")
_YEARS = ("year", "release_year", "start_year", "release_date", "first_air_date", "date")
_GROUPS = {
    "nonwhite": "non-white",
    "nonchristian": "non-christian",
    "lgbtq": "lgbt",
    "lgbt-related": "lgbt",
    "man": "men",
    "male": "men",
    "woman": "women",
    "female": "women",
    "disabled": "disability",
}


def title_key(title: str) -> str:
    """Return a title without capitals, accents, punctuation and what tells pages apart.

    Examples
    --------
    >>> [title_key(title) for title in ("Amélie (2001 film)", "Matrix, The", "Fast & Furious")]
    ['amelie', 'the matrix', 'fast and furious']
    """
    text = re.sub(_KIND, "", title.strip(), flags=re.IGNORECASE)
    text = re.sub(r"^(.*), (the|an?)$", r"\2 \1", text, flags=re.IGNORECASE)
    folded = unicodedata.normalize("NFKD", text.replace("&", " and ")).casefold()
    plain = "".join(c for c in folded if not unicodedata.combining(c) and c not in "'\u2019")
    return " ".join(re.sub(r"[\W_]+", " ", plain).split())


def year_in(*cells: str | None) -> int | None:
    """Return the first year from 1870 to 2099 that some cells name; None where there is none.

    Examples
    --------
    >>> year_in("1999.0"), year_in("2001\u20132004"), year_in("", "Heat (1995 film)"), year_in("x")
    (1999, 2001, 1995, None)
    """
    for cell in cells:
        if found := re.search(r"(?<!\d)(18[7-9]\d|19\d\d|20\d\d)(?!\d)", cell or ""):
            return int(found[1])
    return None


def read_identity_lists(path: str | Path) -> pl.DataFrame:
    """Return published lists as rows of title, year, group and attribute.

    Parameters
    ----------
    path
        A folder of CSV files, ``<category>/<group>/<name>.csv`` as the speech-suppression paper
        publishes them (or ``<group>/<name>.csv``), with a column of titles and perhaps one of
        years; or one table with `title`, `group` and perhaps `year` and `attribute`.
    """
    given = Path(path)
    if given.is_file():
        table = _texts(open_frame(given)[0].collect(backend="polars").to_native())
        if "group" not in table.columns:
            raise DataError(given.name, ["column 'group' is missing: one table states the groups"])
        parts = [_list(table, given.name, None, None)]
    else:
        files = sorted(given.rglob("*.csv")) if given.is_dir() else []
        if not files:
            raise DataError(str(given), ["it is neither a table nor a folder with CSV files"])
        parts = []
        for file in files:
            folders = file.relative_to(given).parts[:-1]
            if not folders:
                fault = "it names no group: expected <category>/<group>/<name>.csv"
                raise DataError(file.name, [fault])
            group = _group(folders[1] if len(folders) > 1 else folders[0])
            parts.append(_list(read_csv(file, ()), file.name, group, folders[0]))
    return pl.concat(parts).unique(maintain_order=True)


def _texts(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(pl.all().cast(pl.String, strict=False))


def _group(name: str) -> str:
    plain = re.sub(r"[\s_]+", "-", name.strip().lower())
    return _GROUPS.get(plain, plain)


def _list(table: pl.DataFrame, name: str, group: str | None, attribute: str | None) -> pl.DataFrame:
    by_name = {column.strip().lower(): column for column in table.columns}
    titles = next((by_name[c] for c in _TITLES if c in by_name), None)
    years = next((by_name[c] for c in _YEARS if c in by_name), None)
    if titles is None:
        fault = f"none of its columns is a title; expected one of {', '.join(_TITLES)}"
        raise DataError(name, [fault])
    rows = []
    groups = [group] * table.height if group else table["group"].to_list()
    attributes = [attribute] * table.height
    if not group and "attribute" in table.columns:
        attributes = table["attribute"].to_list()
    dates = [None] * table.height if years is None else table[years].to_list()
    for title, date, one, of in zip(table[titles], dates, groups, attributes, strict=True):
        if title and title.strip() and one and one.strip():
            known = _group(one)
            of = ATTRIBUTES.get(known, (of or known).strip())
            rows.append((title_key(title), year_in(date, title), known, of))
    schema = {"key": pl.String, "year": pl.Int64, "group": pl.String, "attribute": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def groups_by_title(
    ids: pl.Series, titles: list[str], years: list[int | None], lists: pl.DataFrame
) -> tuple[Grouping, list[Exclusion]]:
    """Return the groups of texts whose title and year a list has, and what matches nothing.

    An entry without a year stands for a title that occurs with one year alone.

    Parameters
    ----------
    ids
        The ids of the texts.
    titles, years
        The title and year of the work that each text is about.
    lists
        As `read_identity_lists` returns them.
    """
    keys = [title_key(title) for title in titles]
    rows: dict[tuple[str, int | None], list[int]] = {}
    known: dict[str, set[int | None]] = {}
    for row, (key, year) in enumerate(zip(keys, years, strict=True)):
        rows.setdefault((key, year), []).append(row)
        known.setdefault(key, set()).add(year)
    kinds = dict.fromkeys(lists.select("group", "attribute").rows())
    names = tuple(dict.fromkeys(group for group, _ in kinds))
    members = np.zeros((len(keys), len(names)), dtype=bool)
    absent = elsewhere = unclear = 0
    for key, year, group, _ in lists.rows():
        there = known.get(key, set())
        if year is None and len(there) == 1:
            found = rows[key, next(iter(there))]
        else:
            found = rows.get((key, year), []) if year is not None else []
            # A text without a year is of the only work of its title.
            if not found and there == {None}:
                found = rows[key, None]
        if found:
            members[found, names.index(group)] = True
        elif not there:
            absent += 1
        elif year is None:
            unclear += 1
        else:
            elsewhere += 1
    total = lists.height
    reasons = (
        (absent, "no text has their title"),
        (elsewhere, "texts with their title are of another year"),
        (unclear, "they state no year, and texts with their title are of several years"),
    )
    missed = [
        Exclusion("identity lists", "entries", count, reason, total)
        for count, reason in reasons
        if count
    ]
    if not members.any():
        raise DataError("identity lists", [f"none of {total:,} entries has the title of a text"])
    attributes = tuple(next(a for g, a in kinds if g == name) for name in names)
    return Grouping(Vocabulary(ids.to_numpy()), names, members, attributes), missed
