"""How many units find an effect: from the exact contrast, then by simulated audits.

A simulated audit draws units of equally large groups, of which one differs by the effect, and
tests it as the plan says: with the engine's own contrast, test and correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr, ndtri

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.rng import generator
from ombud.stats.statistics import Floats

GROUP = "simulated"
"""The group that differs."""

_ROUNDS = 3
_CLOSE = 0.02  # a simulated power this close to the wanted one needs no further round
_MOST = 50_000_000  # units of one simulated audit
_MARGIN = 0.125  # of the chance to miss the effect: the size errs on the side of more power
_FIRST = 0.4  # of the audits, in each round that searches


@dataclass(frozen=True, eq=False)
class Design:
    """One contrast of a plan.

    Parameters
    ----------
    metric
        Whose group contrast is tested.
    settings
        How, and with which correction over the groups.
    groups
        How many groups there are, all equally large; one differs.
    effect
        By how much: a difference, or of a ratio a factor.
    rate
        For flags: the rate of the other groups; of a ratio, of all texts. None for `pool`.
    pool
        Units x columns of the statistic, which are drawn with replacement.
    cluster_size, icc
        Texts of a cluster, and the correlation of two of its flags.
    comparisons
        How many comparisons are corrected for, where that is not the number of groups.
    """

    metric: Metric
    settings: Settings
    groups: int
    effect: float
    rate: float | None
    pool: Floats | None = None
    cluster_size: int = 1
    icc: float = 0.0
    comparisons: int = 1

    @property
    def ratio(self) -> bool:
        """Whether the contrast is a ratio."""
        return self.metric.contrast == "ratio"

    @property
    def alpha(self) -> float:
        """The level of the test of the group, before the engine's own correction."""
        level = 1 - self.settings.level
        return level if self.comparisons in {1, self.groups} else level / self.comparisons

    def rates(self) -> tuple[float, float]:
        """Return the rates of the group and of each other one."""
        assert self.rate is not None
        if not self.ratio:
            return self.rate + self.effect, self.rate
        if self.metric.comparisons.groups == "whole":
            own = self.effect * self.rate
            return own, (self.groups * self.rate - own) / (self.groups - 1)
        other = self.groups * self.rate / (self.effect + self.groups - 1)
        return self.effect * other, other

    def impossible(self) -> str:
        """Return why no group can differ by the effect; empty if one can."""
        if self.ratio and (self.effect <= 0 or self.effect == 1):
            return "of a ratio the effect is a factor above 0 other than 1, such as 1.5"
        if self.rate is None:
            assert self.pool is not None
            widest = float(np.ptp(self.pool[:, 0])) if len(self.pool) else 0.0
            if not self.ratio and abs(self.effect) > widest:
                return f"no two units differ by {self.effect:g}: the widest gap is {widest:.3g}"
            return ""
        own, other = self.rates()
        if 0 < own < 1 and 0 < other < 1:
            return ""
        compared = "ratio" if self.ratio else "difference"
        return (
            f"a {compared} of {self.effect:g} is impossible at a rate of {self.rate:.3g} with "
            f"{self.groups} groups of equal size: {own:.1%} of the group's texts would be flagged, "
            f"and {other:.1%} of the others"
        )

    def assumption(self) -> str:
        """Return what is simulated, in words."""
        if self.rate is None:
            return f"{self.groups} groups of equal size, one of which differs"
        own, other = self.rates()
        text = (
            f"{own:.3%} flagged in one group and {other:.3%} in each other one, "
            f"{self.groups} groups of equal size"
        )
        if self.cluster_size > 1:
            text += f", clusters of {self.cluster_size} with a correlation of {self.icc:g}"
        return text

    def first_guess(self, power: float) -> int:
        """Return the size of a group by the normal approximation of the contrast."""
        n, others = self.groups, self.groups - 1
        if self.rate is None:
            assert self.pool is not None
            spread = float(np.std(self.pool[:, 0]))
            mean = abs(float(np.mean(self.pool[:, 0]))) or 1.0
            far = abs(math.log(self.effect)) if self.ratio else abs(self.effect)
            variance = (spread / mean if self.ratio else spread) ** 2 * (1 + 1 / others)
        else:
            own, other = self.rates()
            parts = own * (1 - own), other * (1 - other)
            far = abs(math.log(own / other)) if self.ratio else abs(own - other)
            variance = parts[0] + parts[1] / others
            if self.ratio:
                # To first order the test of a ratio to all is that of the ratio to the others.
                variance = parts[0] / own**2 + parts[1] / other**2 / others
            variance *= 1 + (self.cluster_size - 1) * self.icc
        strict = (1 - self.settings.level) / max(self.comparisons, 1)
        wanted = float(ndtri(1 - strict / 2) + ndtri(power))
        return self._whole(variance * (max(wanted, 0.1) / far) ** 2, n)

    def _whole(self, n: float, groups: int) -> int:
        size = self.cluster_size
        found = max(math.ceil(n / size) * size, self.settings.minimum)
        return max(min(found, _MOST // groups), 2)

    def found(self, n: int, rng: np.random.Generator) -> bool:
        """Simulate one audit with n units in each group; whether the group is found."""
        total = n * self.groups
        if self.rate is None:
            assert self.pool is not None
            values = self.pool[rng.integers(0, len(self.pool), total)].copy()
            part = values[:n, 0]
            values[:n, 0] = part * self.effect if self.ratio else part + self.effect
        else:
            own, other = self.rates()
            values = np.concatenate([self._flags(own, n, rng), self._flags(other, total - n, rng)])[
                :, None
            ]
        ids = np.arange(total)
        clusters = None
        if self.cluster_size > 1:
            inside = np.arange(n) // self.cluster_size
            step = int(inside[-1]) + 1
            clusters = np.tile(inside, self.groups) + np.repeat(np.arange(self.groups), n) * step
            clusters = clusters.astype(np.int32)
        names = self.metric.statistic.columns
        rows = Rows(
            "text" if self.metric.of == "moderator" else "user",
            ids,
            {name: values[:, [k]] for k, name in enumerate(names)},
            clusters=clusters,
            events=None if self.rate is None else values,
        )
        members = ids[:, None] // n == np.arange(self.groups)
        called = (GROUP, *(f"other {k}" for k in range(1, self.groups)))
        grouping = Grouping(Vocabulary(ids), called, members, ("simulated",) * self.groups)
        settings = Settings(**{**vars(self.settings), "seed": int(rng.integers(2**31))})
        for e in estimate_metric(self.metric, {"one": rows}, grouping, settings):
            if e.group == GROUP and e.against and e.kind != "level":
                corrected = self.comparisons == self.groups and self.comparisons > 1
                p = e.p_adjusted if corrected else e.p_value
                return p is not None and p < self.alpha
        return False

    def _flags(self, rate: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        chance = np.full(n, rate)
        if self.cluster_size > 1 and self.icc > 0:
            total = (1 - self.icc) / self.icc
            clusters = rng.beta(rate * total, (1 - rate) * total, -(-n // self.cluster_size))
            chance = np.repeat(clusters, self.cluster_size)[:n]
        return (rng.random(n) < chance).astype(np.float64)


def needed_for_power(design: Design, power: float, audits: int, seed: int) -> tuple[int, float]:
    """Return how many units each group needs, and the power simulated at that size.

    The first guess is moved to where simulated audits have the wanted power (the probit of the
    power grows with the root of the units), and the size that comes out is simulated afresh.
    """
    rng = generator(seed, "power", design.metric.seed_name)
    wanted = power + _MARGIN * (1 - power)
    n = design.first_guess(power)
    tried: list[tuple[int, int, int]] = []
    for _ in range(_ROUNDS):
        some = max(20, round(audits * _FIRST))
        tried.append((n, sum(design.found(n, rng) for _ in range(some)), some))
        n = _moved(design, tried, wanted)
    for _ in range(_ROUNDS):
        hits = sum(design.found(n, rng) for _ in range(audits))
        if abs(hits / audits - power) <= max(_CLOSE, 2 * math.sqrt(power * (1 - power) / audits)):
            break
        tried.append((n, hits, audits))
        n = _moved(design, tried, wanted)
    return n, hits / audits


def _moved(design: Design, tried: list[tuple[int, int, int]], power: float) -> int:
    """Return the size with the wanted power, given how often groups were found at some sizes."""
    strict = design.alpha / (design.comparisons if design.alpha == 1 - design.settings.level else 1)
    least = float(ndtri(1 - strict / 2))

    def loss(log_slope: float) -> float:
        total = 0.0
        for n, hits, audits in tried:
            at = math.exp(log_slope) * math.sqrt(n) - least
            total -= hits * float(log_ndtr(at)) + (audits - hits) * float(log_ndtr(-at))
        return total

    start = math.log((least + float(ndtri(power))) / math.sqrt(tried[0][0]))
    best = minimize_scalar(loss, bounds=(start - 2, start + 2), method="bounded")
    root = (least + float(ndtri(power))) / math.exp(float(best.x))
    return design._whole(root**2, design.groups)
