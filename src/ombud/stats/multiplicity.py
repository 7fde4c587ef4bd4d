"""Correction of p-values for many comparisons."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from ombud.stats.statistics import Floats

Correction = Literal["holm", "benjamini-hochberg", "none"]


def _family(p: npt.ArrayLike) -> tuple[Floats, npt.NDArray[np.int64]]:
    values = np.array(p, dtype=np.float64)  # None becomes NaN
    known = np.flatnonzero(~np.isnan(values))
    some = values.ravel()[known]
    if np.any((some < 0) | (some > 1)):
        raise ValueError(f"{np.count_nonzero((some < 0) | (some > 1))} p-values are outside 0 to 1")
    return values, known


def holm(p: npt.ArrayLike) -> Floats:
    r"""Return Holm's adjusted p-values, which control the chance of any false alarm.

    :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) p_{(j)})` for sorted p-values,
    under any dependence. NaN and None pass through and do not count in the family of m.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, None]).tolist()
    [0.02, 0.04, nan]
    """
    values, known = _family(p)
    flat = values.ravel()
    order = known[np.argsort(flat[known], kind="stable")]
    steps = flat[order] * np.arange(len(order), 0, -1)
    flat[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return flat.reshape(values.shape)


def benjamini_hochberg(p: npt.ArrayLike) -> Floats:
    r"""Return adjusted p-values that control the expected share of false alarms among findings.

    :math:`\tilde p_{(i)} = \min_{j \ge i} \min(1, m p_{(j)} / j)`, for independent or positively
    dependent p-values. NaN and None pass through and do not count in the family of m.

    References
    ----------
    Benjamini and Hochberg (1995), JRSS B 57, 289-300.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, None]).tolist()
    [0.02, 0.04, nan]
    """
    values, known = _family(p)
    flat = values.ravel()
    order = known[np.argsort(flat[known], kind="stable")]
    steps = flat[order] * len(order) / np.arange(1, len(order) + 1)
    flat[order] = np.minimum(np.minimum.accumulate(steps[::-1])[::-1], 1.0)
    return flat.reshape(values.shape)


def adjust(p: npt.ArrayLike, method: Correction = "holm") -> Floats:
    """Return p-values adjusted by a named method; ``"none"`` gives them back as they are.

    Examples
    --------
    >>> adjust([0.02, 0.5], "none").tolist()
    [0.02, 0.5]
    """
    if method == "holm":
        return holm(p)
    if method == "benjamini-hochberg":
        return benjamini_hochberg(p)
    if method == "none":
        return _family(p)[0]
    raise ValueError(f"method is {method!r}; expected 'holm', 'benjamini-hochberg' or 'none'")
