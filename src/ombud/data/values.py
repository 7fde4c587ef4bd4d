"""Turn the words of a file into the numbers, flags, ids or times that a column must hold.

Where two readings are possible, the error names both and the setting of `Reading` that chooses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Literal

import polars as pl

from ombud.data.faults import rows_where
from ombud.data.reading import (
    GRADES,
    MISSING,
    MISSING_GROUPS,
    NO,
    PLAIN,
    WORDS,
    YES,
    Reading,
    note,
    word_of,
)  # fmt: skip

Kind = Literal["category", "count", "flag", "id", "number", "text", "time"]


@dataclass
class Understood:
    """A column in the form that it must have, or why it has none."""

    values: pl.Series
    faults: list[str] = field(default_factory=list)


def understand(
    values: pl.Series,
    kind: Kind,
    reading: Reading = PLAIN,
    source: str = "",
    setting: str = "",
    *,
    spelled: bool = True,
) -> Understood:
    """Return a column as the numbers, flags or times that were expected.

    `reading` is what somebody said about the file, and `source` its name in notes. `setting` is
    where a reader can choose between two readings, such as ``[data.reading.labels]``. `spelled`
    says that the file has no types, so that the words 17 and 17.0 are numbers.
    """
    name = f"column {values.name!r}"
    if values.dtype == pl.Categorical or isinstance(values.dtype, pl.Enum):
        values = values.cast(pl.String)
    if kind == "flag" and reading.yes_from is not None:
        words = values if values.dtype == pl.String else values.cast(pl.String)
        made = _numbers(words, reading, source, name, setting)
        return made if made.faults else Understood(made.values.fill_nan(None) >= reading.yes_from)
    declared = reading.yes or reading.no or reading.missing
    if kind == "flag" and declared and _is_plain(values.dtype):
        # Somebody said which values mean yes: 0 may.
        whole = _from_floats(values, "id", source, name).values
        values = whole.cast(pl.String)
    if values.dtype.is_float():
        return _from_floats(values, "id" if kind == "count" else kind, source, name)
    if kind == "time" and values.dtype.is_integer():
        return _epoch(values, reading, source, name, setting)
    if values.dtype != pl.String:
        return Understood(values)
    if kind == "id":
        if reading.ids == "lowercase":
            return Understood(values.str.strip_chars(" {}").str.to_lowercase())
        if reading.ids == "numbers":
            digits = values.str.replace_all(r"^\s*0+([0-9])|[,' ]|\.([0-9]{3})", "$1$2")
            number = values.str.contains(r"^[0-9,.' ]+$").fill_null(False)
            return _from_spelled(digits.zip_with(number, values), source, name)
        return _from_spelled(values, source, name) if spelled else Understood(values)
    if kind in {"number", "count"}:
        places = values.str.extract(PLACE) if kind == "count" else values
        if places.null_count() == values.null_count() and not places.equals(values):
            note(source, f"{name}: #1, 1. and 1st are read as 1", "assumed/places")
            values = places
        made = _numbers(values, reading, source, name, setting)
        if kind == "count" and not made.faults:
            made = _whole(made.values, made, name)
        return made
    if kind == "flag":
        return _flags(values, reading, source, name, setting)
    if kind == "time":
        return _times(values, reading, source, name, setting)
    if kind == "category" and spelled:
        missing = values.str.strip_chars().str.to_lowercase().is_in(list(MISSING_GROUPS))
        return Understood(values.set(missing, None)) if missing.any() else Understood(values)
    return Understood(values)


def _is_plain(dtype: pl.DataType) -> bool:
    return dtype == pl.Boolean or dtype.is_numeric()


def _without_missing(values: pl.Series, words: tuple[str, ...]) -> pl.Series:
    """Return a column in which words for *missing* are missing, and spaces around words gone."""
    frame = pl.DataFrame({"v": values})
    stripped = pl.col("v").str.strip_chars()
    missing = stripped.str.to_lowercase().is_in(list(words))
    made = frame.select(pl.when(missing).then(None).otherwise(stripped))
    return made.to_series().rename(values.name)


def _from_floats(values: pl.Series, kind: Kind, source: str, name: str) -> Understood:
    """Whole numbers that a missing value made floats are whole numbers."""
    if kind == "time":
        return _epoch(values, PLAIN, source, name, "")
    if kind not in {"id", "category", "flag"} or not values.dtype.is_float():
        return Understood(values)
    known = values.fill_nan(None)
    some = known.drop_nulls()
    if len(some) == 0 or (some != some.round()).any() or some.is_infinite().any():
        return Understood(values)
    if kind == "flag":
        if not some.is_in([0.0, 1.0]).all():
            return Understood(known.cast(pl.Int64) if _largest(some) < 2**53 else values)
        return Understood(known.cast(pl.Boolean))
    if _largest(some) >= 2**53:
        fault = (
            f"{name}: whole numbers beyond 2^53 are stored as floats, which cannot tell them "
            "apart; store them as integers or strings"
        )
        return Understood(values, [fault])
    return Understood(known.cast(pl.Int64))


def _largest(values: pl.Series) -> float:
    return float(values.abs().max() or 0)  # type: ignore[arg-type]


def lacks_id(value: pl.Expr) -> pl.Expr:
    """Whether an id is a word that a database writes for a missing one."""
    return value.str.strip_chars().str.to_lowercase().is_in(WORDS["missing_ids"])


def _from_spelled(values: pl.Series, source: str, name: str) -> Understood:
    """Ids as a file spells them: 17 and 17.0 are the number 17; 007 and +7 stay words."""
    frame = pl.DataFrame({"v": values}).with_columns(s=pl.col("v").str.strip_chars())
    v, s = pl.col("v"), pl.col("s")
    blank = s.str.len_bytes() == 0
    facts = frame.select(
        spaces=(v != s).sum(),
        plain=s.str.contains(r"^(0|-?[1-9][0-9]{0,17})$").fill_null(True).all(),
        whole=s.str.contains(r"^(0|-?[1-9][0-9]{0,14})(\.0+)?$").fill_null(True).all(),
        cut=s.str.contains(r"^-?[0-9](\.[0-9]+)?[eE]\+[0-9]+$").any(),
    )
    if facts["cut"][0]:
        fault = (
            f"{name}: ids such as 9.78E+12 lost digits in a spreadsheet, so that different ids are "
            "the same. Format the column as text where the file comes from, and export it again"
        )
        return Understood(values, [fault])
    spaces = int(facts["spaces"][0] or 0)
    if spaces:
        text = f"{name}: spaces around {spaces:,} ids are ignored"
        note(source, text, "assumed/spaces")
    made = frame.select(pl.when(blank).then(None).otherwise(s)).to_series().rename(values.name)
    if facts["plain"][0]:
        return Understood(made.cast(pl.Int64))
    if facts["whole"][0]:
        note(source, f"{name}: ids such as 17.0 are the whole number 17", "assumed/whole-ids")
        return Understood(made.str.replace(r"\.0+$", "").cast(pl.Int64))
    return Understood(made)


PLACE = r"(?i)^\s*(?:#|no\.?|nr\.?|n[º°]|top|rank|place)?\s*(\d+)(?:\.|st|nd|rd|th|º|ª|er|e)?\s*$"
"""How people write a place in a list: #1, No. 2, 3rd."""
_DECIMAL_COMMA = r"^[+-]?(\d+|[1-9]\d{0,2}([. ]\d{3})+)(,\d+)?([eE][+-]?\d+)?$"
_DECIMAL_POINT = r"^[+-]?(\d+|[1-9]\d{0,2}([, ']\d{3})+)(\.\d+)?([eE][+-]?\d+)?$"


