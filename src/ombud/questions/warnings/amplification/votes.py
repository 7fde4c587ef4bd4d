"""Votes as probabilities: a Beta distribution for each item and label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.labels import Labels


# Intra-class correlations outside these would make a prior that no vote can change,
# or one that any vote overrules.
_LEAST, _MOST = 0.01, 0.95
_FEW_ITEMS = 10


def fitted_priors(labels: Labels) -> tuple[Floats, Floats]:
    r"""Return for each label the Beta prior that fits its own votes, by moments.

    With :math:`p_i` the share of yes among the :math:`n_i` votes of item i and weights
    :math:`w_i`, the mean is :math:`m = \sum w_i p_i / \sum w_i`, and the intra-class correlation
    :math:`\rho` follows from the weighted variance of the :math:`p_i` (Kleinman 1973). The prior
    is Beta(:math:`m s`, :math:`(1 - m) s`) with :math:`s = 1/\rho - 1`. Labels with votes on
    fewer than 10 items, or without any disagreement between items, get Beta(1/2, 1/2).

    A fixed prior would pull every rarely voted item of a rare label up to one half.

    References
    ----------
    Kleinman (1973), JASA 68, 46-54.
    """
    if labels.yes is None or labels.no is None:
        raise ValueError("the labels were applied, not voted on: there are no votes")
    total = (labels.yes + labels.no).astype(np.float64)
    voted = total > 0
    n = np.where(voted, total, 1.0)
    p = np.where(voted, labels.yes / n, 0.0)
    items = voted.sum(axis=0)
    rho = np.full(p.shape[1], 0.5)
    mean = np.full(p.shape[1], np.nan)
    # Weights depend on the correlation that they are used to find: twice is enough.
    for _ in range(2):
        weight = voted * n / (1 + (n - 1) * rho)
        whole = weight.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = weight * (1 - weight / whole)
            mean = (weight * p).sum(axis=0) / whole
            spread = (weight * (p - mean) ** 2).sum(axis=0)
            chance = mean * (1 - mean)
            within = (part / n).sum(axis=0)
            result = (spread - chance * within) / (chance * (part.sum(axis=0) - within))
        rho = np.clip(np.where(np.isfinite(result), result, 0.5), _LEAST, _MOST)
    strength = 1 / rho - 1
    usable = (items >= _FEW_ITEMS) & np.isfinite(result) & (mean > 0) & (mean < 1)
    a = np.where(usable, mean * strength, 0.5)
    b = np.where(usable, (1 - mean) * strength, 0.5)
    return a, b


def beta_draw(
    labels: Labels, priors: tuple[Floats, Floats], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return one draw of "share of voters who would say yes" for each pair; NaN without votes."""
    assert labels.yes is not None and labels.no is not None  # fitted_priors has checked
    voted = (labels.yes > 0) | (labels.no > 0)
    drawn = np.full(voted.shape, np.nan, dtype=np.float32)
    a = np.broadcast_to(priors[0], voted.shape)[voted] + labels.yes[voted]
    b = np.broadcast_to(priors[1], voted.shape)[voted] + labels.no[voted]
    drawn[voted] = rng.beta(a, b)
    return drawn
