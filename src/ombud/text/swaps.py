"""Texts changed in one respect: gendered words, words of one's own, and filled templates."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from io import StringIO
from itertools import product
from os import PathLike
from pathlib import Path
from string import Formatter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ombud.errors import DataError
from ombud.files import read_utf8
from ombud.taxonomy.resources import parse_commented_csv

Way = Literal["swap", "to female", "to male"]
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*\.?")
ENGLISH = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        (files("ombud.text") / "files" / "english@1.toml").read_text(encoding="utf-8")
    ).items()
}
"""Closed-class words of English, by what they are used for."""


class Swapped(NamedTuple):
    """Texts after a swap."""

    texts: list[str]  # the new texts
    changed: NDArray[np.int64]  # how many words were changed in each; 0 leaves a text as it was
    # 1 where more words became female than male (or went along a swap's pairs than against them),
    # -1 where more became male, 0 where none or as many of both.
    direction: NDArray[np.int64]


def _cased(new: str, old: str) -> str:
    """Return a word in the case of the one whose place it takes."""
    if len(old.rstrip(".")) > 1 and old.isupper():
        return new.upper()
    if old[:1].isupper():
        return new[:1].upper() + new[1:]
    return new


@dataclass(frozen=True)
class WordSwap:
    """Replaces words by others, whole words only, in any case, keeping the case.

    Examples
    --------
    >>> swap = WordSwap({"cat": "dog", "dog": "cat"}, "pets")
    >>> swap.apply(["Cats? My CAT and a dog."]).texts
    ['Cats? My DOG and a cat.']
    """

    # Word to word; a word of several parts is not matched. Both ways must be given where both are
    # meant.
    pairs: Mapping[str, str]
    name: str = "words"  # what the swap is called
    _folded: dict[str, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        faults = []
        for old, new in self.pairs.items():
            if not _TOKEN.fullmatch(old) or not new.strip():
                faults.append(f"{old!r}: expected one word, and something to put in its place")
            elif self._folded.setdefault(old.lower(), new) != new:
                faults.append(f"{old!r} stands twice, with different words to put in its place")
        if not self.pairs:
            faults.append("no pairs of words")
        if faults:
            raise DataError(f"swap {self.name}", faults)

    def apply(self, texts: Sequence[str]) -> Swapped:
        """Return the texts with every word of the list replaced."""

        def replace(old: str, rest: str) -> tuple[str, int] | None:
            new = self._folded.get(old.lower())
            return None if new is None else (_cased(new, old), 1)

        return _apply(texts, replace)


@dataclass(frozen=True)
class GenderSwap:
    """Swaps gendered words of English: pronouns, nouns, titles and first names.

    The grammar is kept: *her* becomes *him* or *his*, *his* becomes *her* or *hers*, by the word
    that follows. That is a rule of thumb, right in most sentences and not in all. First names and
    titles are swapped where they are capitalised. A person known by name becomes another: facts
    are not kept, and a name tells nobody's gender; the test is of the system, not of the person.

    Examples
    --------
    >>> GenderSwap().apply(["He gave her his book.", "Her brother saw her, Mr. Smith."]).texts
    ['She gave him her book.', 'His sister saw him, Ms. Smith.']
    """

    # ``"swap"`` changes every gendered word into its counterpart; ``"to female"`` and ``"to male"``
    # change those of one side alone.
    way: Way = "swap"
    names: bool = True  # whether first names are swapped
    name: str = "gender"  # what the swap is called

    def apply(self, texts: Sequence[str]) -> Swapped:
        """Return the texts with gendered words swapped."""
        to_female, to_male = _gendered()
        female = self.way in ("swap", "to female")
        male = self.way in ("swap", "to male")

        def replace(old: str, rest: str) -> tuple[str, int] | None:
            word = old.lower().replace("\u2019", "'")
            if word in ("him", "his", "her", "hers"):
                new, direction = _pronoun(word, rest)
                allowed = female if direction > 0 else male
                return (_cased(new, old), direction) if allowed else None
            for table, direction, allowed in ((to_female, 1, female), (to_male, -1, male)):
                found = table.get(word) if allowed else None
                if found is None:
                    continue
                new, kind = found
                if kind in ("name", "title") and not old[:1].isupper():
                    continue
                if kind == "name" and not self.names:
                    continue
                return _cased(new, old), direction
            return None

        return _apply(texts, replace)


def _pronoun(word: str, rest: str) -> tuple[str, int]:
    """Return the counterpart of him, his, her or hers, and 1 if it is female."""
    if word == "him":
        return "her", 1
    if word == "hers":
        return "his", -1
    owns = _owns(rest)
    if word == "her":
        return ("his" if owns else "him"), -1
    return ("her" if owns else "hers"), 1


def _owns(rest: str) -> bool:
    """Say whether what follows can be owned: a word, near enough, that begins nothing new."""
    gap = re.match(r"[\s\"'\u201c\u2018(-]*", rest)
    ahead = rest[gap.end() :] if gap else rest
    if not gap or not gap.group() or "(" in gap.group():
        return False
    token = _TOKEN.match(ahead)
    if token is None:
        return False
    word = token.group().rstrip(".").lower()
    if word in ENGLISH["ownable"]:
        following = _TOKEN.match(ahead[token.end() :].lstrip())
        return following is not None and following.group().lower() not in ENGLISH["after_object"]
    return word not in ENGLISH["after_object"]


def _apply(texts: Sequence[str], replace: Callable[[str, str], tuple[str, int] | None]) -> Swapped:
    result: list[str] = []
    changed = np.zeros(len(texts), dtype=np.int64)
    direction = np.zeros(len(texts), dtype=np.int64)
    for row, text in enumerate(texts):
        parts: list[str] = []
        at = 0
        for token in _TOKEN.finditer(text):
            word, tail = token.group(), ""
            found = replace(word, text[token.end() : token.end() + 80])
            if found is None and word.endswith("."):
                word, tail = word[:-1], "."
                found = replace(word, text[token.end() - 1 : token.end() + 80])
            if found is None and word[-2:].lower() in ("'s", "\u2019s"):
                word, tail = word[:-2], word[-2:] + tail
                found = replace(word, " x")
            if found is not None:
                parts += (text[at : token.start()], found[0], tail)
                at = token.end()
                changed[row] += 1
                direction[row] += found[1]
        result.append("".join((*parts, text[at:])) if parts else text)
    return Swapped(result, changed, np.sign(direction))


@cache
def _gendered() -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """Return words that become female, and words that become male, with their kind."""
    text = files("ombud.text").joinpath("files", "gender-swap@1.csv").read_text(encoding="utf-8")
    _, rows = parse_commented_csv(text, "gender-swap@1", ("male", "female", "kind", "way"))
    to_female: dict[str, tuple[str, str]] = {}
    to_male: dict[str, tuple[str, str]] = {}
    for _, row in rows:
        if row["way"] != "to male":
            to_female[row["male"].lower()] = (row["female"], row["kind"])
        if row["way"] != "to female":
            to_male[row["female"].lower()] = (row["male"], row["kind"])
    return to_female, to_male


def read_swap(path: str | PathLike[str], *, both: bool = True) -> WordSwap:
    """Read a swap of one's own from a CSV file with columns ``from`` and ``to``.

    With `both`, each pair also holds the other way round.
    """
    file = Path(path)
    rows = list(csv.DictReader(StringIO(read_utf8(file))))
    pairs: dict[str, str] = {}
    faults = []
    for number, row in enumerate(rows, start=2):
        old, new = (row.get("from") or "").strip(), (row.get("to") or "").strip()
        if not old or not new:
            faults.append(f"row {number}: expected a word under 'from' and one under 'to'")
            continue
        for one, other in ((old, new), (new, old))[: 2 if both else 1]:
            if pairs.setdefault(one, other) != other:
                faults.append(f"row {number}: a word stands already above with another counterpart")
    if faults or not pairs:
        raise DataError(str(file), faults or ["no pairs of words"])
    return WordSwap(pairs, file.stem)


class FilledTemplates(NamedTuple):
    """Texts made from templates."""

    texts: list[str]
    template: NDArray[np.int64]  # which template each was made from
    values: dict[str, NDArray[np.int64]]  # for each slot, which of its values stands in each text


def fill_templates(
    templates: Sequence[str], values: Mapping[str, Sequence[str]]
) -> FilledTemplates:
    """Fill every slot of every template with every value.

    Templates are sentences with slots such as ``{country}``; every slot of `values` stands in each.

    Examples
    --------
    >>> filled = fill_templates(["I met {who}."], {"who": ["her", "him"]})
    >>> filled.texts, filled.values["who"].tolist()
    (['I met her.', 'I met him.'], [0, 1])
    """
    slots = list(values)
    faults = []
    for number, template in enumerate(templates, start=1):
        try:
            found = {name for _, name, _, _ in Formatter().parse(template) if name is not None}
        except ValueError as fault:
            faults.append(f"template {number}: {fault}")
            continue
        if found != set(slots):
            faults.append(
                f"template {number}: has the slots {', '.join(sorted(found)) or 'none'}; "
                f"expected {', '.join(slots)}"
            )
    faults += [f"slot {slot!r} has no values" for slot in slots if not values[slot]]
    if faults or not templates or not slots:
        raise DataError("templates", faults or ["no templates, or no slots"])
    rows = list(product(range(len(templates)), *(range(len(values[slot])) for slot in slots)))
    parts = [
        {slot: values[slot][code] for slot, code in zip(slots, row[1:], strict=True)}
        for row in rows
    ]
    texts = [_filled(templates[row[0]], chosen) for row, chosen in zip(rows, parts, strict=True)]
    codes = np.array(rows, dtype=np.int64).reshape(len(rows), 1 + len(slots))
    return FilledTemplates(
        texts, codes[:, 0], {slot: codes[:, 1 + place] for place, slot in enumerate(slots)}
    )


def _filled(template: str, chosen: Mapping[str, str]) -> str:
    # Not str.format: a template of a stranger must not reach into the values' attributes.
    parts = []
    for before, name, _, _ in Formatter().parse(template):
        parts.append(before)
        if name is not None:
            parts.append(chosen[name])
    return "".join(parts)
