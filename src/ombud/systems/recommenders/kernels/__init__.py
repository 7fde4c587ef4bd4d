"""Compiled inner loops of the recommenders: arrays in, arrays out, one idea per file.

Nothing here is imported before a model needs it, so numba stays optional. Every parallel kernel
gives the same bits for any number of threads: each row, user or cell of work is computed by one
thread in a fixed order, and sums over several of them are added up in a fixed order.
"""

from __future__ import annotations

__all__: list[str] = []
