"""Names of creators as they are compared: variants, and names that name nobody.

Two names meet when they share a *key*. A key has no punctuation and no case, Unicode form NFKC,
single spaces, no life dates and no explanation in brackets. "Last, First" gives both orders (in
"Mao, Zedong" the direct order is the one with the comma taken out); a name without a comma gives
itself alone. Initials count as written apart and as one word; titles before a name do not count.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import polars as pl

from ombud.errors import DataError
from ombud.files import read_plain

_YEAR = r"\d{3,4}\??"
_ABOUT = r"(?:(?:b|d|ca|c|fl|active|born|died|approximately|circa|geb|gest)\b\.?\s*)"
_DATES = (
    rf"{_ABOUT}*\b{_YEAR}\s*(?:/\d{{1,4}}\s*)?[-\u2010-\u2015]\s*{_ABOUT}*(?:\d{{2,4}}\??)?"
    rf"|[-\u2010-\u2015]\s*{_YEAR}"
    rf"|\b(?:b|d|fl|born|died|active|ca|geb|gest)\b\.?\s*{_YEAR}"
    r"|(?:active|fl\.?)?\s*\b\d{1,2}(?:st|nd|rd|th)\s+cent(?:ury|\.)?"
    rf"|,\s*{_YEAR}\s*\.?\s*$"
)
# What the Library of Congress adds to old names.
_REMARK = r"\[?\b(?:from old catalog|supposed author)\b\]?|\[?\bpseud\b\.?\]?"
_BEFORE = r"^(?:(?:dr|prof|professor|sir|dame|mrs|mr|ms|miss|rev)\.? +)+"
_SUFFIX = r",\s*(jr|sr|ii|iii|iv)\s*$"
_TITLE = r",\s*(?:m d|md|ph d|phd|esq|dr|prof|sir|dame|mrs|mr|ms|lady|lord|rev)\s*$"


def _spaced(column: pl.Expr) -> pl.Expr:
    return column.str.replace_all(r"\s+", " ").str.strip_chars()


def name_keys(names: pl.Expr, *, fold_marks: bool = False) -> pl.Expr:
    """Return the list of keys of each name; an empty list where the text holds no letters.

    `fold_marks` takes off accents, so that "Garcia" meets "García". Off by default: it joins
    different names too.
    """
    text = names.str.normalize("NFKD" if fold_marks else "NFKC").str.to_lowercase()
    text = text.str.replace_all("ß", "ss", literal=True)
    if fold_marks:
        text = text.str.replace_all(r"\p{M}+", "")
    text = text.str.replace_all(r"\([^()]*\)", " ").str.replace_all(_DATES, " ")
    text = text.str.replace_all(_REMARK, " ")
    text = text.str.replace_all("['\u2018\u2019\u02b9-\u02bf`]", "")
    text = _spaced(text.str.replace_all(r"[^\p{L}\p{M}\p{N},]+", " "))
    text = text.str.replace_all(r"^[ ,]+|[ ,]+$", "").str.replace(_TITLE, "")
    text = text.str.replace(_BEFORE, "")
    suffix = text.str.extract(_SUFFIX, 1).fill_null("")
    text = text.str.replace(_SUFFIX, "")
    head = text.str.extract(r"^([^,]*)", 1).fill_null("")
    rest = text.str.extract(r",(.*)$", 1).fill_null("").str.replace_all(",", " ", literal=True)
    direct = _spaced(rest + " " + head + " " + suffix)
    inverted = _spaced(head + " " + rest + " " + suffix)
    ways = (direct, inverted, _initials(direct), _initials(inverted))
    both = pl.concat_list(*ways).list.unique(maintain_order=True)
    kept: pl.Expr = both.list.eval(pl.element().filter(pl.element().str.contains(r"\p{L}|\p{N}")))
    return kept


def _initials(text: pl.Expr) -> pl.Expr:
    """Return names with initials in one word: "j r r tolkien" as "jrr tolkien"."""
    first = text.str.replace_all(r"\b(\p{L}) (\p{L})\b", "$1\u00b7$2")
    more = first.str.replace_all(r"(\u00b7\p{L}) (\p{L})\b", "$1\u00b7$2")
    return more.str.replace_all("\u00b7", "", literal=True)


def name_variants(name: str, *, fold_marks: bool = False) -> list[str]:
    """Return the keys of one name.

    Examples
    --------
    >>> name_variants("Orwell, George, 1903-1950.")
    ['george orwell', 'orwell george']
    >>> name_variants("J.K. Rowling"), name_variants("JK Rowling")
    (['j k rowling', 'jk rowling'], ['jk rowling'])
    """
    frame = pl.DataFrame({"name": [name]})
    keys: list[str] = (
        frame.select(name_keys(pl.col("name"), fold_marks=fold_marks)).item().to_list()
    )
    return keys


@cache
def _shipped() -> frozenset[str]:
    text = files("ombud.link.files").joinpath("placeholders.txt").read_text(encoding="utf-8")
    return frozenset(_words(text))


def _words(text: str) -> list[str]:
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [key for line in lines if line for key in name_variants(line)]


def placeholders(more: str | Path | None = None) -> frozenset[str]:
    """Return the keys of names that name nobody: the shipped ones, and those of a file.

    The file is text, one name a line, ``#`` before remarks.

    Examples
    --------
    >>> "various" in placeholders(), "anonymous" in placeholders()
    (True, True)
    """
    if more is None:
        return _shipped()
    path = Path(more)
    try:
        text = read_plain(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(path.name, [f"it cannot be read as a list of names: {error}"]) from None
    return _shipped() | frozenset(_words(text))


def is_placeholder(key: pl.Expr, known: frozenset[str]) -> pl.Expr:
    """Return whether a key names nobody: one letter, a number, or a known placeholder."""
    short = key.str.replace_all(r"\P{L}", "").str.len_chars() < 2
    return short | key.is_in(sorted(known))
