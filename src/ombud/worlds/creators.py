"""Creators whose identity is an open vocabulary, sometimes unknown, sometimes contradicted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.ids import Vocabulary
from ombud.rng import generator

__all__ = ["IDENTITIES", "Creators", "draw_creators"]

IDENTITIES: tuple[str, ...] = ("agender", "man", "non-binary", "two-spirit", "woman")
_SHARES = (0.02, 0.5, 0.06, 0.02, 0.4)


@dataclass(frozen=True, eq=False)
class Creators:
    """Who made what, and what records say about them.

    Parameters
    ----------
    creators
        The creator ids.
    true_identity
        What is the case.
    assertions
        What records say: pairs of creator code and identity code. None = unknown; two different
        ones = ambiguous.
    links
        Pairs of item code and creator code, first creator first; some items have no creator.
    vocabulary
        The identities behind the codes.
    """

    creators: Vocabulary
    true_identity: NDArray[np.int32]
    assertions: NDArray[np.int32]
    links: NDArray[np.int32]
    vocabulary: tuple[str, ...] = IDENTITIES

    def resolved(self) -> NDArray[np.object_]:
        """Return, for each creator, the asserted identity, ``"unknown"`` or ``"ambiguous"``."""
        said = np.zeros((len(self.creators), len(self.vocabulary)), dtype=bool)
        said[self.assertions[:, 0], self.assertions[:, 1]] = True
        text = np.array([*self.vocabulary, "unknown", "ambiguous"], dtype=object)
        count = said.sum(axis=1)
        code = np.where(count == 1, said.argmax(axis=1), len(self.vocabulary) + (count > 1))
        return np.asarray(text[code], dtype=object)

    def to_frame(self, items: Vocabulary) -> pl.DataFrame:
        """Return one row per item and creator: `item`, `creator`, `identity`."""
        item, creator = self.links.T
        return pl.DataFrame(
            {
                "item": items.take(item),
                "creator": self.creators.take(creator),
                "identity": self.resolved()[creator],
            }
        )


def draw_creators(creators: Vocabulary, n_items: int, seed: int, *stream: str) -> Creators:
    """Draw creators and link them to items; a few creators made many of the items.

    Parameters
    ----------
    creators
        The creator ids.
    n_items
        How many items there are.
    seed, stream
        The random stream.
    """
    rng = generator(seed, *stream, "creators")
    count = len(creators)
    truth = np.searchsorted(np.cumsum(_SHARES)[:-1], rng.random(count)).astype(np.int32)
    state = rng.random(count)
    asserted = np.flatnonzero(state > 0.2).astype(np.int32)
    doubted = np.flatnonzero(state > 0.93).astype(np.int32)
    other = (truth[doubted] + rng.integers(1, len(IDENTITIES), len(doubted))) % len(IDENTITIES)
    assertions = np.stack(
        [np.concatenate([asserted, doubted]), np.concatenate([truth[asserted], other])], axis=1
    ).astype(np.int32)
    # One creator for most items, two for some, none (a missing record) for few.
    number = np.searchsorted([0.05, 0.85], rng.random(n_items))
    made = np.repeat(np.arange(n_items), number)
    who = np.minimum((count * rng.random(len(made)) ** 2).astype(np.int64), count - 1)
    # The same creator twice on one item is one link; the first place is kept.
    _, first = np.unique(made * count + who, return_index=True)
    first.sort()
    links = np.stack([made[first], who[first]], axis=1).astype(np.int32)
    return Creators(creators, truth, assertions, links)
