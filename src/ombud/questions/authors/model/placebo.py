"""A placebo attribute: what the model says when there is nothing to find."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray


def placebo_codes(items: Iterable[object], seed: int = 0) -> NDArray[np.int8]:
    """Return 0 or 1 for each item: the parity of a hash of its id.

    An item keeps its code whatever else is in the data; another seed gives another placebo.

    Parameters
    ----------
    items
        Their ids, as they print.
    seed
        Which placebo.

    Examples
    --------
    >>> placebo_codes(["a", "b", "c", "d", "e"]).tolist() == placebo_codes("abcde").tolist()
    True
    """
    key = f"ombud placebo {seed}".encode()
    found = [blake2b(str(item).encode(), digest_size=1, key=key).digest()[0] & 1 for item in items]
    return np.array(found, dtype=np.int8)
