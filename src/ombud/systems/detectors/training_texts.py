"""Training texts changed so that a detector cannot learn from gender or from country names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ombud.rng import generator
from ombud.text.geography import countries
from ombud.text.swaps import GenderSwap

AgainstBias = Literal["gender-swap", "countries"]


class TrainingTexts(NamedTuple):
    """Texts to train on."""

    # One entry each.
    texts: list[str]
    ratings: NDArray[np.int64]
    changed: int  # how many texts were added or changed


def with_swapped_copies(texts: Sequence[str], ratings: NDArray[np.int64]) -> TrainingTexts:
    """Return the texts, and a copy with the other gender of each that names one.

    A copy has the rating of its text.

    Examples
    --------
    >>> with_swapped_copies(["She left.", "It rains."], np.array([3, 0])).texts
    ['She left.', 'It rains.', 'He left.']
    """
    swapped = GenderSwap().apply(list(texts))
    which = np.flatnonzero(swapped.changed)
    copies = [swapped.texts[i] for i in which.tolist()]
    return TrainingTexts([*texts, *copies], np.concatenate([ratings, ratings[which]]), len(which))


def with_other_countries(
    texts: Sequence[str], ratings: NDArray[np.int64], seed: int = 0
) -> TrainingTexts:
    """Return the texts with every name of a country replaced by that of another one.

    A country has the same other name throughout a text. Names are found as they are written
    (*Chad*, not *chad*), also where they name a person or a bird: *Jordan*, *Turkey* at the start
    of a sentence. About half of such sentences become false by it (those that tell facts), so the
    texts serve for training and for nothing else.

    Examples
    --------
    >>> found = with_other_countries(["A fire in the Netherlands.", "A fire."], np.array([3, 1]))
    >>> found.texts[0] != "A fire in the Netherlands.", found.texts[1], found.changed
    (True, 'A fire.', 1)
    """
    names, pattern = _names()
    rng = generator(seed, "other countries")
    result, changed = [], 0
    for text in texts:
        others: dict[int, int] = {}

        def other(match: re.Match[str], others: dict[int, int] = others) -> str:
            here = names[match.group(2)]
            if here not in others:
                step = int(rng.integers(1, len(countries())))
                others[here] = (here + step) % len(countries())
            said = countries()[others[here]].in_sentence
            first = match.start() == 0 or match.group(1) == "The "
            return said[:1].upper() + said[1:] if first else said

        result.append(pattern.sub(other, text))
        changed += bool(others)
    return TrainingTexts(result, ratings, changed)


@cache
def _names() -> tuple[dict[str, int], re.Pattern[str]]:
    names = {country.name: index for index, country in enumerate(countries())}
    longest = sorted(names, key=len, reverse=True)
    return names, re.compile(rf"\b([Tt]he )?({'|'.join(map(re.escape, longest))})\b")
