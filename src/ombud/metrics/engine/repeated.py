"""Replicates of audits that were repeated: with other splits and other trainings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri, stdtrit

from ombud.stats.bootstrap.replicates import Replicates, Sample
from ombud.stats.statistics import Floats


def over_repeats(parts: Sequence[Replicates], level: float, rng: np.random.Generator) -> Replicates:
    r"""Return the mean over repeats, with the chance of users and of repeats in its replicates.

    Repeats resample the same users in step, so that the mean of their replicates has the variance
    that comes of users. With :math:`\theta_r` the number of repeat r of R, each replicate is then
    moved by :math:`\sum_r z_r (\theta_r - \bar\theta) / \sqrt{R (R - 1)}` with independent standard
    normal :math:`z_r`, the same for all systems, labels and groups: the variance of a mean over
    repeats, added as the law of total variance has it. Few repeats say little about their own
    spread, so the move is stretched by what Student's t with R - 1 degrees of freedom is wider than
    the normal at the level of the interval.

    Parameters
    ----------
    parts
        The replicates of each repeat, over the same units, resampled in step.
    level
        Coverage of the intervals.
    rng
        Source of the moves.
    """
    count = len(parts)
    points = np.stack([part.point for part in parts])
    mean = points.mean(axis=0)
    draws = np.mean([part.draws for part in parts], axis=0)
    tail = (1 + level) / 2
    stretch = float(stdtrit(count - 1, tail) / ndtri(tail))
    weights = rng.standard_normal((len(draws), count)) * stretch / np.sqrt(count * (count - 1))
    moves = weights @ (points - mean).reshape(count, -1)
    draws += moves.reshape(len(draws), *mean.shape)
    first = parts[0]
    samples = tuple(
        Sample(_mean_of([part.samples[s].values for part in parts]), sample.statistic)
        for s, sample in enumerate(first.samples)
    )
    n = np.max([part.n for part in parts], axis=0)
    return Replicates(samples, first.design, mean, draws, n)


def _mean_of(values: Sequence[Floats]) -> Floats:
    """Return the mean over repeats in which a unit was measured; NaN where in none."""
    stacked = np.stack(values)
    known = ~np.isnan(stacked)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(known, stacked, 0.0).sum(axis=0) / known.sum(axis=0))
