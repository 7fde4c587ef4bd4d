"""Matrix products on one thread.

Replicates are sums of many small products, with drawing between them. A BLAS that shares each of
them out between threads spends more time waiting than multiplying: its threads spin, and on a
machine that does other work too they spin for each other's turn.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_thread"]


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, so once


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which products of matrices run on the thread that asks for them."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
