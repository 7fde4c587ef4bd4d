"""Matrix products on one thread.

Replicates are sums of many small products, with drawing between them. A BLAS that shares each of
them out between threads spends more time waiting than multiplying: its threads spin, and on a
machine that does other work too they spin for each other's turn.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:  # statistics run with numpy and scipy alone, then on all threads
        return None
    return ThreadpoolController()  # looks through all loaded libraries, so once


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which products of matrices run on the thread that asks for them."""
    controller = _controller()
    if controller is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = controller.limit(limits=1, user_api="blas")
    return limited
