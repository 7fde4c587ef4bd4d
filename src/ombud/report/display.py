"""Text that came from data, made fit to be shown: nothing hidden, nothing that acts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"
_MARKS_IN_A_ROW = 3


def templates_of(package: str, shown: Callable[[str], str]) -> Any:
    """Return the templates of a package; `shown` is applied to all that is not markup."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    return Environment(
        loader=PackageLoader(package, "templates"),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else shown(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def visible(text: str) -> str:
    r"""Return text with every hidden or direction-changing character replaced by a visible one.

    Line breaks and tabs become spaces; control characters become their pictures; direction
    overrides, zero-width characters and lone surrogates become their code point in brackets; long
    stacks of combining marks are cut. Joiners stay between letters of scripts that need them.

    Examples
    --------
    >>> visible("abc\u202edef")
    'abc⟨U+202E⟩def'
    >>> visible("\x1b[31mred")
    '␛[31mred'
    >>> visible("two\nlines")
    'two lines'
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for index, character in enumerate(text):
        category = unicodedata.category(character)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if marks > _MARKS_IN_A_ROW:
            continue
        if character in "\n\r\t\u2028\u2029\x0b\x0c\x85":
            shown.append(" ")
        elif category not in _HIDDEN or _is_needed(text, index):
            shown.append(character)
        elif character < " ":
            shown.append(chr(0x2400 + ord(character)))
        elif character == "\x7f":
            shown.append("\u2421")
        else:
            shown.append(f"⟨U+{ord(character):04X}⟩")
    return "".join(shown)


def _is_needed(text: str, place: int) -> bool:
    """Whether a joiner stands between characters of a script (or emoji) that uses joiners."""
    if text[place] not in _JOINERS or not 0 < place < len(text) - 1:
        return False
    return all(ord(text[p]) > 0x2FF and text[p] not in _JOINERS for p in (place - 1, place + 1))


def shorten(text: str, limit: int = 200) -> str:
    """Return visible text of at most `limit` characters, cut in the middle with an ellipsis.

    Examples
    --------
    >>> shorten("abcdefghij", 7)
    'abcd…ij'
    """
    text = visible(text)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def count(number: int, word: str) -> str:
    """Return a number and its word in the right form.

    Examples
    --------
    >>> count(1, "label"), count(1200, "label"), count(0, "query")
    ('1 label', '1,200 labels', '0 queries')
    """
    return f"{number:,} {plural(word) if number != 1 else word}"


def plural(word: str) -> str:
    """Return the plural of an English noun.

    Examples
    --------
    >>> plural("user"), plural("query"), plural("class"), plural("day")
    ('users', 'queries', 'classes', 'days')
    """
    if word.endswith("y") and word[-2:-1] not in set("aeiou"):
        return f"{word[:-1]}ies"
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word}s"


def joined(parts: Iterable[str], word: str = "and") -> str:
    """Return parts as a list in words.

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    items = list(parts)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {word} {items[-1]}"
