"""Near duplicates among texts: MinHash signatures and a streaming index of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ombud.rng import generator
from ombud.text.folding import fold
from ombud.text.matching import word_table

_U64 = NDArray[np.uint64]
_U32 = NDArray[np.uint32]
_Ints = NDArray[np.int64]
_BLOCK_CHARACTERS = 400_000
_BLOCK_SHINGLES = 1 << 14
_CROWD = 8
_SEAM = "\0"


def _mixed(values: _U64) -> _U64:
    """Return well-mixed 64-bit values (the finaliser of splitmix64)."""
    mixed = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def _word_hashes(texts: Sequence[str]) -> tuple[_U64, _Ints]:
    """Return the hashes of all words in order, and how many words each text has."""
    parts = [text.lower() if text.isascii() else fold(text) for text in texts]
    folded = _SEAM.join(parts)
    if folded.count(_SEAM) >= len(parts):
        folded = _SEAM.join([part.replace(_SEAM, " ") for part in parts])
    codes = np.frombuffer((_SEAM + folded + _SEAM).encode("utf-32-le"), dtype=np.uint32)
    word = word_table()[codes]
    edges = np.flatnonzero(word[1:] != word[:-1]) + 1
    starts, ends = edges[0::2], edges[1::2]
    seams = np.flatnonzero(codes == 0)
    counts = np.diff(np.searchsorted(starts, seams)).astype(np.int64)
    if not len(starts):
        return np.empty(0, dtype=np.uint64), counts
    # A letter counts with its place in the word, so that anagrams differ.
    sizes = ends - starts
    first = np.cumsum(sizes) - sizes
    place = np.arange(first[-1] + sizes[-1]) - np.repeat(first, sizes)
    letters = codes[word].astype(np.uint64) << np.uint64(32) | place.astype(np.uint64)
    return _mixed(np.add.reduceat(_mixed(letters), first)), counts


def _shingles(texts: Sequence[str], words: int) -> tuple[_U64, _Ints]:
    """Return the hashes of all runs of some words, and where each text's begin.

    A text of fewer words is one shingle of all its words; a text without words is one of its own.
    """
    hashes, counts = _word_hashes(texts)
    ends = np.cumsum(counts)
    begins = ends - counts
    sizes = np.maximum(counts - words + 1, 1)
    starts = np.cumsum(sizes) - sizes
    row = np.repeat(np.arange(len(texts)), sizes)
    at = begins[row] + np.arange(len(row)) - starts[row]
    mixed = np.zeros(len(row), dtype=np.uint64)
    for offset in range(words):
        here = at + offset
        inside = here < ends[row]
        value = np.zeros(len(row), dtype=np.uint64)
        value[inside] = hashes[here[inside]]
        mixed = _mixed(mixed + value + np.uint64(0x9E3779B97F4A7C15))
    for index in np.flatnonzero(counts == 0).tolist():
        mixed[starts[index]] = _text_hash(texts[index])
    return mixed, starts


def _text_hash(text: str) -> np.uint64:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    place = np.arange(len(codes), dtype=np.uint64)
    return np.uint64(_mixed(codes.astype(np.uint64) << np.uint64(32) | place).sum(dtype=np.uint64))


def _blocks(texts: Sequence[str]) -> Iterable[tuple[int, int]]:
    start, size = 0, 0
    for index, text in enumerate(texts):
        if size and size + len(text) > _BLOCK_CHARACTERS:
            yield start, index
            start, size = index, 0
        size += len(text)
    if start < len(texts):
        yield start, len(texts)


@lru_cache(maxsize=8)
def _multipliers(permutations: int, seed: int) -> tuple[_U64, _U64]:
    draw = generator(seed, "minhash")
    odd = draw.integers(0, 2**63, permutations, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    return odd, draw.integers(0, 2**63, permutations, dtype=np.uint64)


def minhash(
    texts: Sequence[str], *, permutations: int = 128, words: int = 3, seed: int = 0
) -> _U32:
    r"""Return MinHash signatures, texts x permutations.

    The share of equal entries of two signatures estimates the Jaccard similarity of the texts'
    sets of word runs, :math:`|A \cap B| / |A \cup B|`, with standard error
    :math:`\sqrt{J(1-J)/\text{permutations}}`. Case, punctuation and spacing do not count. Word
    order counts only inside a run; meaning does not count at all.

    Parameters
    ----------
    texts
        The texts.
    permutations
        The length of a signature.
    words
        The number of words in a run.
    seed
        Chooses the hash functions; signatures of different seeds cannot be compared.

    References
    ----------
    Broder (1997), On the resemblance and containment of documents.

    Examples
    --------
    >>> one, two = minhash(["the cat sat on the mat", "The cat sat on the mat."])
    >>> bool((one == two).all())
    True
    """
    factors, shifts = _multipliers(permutations, seed)
    parts = [np.empty((0, permutations), dtype=np.uint32)]
    for start, end in _blocks(texts):
        hashes, begins = _shingles(texts[start:end], words)
        out = np.empty((permutations, end - start), dtype=np.uint32)
        # A part of the shingles at a time, so that it stays in the cache for all permutations.
        edges = np.append(begins, len(hashes))
        row = 0
        while row < end - start:
            last = int(np.searchsorted(edges, edges[row] + _BLOCK_SHINGLES, side="right")) - 1
            last = min(max(last, row + 1), end - start)
            part = hashes[edges[row] : edges[last]]
            inside = begins[row:last] - edges[row]
            for index in range(permutations):
                values = ((part * factors[index] + shifts[index]) >> np.uint64(32)).astype(
                    np.uint32
                )
                out[index, row:last] = np.minimum.reduceat(values, inside)
            row = last
        parts.append(np.ascontiguousarray(out.T))
    return np.concatenate(parts)


def content_keys(texts: Sequence[str], seed: int = 0) -> _U64:
    """Return a 64-bit key of each text's words: equal for texts that differ in form alone.

    Case, punctuation and spacing do not count. The keys of different words are spread evenly, so
    the smallest keys are a random sample of distinct texts, whatever the order of reading.

    Examples
    --------
    >>> one, two, three = content_keys(["Hello, world", "hello WORLD!", "world hello"])
    >>> bool(one == two), bool(one == three)
    (True, False)
    """
    salt = generator(seed, "content").integers(0, 2**63, dtype=np.uint64)
    parts = [np.empty(0, dtype=np.uint64)]
    for start, end in _blocks(texts):
        block = texts[start:end]
        hashes, counts = _word_hashes(block)
        ends = np.cumsum(counts)
        place = np.arange(len(hashes)) - np.repeat(ends - counts, counts)
        placed = _mixed(hashes + place.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(placed, dtype=np.uint64)))
        keys = sums[ends] - sums[ends - counts]
        for index in np.flatnonzero(counts == 0).tolist():
            keys[index] = _text_hash(block[index])
        parts.append(_mixed(keys ^ salt))
    return np.concatenate(parts)


@lru_cache(maxsize=64)
def best_bands(threshold: float, permutations: int) -> tuple[int, int]:
    """Return bands and rows that waste least: pairs below the threshold met, pairs above missed.

    Two signatures meet when all rows of any band are equal, with probability
    ``1 - (1 - J**rows)**bands``. The areas of the two errors over J are added and minimised, a
    miss counted nine times: pairs that meet in vain cost one comparison and no error.

    References
    ----------
    Leskovec, Rajaraman and Ullman (2014), *Mining of Massive Datasets*, section 3.4.

    Examples
    --------
    >>> best_bands(0.8, 128)
    (14, 9)
    """
    below = np.linspace(0, threshold, 200)
    above = np.linspace(threshold, 1, 200)
    best, chosen = np.inf, (1, 1)
    for bands in range(1, permutations + 1):
        for rows in range(1, permutations // bands + 1):
            met = float(np.trapezoid(1 - (1 - below**rows) ** bands, below))
            missed = float(np.trapezoid((1 - above**rows) ** bands, above))
            if (error := 0.1 * met + 0.9 * missed) < best:
                best, chosen = error, (bands, rows)
    return chosen


class NearDuplicates:
    """An index of texts that tells whether a new one nearly repeats an earlier one.

    Texts may come in any number of calls.
    Memory grows by about 0.7 KiB for each text kept, whatever its length.

    Parameters
    ----------
    threshold
        Jaccard similarity of the sets of word runs from which two texts are near duplicates.
    permutations, words, seed
        As in `minhash`.

    Examples
    --------
    >>> seen = NearDuplicates(0.7)
    >>> seen.add(["one two three four five six", "quite another text it is, this one"]).tolist()
    [-1, -1]
    >>> seen.add(["One two three, four five six!"]).tolist()
    [0]
    """

    def __init__(
        self, threshold: float = 0.8, *, permutations: int = 128, words: int = 3, seed: int = 0
    ) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"threshold is {threshold}; it must be above 0 and at most 1")
        self.threshold, self.permutations, self.words, self.seed = (
            threshold,
            permutations,
            words,
            seed,
        )
        self.bands, self.rows = best_bands(threshold, permutations)
        self._signatures = np.empty((0, permutations), dtype=np.uint32)
        # Where the signature of each kept text lies; -1 once it was removed.
        self._slots = np.empty(0, dtype=np.int64)
        self._free: list[int] = []
        self._size = 0
        # Sorted runs of keys, each at least twice as long as the next: few to search, few merges.
        self._runs: list[tuple[_U64, _Ints]] = []

    def __len__(self) -> int:
        return len(self._signatures) - len(self._free)

    def _keys(self, signatures: _U32) -> _U64:
        keys = np.empty((len(signatures), self.bands), dtype=np.uint64)
        for band in range(self.bands):
            key = np.full(len(signatures), band + 1, dtype=np.uint64)
            for row in range(band * self.rows, (band + 1) * self.rows):
                key = key * np.uint64(0x9E3779B97F4A7C15) + signatures[:, row]
                key ^= key >> np.uint64(29)
            keys[:, band] = _mixed(key)
        return keys

    def add(self, texts: Sequence[str], *, groups: Sequence[int] | _Ints | None = None) -> _Ints:
        """Keep the texts that repeat nothing, and say which earlier text each other one repeats.

        Only texts of the same group are compared; None compares all.

        Returns
        -------
        numpy.ndarray
            -1 for a text that was kept; otherwise the number of the kept text that it repeats.
            Texts are numbered from 0 in the order in which they were kept; see `size`.
        """
        signatures = minhash(
            texts, permutations=self.permutations, words=self.words, seed=self.seed
        )
        keys = self._keys(signatures)
        if groups is not None:
            keys = _mixed(keys + np.asarray(groups, dtype=np.uint64)[:, None])
        pairs = self._old_pairs(signatures, keys), _new_pairs(keys)
        repeats = np.full(len(texts), -1, dtype=np.int64)
        row, old = pairs[0]
        # The earliest kept text counts.
        order = np.lexsort((old, row))[::-1]
        repeats[row[order]] = old[order]
        free = np.flatnonzero(repeats < 0)
        later, earlier = self._verified(*pairs[1], signatures)
        within: dict[int, list[int]] = {}
        for b, a in zip(later.tolist(), earlier.tolist(), strict=True):
            within.setdefault(b, []).append(a)
        number = np.full(len(texts), -1, dtype=np.int64)
        if not within:
            number[free] = self._size + np.arange(len(free))
        else:
            next_number = self._size
            for index in free.tolist():
                kept = [number[a] for a in sorted(within.get(index, ())) if number[a] >= 0]
                if kept:
                    repeats[index] = kept[0]
                else:
                    number[index] = next_number
                    next_number += 1
        kept_rows = np.flatnonzero(number >= 0)
        self._insert(signatures[kept_rows], keys[kept_rows])
        return repeats

    @property
    def size(self) -> int:
        """How many texts were kept so far, those removed since included."""
        return self._size

    def remove(self, numbers: Sequence[int] | _Ints) -> None:
        """Forget kept texts by their numbers, so that later texts may repeat them."""
        gone = np.unique(np.asarray(numbers, dtype=np.int64))
        gone = gone[self._slots[gone] >= 0]
        self._free += self._slots[gone].tolist()
        self._slots[gone] = -1
        if sum(len(run) for run, _ in self._runs) > 2 * self.bands * (len(self) + 1024):
            self._merge(len(self._runs))

    def _verified(self, one: _Ints, two: _Ints, signatures: _U32) -> tuple[_Ints, _Ints]:
        alike = np.empty(len(one), dtype=np.float64)
        for at in range(0, len(one), 4096):
            part = slice(at, at + 4096)
            alike[part] = (signatures[one[part]] == signatures[two[part]]).mean(axis=1)
        keep = alike >= self.threshold
        return one[keep], two[keep]

    def _old_pairs(self, signatures: _U32, keys: _U64) -> tuple[_Ints, _Ints]:
        rows: list[_Ints] = [np.empty(0, dtype=np.int64)]
        owners: list[_Ints] = [np.empty(0, dtype=np.int64)]
        flat = keys.ravel()
        order = np.argsort(flat)
        ordered = flat[order]
        for run, owner in self._runs:
            low = np.searchsorted(run, ordered)
            high = np.searchsorted(run, ordered, side="right")
            counts = high - low
            met = np.flatnonzero(counts)
            if len(met):
                sizes = counts[met]
                begin = np.repeat(low[met], sizes)
                step = np.arange(len(begin)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
                rows.append(np.repeat(order[met] // self.bands, sizes))
                owners.append(owner[begin + step])
        row, old = np.concatenate(rows), np.concatenate(owners)
        if not len(row):
            return row, old
        live = self._slots[old] >= 0
        pair = np.unique(row[live] * (self._size + 1) + old[live])
        row, old = pair // (self._size + 1), pair % (self._size + 1)
        alike = np.empty(len(row), dtype=np.float64)
        for at in range(0, len(row), 4096):
            part = slice(at, at + 4096)
            equal = signatures[row[part]] == self._signatures[self._slots[old[part]]]
            alike[part] = equal.mean(axis=1)
        keep = alike >= self.threshold
        return row[keep], old[keep]

    def _insert(self, signatures: _U32, keys: _U64) -> None:
        count = len(signatures)
        if not count:
            return
        if len(self._free) < count:
            before = len(self._signatures)
            room = max(2 * before, before + count, 1024)
            grown = np.empty((room, self.permutations), dtype=np.uint32)
            grown[:before] = self._signatures
            self._signatures = grown
            self._free += range(before, room)
        slots = np.array([self._free.pop() for _ in range(count)], dtype=np.int64)
        self._signatures[slots] = signatures
        if self._size + count > len(self._slots):
            longer = np.full(max(2 * len(self._slots), self._size + count, 1024), -1)
            longer[: self._size] = self._slots[: self._size]
            self._slots = longer
        numbers = np.arange(self._size, self._size + count)
        self._slots[numbers] = slots
        self._size += count
        flat = keys.ravel()
        order = np.argsort(flat, kind="stable")
        self._runs.append((flat[order], np.repeat(numbers, self.bands)[order]))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._merge(2)

    def _merge(self, count: int) -> None:
        """Join the last runs into one, without the keys of texts that were removed."""
        parts = self._runs[len(self._runs) - count :]
        run, owner = (np.concatenate(part) for part in zip(*parts, strict=True))
        live = self._slots[owner] >= 0
        run, owner = run[live], owner[live]
        order = np.argsort(run, kind="stable")
        self._runs[len(self._runs) - count :] = [(run[order], owner[order])]


def _new_pairs(keys: _U64) -> tuple[_Ints, _Ints]:
    """Return pairs (later, earlier) of rows that share a key."""
    bands = keys.shape[1] if keys.ndim == 2 else 1
    flat = keys.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    rows = (order // bands).astype(np.int64)
    new = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(flat) else np.empty(0, bool)
    begins = np.flatnonzero(new)
    sizes = np.diff(np.append(begins, len(flat)))
    first = np.repeat(begins, sizes)
    rank = np.arange(len(flat)) - first
    # Every row of a crowd is compared with its first few: enough to find one that is kept.
    later, earlier = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for place in range(min(_CROWD, int(sizes.max(initial=1)) - 1)):
        behind = np.flatnonzero(rank > place)
        later.append(rows[behind])
        earlier.append(rows[first[behind] + place])
    one, two = np.concatenate(later), np.concatenate(earlier)
    one, two = np.maximum(one, two), np.minimum(one, two)
    pair = np.unique(one[one > two] * (len(keys) + 1) + two[one > two])
    return pair // (len(keys) + 1), pair % (len(keys) + 1)
