"""What the model predicts for new users, and how far that is from what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model.posterior import Posterior
from ombud.stats.statistics import Floats

# Steps between shares at which distributions are compared.
_STEPS = 200
_REFUSED = 0.01
# Lists share more than profiles explain if replicated ones are so many standard deviations below.
_SHARED = 3.0


@dataclass(frozen=True, slots=True)
class Predictive:
    """Draws for new users."""

    # theta' = logistic(Normal(mu, sigma)); with offsets, beyond those of observed users.
    profile_smoothed: Floats
    # y'/n': a binomial share of a profile whose size is that of an observed one.
    profile_predicted: Floats
    smoothed: Floats  # Draws x systems: logistic(b + s logit(theta')), without residual
    # Draws x systems: the share in a list, with residual and binomial noise, for a size drawn from
    # that system's own lists.
    predicted: Floats


@dataclass(frozen=True, slots=True)
class Misfit:
    """Distance between observed and predicted shares, and how unusual it is under the model."""

    system: str  # Its name; empty for the profiles
    # Kolmogorov-Smirnov: the largest difference of the two distribution functions, at shares in
    # steps of 1/200.
    distance: float
    # How often data replicated from the posterior are at least as far from the prediction.
    p_value: float
    # Observed shares of profiles or lists with a share of 0 and of 1.
    at_zero: float
    at_one: float
    # The same, as predicted.
    predicted_at_zero: float
    predicted_at_one: float
    n: int  # Profiles or lists
    shared: tuple[str, ...]  # Systems whose lists have more in common with these than predicted

    @property
    def describes(self) -> bool:
        """Whether the model is not contradicted (p of at least 0.01)."""
        return self.p_value >= _REFUSED

    @property
    def words(self) -> str:
        """What to say beside the estimate; empty when the model is not contradicted."""
        if self.describes:
            return ""
        subject = (
            "a line does not describe these lists"
            if self.system
            else ("a normal distribution of log odds does not describe these profiles")
        )
        return (
            f"{subject}: observed and predicted shares are {self.distance:.3f} apart "
            f"(p = {self.p_value:.3f}); at 0 {self.at_zero:.1%} observed, "
            f"{self.predicted_at_zero:.1%} predicted; at 1 {self.at_one:.1%} and "
            f"{self.predicted_at_one:.1%}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "shared"}
        return fields | {"describes": self.describes}


def predict(
    counts: Counts, posterior: Posterior, draws: int, rng: np.random.Generator
) -> Predictive:
    """Return draws for new users; see `Predictive`.

    Of what was observed only the sizes and offsets are used. `draws` is how many new users.
    """
    rows = posterior.pick(draws, rng)
    t = rng.normal(posterior.mean[rows], posterior.spread[rows])
    like = rng.choice(np.flatnonzero(counts.known > 0), draws)
    sizes = counts.known[like]
    middle = posterior.intercept[rows] + posterior.slope[rows] * t[:, None]
    away = rng.standard_normal(middle.shape) * posterior.residual[rows]
    lists = np.empty(middle.shape)
    for a in range(middle.shape[1]):
        known = counts.list_known[:, a]
        other = rng.choice(np.flatnonzero(known > 0), draws)
        lists[:, a] = known[other]
        middle[:, a] += counts.list_offset[other, a]
    theta = _share(counts.offset[like] + t)
    return Predictive(
        theta,
        rng.binomial(sizes.astype(np.int64), theta) / sizes,
        _share(middle),
        rng.binomial(lists.astype(np.int64), _share(middle + away)) / lists,
    )


def measure_misfit(
    counts: Counts, posterior: Posterior, replicates: int, rng: np.random.Generator
) -> tuple[Misfit, ...]:
    """Return the misfit of the profiles, then of every system.

    Every replicate draws the parameters from the posterior, new users from them, and profiles and
    lists of the observed sizes. Their mean distribution is the prediction.
    """
    users, systems = counts.list_known.shape
    y = np.concatenate([counts.count[:, None], counts.list_count], axis=1)
    n = np.concatenate([counts.known[:, None], counts.list_known], axis=1)
    there = n > 0
    expected = np.concatenate([counts.offset[:, None], counts.list_offset], axis=1)
    sizes = n.astype(np.int64)
    observed = _cells(y, n, there)
    found = np.empty((replicates, systems + 1, _STEPS + 2))
    common = np.empty((replicates, systems, systems))
    for row, draw in enumerate(posterior.pick(replicates, rng)):
        t = posterior.mean[draw] + posterior.spread[draw] * rng.standard_normal(users)
        x = posterior.intercept[draw] + posterior.slope[draw] * t[:, None]
        x = x + posterior.residual[draw] * rng.standard_normal((users, systems))
        share = _share(expected + np.concatenate([t[:, None], x], axis=1))
        made = rng.binomial(sizes, share)
        found[row], common[row] = _cells(made, n, there), _common(made, n, there)
    mean = found.mean(axis=0)
    distance = np.abs(np.cumsum(observed - mean, axis=1)).max(axis=1)
    # Each replicate against the mean of the others, as the observed one is against them all.
    others = np.abs(np.cumsum(found - mean, axis=2)).max(axis=2) * replicates / (replicates - 1)
    p = (1 + (others >= distance).sum(axis=0)) / (1 + replicates)
    beyond = _common(y, n, there) - common.mean(axis=0) > _SHARED * common.std(axis=0)
    shared = [(), *(tuple(np.array(counts.names)[row].tolist()) for row in beyond)]
    ends = [distance, p, observed[:, 0], observed[:, -1], mean[:, 0], mean[:, -1]]
    figures: list[list[Any]] = [one.tolist() for one in (*ends, there.sum(axis=0))]
    return tuple(Misfit(*row) for row in zip(["", *counts.names], *figures, shared, strict=True))


def _common(y: Floats | NDArray[np.int64], n: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return how shares in lists correlate between systems, given those in profiles."""
    z = np.where(there, y / np.maximum(n, 1), 0.0)
    z = np.where(there, z - z.sum(axis=0) / np.maximum(there.sum(axis=0), 1), 0.0)
    c = z.T @ z
    c = c[1:, 1:] - np.outer(c[0, 1:], c[0, 1:]) / max(c[0, 0], 1e-12)
    scale = np.sqrt(np.maximum(np.diag(c), 1e-12))
    found: Floats = c / np.outer(scale, scale)
    np.fill_diagonal(found, 0)
    return found


def _share(x: Floats) -> Floats:
    found: Floats = expit(x)
    return found


def _cells(y: Floats | NDArray[np.int64], n: Floats, there: NDArray[np.bool_]) -> Floats:
    """Return, by column, the share of users at 0, in each step between, and at 1."""
    # Counts are whole, so this is exact: 0 stays 0, and only y = n reaches the last cell.
    cell = np.where(y == 0, 0, 1 + (y * _STEPS) // np.maximum(n, 1)).astype(np.int64)
    columns = y.shape[1]
    cell += (_STEPS + 2) * np.arange(columns)
    counted = np.bincount(cell[there], minlength=(_STEPS + 2) * columns)
    counted = counted.reshape(columns, _STEPS + 2)
    found: Floats = counted / np.maximum(counted.sum(axis=1, keepdims=True), 1)
    return found
