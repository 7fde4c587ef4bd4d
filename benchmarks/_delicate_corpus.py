"""A corpus of any size, made quickly: web-archive files of paragraphs, some with delicate terms."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

__all__ = ["Wet", "sentences"]

SEED = 20261116
GZIP = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
LETTERS = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))


def words(rng: np.random.Generator, count: int) -> list[str]:
    weights = 1 / np.arange(1, 27)
    sizes = rng.integers(2, 10, count)
    letters = rng.choice(LETTERS, p=weights / weights.sum(), size=int(sizes.sum()))
    ends = np.cumsum(sizes)
    return ["".join(letters[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def sentences(count: int, share_with_term: float = 0.03, seed: int = SEED) -> list[str]:
    """Sentences of made-up words, of which a share holds a term of the dictionary."""
    from ombud.taxonomy import load_dictionary

    rng = np.random.default_rng(seed)
    vocabulary = words(rng, 50_000)
    rank = np.minimum(rng.zipf(1.3, count * 12), 50_000) - 1
    terms = load_dictionary("delicate@1").texts
    made = []
    sizes = rng.integers(6, 18, count)
    has_term = rng.random(count) < share_with_term
    chosen = rng.integers(0, len(terms), count)
    at = 0
    for size, has, term in zip(sizes.tolist(), has_term.tolist(), chosen.tolist(), strict=True):
        picked = [vocabulary[i] for i in rank[at : at + size].tolist()]
        at = (at + size) % (len(rank) - 20)
        if has:
            picked[size // 2] = terms[term]
        made.append(" ".join(picked).capitalize() + ".")
    return made


class Wet:
    """Writes web-archive files of pages quickly: sentences are packed once, pages put together.

    A deflated piece that ends in a full flush means the same wherever it stands, so a page's
    compressed form is that of its sentences, one after the other; only its checksum is new. Every
    paragraph is still a draw of sentences of its own, and is unpacked byte for byte like any
    other. Files are larger than gzip would make them.
    """

    def __init__(self) -> None:
        pool = [text.encode() for text in sentences(60_000)]
        # Every sentence twice: within a paragraph, and at its end.
        self.plain = [text + end for text in pool for end in (b" ", b"\n")]
        self.packed = [packed(text) for text in self.plain]

    def write(self, path: Path, megabytes: int, seed: int = SEED) -> int:
        """Write a WET file as gzip and return how many pages it has; 5% of paragraphs repeat."""
        rng = np.random.default_rng(seed)
        written = pages = 0
        with path.open("wb") as out:
            while written < megabytes * 1_000_000:
                for codes in self.draw(rng, 500):
                    written += self.page(out, codes, f"{seed}/{pages}", pages)
                    pages += 1
        return pages

    def draw(self, rng: np.random.Generator, pages: int) -> Iterator[list[int]]:
        """Yield the sentences of some pages of 5 to 24 paragraphs of 2 to 6 sentences."""
        paragraphs = rng.integers(5, 25, pages)
        sizes = rng.integers(2, 7, int(paragraphs.sum()))
        again = rng.random(len(sizes)) < 0.05
        sizes[again] = 3
        ends = np.cumsum(sizes)
        codes = 2 * rng.integers(0, len(self.plain) // 2, int(ends[-1]))
        codes[ends[again, None] - [3, 2, 1]] = [14, 16, 18]
        codes[ends - 1] += 1
        listed, at = codes.tolist(), 0
        for end in ends[np.cumsum(paragraphs) - 1].tolist():
            yield listed[at:end]
            at = end

    def page(self, out: IO[bytes], codes: list[int], name: str, number: int) -> int:
        """Write one record and return the size of its text."""
        plain = b"".join([self.plain[code] for code in codes])
        head = (
            "WARC/1.0\r\nWARC-Type: conversion\r\n"
            f"WARC-Target-URI: https://site{number % 97}.example.org/{name}\r\n"
            f"WARC-Date: 2022-08-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{number:032d}>\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(plain)}\r\n\r\n"
        ).encode()
        whole = head + plain + b"\r\n\r\n"
        parts = [GZIP, stored(head), *[self.packed[code] for code in codes]]
        parts += [
            stored(b"\r\n\r\n", final=True),
            struct.pack("<II", zlib.crc32(whole), len(whole)),
        ]
        out.write(b"".join(parts))
        return len(plain)


def packed(text: bytes) -> bytes:
    """Return a text deflated so that it can stand anywhere in a stream."""
    making = zlib.compressobj(6, zlib.DEFLATED, -15)
    return making.compress(text) + making.flush(zlib.Z_FULL_FLUSH)


def stored(text: bytes, *, final: bool = False) -> bytes:
    """Return a text as a block of deflate that is not compressed."""
    return struct.pack("<BHH", int(final), len(text), len(text) ^ 0xFFFF) + text
