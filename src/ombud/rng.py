"""Randomness by name: one seed gives every part of an audit its own stream."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def generator(seed: int, *names: str) -> np.random.Generator:
    """Return a generator that depends on the seed and on the names, and on nothing else.

    Two parts of an audit that use different names get independent streams, so adding a metric
    does not change the numbers of another.

    Parameters
    ----------
    seed
        The seed of the whole run, zero or more.
    names
        What the stream is for, from the general to the particular.

    Examples
    --------
    >>> a, b = generator(1, "bootstrap", "ndcg"), generator(1, "bootstrap", "ndcg")
    >>> bool(a.integers(1000) == b.integers(1000))
    True
    """
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must be zero or more")
    digest = blake2b("\x1f".join(names).encode(), digest_size=16).digest()
    text = np.frombuffer(digest, dtype=np.uint32).tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *text]))
