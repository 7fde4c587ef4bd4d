"""Word and character n-grams as hashes, counted and weighed text by text (internal)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.errors import require

require("numba", "detectors")

import numba  # noqa: E402 - the install line comes first when numba is absent

_PRIME = np.uint64(0x100000001B3)
_WORD = np.uint64(0xCBF29CE484222325)
_CHARS = np.uint64(0x84222325CBF29CE4)
_SHIFT = np.uint64(32)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "cache": True}


# All in one file: numba's cache looks at the file of a function alone.
@numba.njit(inline="always", **_options)
def _finished(h):  # type: ignore[no-untyped-def]
    h = (h ^ (h >> _SHIFT)) * _MIX
    # 0 marks an empty place of the table.
    return (h ^ (h >> _SHIFT)) | _ONE


@numba.njit(**_options)
def _grams(codes, kinds, begin, end, words, low, high, out):  # type: ignore[no-untyped-def]
    """Write the hashes of a text's word and character n-grams; return how many of each.

    `kinds` is 1 for word characters, 2 for white space, 0 for others. Words are runs of at least
    two word characters; character n-grams lie in runs without white space, with one space before
    and after, as scikit-learn's ``char_wb`` has them.
    """
    count = 0
    previous = np.uint64(0)
    at = begin
    while at < end:
        if kinds[at] != 1:
            at += 1
            continue
        h = _WORD
        first = at
        while at < end and kinds[at] == 1:
            h = (h ^ np.uint64(codes[at])) * _PRIME
            at += 1
        if at - first >= 2:
            out[count] = _finished(h)
            count += 1
            if words > 1 and previous != np.uint64(0):
                out[count] = _finished((previous * _PRIME) ^ h)
                count += 1
            previous = h
    n_words = count
    at = begin
    while at < end:
        if kinds[at] == 2:
            at += 1
            continue
        first = at
        while at < end and kinds[at] != 2:
            at += 1
        size = at - first + 2
        for offset in range(size if size >= low else 1):
            h = _CHARS
            reach = min(high, size - offset)
            for n in range(reach):
                place = offset + n
                c = 32 if place == 0 or place == size - 1 else codes[first + place - 1]
                h = (h ^ np.uint64(c)) * _PRIME
                if n + 1 >= low or n + 1 == size:
                    out[count] = _finished(h)
                    count += 1
    return n_words, count


@numba.njit(**_options)
def emit(codes, kinds, begins, ends, words, low, high, room):  # type: ignore[no-untyped-def]
    """Return the distinct hashes of each text, one after another, and how many each has."""
    found = np.empty(room, dtype=np.uint64)
    sizes = np.empty(len(begins), dtype=np.int64)
    buffer = np.empty(room, dtype=np.uint64)
    total = 0
    for text in range(len(begins)):
        _, count = _grams(codes, kinds, begins[text], ends[text], words, low, high, buffer)
        part = np.sort(buffer[:count])
        start = total
        for k in range(count):
            if k == 0 or part[k] != part[k - 1]:
                found[total] = part[k]
                total += 1
        sizes[text] = total - start
    return found[:total], sizes


@numba.njit(inline="always", **_options)
def _feature(h, table, slots):  # type: ignore[no-untyped-def]
    """Return the number of a hash in the table; -1 if it is no feature."""
    mask = np.uint64(len(table) - 1)
    place = (h >> np.uint64(20)) & mask
    while table[place] != np.uint64(0):
        if table[place] == h:
            return slots[place]
        place = (place + _ONE) & mask
    return np.int32(-1)


@numba.njit(**_options)
def _counted(buffer, start, stop, table, slots, counts, touched):  # type: ignore[no-untyped-def]
    n = 0
    for k in range(start, stop):
        feature = _feature(buffer[k], table, slots)
        if feature >= 0:
            if counts[feature] == 0:
                touched[n] = feature
                n += 1
            counts[feature] += 1
    return n


@numba.njit(**_options)
def count_features(  # type: ignore[no-untyped-def]
    codes, kinds, begins, ends, words, low, high, longest, table, slots, idf, room
):
    """Return the tf-idf matrix as (values, features, sizes); words and characters normed apart."""
    values = np.empty(room, dtype=np.float32)
    features = np.empty(room, dtype=np.int32)
    sizes = np.empty(len(begins), dtype=np.int64)
    buffer = np.empty(longest, dtype=np.uint64)
    touched = np.empty(longest, dtype=np.int32)
    counts = np.zeros(len(idf), dtype=np.int32)
    total = 0
    for text in range(len(begins)):
        n_words, count = _grams(codes, kinds, begins[text], ends[text], words, low, high, buffer)
        start = total
        for part in range(2):
            a, b = (0, n_words) if part == 0 else (n_words, count)
            n = _counted(buffer, a, b, table, slots, counts, touched)
            norm = 0.0
            here = total
            for k in range(n):
                feature = touched[k]
                weight = idf[feature]
                if counts[feature] > 1:
                    weight *= 1 + np.log(counts[feature])
                counts[feature] = 0
                norm += weight * weight
                values[total] = weight
                features[total] = feature
                total += 1
            if norm > 0:
                scale = 1 / np.sqrt(norm)
                for k in range(here, total):
                    values[k] *= scale
        sizes[text] = total - start
    return values[:total], features[:total], sizes


@numba.njit(**_options)
def score_texts(  # type: ignore[no-untyped-def]
    codes, kinds, begins, ends, words, low, high, longest, table, slots, idf, weights, intercept
):
    """Return the outputs of a linear model, texts x outputs, without building a matrix."""
    outputs = len(intercept)
    result = np.empty((len(begins), outputs), dtype=np.float64)
    buffer = np.empty(longest, dtype=np.uint64)
    touched = np.empty(longest, dtype=np.int32)
    counts = np.zeros(len(idf), dtype=np.int32)
    sums = np.empty(outputs, dtype=np.float64)
    for text in range(len(begins)):
        n_words, count = _grams(codes, kinds, begins[text], ends[text], words, low, high, buffer)
        for k in range(outputs):
            result[text, k] = intercept[k]
        for part in range(2):
            a, b = (0, n_words) if part == 0 else (n_words, count)
            n = _counted(buffer, a, b, table, slots, counts, touched)
            norm = 0.0
            sums[:] = 0.0
            for i in range(n):
                feature = touched[i]
                weight = idf[feature]
                if counts[feature] > 1:
                    weight *= 1 + np.log(counts[feature])
                counts[feature] = 0
                norm += weight * weight
                for k in range(outputs):
                    sums[k] += weight * weights[feature, k]
            if norm > 0:
                scale = 1 / np.sqrt(norm)
                for k in range(outputs):
                    result[text, k] += sums[k] * scale
    return result


def build_table(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Return an open-addressed table from hash to its place in `hashes`."""
    size = 1 << max(4, int(np.ceil(np.log2(max(len(hashes), 1) * 2))))
    table = np.zeros(size, dtype=np.uint64)
    slots = np.full(size, -1, dtype=np.int32)
    _fill(hashes, table, slots)
    return table, slots


@numba.njit(**_options)
def _fill(hashes, table, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    for number in range(len(hashes)):
        place = (hashes[number] >> np.uint64(20)) & mask
        while table[place] != np.uint64(0):
            place = (place + _ONE) & mask
        table[place] = hashes[number]
        slots[place] = number
