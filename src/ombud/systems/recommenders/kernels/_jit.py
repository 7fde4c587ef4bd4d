"""How kernels are compiled, cached and given their threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, TypeVar

from ombud.errors import require

require("numba", "models")

import numba  # noqa: E402 - the install line comes first when numba is absent

__all__ = ["kernel", "prange", "workers"]

Function = TypeVar("Function", bound=Callable[..., Any])

prange = numba.prange

# GNU OpenMP, numba's usual choice, spins between kernels (1 ms of CPU time for each) and forbids a
# later fork; numba's own pool does neither, but must not be entered by two Python threads at once.
_config: Any = numba.config
if _config.THREADING_LAYER == "default":
    _config.THREADING_LAYER = "workqueue"
_pool = RLock()


def kernel(
    *, parallel: bool = False, fastmath: bool | set[str] = False
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function and caches the result on disk where it can.

    The cache goes beside the source, into ``NUMBA_CACHE_DIR``, or into the user's cache folder,
    whichever can be written; where none can, the kernel is compiled anew in each process. Numba
    looks only at the file of a cached function, so a kernel calls none of another file.

    Parameters
    ----------
    parallel
        Whether `prange` loops are shared between threads.
    fastmath
        Whether sums may be reordered when the code is compiled. The order is then fixed, so the
        result still does not depend on the number of threads.
    """

    def decorate(function: Function) -> Function:
        options: dict[str, Any] = {
            "parallel": parallel,
            "fastmath": fastmath,
            "nogil": True,
            "error_model": "numpy",
        }
        try:
            compiled: Function = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no folder that it may write to
            compiled = numba.njit(**options)(function)
        return compiled

    return decorate


@contextmanager
def workers(threads: int | None) -> Iterator[int]:
    """Run kernels with so many threads (None: all there are), one caller at a time."""
    most = int(_config.NUMBA_NUM_THREADS)
    count = most if threads is None else max(1, min(threads, most))
    with _pool:
        before = numba.get_num_threads()
        numba.set_num_threads(count)
        try:
            yield count
        finally:
            numba.set_num_threads(before)