def _numbers(
    values: pl.Series, reading: Reading, source: str, name: str, setting: str
) -> Understood:
    clean = _without_missing(values, MISSING)
    gone = clean.null_count() - values.null_count()
    if gone:
        words = sorted(set(values.filter(clean.is_null() & values.is_not_null()).unique().head(4)))
        text = f"{name}: {', '.join(map(repr, words))} means missing ({gone:,} cells)"
        note(source, text, "assumed/missing-words")
    percent = clean.str.ends_with("%")
    scale = 1.0
    if percent.any():
        if not percent.drop_nulls().all():
            fault = f"{name}: some values have a percent sign and some have none"
            return Understood(values, [fault])
        note(source, f"{name}: 85% is read as 0.85", "assumed/percent")
        clean, scale = clean.str.strip_chars("% \u00a0"), 0.01
    clean = clean.str.replace_all("[\u00a0\u202f]", " ")
    odd = clean.str.contains(r"[,' ]|\.\d+\.")
    comma = clean.str.contains(_DECIMAL_COMMA).fill_null(True).all()
    point = clean.str.contains(_DECIMAL_POINT).fill_null(True).all()
    direct = clean.cast(pl.Float64, strict=False)
    dots = clean.str.contains(r"^[1-9]\d{0,2}(\.\d{3})+$") | ~clean.str.contains(r"\.")
    dotted = bool(clean.str.contains(r"\.").any() and dots.fill_null(True).all())
    decimal: str = reading.decimal
    if not decimal and not odd.any() and not dotted:
        decimal = "."
    if not decimal:
        example = clean.filter(clean.str.contains(r"[,.]")).head(1).to_list()
        shown = example[0] if example else ""
        if comma and point and shown:
            both = (
                f"{shown.replace('.', '').replace(',', '.')} (decimal comma) or "
                f"{shown.replace(',', '')} (decimal point)"
            )
            fault = f'{name}: {shown!r} can be {both}; set decimal = "," or "." in {setting}'
            return Understood(values, [fault])
        decimal = "," if comma and not point else "."
        if comma and not point:
            note(source, f"{name}: the comma is the decimal mark", "assumed/decimal-comma")
        elif point:
            note(source, f"{name}: commas separate thousands", "assumed/thousands")
    if decimal == "," and comma:
        plain = clean.str.replace_all(r"[. ]", "").str.replace(",", ".", literal=True)
    elif decimal == "." and point:
        plain = clean.str.replace_all(r"[, ']", "")
    else:
        plain = clean
    made = plain.cast(pl.Float64, strict=False)
    made = made if made.null_count() < direct.null_count() else direct
    wrong = made.is_null() & clean.is_not_null()
    if wrong.any():
        odd_words = clean.filter(wrong).unique(maintain_order=True).head(3)
        some = ", ".join(repr(word[:30]) for word in odd_words)
        where = rows_where(wrong.to_frame(), wrong)
        fault = f"{name}: holds {some}, which are not numbers; numbers were expected in {where}"
        return Understood(values, [fault])
    made = made * scale if scale != 1.0 else made
    return Understood(made.rename(values.name))


