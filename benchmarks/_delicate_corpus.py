"""A corpus of any size, made quickly: web-archive files of paragraphs, some with delicate terms."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

__all__ = ["sentences", "write_wet"]

SEED = 20261116
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


def write_wet(path: Path, megabytes: int, seed: int = SEED) -> int:
    """Write a WET file as gzip and return how many pages it has; 5% of paragraphs repeat."""
    pool = sentences(60_000)
    rng = np.random.default_rng(seed)
    written = pages = 0
    with path.open("wb") as out:
        while written < megabytes * 1_000_000:
            paragraphs = []
            for size in rng.integers(2, 7, int(rng.integers(5, 25))).tolist():
                again = rng.random() < 0.05
                picks = [7, 8, 9] if again else rng.integers(0, len(pool), size).tolist()
                paragraphs.append(" ".join([pool[i] for i in picks]))
            body = "\n".join(paragraphs).encode()
            head = (
                "WARC/1.0\r\nWARC-Type: conversion\r\n"
                f"WARC-Target-URI: https://site{pages % 97}.example.org/{seed}/{pages}\r\n"
                f"WARC-Date: 2022-08-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{pages:032d}>\r\n"
                f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
            ).encode()
            out.write(gzip.compress(head + body + b"\r\n\r\n", 1))
            written += len(body)
            pages += 1
    return pages
