"""How kernels are compiled, cached and given their threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar, cast

from ombud.errors import require

require("numba", "models")

import numba  # noqa: E402 - the install line comes first when numba is absent
from numba.core import event  # noqa: E402

from ombud.systems.recommenders.kernels._first_use import FromCache  # noqa: E402
from ombud.systems.recommenders.kernels.compiling import say_compiling  # noqa: E402

Function = TypeVar("Function", bound=Callable[..., Any])

prange = numba.prange

# GNU OpenMP, numba's usual choice, spins between kernels (1 ms of CPU time for each) and forbids a
# later fork; numba's own pool does neither, but must not be entered by two Python threads at once.
_config: Any = numba.config
if _config.THREADING_LAYER == "default":
    _config.THREADING_LAYER = "workqueue"
_pool = RLock()


class _Compiling(event.Listener):
    """Says which kernel is compiled; what kernels call is compiled with them, and not named."""

    def __init__(self) -> None:
        self.depth = 0

    def on_start(self, event: Any) -> None:
        if self.depth == 0:
            say_compiling(str(event.data["dispatcher"].py_func.__name__))
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1


_register: Any = event.register  # it has no types
_register("numba:compile", _Compiling())


def kernel(
    *, parallel: bool = False, fastmath: bool | set[str] = False
) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function and caches the result on disk where it can.

    The cache goes beside the source, into ``NUMBA_CACHE_DIR``, or into the user's cache folder,
    whichever can be written; where none can, the kernel is compiled anew in each process. Numba
    looks only at the file of a cached function; a kernel may call those of other files, so here
    what is cached also depends on all files of its folder and of this one.

    Parameters
    ----------
    parallel
        Whether `prange` loops are shared between threads.
    fastmath
        Whether sums may be reordered when the code is compiled. The order is then fixed, so the
        result still does not depend on the number of threads, nor on whether the kernel was
        cached.
    """

    def decorate(function: Function) -> Function:
        options: dict[str, Any] = {
            "parallel": parallel,
            "fastmath": fastmath,
            "nogil": True,
            "error_model": "numpy",
        }
        return cast(Function, _compiled(function, options))

    return decorate


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        made: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no folder that it may write to
        return numba.njit(**options)(function)
    # Numba has no public way to say what else a cached function depends on.
    made._cache._cache_file._source_stamp = _stamp(Path(function.__code__.co_filename).parent)
    if options["parallel"] and options["fastmath"]:
        made._cache = FromCache(made._cache, function)
    return made


@cache
def _stamp(folder: Path) -> str:
    """Return a hash of the sources that a kernel of a folder may call."""
    files = {*folder.glob("*.py"), *Path(__file__).parent.glob("*.py")}
    digest = sha256()
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


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
