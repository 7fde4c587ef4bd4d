"""Case-folding and Unicode normalisation, with a way back to the original text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ombud.errors import require

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

_SURROGATE = re.compile("[\ud800-\udfff]")
# Only where an iota subscript may hide in a letter must decomposition come before case-folding
# (Unicode 3.13, D145).
_RARE = re.compile("[\ud800-\udfff\u0345\u1f80-\u1fff]")


def fold(text: str) -> str:
    """Return the form in which texts and terms are compared.

    Canonical decomposition, full case-folding, canonical composition (NFC). Two texts that differ
    only in case or in the encoding of accents become equal. Lone surrogates, which no engine can
    read, become U+FFFD.

    Examples
    --------
    >>> fold("STRASSE") == fold("straße")
    True
    >>> fold("Cafe\u0301") == fold("CAFÉ")
    True
    """
    if text.isascii():
        return text.lower()
    if not _RARE.search(text):
        return unicodedata.normalize("NFC", text.casefold())
    text = _SURROGATE.sub("\ufffd", text)
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold())


@cache
def _joining() -> frozenset[str]:
    """Characters that are no combining marks and yet may compose with the one before them."""
    result = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(0x110000):
        parts = unicodedata.decomposition(chr(code))
        if parts and not parts.startswith("<"):
            result.update(chr(int(part, 16)) for part in parts.split()[1:])
    return frozenset(result)


@cache
def _starts_piece(char: str) -> bool:
    first = unicodedata.normalize("NFD", unicodedata.normalize("NFD", char).casefold())[0]
    return not unicodedata.combining(first) and first not in _joining()


def fold_offsets(text: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return, for every character of ``fold(text)``, the span of `text` that it comes from.

    Folding changes lengths (one letter may become two, a letter and its accent one); the span is
    the smallest piece of the original that folds on its own.

    Returns
    -------
    tuple
        First position and end position, one entry per character of the folded text.

    Examples
    --------
    >>> first, end = fold_offsets("aßb")
    >>> first.tolist(), end.tolist()
    ([0, 1, 1, 2], [1, 2, 2, 3])
    """
    if text.isascii():
        positions = np.arange(len(text), dtype=np.int64)
        return positions, positions + 1
    cuts = [0, *(i for i in range(1, len(text)) if _starts_piece(text[i])), len(text)]
    lengths = [len(fold(text[a:b])) for a, b in zip(cuts, cuts[1:], strict=False)]
    edges = np.asarray(cuts, dtype=np.int64)
    return np.repeat(edges[:-1], lengths), np.repeat(edges[1:], lengths)


# Mask words for display.


def mask(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace all but the first character of each span by asterisks.

    Spaces stay, so that lines break as before; the text keeps its length. A term
    inside another does not show its first letter.

    Parameters
    ----------
    text
        The text.
    spans
        ``(start, end)`` positions, as `TermMatcher.match` gives them with ``spans=True``.

    Examples
    --------
    >>> mask("He said darn it", [(8, 12)])
    'He said d*** it'
    >>> mask("a rotten egg", [(2, 12), (9, 12)])
    'a r***** ***'
    """
    shown = list(text)
    for start, end in spans:
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"span ({start}, {end}) is not inside a text of {len(text)} characters"
            )
        for position in range(start + 1, end):
            if not text[position].isspace():
                shown[position] = "*"
    return "".join(shown)


# The language of texts, where no column says it.


_FEWEST_LETTERS = 20


def detect_languages(texts: Sequence[str], *, least: float = 0.8) -> NDArray[np.object_]:
    """Return the language of each text as an ISO 639-1 code, None where it cannot be told.

    By the package ``py3langid`` (extra ``language``): naive Bayes on byte n-grams, trained on
    formal texts of 97 languages. Texts of fewer than 20 letters are not tried. Mixed, slangy and
    dialectal texts are often taken for another language.

    `least` is the least probability, among all languages, for an answer.
    """
    require("py3langid", "language")
    identifier = _identifier()
    result = np.full(len(texts), None, dtype=object)
    for index, text in enumerate(texts):
        if sum(map(str.isalpha, text)) >= _FEWEST_LETTERS:
            language, chance = identifier.classify(text)
            if chance >= least:
                result[index] = str(language)
    return result


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
