"""Where people rate books: BookCrossing, Amazon, GoodReads, goodbooks-10k."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from ombud.errors import DataError
from ombud.link._streams import UNPACKING, lines_in_blocks, open_bytes
from ombud.link.problems import Problems
from ombud.link.readers.base import (
    AUTHORS,
    BOOKS,
    RATINGS,
    Batch,
    ReaderOptions,
    conformed,
    decode_lines,
)

_TEXTS = pl.List(pl.String)
_NONE = pl.lit([], dtype=_TEXTS)


def find_file(folder: Path, *patterns: str, needed: bool = False) -> Path | None:
    """Return the first file of a folder that fits a pattern, or the file itself where it is one."""
    if folder.is_file():
        return folder if any(folder.match(pattern) for pattern in patterns) else None
    if not folder.is_dir():
        raise DataError(folder.name, [f"there is no file or folder {folder}"])
    for pattern in patterns:
        found = sorted(folder.glob(pattern))
        if found:
            return found[0]
    if needed:
        raise DataError(folder.name, [f"there is no {' or '.join(patterns)} in {folder}"])
    return None


def _ratings(frame: pl.DataFrame) -> pl.DataFrame:
    missing = [pl.lit(None).alias(c) for c in RATINGS if c not in frame.columns]
    return conformed(frame.with_columns(missing), RATINGS)


def _read_text(path: Path, coding: str) -> bytes:
    """Return a whole file as UTF-8."""
    try:
        with open_bytes(path) as stream:
            data = stream.read()
    except UNPACKING as error:
        raise DataError(path.name, [f"it cannot be unpacked: {error}"]) from None
    return data if coding == "utf-8" else data.decode(coding).encode("utf-8")


def _rows(data: bytes, separator: str, source: str, problems: Problems) -> list[list[str]]:
    """Return the rows of a CSV text; rows of another width than the first are counted."""
    text = data.decode("utf-8", "replace")
    escape = "\\" if separator == ";" else None
    reader = csv.reader(io.StringIO(text), delimiter=separator, escapechar=escape)
    rows: list[list[str]] = []
    try:
        for row in reader:
            if rows and len(row) != len(rows[0]):
                problems.add(source, "a row with too many or too few columns", "; ".join(row)[:60])
                continue
            rows.append(row)
    except csv.Error as error:
        problems.add(source, "the rest of the file cannot be read as rows", str(error))
    return rows


def read_bookcrossing(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """BookCrossing: the Latin-1 files with semicolons, or the re-release with commas."""
    ratings = find_file(path, "BX-Book-Ratings.csv*", "BX-Ratings.csv*", "*atings*.csv*")
    books = find_file(path, "BX-Books.csv*", "BX_Books.csv*", "*ooks*.csv*")
    if ratings is None and books is None:
        raise DataError(
            path.name, ["there is neither BX-Book-Ratings.csv nor BX-Ratings.csv in it"]
        )
    if books is not None and books != ratings and options.platform_authors:
        yield Batch("books", "bookcrossing", _bx_books(books, problems))
    if ratings is not None:
        for frame in _bx_ratings(ratings, problems):
            yield Batch("ratings", "bookcrossing", frame, scale=(1.0, 10.0))


def _bx_table(path: Path) -> tuple[bytes, str]:
    with open_bytes(path) as stream:
        head = stream.readline()
    original = head.count(b";") > head.count(b",")
    return _read_text(path, "latin-1" if original else "utf-8"), ";" if original else ","


def _bx_books(path: Path, problems: Problems) -> pl.DataFrame:
    data, separator = _bx_table(path)
    rows = _rows(data, separator, path.name, problems)
    header = [cell.strip().strip('"').lstrip("\ufeff") for cell in rows[0]] if rows else []
    if "ISBN" not in header or "Book-Author" not in header:
        fault = f"columns ISBN and Book-Author were expected; found {', '.join(header)}"
        raise DataError(path.name, [fault])
    isbn, author = header.index("ISBN"), header.index("Book-Author")
    frame = pl.DataFrame(
        {"key": [r[isbn] for r in rows[1:]], "name": [r[author] for r in rows[1:]]},
        schema={"key": pl.String, "name": pl.String},
    )
    table = frame.select(
        key="key",
        work=pl.lit(None, dtype=pl.String),
        isbns=pl.concat_list("key"),
        cancelled=_NONE,
        authors=_NONE,
        names=pl.concat_list("name"),
    )
    return conformed(table, BOOKS)


def _cells(lines: list[bytes], names: list[str], separator: str = ",") -> pl.DataFrame:
    """Return one row of texts a line; `more` has the cell after those that are expected, if any."""
    head = separator.join([*names, "more"]).encode()
    return pl.read_csv(
        io.BytesIO(b"\n".join([head, *lines])),
        separator=separator,
        infer_schema=False,
        truncate_ragged_lines=True,
        # Ids hold no separator, so that a quote is a slip and must not swallow lines.
        quote_char=None,
        encoding="utf8-lossy",
    )


def _bx_ratings(path: Path, problems: Problems) -> Iterator[pl.DataFrame]:
    header: list[str] = []
    separator = ","
    with open_bytes(path) as stream:
        for lines in lines_in_blocks(stream, path.name, problems):
            if not header:
                separator = ";" if lines[0].count(b";") > lines[0].count(b",") else ","
                header, lines = _bx_header(lines[0], separator, path.name), lines[1:]
            if separator == ";":
                # The first release is Latin-1.
                lines = [line.decode("latin-1").encode() for line in lines]
            yield _bx_block(_cells(lines, header, separator), path.name, problems)
    if not header:
        raise DataError(path.name, ["it cannot be read as ratings: there is no line in it"])


def _bx_header(line: bytes, separator: str, source: str) -> list[str]:
    text = line.decode("utf-8", "replace").lstrip("\ufeff")
    header = [cell.strip().strip('"') for cell in text.split(separator)]
    absent = {"User-ID", "ISBN", "Book-Rating"} - set(header)
    if absent:
        raise DataError(source, [f"column {c!r} is missing" for c in sorted(absent)])
    if len({*header, "more"}) <= len(header):
        raise DataError(source, ["two columns have the same name, or one is called 'more'"])
    return header


def _bx_block(frame: pl.DataFrame, source: str, problems: Problems) -> pl.DataFrame:
    whole = frame.filter(pl.col("more").is_null())
    reason = "a row with too many columns (left out)"
    problems.add(source, reason, count=frame.height - whole.height)
    cells = whole.select(user="User-ID", item="ISBN", rating="Book-Rating")
    # A pair of quotes around a cell is how the first release is written; any other is a slip.
    cells = cells.with_columns(
        pl.all().str.strip_chars().str.replace(r'^"(.*)"$', "${1}").str.strip_chars()
    )
    stray = pl.any_horizontal(pl.all().str.contains('"', literal=True).fill_null(False))
    slips = cells.filter(stray)
    problems.add(
        source, "a line with a stray quote (read without it)",
        ", ".join(slips["item"].drop_nulls().head(3)), count=slips.height,
    )  # fmt: skip
    cells = cells.with_columns(pl.all().str.replace_all(r'\\?"', "").str.strip_chars())
    cells = cells.with_columns(pl.col("rating").cast(pl.Float32, strict=False))
    usable = (
        pl.col("user").str.len_chars().gt(0)
        & pl.col("item").str.len_chars().gt(0)
        & pl.col("rating").is_between(0, 10)
    ).fill_null(False)
    kept = cells.filter(usable)
    reason = "a rating without user, book or a number from 0 to 10"
    problems.add(source, reason, count=cells.height - kept.height)
    return _ratings(kept.with_columns(rating=_zero_is_none()))


def _zero_is_none() -> pl.Expr:
    return pl.when(pl.col("rating") > 0).then(pl.col("rating"))


_ASIN = r"^[0-9B][0-9A-Z]{9}$"


def read_amazon(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """Amazon ratings: CSV without a header, ``user,asin,rating,timestamp`` (2018: item first)."""
    names: list[str] | None = None
    with open_bytes(path) as stream:
        for lines in lines_in_blocks(stream, path.name, problems):
            if names is None:
                names = _amazon_columns(lines, path.name, problems)
                if names[0] == "header":
                    names, lines = names[1:], lines[1:]
            frame = _cells(lines, names)
            long = frame["more"].count()
            problems.add(
                path.name, "a line with more than four cells (the rest is not used)", count=long
            )
            time = pl.col("time").cast(pl.Float64, strict=False)
            frame = frame.with_columns(
                pl.col("rating").cast(pl.Float32, strict=False),
                time=pl.when(time.is_finite()).then(time),
                said=pl.col("time"),
            )
            kept = frame.filter(
                pl.col("user").is_not_null()
                & pl.col("item").is_not_null()
                & pl.col("rating").is_between(1, 5)
            )
            timeless = kept.filter(pl.col("time").is_null() & pl.col("said").str.contains(r"\S"))
            problems.add(
                path.name, "a rating whose time cannot be read (used without one)",
                ", ".join(timeless["said"].head(3)), count=timeless.height,
            )  # fmt: skip
            gone = len(lines) - kept.height
            problems.add(path.name, "a line without user, item or a rating from 1 to 5", count=gone)
            yield Batch("ratings", "amazon", _ratings(kept), scale=(1.0, 5.0))


def _amazon_columns(lines: list[bytes], source: str, problems: Problems) -> list[str]:
    rows = [line.decode("utf-8", "replace").strip().split(",") for line in lines[:200]]
    if 2 * sum(len(row) == 4 for row in rows) < len(rows):
        raise DataError(source, ["four columns were expected: user,asin,rating,time"])
    first, second = (
        sum(len(row) > c and re.match(_ASIN, row[c]) is not None for row in rows) for c in (0, 1)
    )
    names = ["user", "item", "rating", "time"]
    if first > second:
        names = ["item", "user", "rating", "time"]
        problems.add(source, "read as item,user,rating,time: the first column holds the items")
    try:
        float(rows[0][2])
    except (IndexError, ValueError):
        return ["header", *names]
    return names


_GR_BOOK: dict[str, Any] = {
    "book_id": pl.String,
    "work_id": pl.String,
    "isbn": pl.String,
    "isbn13": pl.String,
    "asin": pl.String,
    "authors": pl.List(pl.Struct({"author_id": pl.String})),
}
_GR_RATING: dict[str, Any] = {
    "user_id": pl.String,
    "book_id": pl.String,
    "rating": pl.Float64,
    "date_added": pl.String,
}
_GR_TIME = "%a %b %d %H:%M:%S %z %Y"


def read_goodreads(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """GoodReads of UCSD: JSON lines of books, authors, interactions, or the CSV of the last."""
    authors = find_file(path, "goodreads_book_authors*.json*", "goodreads_authors*.json*")
    books = find_file(path, "goodreads_books*.json*")
    seen = find_file(path, "goodreads_interactions*.json*", "goodreads_interactions*.csv*")
    if not (authors or books or seen):
        raise DataError(path.name, ["there are no goodreads_*.json files (or .json.gz) in it"])
    for chosen, kind in ((authors, "*authors*"), (books, "books*"), (seen, "interactions*")):
        if chosen is not None:
            reason = f"not read beside {chosen.name}; a pattern reads all files"
            for other in sorted({*path.glob(f"goodreads_{kind}.*")} - {chosen}):
                problems.add(other.name, reason)
    if authors is not None and options.platform_authors:
        for frame in _decoded(authors, {"author_id": pl.String, "name": pl.String}, problems):
            people = frame.select(
                author="author_id", names=pl.concat_list("name"), ids=_NONE
            ).drop_nulls("author")
            yield Batch("authors", "goodreads", conformed(people, AUTHORS))
    if books is not None:
        for frame in _decoded(books, _GR_BOOK, problems):
            yield Batch("books", "goodreads", _gr_books(frame, options.platform_authors))
    if seen is not None and ".csv" in seen.name:
        yield from _gr_csv(seen, path, problems)
    elif seen is not None:
        for frame in _decoded(seen, _GR_RATING, problems):
            usable = _with_ids(frame, seen.name, problems)
            usable = _without(pl.col("rating").is_nan(), usable, seen.name, problems)
            time = pl.col("date_added").str.to_datetime(_GR_TIME, strict=False).dt.epoch("s")
            ratings = usable.rename({"user_id": "user", "book_id": "item"})
            ratings = ratings.with_columns(time=time)
            dated = pl.col("date_added").str.contains(r"\S") & pl.col("time").is_null()
            wrong = ratings.filter(dated)
            problems.add(
                seen.name, "an interaction whose date cannot be read (used without one)",
                ", ".join(wrong["date_added"].head(3)), count=wrong.height,
            )  # fmt: skip
            yield _gr_batch(ratings, seen.name, problems)


def _gr_batch(frame: pl.DataFrame, source: str, problems: Problems) -> Batch:
    """Return ratings from 1 to 5; 0 is none, and rows with any other number are left out."""
    rating = pl.col("rating")
    kept = frame.filter(rating.is_null() | rating.is_between(0, 5).fill_null(False))
    reason = "an interaction with a rating that is not from 0 to 5 (left out)"
    problems.add(source, reason, count=frame.height - kept.height)
    frame = kept.with_columns(rating=_zero_is_none())
    return Batch("ratings", "goodreads", _ratings(frame), scale=(1.0, 5.0), refers="goodreads")


def _decoded(path: Path, fields: dict[str, Any], problems: Problems) -> Iterator[pl.DataFrame]:
    with open_bytes(path) as stream:
        for lines in lines_in_blocks(stream, path.name, problems):
            yield decode_lines(lines, fields, path.name, problems)


def _gr_books(frame: pl.DataFrame, names: bool) -> pl.DataFrame:
    authors = pl.col("authors").fill_null([]).list.eval(pl.element().struct.field("author_id"))
    isbns = pl.concat_list("isbn", "isbn13", "asin").list.drop_nulls()
    work = pl.when(pl.col("work_id").str.len_chars() > 0).then(pl.col("work_id"))
    table = frame.drop_nulls("book_id").select(
        key="book_id",
        work=work,
        isbns=isbns,
        cancelled=_NONE,
        authors=authors if names else _NONE,
        names=_NONE,
    )
    return conformed(table, BOOKS)


def _gr_csv(path: Path, folder: Path, problems: Problems) -> Iterator[Batch]:
    """Read ``goodreads_interactions.csv``, whose book numbers are those of ``book_id_map.csv``."""
    ids = find_file(folder, "book_id_map.csv*") if folder.is_dir() else None
    known = None
    if ids is not None:
        known = pl.read_csv(ids, infer_schema=False).select(
            book_id=pl.col("book_id_csv"), item=pl.col("book_id")
        )
    else:
        problems.add(path.name, "no book_id_map.csv beside it: its book numbers are taken as ids")
    header: bytes | None = None
    with open_bytes(path) as stream:
        for lines in lines_in_blocks(stream, path.name, problems):
            if header is None:
                header = lines[0]
                lines = lines[1:]
            text = b"\n".join([header, *lines])
            frame = pl.read_csv(
                io.BytesIO(text), infer_schema=False, truncate_ragged_lines=True, quote_char=None
            )
            frame = _numbered(frame, path.name, problems)
            if known is not None:
                frame = frame.join(known, on="book_id", how="left", maintain_order="left")
                frame = frame.with_columns(item=pl.coalesce("item", "book_id"))
            else:
                frame = frame.rename({"book_id": "item"})
            yield _gr_batch(frame.rename({"user_id": "user"}), path.name, problems)


def _numbered(frame: pl.DataFrame, source: str, problems: Problems) -> pl.DataFrame:
    """Return rows of `user_id`, `book_id` and `rating` as a number; broken ones are counted."""
    absent = {"user_id", "book_id", "rating"} - set(frame.columns)
    if absent:
        raise DataError(source, [f"column {c!r} is missing" for c in sorted(absent)])
    said = pl.col("rating").str.strip_chars()
    usable = _with_ids(frame, source, problems)
    number = said.cast(pl.Float32, strict=False)
    wrong = (said.str.len_chars() > 0) & number.is_null()
    return _without(wrong, usable, source, problems).with_columns(rating=number)


def _with_ids(frame: pl.DataFrame, source: str, problems: Problems) -> pl.DataFrame:
    usable = frame.drop_nulls(["user_id", "book_id"])
    reason = "an interaction without user or book"
    problems.add(source, reason, count=frame.height - usable.height)
    return usable


def _without(wrong: pl.Expr, frame: pl.DataFrame, source: str, problems: Problems) -> pl.DataFrame:
    """Return the rows whose rating is a number or missing."""
    kept = frame.filter(~wrong.fill_null(False))
    reason = "an interaction whose rating is no number (left out)"
    problems.add(source, reason, count=frame.height - kept.height)
    return kept


def read_goodbooks(path: Path, options: ReaderOptions, problems: Problems) -> Iterator[Batch]:
    """goodbooks-10k: books (``books*.csv``) and ratings, as CSV, gzip or ZIP."""
    books = find_file(path, "books*.csv*", needed=True)
    ratings = find_file(path, "ratings.csv*")
    assert books is not None
    table = pl.read_csv(_read_text(books, "utf-8"), infer_schema=False)
    absent = {"work_id", "isbn", "isbn13", "authors"} - set(table.columns)
    if absent:
        raise DataError(books.name, [f"column {c!r} is missing" for c in sorted(absent)])
    # In the first release the number of ratings.csv is `id`, in the second `book_id`.
    key = "id" if "id" in table.columns else "book_id"
    # Both ISBNs went through a spreadsheet: zeros in front of the short one are lost, and the long
    # one is rounded to twelve digits. It is restored only where the short one is missing.
    ten = pl.col("isbn").str.strip_chars().str.zfill(10)
    long = _restored(pl.col("isbn13").cast(pl.Float64, strict=False))
    lost = pl.col("isbn").is_null() & pl.col("isbn13").is_not_null() & long.is_null()
    count = int(table.select(lost.sum()).item())
    problems.add(books.name, "an ISBN-13 rounded beyond repair", count=count)
    first = pl.col("authors").str.split(", ")
    found = table.select(
        key=key,
        work="work_id",
        isbns=pl.concat_list(pl.coalesce(ten, long)).list.drop_nulls(),
        cancelled=_NONE,
        authors=_NONE,
        names=first if options.platform_authors else _NONE,
    )
    yield Batch("books", "goodbooks", conformed(found, BOOKS))
    if ratings is not None:
        frame = pl.read_csv(_read_text(ratings, "utf-8"), infer_schema=False)
        frame = _numbered(frame, ratings.name, problems)
        kept = frame.filter(pl.col("rating").is_between(1, 5).fill_null(False))
        reason = "a rating that is not from 1 to 5 (left out)"
        problems.add(ratings.name, reason, count=frame.height - kept.height)
        frame = kept.rename({"user_id": "user", "book_id": "item"})
        yield Batch("ratings", "goodbooks", _ratings(frame), scale=(1.0, 5.0), refers="goodbooks")


def read_goodbooks_genres(path: Path) -> pl.DataFrame:
    """Return `item` (the number that ratings have) and `label`, a row for each genre of a book."""
    file = find_file(path, "book_genres*.csv*", needed=True)
    assert file is not None
    table = pl.read_csv(_read_text(file, "utf-8"), infer_schema=False)
    absent = {"book_id", "genres"} - set(table.columns)
    if absent:
        raise DataError(file.name, [f"column {c!r} is missing" for c in sorted(absent)])
    labels = pl.col("genres").str.split(",").list.eval(pl.element().str.strip_chars())
    found = table.select(item="book_id", label=labels).explode("label")
    return found.with_columns(pl.col("label").replace("", None)).unique(maintain_order=True)


def _check_digit(twelve: pl.Expr) -> pl.Expr:
    total = pl.lit(0, dtype=pl.Int64)
    for place in range(12):
        total += (twelve // 10**place) % 10 * (3 if place % 2 == 0 else 1)
    return (-total) % 10


def _restored(rounded: pl.Expr) -> pl.Expr:
    """Return the 13 digits that were rounded to twelve, where only one number fits.

    The last digit follows from the twelve before it, and says whether they were rounded up.
    """
    down = (rounded / 10).round().cast(pl.Int64)
    up = down - 1
    last_down, last_up = _check_digit(down), _check_digit(up)
    is_down, is_up = last_down <= 5, last_up >= 5
    one = is_down ^ is_up
    whole = pl.when(is_down).then(down * 10 + last_down).otherwise(up * 10 + last_up)
    plausible = down.is_between(978 * 10**9, 980 * 10**9 - 1)
    return pl.when(plausible & one).then(whole.cast(pl.String))
