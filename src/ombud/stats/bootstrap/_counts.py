"""How often each unit is drawn in each replicate, made block by block."""

from __future__ import annotations

import numpy as np

from ombud.stats.statistics import Floats

BLOCK = 16_384
# Small enough for a processor's cache, large enough for a matrix product.
_CHUNK_BYTES = 16 * 2**20


def chunks(replicates: int, units: int) -> list[tuple[int, int]]:
    """Cut the replicates so that one chunk of counts stays within 16 MiB."""
    step = max(1, min(replicates, _CHUNK_BYTES // (8 * max(units, 1))))
    return [(start, min(start + step, replicates)) for start in range(0, replicates, step)]


class Counts:
    """Counts of n draws with replacement from n units, for each replicate.

    Units are cut into blocks of fixed size. How many draws fall into each block is multinomial,
    and within a block draws are uniform, which together is the ordinary bootstrap. Each block has
    a stream of its own, so that counts depend on the seed, the number of units and the replicate,
    and not on what is computed from them or in which chunks.
    """

    def __init__(self, units: int, replicates: int, seed: int) -> None:
        self.edges = [*range(0, units, BLOCK), units]
        sizes = np.diff(self.edges)
        first, *others = np.random.SeedSequence(seed).spawn(len(sizes) + 1)
        self._buffer = np.empty(0)
        self._streams = [np.random.default_rng(child) for child in others]
        if len(sizes) == 1:
            self._totals = np.full((replicates, 1), units)
        else:
            shares = sizes / units
            self._totals = np.random.default_rng(first).multinomial(units, shares, size=replicates)

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """First and last unit (excluded) of every block."""
        return list(zip(self.edges[:-1], self.edges[1:], strict=True))

    def draw(self, block: int, start: int, stop: int) -> Floats:
        """Return the counts of a block for some replicates; call in the order of replicates.

        The array is overwritten by the next call.
        """
        size = self.edges[block + 1] - self.edges[block]
        totals = self._totals[start:stop, block]
        stream = self._streams[block]
        # Fresh memory for every chunk would cost as much as the drawing.
        if self._buffer.size < (stop - start) * size:
            self._buffer = np.empty((stop - start) * size)
        counts = self._buffer[: (stop - start) * size].reshape(stop - start, size)
        # Small blocks are drawn several replicates at a time, to save calls.
        step = max(1, BLOCK // size)
        for row in range(0, stop - start, step):
            some = totals[row : row + step]
            drawn = stream.integers(0, size, size=int(some.sum()))
            if step > 1:
                drawn += np.repeat(np.arange(len(some)) * size, some)
            flat = np.bincount(drawn, minlength=len(some) * size)
            counts[row : row + step] = flat.reshape(len(some), size)
        return counts

    def draw_all(self, start: int, stop: int) -> Floats:
        """Return the counts of all units for some replicates."""
        counts = np.empty((stop - start, self.edges[-1]))
        for block, (low, high) in enumerate(self.blocks):
            counts[:, low:high] = self.draw(block, start, stop)
        return counts
