"""Draws from the posterior, and the diagnostics that must stand beside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.errors import OmbudError
from ombud.stats.statistics import Floats

_LARGEST_KHAT = 0.7
_LARGEST_RHAT = 1.01
_SMALLEST_ESS = 400
_LARGEST_ERROR = 0.1


class NotConvergedError(OmbudError):
    """Draws were asked for that do not represent the posterior."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Weighted draws and how far they can be trusted."""

    points: Floats  # Draws x (mu, log sigma, b..., s..., log v...)
    weights: Floats  # They sum to 1
    sets: NDArray[np.int64]  # Which independent set each draw belongs to
    khat: float  # Shape of the weights' tail
    # Standard deviation over the posterior of the log likelihood's numerical error, in nats.
    error: float
    worst_error: float  # The largest such error among the points checked
    # Of the polynomials by which the likelihood was computed; 0 if it was integrated at each.
    degree: int
    stopped: bool = False  # Whether the budget ended before enough draws were effective


@dataclass(frozen=True, slots=True)
class Posterior:
    """Weighted draws of the parameters, on the scales of the model."""

    # Draws of mu and sigma.
    mean: Floats
    spread: Floats
    # Draws x systems: b, s and the residual standard deviations.
    intercept: Floats
    slope: Floats
    residual: Floats
    weights: Floats  # They sum to 1
    # Which of the independent sets each draw belongs to, as chains would be.
    sets: NDArray[np.int64]
    names: tuple[str, ...]  # Of the systems

    @classmethod
    def of(cls, drawn: Drawn, names: tuple[str, ...]) -> Posterior:
        """Return the draws on the scales of the model."""
        mean, spread = drawn.points[:, 0], np.exp(drawn.points[:, 1])
        b, s, v = np.moveaxis(drawn.points[:, 2:].reshape(len(mean), 3, -1), 1, 0)
        return cls(mean, spread, b, s, np.exp(v), drawn.weights, drawn.sets, names)

    def columns(self) -> dict[str, Floats]:
        """Return the draws of every parameter by its name, such as ``slope[BPR]``."""
        found = {"mean": self.mean, "spread": self.spread}
        for name in ("intercept", "slope", "residual"):
            values = getattr(self, name)
            found |= {f"{name}[{system}]": values[:, a] for a, system in enumerate(self.names)}
        return found

    def average(self, values: Floats | NDArray[np.bool_]) -> float:
        """Return the posterior mean of a quantity that was computed for every draw."""
        return float(self.weights @ values)

    def sd(self, values: Floats) -> float:
        """Return its posterior standard deviation."""
        return float(np.sqrt(self.weights @ (values - self.average(values)) ** 2))

    def quantiles(self, values: Floats, shares: Floats) -> Floats:
        """Return its posterior quantiles."""
        order = np.argsort(values, kind="stable")
        below = np.cumsum(self.weights[order])
        # The middle of each draw's own weight.
        return np.interp(shares, below - self.weights[order] / 2, values[order])

    def interval(self, values: Floats, level: float = 0.95) -> tuple[float, float]:
        """Return the interval that leaves the same probability out on both sides."""
        low, high = self.quantiles(values, np.array([(1 - level) / 2, (1 + level) / 2]))
        return float(low), float(high)

    def pick(self, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
        """Return rows of draws that stand for the posterior without weights, in random order."""
        steps = (np.arange(count) + rng.random()) / count
        rows = np.searchsorted(np.cumsum(self.weights) / self.weights.sum(), steps)
        return rng.permutation(np.minimum(rows, len(self.weights) - 1))


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How far draws can be trusted; always computed, and refused when they cannot."""

    draws: int  # How many were made
    khat: float  # Shape of the tail of the importance weights; below 0.7 they can be trusted
    ess: dict[str, float]  # Effective sample size of each parameter, for its mean (bulk)
    # The same for the shares of draws below its 5% and above its 95% quantile, the smaller one.
    tail_ess: dict[str, float]
    rhat: dict[str, float]  # Of each parameter, between the independent sets of draws
    # Numerical error of the log posterior in nats over the posterior: its standard deviation and
    # its largest value, found with more nodes, on a sample of points and users. A mean is off by at
    # most about `error` posterior standard deviations because of it.
    error: float
    worst_error: float
    at_mode: bool  # Whether the highest point of the posterior was found
    degree: int  # Of the polynomials by which the likelihood was computed; 0 when it was integrated
    problems: tuple[str, ...]  # Why the draws are refused; empty when they are not

    @property
    def converged(self) -> bool:
        """Whether the draws represent the posterior."""
        return not self.problems

    @property
    def slowest(self) -> tuple[str, float]:
        """The parameter with the smallest effective sample size, and that size."""
        name = min(self.ess, key=self.ess.__getitem__)
        return name, self.ess[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON-ready values; infinite ones as words."""
        khat = self.khat if np.isfinite(self.khat) else str(self.khat)
        return asdict(self) | {"khat": khat, "problems": list(self.problems)}

    @classmethod
    def of(cls, drawn: Drawn, posterior: Posterior, at_mode: bool) -> Diagnostics:
        """Return what the draws say about themselves."""
        columns = posterior.columns()
        ess = {name: _effective(values, drawn.weights) for name, values in columns.items()}
        tails = {name: _in_tails(posterior, values) for name, values in columns.items()}
        rhat = {
            name: _between(values, drawn.weights, drawn.sets) for name, values in columns.items()
        }
        problems = []
        if not at_mode:
            problems.append("the highest point of the posterior was not found")
        if not drawn.khat < _LARGEST_KHAT:
            problems.append(
                f"the importance weights have a heavy tail (k-hat {drawn.khat:.2f}, "
                f"{_LARGEST_KHAT} at most)"
            )
        rarest = min(ess, key=ess.__getitem__)
        if not ess[rarest] >= _SMALLEST_ESS:
            problems.append(
                f"only {ess[rarest]:.0f} effective draws of {rarest}, {_SMALLEST_ESS} are needed"
            )
        most = max(rhat.values())
        if not most <= _LARGEST_RHAT:
            problems.append(f"independent sets of draws differ (R-hat {most:.3f})")
        if not np.isfinite(drawn.error):
            problems.append("the integrals could not be checked")
        elif not drawn.error <= _LARGEST_ERROR:
            problems.append(
                f"the integrals are off by {drawn.error:.2g} nats, {_LARGEST_ERROR} is tolerated"
            )
        rest = (drawn.error, drawn.worst_error, at_mode, drawn.degree, tuple(problems))
        return cls(len(drawn.weights), drawn.khat, ess, tails, rhat, *rest)


def _effective(values: Floats, weights: Floats) -> float:
    """Return how many independent draws would give the weighted mean the same variance."""
    away = (values - weights @ values) ** 2
    noise = float(weights**2 @ away)
    return min(float(weights @ away) / noise if noise > 0 else 0.0, 1 / float(weights @ weights))


def _in_tails(posterior: Posterior, values: Floats) -> float:
    """Return the effective sample size in the thinner of both tails."""
    low, high = posterior.interval(values, 0.9)
    return min(
        _effective(outside.astype(np.float64), posterior.weights)
        for outside in (values < low, values > high)
    )


def _between(values: Floats, weights: Floats, sets: NDArray[np.int64]) -> float:
    """Return R-hat of the sets: whole over mean variance within, square root."""
    means, within, sizes = [], [], []
    for one in np.unique(sets):
        rows = sets == one
        w = weights[rows]
        if not w.sum() > 0:
            return float("inf")
        w = w / w.sum()
        mean = float(w @ values[rows])
        means.append(mean)
        within.append(float(w @ (values[rows] - mean) ** 2))
        sizes.append(1 / float(w @ w))
    inside = float(np.mean(within))
    if not inside > 0:
        return float("inf")
    return float(np.sqrt(1 - 1 / np.mean(sizes) + np.var(means, ddof=1) / inside))
