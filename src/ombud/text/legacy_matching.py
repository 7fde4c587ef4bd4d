"""Term matching as the speech-suppression paper's published code does it, for comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ombud.taxonomy.terms import TermList
from ombud.text.automaton import Ints

PUBLISHED_PUNCTUATION = ".,#-'()"
"""Characters that the published code replaces by a space (only ``.,#`` for OpenAI-1680)."""


def published_pairs(
    texts: Sequence[str], terms: TermList, punctuation: str = PUBLISHED_PUNCTUATION
) -> tuple[Ints, Ints]:
    """Return the text and term indices that the published code would match, each pair once.

    - A spelling that stands several times counts only where it stands last.
    - A few punctuation characters become spaces, then the text is lower-cased.
    - A term matches if it stands between two spaces, as it is or with ``s`` or ``es`` behind it.

    So it misses terms at the start or end of a text, beside other punctuation, and with a hyphen.

    Parameters
    ----------
    texts
        The texts.
    terms
        The term list; its order matters.
    punctuation
        Characters that become spaces.
    """
    last = {term.text: index for index, term in enumerate(terms.terms)}
    single: dict[str, list[int]] = {}
    several: dict[str, list[tuple[str, int]]] = {}
    for spelling, index in last.items():
        for suffix in ("", "s", "es"):
            form = spelling.lower() + suffix
            head, space, _ = form.partition(" ")
            if space:
                several.setdefault(head, []).append((f" {form} ", index))
            else:
                single.setdefault(form, []).append(index)
    heads = frozenset((*single, *several))
    spaces = str.maketrans(dict.fromkeys(punctuation, " "))
    rows: list[int] = []
    result: list[int] = []
    for row, text in enumerate(texts):
        text = text.translate(spaces).lower()
        # The first and the last piece have a space on one side only.
        for head in heads.intersection(text.split(" ")[1:-1]):
            hits = {*single.get(head, ())}
            hits.update(index for form, index in several.get(head, ()) if form in text)
            rows += [row] * len(hits)
            result += hits
    pairs = np.unique(
        np.asarray(rows, dtype=np.int64) * len(terms.terms) + np.asarray(result, dtype=np.int64)
    )
    return pairs // len(terms.terms), pairs % len(terms.terms)
