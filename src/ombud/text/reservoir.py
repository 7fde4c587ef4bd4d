"""A stratified random sample of distinct texts from a stream, in bounded memory."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ombud.text.dedup import NearDuplicates

_U64 = NDArray[np.uint64]
_Ints = NDArray[np.int64]
Payload = TypeVar("Payload")
_ALL = np.uint64(2**64 - 1)


def water_fill(available: Sequence[int], total: int) -> list[int]:
    """Divide `total` as evenly as the parts allow: what one part lacks goes to the others.

    Parts with the same room differ by at most one; the first get more.

    Examples
    --------
    >>> water_fill([10, 2, 10], 12)
    [5, 2, 5]
    >>> water_fill([1, 1], 10)
    [1, 1]
    """
    given = [0] * len(available)
    left = min(total, sum(available))
    open_parts = sorted(range(len(available)), key=lambda part: (available[part], part))
    while open_parts:
        level = left // len(open_parts)
        part = open_parts[0]
        if available[part] > level:
            break
        given[part] = available[part]
        left -= available[part]
        open_parts = open_parts[1:]
    for place, part in enumerate(sorted(open_parts)):
        given[part] = left // len(open_parts) + (place < left % len(open_parts))
    return given


@dataclass
class _Stratum(Generic[Payload]):
    # Largest key first, so that the one to go is at hand; keys are negated for heapq.
    heap: list[tuple[int, int]] = field(default_factory=list)
    kept: dict[int, tuple[int, Payload]] = field(default_factory=dict)
    full: bool = False


class Reservoir(Generic[Payload]):
    """Keeps, of every stratum, the texts with the smallest keys: a random sample.

    Keys are hashes of content, so an exact repetition has its original's key and is met again
    here, or nowhere; and the sample depends on the texts and the seed, not on the order of
    reading. Where a text nearly repeats a kept one, the one with the smaller key stays.

    Together the strata hold at most `room` texts; when that is reached, the largest stratum gives
    one up. So small strata are kept whole, and memory does not grow with what is read.

    Parameters
    ----------
    strata
        How many strata there are.
    room
        The most texts to hold.
    threshold
        Similarity of near duplicates; None looks for exact repetitions alone.
    seed
        Of the near-duplicate search.
    """

    def __init__(
        self, strata: int, room: int, *, threshold: float | None = 0.8, seed: int = 0
    ) -> None:
        self.room = room
        self.size = 0
        self.repeats = 0
        self.near_repeats = 0
        self._strata: list[_Stratum[Payload]] = [_Stratum() for _ in range(strata)]
        self._limits = np.full(strata, _ALL, dtype=np.uint64)
        self._index = None if threshold is None else NearDuplicates(threshold, seed=seed)
        self._owner: dict[int, tuple[int, int]] = {}

    def wanted(self, keys: _U64, strata: _Ints) -> _Ints:
        """Return which texts of a batch could still enter; the others are too large for sure."""
        return np.flatnonzero(keys < self._limits[strata])

    def offer(
        self, keys: _U64, strata: _Ints, texts: Sequence[str], payloads: Sequence[Payload]
    ) -> None:
        """Take in a batch of texts.

        Of each text come the hash of its content, its stratum, the text for comparison, and what to
        keep.
        """
        fresh: list[int] = []
        batch: set[tuple[int, int]] = set()
        for row, (key, stratum) in enumerate(zip(keys.tolist(), strata.tolist(), strict=True)):
            if key in self._strata[stratum].kept or (stratum, key) in batch:
                self.repeats += 1
            else:
                batch.add((stratum, key))
                fresh.append(row)
        if not fresh:
            return
        repeats = np.full(len(fresh), -1, dtype=np.int64)
        if self._index is not None:
            first = self._index.size
            repeats = self._index.add([texts[row] for row in fresh], groups=strata[fresh])
            numbers = iter(range(first, self._index.size))
        for row, repeated in zip(fresh, repeats.tolist(), strict=True):
            key, stratum = int(keys[row]), int(strata[row])
            if repeated >= 0:
                self._replace(repeated, key, payloads[row])
                continue
            number = next(numbers) if self._index is not None else -1
            if key >= int(self._limits[stratum]):
                self._forget(number)
                continue
            self._keep(stratum, key, number, payloads[row])
            while self.size > self.room:
                self._give_up()

    def _keep(self, stratum: int, key: int, number: int, payload: Payload) -> None:
        part = self._strata[stratum]
        part.kept[key] = (number, payload)
        heapq.heappush(part.heap, (-key, number))
        self._owner[number] = (stratum, key)
        self.size += 1

    def _replace(self, number: int, key: int, payload: Payload) -> None:
        self.near_repeats += 1
        stratum, old = self._owner.get(number, (-1, -1))
        if stratum < 0 or key >= old:
            return
        part = self._strata[stratum]
        del part.kept[old]
        part.kept[key] = (number, payload)
        # The old entry stays in the heap until it comes to the top.
        heapq.heappush(part.heap, (-key, number))
        self._owner[number] = (stratum, key)

    def _give_up(self) -> None:
        stratum = max(range(len(self._strata)), key=lambda s: len(self._strata[s].kept))
        part = self._strata[stratum]
        key, number = heapq.heappop(part.heap)
        while -key not in part.kept:
            key, number = heapq.heappop(part.heap)
        del part.kept[-key]
        part.full = True
        self._limits[stratum] = np.uint64(-key)
        self.size -= 1
        self._owner.pop(number, None)
        self._forget(number)

    def _forget(self, number: int) -> None:
        if self._index is not None:
            self._index.remove([number])

    def distinct(self, stratum: int) -> float:
        """Return how many distinct texts the stratum had: counted, or estimated once some went.

        With k keys below a limit that is the share t of all keys, k / t are expected in all.
        """
        part = self._strata[stratum]
        if not part.full:
            return float(len(part.kept))
        return len(part.kept) / (int(self._limits[stratum]) / 2**64)

    def sizes(self) -> list[int]:
        """Return how many texts each stratum holds."""
        return [len(part.kept) for part in self._strata]

    def smallest(self, stratum: int) -> list[tuple[int, Payload]]:
        """Return the keys and payloads of a stratum, smallest key first."""
        kept = self._strata[stratum].kept
        return [(key, kept[key][1]) for key in sorted(kept)]
