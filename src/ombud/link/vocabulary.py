"""From the terms that sources use to codes that can be counted, by a versioned file.

A term that the file does not know stays itself: identities are an open vocabulary. The file may
join spellings of one identity; it may not fold a trans or non-binary identity into another one,
and a file that tries is refused.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import polars as pl

from ombud.errors import DataError
from ombud.files import read_plain

NO_ASSERTION = "-"
"""The code of terms that assert nothing, such as *unknown*."""

_PROTECTED = re.compile(
    r"trans(?!l)|non.?binary|gender.?queer|gender.?fluid|agender|intersex|two.?spirit|hijra"
    r"|neutrois|bigender|pangender|non.?conform|enby|third.?gender|androgyn|demi.?(?:boy|girl|gender"
    r"|man|woman)|muxe|fa.?afafine|fakaleiti|m[aā]h[uū]|travesti|\bmtf\b|\bftm\b|\bthey\b|\bxe\b"
    r"|\bze\b|x.?gender|gender.?variant|gender.?non|gender.?neutral|kathoey|waria|khwaja"
)
_PEOPLE = re.compile(r"\b(?:people|person|persons|individual|individuals)\b")
_PRONOUNS = re.compile(r"/(?:they|he|she|them|him|her|xe|ze)\b")
_OPAQUE = re.compile(r"\W*[a-z]?\d*\W*")
_COLUMNS = ["attribute", "vocabulary", "term", "code"]


@dataclass(frozen=True, eq=False)
class IdentityMapping:
    """Terms and their codes."""

    version: str  # as the file says
    # `attribute` (``*`` for all that have no row of their own), `vocabulary` (``*`` for every
    # source), `term` (normalised), `code`.
    terms: pl.DataFrame

    def codes(self, assertions: pl.DataFrame) -> pl.DataFrame:
        """Return assertions with a column `code`: missing where a term asserts nothing.

        The assertions have `attribute`, `vocabulary` and `value`.
        """
        table = assertions.with_columns(term=normalised_terms(pl.col("value")))
        # A row for this attribute goes before one for all of them, one for this source before "*".
        found = []
        for one_attribute in (True, False):
            for one_vocabulary in (True, False):
                name = f"_{one_attribute}_{one_vocabulary}"
                every = [] if one_attribute else ["attribute"]
                every += [] if one_vocabulary else ["vocabulary"]
                chosen = self.terms.filter(
                    pl.all_horizontal(
                        (pl.col(c) == "*") == (c in every) for c in ("attribute", "vocabulary")
                    )
                )
                chosen = chosen.drop(every).rename({"code": name})
                keys = [c for c in chosen.columns if c != name]
                table = table.join(chosen, on=keys, how="left", maintain_order="left")
                found.append(name)
        code = pl.coalesce(*found, "term")
        asserted = (code != NO_ASSERTION) & (code != "")
        return table.with_columns(
            code=pl.when(asserted).then(code), known=pl.coalesce(found).is_not_null()
        ).drop(found)


def single_values(assertions: pl.LazyFrame) -> pl.LazyFrame:
    """Return assertions of one value each: a cell such as "male; female" asserts both."""
    values = pl.col("value").str.split(";").list.eval(pl.element().str.strip_chars())
    return assertions.with_columns(values).explode("value")


def normalised_terms(values: pl.Expr) -> pl.Expr:
    """Return terms as the mapping file has them: lower case, no address, no stop at the end."""
    text = values.str.normalize("NFKC").str.to_lowercase().str.strip_chars()
    text = text.str.replace(r"^https?://[^\s]*[/#]", "").str.strip_chars(" .;,[]")
    return text.str.replace_all(r"\s+", " ")


def read_mapping(path: str | Path | None = None) -> IdentityMapping:
    """Read the shipped mapping, and on top of it a file of the same form.

    It is CSV with `attribute`, `vocabulary`, `term`, `code` and a first line such as ``# version:
    2026-11-16``. Its rows take the place of shipped rows for the same term.

    Raises
    ------
    DataError
        If the file cannot be read, or folds one identity into another.
    """
    shipped = files("ombud.link.files").joinpath("identities.csv").read_text(encoding="utf-8")
    version, terms = _parsed(shipped, "identities.csv")
    if path is None:
        return IdentityMapping(version, terms)
    own = Path(path)
    try:
        text = read_plain(own).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(own.name, [f"it cannot be read as a mapping: {error}"]) from None
    more_version, more = _parsed(text, own.name)
    if faults := _refolded(terms, more):
        raise DataError(own.name, faults[:20])
    both = pl.concat([terms, more]).unique(_COLUMNS[:3], keep="last", maintain_order=True)
    return IdentityMapping(f"{version} + {own.name} {more_version}", both)


def _parsed(text: str, name: str) -> tuple[str, pl.DataFrame]:
    found = re.match(r"\ufeff?#\s*version:\s*(\S+)", text)
    if found is None:
        raise DataError(name, ["the first line must state a version: # version: 2026-11-16"])
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    rows = list(csv.reader(io.StringIO("\n".join(lines))))
    if not rows or rows[0] != _COLUMNS:
        raise DataError(name, [f"the columns must be {','.join(_COLUMNS)}"])
    faults = [
        f"row {n}: four cells were expected" for n, r in enumerate(rows[1:], 2) if len(r) != 4
    ]
    faults += [
        f"row {n}: {row[2]!r} may not become {row[3]!r}: one identity is never folded into another"
        for n, row in enumerate(rows[1:], 2)
        if len(row) == 4 and _folds(row[2], row[3])
    ]
    if faults:
        raise DataError(name, faults[:20])
    table = pl.DataFrame(rows[1:], schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
    table = table.with_columns(term=normalised_terms(pl.col("term")))
    return found.group(1), table


def _refolded(shipped: pl.DataFrame, more: pl.DataFrame) -> list[str]:
    """Return which rows give two identities of the shipped file one code, or drop one."""
    before = {(a, v, t): code for a, v, t, code in shipped.iter_rows()}
    changed: dict[tuple[str, str, str], str] = {}
    for a, v, t, code in more.iter_rows():
        # A letter may mean something else in another source.
        shared = (a, "*", t) if _OPAQUE.fullmatch(t) is None else (a, v, t)
        key = (a, v, t) if (a, v, t) in before else shared
        if before.get(key, NO_ASSERTION) != NO_ASSERTION:
            changed[key] = code
    joined: dict[tuple[str, str], set[str]] = {}
    for key, old in before.items():
        if old != NO_ASSERTION:
            joined.setdefault((key[0], changed.get(key, old)), set()).add(old)
    faults = []
    for (a, v, t), code in changed.items():
        old = before[a, v, t]
        dropped = code == NO_ASSERTION and _PROTECTED.search(old)
        if dropped or (code not in {old, NO_ASSERTION} and len(joined[a, code]) > 1):
            faults.append(
                f"{t!r}, which is {old!r}, may not become {code!r}: one identity is never folded "
                "into another"
            )
    return faults


def _folds(term: str, code: str) -> bool:
    """Return whether a row joins two identities of which one is trans or non-binary."""
    if code == NO_ASSERTION:
        return bool(_PROTECTED.search(_plain(term)))
    if _OPAQUE.fullmatch(_plain(term)):
        return False
    either = _PROTECTED.search(_plain(term)) or _PROTECTED.search(_plain(code))
    return bool(either) and _skeleton(term) != _skeleton(code)


def _plain(term: str) -> str:
    return unicodedata.normalize("NFKC", term).lower().strip()


def _skeleton(term: str) -> str:
    """Return what is left of a term when spelling, number and pronouns are taken away."""
    text = _PRONOUNS.sub("", _PEOPLE.sub("", _plain(term)))
    text = re.sub(r"noncomfor$", "nonconforming", re.sub(r"[^a-z]", "", text))
    text = re.sub(r"men$", "man", text)
    return re.sub(r"^transgender(?=(?:wo)?man$)", "trans", text)
