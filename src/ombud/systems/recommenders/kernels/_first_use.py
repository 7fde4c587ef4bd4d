"""The first use of a kernel gives what every later one gives.

Numba compiles the body of a parallel loop for the process at hand, and optimizes it once more for
the file that it caches. Where sums may be reordered the two differ in their last digits, so the
first run on a machine would give other numbers than all later ones. Such kernels are therefore
compiled by a process of their own, and always loaded from the cache.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numba
import numpy as np
from numba import types

from ombud.systems.recommenders.kernels.compiling import say_compiling

_INSIDE = "OMBUD_COMPILING"
_SECONDS = 600


class FromCache:
    """Numba's cache of one kernel, filled by another process.

    Where that process fails, or an argument is neither an array nor a number, the kernel is
    compiled here, as numba does.
    """

    def __init__(self, cache: Any, function: Callable[..., Any]) -> None:
        self._cache = cache
        self._function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return what is cached for some types of arguments; None if nothing is."""
        kept = self._cache.load_overload(signature, target)
        if kept is None and self._compiled_elsewhere(signature):
            kept = self._cache.load_overload(signature, target)
        return kept

    def _compiled_elsewhere(self, signature: Any) -> bool:
        module, name = self._function.__module__, self._function.__qualname__
        given = signature if isinstance(signature, tuple) else signature.args
        arguments = [_described(one) for one in given]
        # A script and a function within another cannot be imported by name.
        hidden = module == "__main__" or not name.isidentifier()
        if _INSIDE in os.environ or hidden or None in arguments or not sys.executable:
            return False
        path = os.pathsep.join(filter(None, sys.path))
        say_compiling(name)
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__, module, name, json.dumps(arguments)],
                env=os.environ | {_INSIDE: "1", "PYTHONPATH": path, "OMBUD_PLUGINS": "none"},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def _described(argument: Any) -> list[Any] | None:
    if isinstance(argument, types.Array) and isinstance(argument.dtype, types.Number):
        how = [argument.ndim, argument.layout, not argument.mutable, argument.aligned]
        return [str(argument.dtype), *how]
    if isinstance(argument, types.Number | types.Boolean):
        return [str(argument)]
    return None


def _type_of(described: list[Any]) -> Any:
    name, *array = described
    scalar = types.boolean if name == "bool" else numba.from_dtype(np.dtype(name))
    if not array:
        return scalar
    ndim, layout, readonly, aligned = array
    return types.Array(scalar, ndim, layout, readonly=readonly, aligned=aligned)


def main() -> None:
    """Compile the kernel that the command line names, for the types that it names."""
    module, name, arguments = sys.argv[1:]
    function = getattr(import_module(module), name)
    function.compile(tuple(map(_type_of, json.loads(arguments))))


if __name__ == "__main__":
    main()
