"""Whether a word of more than one sense names an identity where it stands.

A few rules over the words around it, from ``files/identity-context@1.toml``. They know nothing of
grammar: "black people" and "she is black" name an identity, "black coffee" and "it is black" do
not. How often they are right is measured in the tests and stated in the guide.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ombud.taxonomy.terms import Term
from ombud.text.folding import fold
from ombud.text.matching import Bools, Ints, TermMatcher

_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*|[^\w\s]")
_END = ".,;:!?)\"'\u2019\u201d-\u2014\u2026(#@&/"


@cache
def _rules() -> dict[str, Any]:
    """Return the sets of words of the file, by their names."""
    file = files("ombud.text") / "files" / "identity-context@1.toml"
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    tables = {"before", "behind"}
    sets: dict[str, Any] = {
        key: frozenset(value.split()) for key, value in written.items() if key not in tables
    }
    for table in tables:
        sets[table] = {word: frozenset(some.split()) for word, some in written[table].items()}
    return sets


@dataclass(frozen=True)
class _Place:
    """A word where it stands: tokens in lower case, as written, and the word's first and last."""

    low: list[str]
    raw: list[str]
    first: int
    last: int

    def at(self, step: int) -> str:
        """Return the token so many steps after (or before) the word; empty beyond the text."""
        index = self.last + step if step > 0 else self.first + step
        return self.low[index] if 0 <= index < len(self.low) else ""

    def opens(self, index: int) -> bool:
        """Return whether a token begins a sentence."""
        return index <= 0 or self.low[index - 1] in {".", "!", "?", '"', "\u201c", ":"}


def in_context(texts: Sequence[str], terms: Sequence[Term], rows: Ints, found: Ints) -> Bools:
    """Return which pairs of text and term stand at least once where they name an identity.

    Parameters
    ----------
    texts, terms
        What was searched, and for what.
    rows, found
        The pairs: indices of texts and of terms.
    """
    rules = _rules()
    stems = {fold(term.text): term.context for term in terms}
    special = {
        word
        for word, context in stems.items()
        if context
        or {word, f"{word}s"} & (rules["before"].keys() | rules["behind"].keys())
        or word in rules["names"] | rules["no_hyphen"] | rules["national"]
    }
    ambiguous = np.array([fold(term.text) in special for term in terms], dtype=np.bool_)
    check = ambiguous[found]
    result = np.ones(len(rows), dtype=np.bool_)
    if not check.any():
        return result
    some = np.unique(rows[check])
    which = np.flatnonzero(ambiguous)
    matcher = TermMatcher([terms[i].text for i in which.tolist()], suffixes=("", "s", "es"))
    hits = matcher.match([texts[row] for row in some], spans=True)
    assert hits.start is not None and hits.end is not None
    good: set[tuple[int, int]] = set()
    tokens: dict[int, tuple[list[str], list[str], list[int]]] = {}
    for at, index, start, end in zip(
        hits.text_index.tolist(),
        hits.term_index.tolist(),
        hits.start.tolist(),
        hits.end.tolist(),
        strict=True,
    ):
        row, term = int(some[at]), int(which[index])
        if (row, term) in good:
            continue
        if row not in tokens:
            tokens[row] = _tokens(texts[row])
        word = fold(terms[term].text)
        if _names(word, terms[term].context, tokens[row], start, end):
            good.add((row, term))
    pairs = zip(rows[check].tolist(), found[check].tolist(), strict=True)
    result[check] = [pair in good for pair in pairs]
    return result


def _tokens(text: str) -> tuple[list[str], list[str], list[int]]:
    parts = list(_WORD.finditer(text))
    raw = [part.group() for part in parts]
    return [r.lower().replace("\u2019", "'") for r in raw], raw, [part.start() for part in parts]


