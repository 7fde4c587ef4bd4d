"""Texts changed in one respect: gendered words, words of one's own, and filled templates."""

from __future__ import annotations

import csv
import re
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
from ombud.text.grammar import ENGLISH, Role, Word, is_form, parts, role

Way = Literal["swap", "to female", "to male"]
_TOKEN = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*\.?")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


class Swapped(NamedTuple):
    """Texts after a swap."""

    texts: list[str]  # the new texts
    changed: NDArray[np.int64]  # how many words were changed in each; 0 leaves a text as it was
    # 1 where more words became female than male (or went along a swap's pairs than against them),
    # -1 where more became male, 0 where none or as many of both.
    direction: NDArray[np.int64]
    # Rows left as they were because a swap could not tell what a word stands for.
    abstained: frozenset[int] = frozenset()


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

    The grammar is kept: *her* becomes *him* or *his*, *his* becomes *her* or *hers*, by the parts
    of speech around them. A text in which a pronoun has two readings ("saw her duck") is left as
    it is, and its row is in `Swapped.abstained`. First names are swapped where they are
    capitalized and name a person: not as a surname, place or religion. A person known by name
    becomes another: facts are not kept, and a name does not show anyone's gender; the test is of
    the system, not of the person.

    Examples
    --------
    >>> GenderSwap().apply(["He gave her his book.", "Her brother saw her, Mr. Smith."]).texts
    ['She gave him her book.', 'His sister saw him, Ms. Smith.']
    >>> sorted(GenderSwap().apply(["It made her angry.", "I saw her duck."]).abstained)
    [1]
    """

    # ``"swap"`` changes every gendered word into its counterpart; ``"to female"`` and ``"to male"``
    # change those of one side alone.
    way: Way = "swap"
    names: bool = True  # whether first names are swapped
    name: str = "gender"  # what the swap is called

    def apply(self, texts: Sequence[str]) -> Swapped:
        """Return the texts with gendered words swapped."""
        result: list[str] = []
        changed = np.zeros(len(texts), dtype=np.int64)
        direction = np.zeros(len(texts), dtype=np.int64)
        abstained = set()
        for row, text in enumerate(texts):
            found = self._edits(text)
            if found is None:
                abstained.add(row)
            pieces: list[str] = []
            at = 0
            for start, end, new, way in found or ():
                pieces += (text[at:start], new)
                at = end
                changed[row] += 1
                direction[row] += way
            result.append("".join((*pieces, text[at:])))
        return Swapped(result, changed, np.sign(direction), frozenset(abstained))

    def _edits(self, text: str) -> list[tuple[int, int, str, int]] | None:
        """Return which spans become what, with 1 if female; None where a pronoun is unclear."""
        sentence = _Sentence(text)
        edits = []
        for at in range(len(sentence.words)):
            found = sentence.counterpart(at, self.names)
            if found is None:
                continue
            start, end, new, direction = found
            if self.way != "swap" and (direction > 0) != (self.way == "to female"):
                continue
            if not new:
                return None
            edits.append((start, end, new, direction))
        return edits


_HONORIFICS = frozenset({"mr", "mrs", "ms", "miss", "dr", "st", "prof", "jr", "sr", "rev", "mx"})
_NATIONS = ("english", "french", "irish", "dutch", "welsh", "scots", "cornish")
_FIXED = frozenset(tuple(phrase.split("_")) for phrase in ENGLISH["fixed"])
_FIXED_FIRST = frozenset(word for phrase in _FIXED for word in phrase)


class _Sentence:
    """A text in words, and which of them have a counterpart of the other gender."""

    def __init__(self, text: str) -> None:
        self.text, self.words = text, _words(text)
        letters = [char for char in text if char.isalpha()]
        self.capitals = bool(letters) and all(char.isupper() for char in letters)
        lows = {word.low for word in self.words}
        self.married = "mrs" in lows
        self.holy = bool(lows & {"god", "jesus", "christ", "allah", "lord"})

    def counterpart(self, at: int, names: bool) -> tuple[int, int, str, int] | None:
        """Return the span, what takes its place ("" if unclear) and 1 if that is female."""
        word = self.words[at]
        low, text, end = word.low, word.text, word.end
        if low in ("him", "his", "her", "hers", "her's"):
            if self._deity(at):
                return None
            meant: Role = "alone" if low == "her's" else role(self.words, at)
            if meant == "unclear" and low != "him":
                return word.start, end, "", 1 if low == "his" else -1
            if low == "him":
                return word.start, end, _cased("her", text), 1
            if low == "his":
                return word.start, end, _cased("her" if meant == "owner" else "hers", text), 1
            return word.start, end, _cased("him" if meant == "object" else "his", text), -1
        titled = self._title(at)
        if titled is not None:
            return titled
        found = _entry(low)
        tail = ""
        if found is None and low.endswith("'s"):
            low, end, tail = low[:-2], end - 2, text[-2:]
            text = text[:-2]
            found = _entry(low)
        if found is None or self._fixed(at):
            return None
        new, direction, kind = found
        if kind in ("name", "unsure"):
            if not names or not self._person(at, kind, direction, tail):
                return None
        elif not self._meant(at, low, kind):
            return None
        following = self.text[word.end : word.end + 2]
        if "\u2019" in text:
            new = new.replace("'", "\u2019")
        if (
            following[:1] in ("'", "\u2019")
            and not following[1:].strip()
            and low.endswith("s")
            and not new.endswith("s")
        ):
            return word.start, end + 1, _cased(new, text) + following[0] + "s", direction
        return word.start, end, _cased(new, text), direction

    def _deity(self, at: int) -> bool:
        return (
            self.holy and self._inside(at) and self.words[at].text.istitle() and not self.capitals
        )

    def _inside(self, at: int) -> bool:
        """Return whether a word stands inside a sentence, so that a capital means something."""
        if not at:
            return False
        gap, before = self.words[at].gap, self.words[at - 1].low
        if before in _HONORIFICS and gap.strip() in ("", "."):
            return True
        return re.search(r"[.!?:;\n\"\u201c\u2018*\u2022]", gap) is None

    def _title(self, at: int) -> tuple[int, int, str, int] | None:
        """Return the counterpart of a title before a name."""
        word = self.words[at]
        if word.low not in (
            "mr",
            "mrs",
            "ms",
            "miss",
            "madam",
            "sir",
            "dame",
            "lord",
            "lady",
            "master",
        ):
            return None
        ahead = self.words[at + 1] if at + 1 < len(self.words) else None
        if not word.text[:1].isupper():
            return None
        joined = ahead is not None and ahead.gap in (" ", ". ", "\u00a0", ".")
        name = joined and ahead is not None and ahead.text[:1].isupper()
        office = joined and ahead is not None and ahead.low in ENGLISH["offices"]
        dot = self.text[word.end : word.end + 1] == "."
        both = (
            ahead is not None
            and ahead.low in ("and", "or", "&")
            or ahead is not None
            and ahead.gap.strip() in ("&", "/", ".&")
        )
        if self._fixed(at):
            return None
        if word.low == "mr":
            if office:
                return word.start, word.end + dot, _cased("Madam", word.text), 1
            new = "Mrs" if self.married else "Ms"
            return (
                word.start,
                word.end,
                new.upper() if word.text == "MR" and self.capitals else new,
                1,
            )
        if word.low == "madam" and office:
            return word.start, word.end, "Mr.", -1
        if word.low in ("mrs", "ms") or word.low == "miss" and (name or both):
            return word.start, word.end, "MR" if word.text.isupper() and self.capitals else "Mr", -1
        if word.low == "sir" and not name and not self.capitals:
            return word.start, word.end, "Madam", 1
        pairs = {"sir": ("Dame", 1), "dame": ("Sir", -1), "lord": ("Lady", 1), "lady": ("Lord", -1)}
        if word.low in pairs and name:
            new, direction = pairs[word.low]
            return word.start, word.end, _cased(new, word.text), direction
        return None

    def _fixed(self, at: int) -> bool:
        """Return whether a word belongs to a fixed expression, such as "mother tongue"."""
        if self.words[at].low not in _FIXED_FIRST:
            return False
        lows = [word.low for word in self.words[max(0, at - 2) : at + 3]]
        here = min(at, 2)
        return any(
            tuple(lows[first : first + size]) in _FIXED
            for size in (2, 3)
            for first in range(max(0, here - size + 1), here + 1)
        )

    def _near(self, at: int, step: int) -> Word | None:
        """Return the word before or after, if only a space stands between."""
        there = at + step
        if not 0 <= there < len(self.words):
            return None
        gap = self.words[max(at, there)].gap
        return (
            self.words[there]
            if gap in (" ", "\u00a0", "-") or gap == ". " and self.words[there].low in _HONORIFICS
            else None
        )

    def _titled(self, word: Word | None) -> bool:
        return word is not None and word.text[:1].isupper() and not word.text[1:].isupper()

    def _surname(self, at: int) -> bool:
        """Return whether the word before shows that this one is a surname or part of a name."""
        before = self._near(at, -1)
        if before is None or not self._titled(before):
            return False
        if before.low in ENGLISH["familiar"] or before.low in ("and", "or", "i"):
            return False
        if before.low in ("mr", "mrs", "ms", "miss", "dr", "prof", "rev"):
            return not self._titled(self._near(at, 1))
        given = _entry(before.low)
        if given is not None and given[2] in ("name", "unsure"):
            return not self._titled(self._near(at, 1))
        if not self._inside(at - 1):
            return parts(before.low) == "n"
        return not self._titled(self._near(at, 1)) or parts(before.low) == "n"

    def _person(self, at: int, kind: str, direction: int, tail: str) -> bool:
        """Return whether a name names a person by a first name."""
        word = self.words[at]
        if not word.text[:1].isupper():
            return False
        if self.capitals:
            return kind == "name"
        before, after = self._near(at, -1), self._near(at, 1)
        low = before.low if before else ""
        if low in (
            "st",
            "saint",
            "san",
            "santa",
            "port",
            "fort",
            "lake",
            "mount",
            "mt",
            "new",
            "cape",
        ):
            return False
        if (
            after is not None
            and self._titled(after)
            and after.low.removesuffix("'s") in ENGLISH["places"]
        ):
            return False
        if self._surname(at):
            return False
        if kind == "name":
            return True
        if low in ENGLISH["familiar"] or low in ENGLISH["kin"]:
            return True
        if tail or low in ENGLISH["place_signs"]:
            return False
        if low == "to" and at > 1 and is_form(self.words[at - 2].low, "moving"):
            return False
        if after is not None and self._titled(after):
            return parts(after.low)[0] in "nN" and after.low not in ("church", "democrat")
        if (
            after is not None
            and after.low in ENGLISH["speaking"]
            and word.low not in ("hope", "will")
        ):
            return True
        if (
            after is None
            or after.low not in ("has", "had", "did", "and")
            and (
                parts(after.low)[0] not in "ds"
                or parts(after.low)[0] == "s"
                and "n" in parts(after.low).lower()
                or after.low in ENGLISH["stirring"]
            )
        ):
            return False
        if self._inside(at) and low not in ("and", "that", "when", "because", "but", "if", "while"):
            return False
        mine = (
            ("he", "his", "him", "himself") if direction > 0 else ("she", "her", "hers", "herself")
        )
        for later in self.words[at + 1 :]:
            if re.search(r"[.!?;]", later.gap):
                return False
            other = _entry(later.low)
            if later.low in mine:
                return True
            if other is not None and other[2] != "pronoun":
                return False
        return False

    def _meant(self, at: int, low: str, kind: str) -> bool:
        """Return whether a noun or pronoun names a gender here."""
        word, start = self.words[at], self.words[at].start
        before, after = self._near(at, -1), self._near(at, 1)
        previous = before.low if before else ""
        following = after.low if after else ""
        if kind == "title":
            return self._titled(word) and self._titled(after)
        if kind == "pronoun":
            if re.search(r"(?<![^\W_])\(?s\)?/?$", self.text[:start], re.IGNORECASE):
                return not re.search(r"[/)]$", self.text[:start])  # s/he and (s)he
            return not (low in ("he", "himself") and self._deity(at))
        if self.text[start - 1 : start] == ")" or self.text[max(0, start - 3) : start].lower() in (
            "wo/",
            "fe/",
        ):
            return False
        if low in ("god", "gods"):
            return not (word.text[:1].isupper() and self._inside(at)) and (
                low == "gods"
                or previous
                in (
                    "a",
                    "the",
                    "another",
                    "every",
                    "each",
                    "some",
                    "this",
                    "that",
                    "greek",
                    "norse",
                    "roman",
                    "hindu",
                    "and",
                    "or",
                )
            )
        if low in ("man", "boy", "dude", "bro", "guys", "girl", "god") and self._exclaimed(at):
            return False
        if (
            low == "man"
            and previous in ("to", "they", "we", "will", "must", "who", "helped")
            and following in ("the", "a", "his", "their", "our")
        ):
            return False
        if low in ("count", "counts", "master", "mum", "ma", "pa", "sis", "bro", "hes", "shes"):
            return low not in ("count", "counts")
        if low in (
            "mother",
            "mothers",
            "father",
            "fathers",
            "husband",
            "husbands",
            "host",
            "hosts",
            "bull",
            "cow",
            "widow",
            "widows",
        ) and previous in ("to", "will"):
            return following not in ("a", "the", "his", "her", "their", "an", "this", "our")
        if low in ("duke", "king", "queen", "prince", "princess") and following in (
            "university",
            "kong",
            "arthur's",
        ):
            return False
        if self._titled(word) and self._inside(at):
            if any(low.startswith(nation) for nation in _NATIONS):
                return True
            if (
                low.endswith("man")
                and len(low) > 5
                and not self._titled(after)
                and self._titled(before)
            ):
                return previous in ("mr", "madam")
            if low in (
                "mother",
                "father",
                "mom",
                "dad",
                "mum",
                "mommy",
                "daddy",
                "grandma",
                "grandpa",
            ):
                return True
            if before is not None and self._titled(before) and not self._titled(after):
                given = _entry(before.low)
                return parts(before.low) != "n" and (given is None or given[2] != "name")
        return True

    def _exclaimed(self, at: int) -> bool:
        """Return whether a word only calls out: "Man, that hurt", "thanks, man!"."""
        word = self.words[at]
        after = self.words[at + 1].gap if at + 1 < len(self.words) else self.text[word.end :]
        if word.low == "guys":
            return not self._inside(at) or word.gap.strip() == ","
        if after[:1] not in (",", "!", ".", "?", "") or after[:3] == "...":
            return False
        if not self._inside(at):
            return after[:1] in (",", "!")
        return word.gap.strip() == ","


def _words(text: str) -> list[Word]:
    found, at = [], 0
    for match in _WORD.finditer(text):
        start, end = match.span()
        low = match.group().lower().replace("\u2019", "'")
        found.append(Word(match.group(), low, text[at:start], start, end))
        at = end
    return found


@cache
def _entry(low: str) -> tuple[str, int, str] | None:
    """Return the counterpart of a word, 1 if that is female, and the kind of word."""
    for table, direction in zip(_gendered(), (1, -1), strict=True):
        if low in table:
            new, kind = table[low]
            return new, direction, kind
    for ending, other, direction in (
        ("women", "men", -1), ("woman", "man", -1), ("men", "women", 1), ("man", "woman", 1),
    ):  # fmt: skip
        stem = low.removesuffix(ending)
        if stem != low and (stem in ENGLISH["man_compounds"] or direction < 0 and len(stem) > 2):
            return stem + other, direction, "noun"
    for prefix in ("step", "grand", "god", "great", "foster", "ex"):
        stem = low.removeprefix(prefix)
        if stem != low and len(stem) > 2 and stem.rstrip("s") in ENGLISH["kin"]:
            found = _entry(stem)
            if found is not None:
                return prefix + found[0], found[1], found[2]
    return None


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
    text = files("ombud.text").joinpath("files", "gender-swap@2.csv").read_text(encoding="utf-8")
    _, rows = parse_commented_csv(text, "gender-swap@2", ("male", "female", "kind", "way"))
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
    rows = list(csv.DictReader(StringIO(read_utf8(file), newline="")))
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
