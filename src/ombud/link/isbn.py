"""ISBNs out of whatever text stands in the field, as whole numbers that sort and join fast.

A *key* is one 64-bit number for one book number. The 10-digit and the 13-digit form of a book have
the same key: the 13 digits. A 10-digit number whose check digit is wrong has no 13-digit form; its
key is negative, so that it never meets another number by accident. Check digits are not demanded,
only counted.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

_GAP = r"[ \-\u2010-\u2015]{0,2}"
# With gaps inside, 13 digits must begin like an ISBN-13: "0415123456 129" is an ISBN and a page.
_ISBN = re.compile(
    rf"(?<![0-9])(?:97[89]{_GAP}(?:[0-9]{_GAP}){{9}}[0-9](?![0-9])"
    rf"|[0-9]{{13}}(?![0-9])"
    rf"|(?:[0-9]{_GAP}){{9}}[0-9Xx](?![0-9Xx]))"
)
# A letter O that was typed, or read by a scanner, in the place of a zero.
_LETTER_O = re.compile(r"(?<![A-Za-z])[Oo](?=[ -]?\d)|(?<=\d)[Oo](?=[ -]?[\dX])")
_NOT_DIGIT = re.compile(r"[^0-9X]")
_SET = re.compile(r"\bset\b", re.IGNORECASE)
_PLAIN = r"^(?:[0-9]{9}[0-9X]|97[89][0-9]{10})$"
_PREFIX = 978_000_000_000

_SCHEMA = {
    "row": pl.UInt32,
    "isbn": pl.Int64,
    "form": pl.UInt8,
    "valid": pl.Boolean,
    "set": pl.Boolean,
}


def _check_10(core: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the check digit (10 is X) of nine digits."""
    total = np.zeros_like(core)
    left = core.copy()
    for weight in range(2, 11):
        total += (left % 10) * weight
        left //= 10
    return (-total) % 11


def _check_13(core: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the check digit of twelve digits."""
    total = np.zeros_like(core)
    left = core.copy()
    for place in range(12):
        total += (left % 10) * (3 if place % 2 == 0 else 1)
        left //= 10
    return (-total) % 10


def isbn_keys(clean: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return keys, and whether check digits are right, of texts of 10 or 13 digits and no more.

    They are such as ``"080442957X"`` or ``"9780804429573"``; anything else is a fault of the
    caller.
    """
    lengths = clean.str.len_bytes().to_numpy()
    keys = np.zeros(len(clean), dtype=np.int64)
    valid = np.zeros(len(clean), dtype=bool)
    long = lengths == 13
    if long.any():
        whole = clean.filter(pl.Series(long)).cast(pl.Int64).to_numpy()
        keys[long] = whole
        valid[long] = _check_13(whole // 10) == whole % 10
    short = ~long
    if short.any():
        texts = clean.filter(pl.Series(short))
        core = texts.str.slice(0, 9).cast(pl.Int64).to_numpy()
        last = texts.str.slice(9, 1).str.replace("X", "10", literal=True)
        found = last.cast(pl.Int64).to_numpy()
        right = _check_10(core) == found
        twelve = core + _PREFIX
        keys[short] = np.where(right, twelve * 10 + _check_13(twelve), -(core * 11 + found) - 1)
        valid[short] = right
    return keys, valid


def extract_isbns(texts: pl.Series) -> pl.DataFrame:
    """Return every ISBN in some texts: `row`, `isbn` (a key), `form`, `valid`, `set`.

    Prices and other words around a number are ignored; hyphens and spaces inside it too. `set` says
    that the words after the number call it the number of a set.

    Examples
    --------
    >>> found = extract_isbns(pl.Series(["0-8044-2957-X (pbk.) : $12.95", "9780804429573 (set)"]))
    >>> found.rows()
    [(0, 9780804429573, 10, True, False), (1, 9780804429573, 13, True, True)]
    """
    numbered = pl.DataFrame({"text": texts.cast(pl.String)}).with_row_index("row")
    tight = pl.col("text").str.replace_all(r"[ \-]", "").str.to_uppercase()
    # Digits of other widths, and marks that combine with digits, are digits.
    plain_text = pl.col("text").str.normalize("NFKC").str.replace_all(r"\p{Mn}+", "")
    numbered = numbered.drop_nulls().with_columns(text=plain_text)
    numbered = numbered.with_columns(tight=tight)
    plain = numbered.filter(pl.col("tight").str.contains(_PLAIN))
    rest = numbered.filter(~pl.col("tight").str.contains(_PLAIN))
    rows: list[int] = plain["row"].to_list()
    clean: list[str] = plain["tight"].to_list()
    sets: list[bool] = [False] * len(rows)
    for row, text in zip(rest["row"], rest["text"], strict=True):
        text = _LETTER_O.sub("0", text)
        matches = list(_ISBN.finditer(text))
        for place, match in enumerate(matches):
            end = matches[place + 1].start() if place + 1 < len(matches) else len(text)
            rows.append(row)
            clean.append(_NOT_DIGIT.sub("", match.group().upper()))
            sets.append(_SET.search(text, match.end(), end) is not None)
    if not rows:
        return pl.DataFrame(schema=_SCHEMA)
    column = pl.Series(clean, dtype=pl.String)
    keys, valid = isbn_keys(column)
    columns: dict[str, Any] = {
        "row": rows,
        "isbn": keys,
        "form": column.str.len_bytes(),
        "valid": valid,
        "set": sets,
    }
    return pl.DataFrame(columns, schema=_SCHEMA).sort("row", maintain_order=True)


def isbn_key(text: str) -> int | None:
    """Return the key of the first ISBN in a text, or None.

    Examples
    --------
    >>> isbn_key("0-8044-2957-X") == isbn_key("978-0-8044-2957-3")
    True
    >>> isbn_key("B00005MF9C") is None
    True
    """
    found = extract_isbns(pl.Series([text], dtype=pl.String))
    return int(found["isbn"][0]) if found.height else None


def isbn_text(key: int) -> str:
    """Return a key as digits: 13, or 10 where the number has no 13-digit form.

    Examples
    --------
    >>> isbn_text(9780804429573), isbn_text(isbn_key("0804429571"))
    ('9780804429573', '0804429571')
    """
    if key >= 0:
        return f"{key:013d}"
    core, last = divmod(-key - 1, 11)
    return f"{core:09d}{'X' if last == 10 else last}"


def isbn_texts(keys: pl.Expr) -> pl.Expr:
    """Return the texts of a column of keys."""
    inverse = -keys - 1
    last = (inverse % 11).cast(pl.String).replace("10", "X")
    short = (inverse // 11).cast(pl.String).str.zfill(9) + last
    return pl.when(keys >= 0).then(keys.cast(pl.String).str.zfill(13)).otherwise(short)