def _names(
    word: str, context: str, tokens: tuple[list[str], list[str], list[int]], start: int, end: int
) -> bool:
    """Return whether a word, at some characters of a text, names an identity."""
    rules, (low, raw, starts) = _rules(), tokens
    first = int(np.searchsorted(starts, start, side="right")) - 1
    last = int(np.searchsorted(starts, end, side="left")) - 1
    here = _Place(low, raw, first, last)
    rest = raw[last][end - starts[last] :].lower().replace("\u2019", "'")
    if rest.startswith("-") and word in rules["no_hyphen"]:
        return any(part in rules["hyphen_after"] for part in rest.split("-"))
    if raw[first][: start - starts[first]].endswith("-") and word in rules["no_hyphen"]:
        return False
    following = here.at(1) if not rest else rest.lstrip("-'")
    shown = low[first] if first == last else word
    for key in {word, shown}:
        if following in rules["before"].get(key, ()) or here.at(-1) in rules["behind"].get(key, ()):
            return False
    if word in rules["national"] and following in rules["things"]:
        return False
    if word == "gay" and _is_cheerful(here):
        return False
    if word in rules["names"] and _is_name(here, raw[first][0].isupper(), rest):
        return False
    return not context or _of_people(here, word, rest)


def _is_cheerful(here: _Place) -> bool:
    """Return whether a word beside "and" means cheerful: "gay and carefree", "young and gay"."""
    cheerful: frozenset[str] = _rules()["cheerful"]
    after = here.at(1) == "and" and here.at(2) in cheerful
    return after or (here.at(-1) == "and" and here.at(-2) in cheerful | {"young"})


def _is_name(here: _Place, capital: bool, rest: str) -> bool:
    """Return whether a word with a capital is somebody's name."""
    rules = _rules()
    if not capital or sum(r.isupper() and len(r) > 1 for r in here.raw) > len(here.raw) / 2:
        return False
    group = rules["people"] | {"pride", "liberation", "straight", "and", "men's"}
    if here.at(1) in group or (here.at(1) == "," and here.at(2) in rules["between"]):
        return False
    if here.at(-1) in rules["titles"] or (here.at(-1) == "." and here.at(-2) in rules["titles"]):
        return True
    if here.opens(here.first):
        after = here.raw[here.last + 1] if here.last + 1 < len(here.raw) else ""
        return after[:1].isupper() or here.at(1) in rules["reported"] or rest.startswith("'")
    capitals = [r[0].isupper() for r in here.raw if r[0].isalpha() and len(r) > 3]
    return sum(capitals) < 0.8 * len(capitals) or len(capitals) < 4


def _of_people(here: _Place, word: str, rest: str) -> bool:
    """Return whether the words around say that a word is about people."""
    rules = _rules()
    people, between = rules["people"], rules["between"]
    one, two, three = (here.at(step) for step in (1, 2, 3))
    if one in people or (one in between and two in people):
        return True
    if one in between and two in between and three in people:
        return True
    joined = one in {"and", "or", ",", "/", "&", "-"}
    if joined and two in between and (three in people or here.at(4) in people):
        return True
    if here.low[here.last] == f"{word}s" and not rest:
        odd = one == "of" or here.at(-1) in {"egg", "eye", "tennis", "cricket"}
        return word in rules["plural"] and not odd
    if word in rules["collective"] and here.at(-1) == "the":
        return one in rules["collective_after"] or one == "" or one in _END
    return _predicate(here, word)


def _predicate(here: _Place, word: str) -> bool:
    """Return whether a word is said of somebody: "she is black and", "being deaf is"."""
    rules = _rules()
    following = here.at(1)
    ends = not following or following in rules["after"] or following in _END
    if here.at(-1) == "being" and following in rules["verbs"]:
        return True
    if not ends:
        return False
    step = -1
    noun = here.at(-2) in {"a", "an"} and here.at(-1) not in rules["adverbs"]
    if noun:  # "Angela is a kind deaf", as templates have it
        step = -2
    while here.at(step) in rules["adverbs"]:
        step -= 1
    if here.at(step) in rules["contracted"]:
        return True
    if here.at(step) not in rules["copulas"] or step < -5:
        return False
    before = here.at(step - 1)
    while before in rules["adverbs"] | {"had", "has", "have", "will", "would", "may", "might"}:
        step -= 1
        before = here.at(step - 1)
    index = here.first + step - 1
    named = index >= 0 and here.raw[index][:1].isupper()
    senses = {"blind", "deaf", "paralyzed", "paralysed"}
    named = (
        named
        and (noun or not here.opens(index) or word in senses)
        and before not in rules["sayings"]
    )
    return before in rules["subjects"] or before in rules["people"] or named
