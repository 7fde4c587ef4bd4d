"""One ridge regression per row: ratings or confidences, by steps or exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Solver = Literal["cg", "cholesky"]

_BATCHES = 64
_WORK = 200_000_000


def solve_rows(
    indptr: NDArray[Any],
    indices: NDArray[np.int32],
    values: NDArray[np.float32],
    fixed: NDArray[np.float32],
    *,
    ridge: float = 0.0,
    ridge_per_entry: float = 0.0,
    alpha: float | None = None,
    out: NDArray[np.float32] | None = None,
    solver: Solver = "cholesky",
    steps: int = 3,
    threads: int | None = None,
    tick: Callable[[float], None] | None = None,
) -> NDArray[np.float32]:
    """Solve one ridge regression per row of a sparse matrix on the rows' entries of ``fixed``.

    Parameters
    ----------
    indptr, indices, values
        The rows.
    fixed
        Factors of the columns.
    ridge, ridge_per_entry
        The penalty of a row: ``ridge + ridge_per_entry`` times its number of entries.
    alpha
        None for ratings: values are the targets. Otherwise every column is a target, 1 with
        confidence ``1 + alpha value`` where the row has an entry and 0 with confidence 1
        elsewhere.
    out
        Where to start from and to write to; conjugate gradients improve on it.
    solver, steps
        Exact, or so many steps of conjugate gradients.
    threads
        How many threads to use; None for all.
    tick
        Called with the share of rows done, a few times; an interrupt is taken between calls.
    """
    from ombud.systems.recommenders.kernels import least_squares, sgd
    from ombud.systems.recommenders.kernels._jit import workers

    n_rows = len(indptr) - 1
    if out is None:
        out = np.zeros((n_rows, fixed.shape[1]), np.float32)
    if n_rows == 0 or len(indices) == 0:
        out[:] = 0
        return out
    kernel: Callable[..., None] = (
        least_squares.solve_cg if solver == "cg" else least_squares.solve_cholesky
    )
    # Slices only so that progress is seen and an interrupt is taken; a small problem has one.
    slices = int(np.clip(len(indices) * fixed.shape[1] // _WORK, 1, 32))
    bounds = sgd.balanced_ranges(np.diff(indptr), _BATCHES * slices)
    with workers(threads):
        if alpha is None:
            dense = np.empty((0, fixed.shape[1]), np.float32)
            slopes = (0.0, 1.0, 1.0, 0.0)
        else:
            dense = least_squares.gram(fixed)
            slopes = (alpha, 0.0, alpha, 1.0)
        numbers = [np.float32(x) for x in (*slopes, ridge, ridge_per_entry)]
        for part in range(slices):
            limits = bounds[_BATCHES * part : _BATCHES * (part + 1) + 1]
            kernel(limits, indptr, indices, values, fixed, dense, *numbers, steps, out)
            if tick is not None:
                tick((part + 1) / slices)
    return out
