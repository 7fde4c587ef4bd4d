"""Mask words for display."""

from __future__ import annotations

from collections.abc import Iterable


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