def _whole(values: pl.Series, made: Understood, name: str) -> Understood:
    some = values.fill_nan(None)
    known = some.drop_nulls()
    if len(known) and ((known != known.round()).any() or known.is_infinite().any()):
        return Understood(values, [f"{name}: holds fractions; whole numbers were expected"])
    return replace(made, values=some.cast(pl.Int64, strict=False))


def _flags(values: pl.Series, reading: Reading, source: str, name: str, setting: str) -> Understood:
    clean = word_of(values)
    yes = {word.strip().lower() for word in reading.yes}
    no = {word.strip().lower() for word in reading.no}
    missing = ({word.strip().lower() for word in reading.missing} | {*MISSING}) - yes - no
    words = set(clean.drop_nulls().unique().to_list())
    if yes and not no:
        no = words - yes - missing
        if "none" in words and (not no or words & {*GRADES}):
            # Hate or none, mild or none: here it is an answer.
            no, missing = no | {"none"}, missing - {"none"}
        if not words & yes:
            wanted = ", ".join(map(repr, reading.yes))
            fault = f"{name}: no row holds {wanted} (found: {_some(words)})"
            return Understood(values, [fault])
    elif no and not yes:
        yes = words - no - missing
    else:
        yes |= set(YES) - no
        no |= set(NO) - yes
    unknown = words - yes - no - missing
    if unknown:
        if all(re.fullmatch(r"-?\d+(\.0+)?", word) for word in unknown):
            return Understood(clean.str.replace(r"\.0+$", "").cast(pl.Int64, strict=False))
        fault = (
            f"{name}: holds {_some(unknown)}; true/false or 0/1 were expected. Say which words "
            f'mean yes: yes = ["..."] in {setting}'
        )
        return Understood(values, [fault])
    if words - missing - {"true", "false", "0", "1"}:
        means = {w: "yes" if w in yes else "no" if w in no else "unknown" for w in words - {""}}
        read = ", ".join(f"{word!r} = {means[word]}" for word in sorted(means)[:8])
        note(source, f"{name}: {read}", "assumed/yes-words")
    table = {w: w in yes for w in words & (yes | no)}
    made = clean.replace_strict(table, default=None, return_dtype=pl.Boolean)
    return Understood(made.rename(values.name))


def _some(words: set[str]) -> str:
    shown = ", ".join(repr(word[:40]) for word in sorted(words)[:4])
    return shown + (f" and {len(words) - 4:,} more" if len(words) > 4 else "")


_UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def _epoch(values: pl.Series, reading: Reading, source: str, name: str, setting: str) -> Understood:
    """Numbers since 1970 in seconds, whatever unit they are written in."""
    known = values.cast(pl.Float64).fill_nan(None).drop_nulls()
    unit: str = reading.time_unit
    if not unit:
        size = known.abs()
        found = {
            u for u, low, high in (
                ("s", 1e8, 1e11), ("ms", 1e11, 1e14), ("us", 1e14, 1e17), ("ns", 1e17, 1e20),
            ) if ((size >= low) & (size < high)).any()
        }  # fmt: skip
        if len(found) > 1:
            units = " and ".join(u for u in _UNITS if u in found)
            fault = (
                f"{name}: times in {units} since 1970 are mixed; write all in one unit, or set "
                f"time_unit in {setting or '[data.reading]'}"
            )
            return Understood(values, [fault])
        unit = next(iter(found), "s")
        if unit == "s" or (size < 1e11).any():
            return Understood(values)
        note(source, f"{name}: times are {unit} since 1970", "assumed/time-unit")
    if unit == "s":
        return Understood(values)
    return Understood(values.cast(pl.Float64) / _UNITS[unit])


_ISO = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M")
_CLOCK = ("", " %H:%M:%S%.f", " %H:%M", " %I:%M:%S %p", " %I:%M %p")
_NAMED = ("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%a, %d %b %Y",
          "%d. %B %Y", "%b %d %Y")  # fmt: skip


def iso_time(value: pl.Expr) -> pl.Expr:
    """Return ISO dates and times as such, in UTC where they name a zone; null for other words."""
    zoned = value.str.to_datetime("%+", strict=False, time_zone="UTC", time_unit="us")
    return pl.coalesce(
        zoned.dt.replace_time_zone(None),
        *(value.str.to_datetime(f, strict=False, time_unit="us") for f in _ISO),
        value.str.to_date("%Y-%m-%d", strict=False).cast(pl.Datetime("us")),
    )


def _times(values: pl.Series, reading: Reading, source: str, name: str, setting: str) -> Understood:
    clean = _without_missing(values, MISSING)
    frame = pl.DataFrame({"v": clean})
    made = frame.select(iso_time(pl.col("v"))).to_series()
    short = clean.str.contains(r"^\d{1,3}-").any()  # 3-4-24 is no day of the year 3
    if made.null_count() == clean.null_count() and not short:
        return Understood(made.rename(values.name))
    numbers = clean.cast(pl.Float64, strict=False)
    if numbers.null_count() == clean.null_count():
        return _epoch(numbers.rename(values.name), reading, source, name, setting)
    year = "%y" if clean.str.contains(r"^\d+[/.-]\d+[/.-]\d\d\b").any() else "%Y"
    orders = {
        order: _parsed(frame, [mark.join((*parts, year)) + c for mark in "/.-" for c in _CLOCK])
        for order, parts in (("day-first", ("%d", "%m")), ("month-first", ("%m", "%d")))
    }
    fits = [order for order, one in orders.items() if one.null_count() == clean.null_count()]
    dotted = bool(clean.str.contains(".", literal=True).all())
    if len(fits) == 2 and not (reading.dates or dotted):
        fault = (
            f"{name}: {clean.drop_nulls()[0]!r} can have the day or the month first; set dates = "
            f'"day-first" or "month-first" in {setting}'
        )
        return Understood(values, [fault])
    if fits:
        chosen = reading.dates or fits[0]
        if not reading.dates:
            note(source, f"{name}: dates have the {chosen.replace('-', ' ')}", f"assumed/{chosen}")
        made = orders[chosen]
    elif pl.select(pl.coalesce(*orders.values())).to_series().null_count() == clean.null_count():
        fault = f"{name}: some dates have the day first and some the month; write all one way"
        return Understood(values, [fault])
    else:
        made = _parsed(
            frame,
            [f"%Y{s}%m{s}%d{clock}" for s in "/." for clock in _CLOCK]
            + ["%Y%m%d"]
            + [one + clock for one in _NAMED for clock in _CLOCK],
        )
    wrong = made.is_null() & clean.is_not_null()
    if wrong.any():
        fault = f"{name} is no date (2024-12-31) in {rows_where(wrong.to_frame(), wrong)}"
        return Understood(values, [fault])
    return Understood(made.rename(values.name))


def _parsed(frame: pl.DataFrame, formats: list[str]) -> pl.Series:
    value = pl.col("v").str.strip_chars()
    return frame.select(
        pl.coalesce(
            value.str.to_datetime(f, strict=False, time_unit="us")
            if "%H" in f or "%I" in f
            else value.str.to_date(f, strict=False).cast(pl.Datetime("us"))
            for f in formats
        )
    ).to_series()
