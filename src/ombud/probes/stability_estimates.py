"""Stability in numbers: the largest change, usual changes, noise, and who moves whom."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.probes.noise_floor import NoiseFloor, chance_of_any, expected_maximum
from ombud.probes.stability import StabilityResult
from ombud.rng import generator
from ombud.stats import Estimate, Sample, proportion, resample
from ombud.stats.bootstrap.resample import estimate as bootstrap_estimate
from ombud.stats.crossed import CrossedReplicates, resample_crossed

Floats = NDArray[np.float64]

_NOISE = {"seed": "other seeds", "pass": "more passes", "repeat": "asked again"}


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's correlation over the pairs that both know; NaN when one does not vary.

    Examples
    --------
    >>> rank_correlation(np.array([1.0, 2.0, np.nan, 3.0]), np.array([1.0, 4.0, 5.0, 9.0]))
    1.0
    """
    from scipy.stats import rankdata  # takes a while to import

    known = ~(np.isnan(first) | np.isnan(second))
    if np.count_nonzero(known) < 3:
        return float("nan")
    a, b = rankdata(first[known]), rankdata(second[known])
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return round(float(np.corrcoef(a, b)[0, 1]), 12)


def stability_estimates(
    result: StabilityResult, *, level: float = 0.95, replicates: int = 2000, seed: int = 0
) -> list[Estimate]:
    """Return all numbers of a stability result.

    For every distance:

    - *largest change*: the mean over target users of the largest distance found, a lower bound.
    - *typical change*: mean and median over random treatments and target users (both are samples,
      so both are resampled), and the mean over users of the 90 % quantile.
    - *noise floor*: the mean over users of the largest distance between trainings on the same data.
    - *change above the noise*: the largest change over as many treatments as there are noise runs
      (its expectation over which), minus the noise floor, user by user.
    - *gain of the search*: the largest change over the shortlist minus that over as many random
      treatments.
    - *typical change by group*: whose lists (group) are moved by whose data (details).

    For removals of one user, *leave-one-out unfairness* is the share of users whose first item
    some single removal changed. The rank correlation of predicted influence with training is among
    the numbers too.

    Parameters
    ----------
    result
        What `ombud.probes.stability.stability` found.
    level
        Of the intervals.
    replicates
        Of the bootstrap.
    seed
        Of the bootstrap.
    """
    numbers = _Numbers(result, level, replicates, seed)
    found: list[Estimate] = []
    for change in result.changes:
        found += numbers.largest(change)
        found += numbers.typical(change)
        for floor in result.noise:
            found += numbers.noise(change, floor)
        found += numbers.search(change)
        found += numbers.by_group(change)
    if result.plan.kind == "removed" and result.plan.budget == 1:
        found += numbers.unfairness()
    return found + numbers.correlation()


class _Numbers:
    def __init__(self, result: StabilityResult, level: float, replicates: int, seed: int) -> None:
        self.result, self.level, self.replicates, self.seed = result, level, replicates, seed
        plan = result.plan
        users = "1 user" if plan.budget == 1 else f"{plan.budget} users"
        self.treatment = f"{users} {plan.kind}, {result.policy}"
        start = f", warm start of {plan.passes} passes" if result.warm else ", trained anew"
        self.note = f"policy {result.policy}{start}"
        self.details: dict[str, Any] = {
            "policy": result.policy,
            "treatment": plan.kind,
            "budget": plan.budget,
            "n": plan.k,
            "passes": plan.passes if result.warm else None,
            "influence": result.influence,
        }

    def _named(self, what: str, change: str) -> str:
        return f"{what} ({self.treatment}): {change}@{self.result.plan.k}"

    def _about(self, key: str, change: str, **details: Any) -> dict[str, Any]:
        return {
            "system": self.result.system,
            "note": self.note,
            "level": self.level,
            "key": f"stability/{key}",
            "details": self.details | {"distance": change} | details,
        }

    def _over_users(
        self,
        values: Floats,
        what: str,
        change: str,
        key: str,
        told: dict[str, Any] | None = None,
        **about: Any,
    ) -> Estimate:
        metric = self._named(what, change)
        about = self._about(key, change, **(told or {})) | about
        known = int(np.count_nonzero(~np.isnan(values)))
        if known == 0:
            reason = "no target user has a value"
            return Estimate.undefined(
                reason_code="no-units", metric=metric, reason=reason, n=0, unit="user", **about
            )
        if about.get("kind") == "gap":
            about["events"] = int(np.count_nonzero(np.abs(np.nan_to_num(values)) > 1e-12))
        return bootstrap_estimate(
            values, metric=metric, unit="user", replicates=self.replicates,
            rng=generator(self.seed, "stability", metric), **about,
        )  # fmt: skip

    def largest(self, change: str) -> list[Estimate]:
        """Return the mean over users of the largest distance found."""
        brackets = self.result.brackets[change]
        exact = sum(b.exact for b in brackets)
        tried = np.count_nonzero(~np.isnan(self.result.distances[change]), axis=0)
        note = (
            f"{self.note}; a lower bound, exact for {exact:,} of {len(brackets):,} users; "
            f"{int(tried.min()):,} to {int(tried.max()):,} treatments trained for, the best of "
            f"{self.result.candidates:,} ranked by influence ({self.result.influence}) among them"
        )
        attained = np.array([b.attained for b in brackets])
        told = {
            "exact": exact,
            "ranked": self.result.candidates,
            "tried": [int(tried.min()), int(tried.max())],
        }
        return [self._over_users(attained, "largest change", change, "largest", told, note=note)]

    def _random(self) -> NDArray[np.bool_]:
        chosen: NDArray[np.bool_] = self.result.random & ~self.result.swap_groups.any(axis=1)
        return chosen

    def _crossed(self, table: Floats, name: str, **options: Any) -> CrossedReplicates:
        return resample_crossed(
            table, replicates=self.replicates, unit=("user", "treatment"),
            rng=generator(self.seed, "stability", name), **options,
        )  # fmt: skip

    def typical(self, change: str) -> list[Estimate]:
        """Return mean, median and 90 % quantile over random treatments."""
        table = self.result.distances[change][self._random()].T
        if table.shape[1] == 0:
            return []
        found = []
        for summary in ("mean", "median"):
            metric = self._named(f"typical change, {summary}", change)
            drawn = self._crossed(table, metric, summary=summary)
            about = self._about(f"typical/{summary}", change)
            found.append(drawn.estimate((0, 0, 0), metric=metric, **about))
        known = ~np.isnan(table).all(axis=1)
        high = np.full(len(table), np.nan)
        high[known] = np.nanquantile(table[known], 0.9, axis=1)
        what = "typical change, 90 % quantile"
        found.append(self._over_users(high, what, change, "typical/quantile-90"))
        return found

    def noise(self, change: str, floor: NoiseFloor) -> list[Estimate]:
        """Return the noise floor and what of the largest change is above it."""
        noise, tried = floor.distances[change], self.result.distances[change]
        most = int(np.count_nonzero(~np.isnan(tried), axis=0).min())
        runs = most if floor.exact else floor.runs
        told: dict[str, Any] = {"noise": floor.kind, "runs": runs, "deterministic": floor.exact}
        gap: dict[str, Any] = {"kind": "gap", "null": 0.0, "against": "noise floor"}
        if floor.exact:
            note = f"{self.note}; training is deterministic, so that the floor is 0"
            above, what = np.nanmax(tried, axis=0), "largest change above the noise (deterministic)"
            return [self._over_users(above, what, change, "above-noise", told, **gap, note=note)]
        how = _NOISE[floor.kind]
        size = min(runs, most)
        above = expected_maximum(tried, size) - expected_maximum(noise, size)
        note = f"{self.note}; both are the largest of {size} runs"
        largest, mean = expected_maximum(noise, runs), np.nanmean(noise, axis=0)
        what = f"noise floor, largest of {runs} ({how})"
        found = [self._over_users(largest, what, change, "noise/largest", told)]
        what = f"noise, mean ({how})"
        found.append(self._over_users(mean, what, change, "noise/mean", told))
        what, told = f"largest change above the noise ({how})", told | {"compared": size}
        found.append(self._over_users(above, what, change, "above-noise", told, **gap, note=note))
        return found

    def search(self, change: str) -> list[Estimate]:
        """Return what the shortlist finds beyond as many random treatments."""
        table, chosen = self.result.distances[change], self.result.shortlisted
        random = table[self._random()]
        if not chosen.any() or len(random) == 0:
            return []
        best = np.full(chosen.shape[1], np.nan)
        usual = best.copy()
        for t in range(chosen.shape[1]):
            mine = table[chosen[:, t], t]
            mine = mine[~np.isnan(mine)]
            if len(mine):
                best[t] = mine.max()
                usual[t] = expected_maximum(random[:, [t]], min(len(mine), len(random)))[0]
        what = "gain of the search over random treatments"
        about: dict[str, Any] = {"kind": "gap", "null": 0.0, "against": "random treatments"}
        return [self._over_users(best - usual, what, change, "search-gain", **about)]

    def by_group(self, change: str) -> list[Estimate]:
        """Return the typical change of each group's lists by each group's data."""
        result = self.result
        if not result.groups:
            return []
        rows = result.members[result.targets]
        chosen = np.flatnonzero(result.swap_groups.any(axis=1))
        name = self._named("typical change by group", change)
        drawn = self._crossed(
            result.distances[change][chosen].T, name,
            row_groups=rows, column_groups=result.swap_groups[chosen],
        )  # fmt: skip
        return [
            drawn.estimate(
                (0, g, h),
                metric=self._named(f"typical change by data of {mover}", change),
                group=moved,
                **self._about("who-moves-whom", change, moved=moved, movers=mover)
                | {"note": f"{self.note}; treatments touch users of {mover} only"},
            )
            for g, moved in enumerate(result.groups)
            for h, mover in enumerate(result.groups)
        ]  # fmt: skip

    def unfairness(self) -> list[Estimate]:
        """Return the share of users whose first item some single removal changed."""
        name = "first item changed"
        table = self.result.distances[name]
        changed = np.nanmax(table, axis=0) > 0
        tried = np.count_nonzero(~np.isnan(table), axis=0)
        metric = f"leave-one-out unfairness ({self.result.policy})"
        tries = [int(tried.min()), int(tried.max())]
        about = self._about("unfairness", name, tried=tries)
        note = f"{self.note}; {int(tried.min())} to {int(tried.max())} single users removed in turn"
        exact = [b.exact for b in self.result.brackets[name]]
        if all(exact):
            note += "; every removal was computed in closed form, so that the share is exact"
        found = [
            proportion(
                int(changed.sum()),
                len(changed),
                metric=metric,
                unit="user",
                **about | {"note": note},
            )
        ]
        for floor in self.result.noise:
            size = int(tried.min()) if floor.exact else min(floor.runs, int(tried.min()))
            noise = floor.distances[name]
            if floor.exact or size == 0:
                continue
            drawn = resample(
                [Sample(chance_of_any(part, size)) for part in (table, noise)],
                replicates=self.replicates,
                rng=generator(self.seed, "stability", "unfairness", floor.kind),
            )
            how = _NOISE[floor.kind]
            about = self._about("unfairness", name, noise=floor.kind, compared=size)
            about["note"] = f"{self.note}; at {size} runs each"
            metrics = (f"{metric}, noise floor ({how})", f"{metric} above the noise ({how})")
            about["key"] = "stability/unfairness/noise"
            found.append(drawn.estimate(1, metric=metrics[0], unit="user", **about))
            about |= {"key": "stability/unfairness/above-noise", "against": "noise floor"}
            gap = drawn.contrast((0, 0), (1, 0))
            found.append(gap.estimate(metric=metrics[1], unit="user", **about))
        return found

    def correlation(self) -> list[Estimate]:
        """Return the rank correlation of predicted influence with what training did."""
        result = self.result
        lead = result.score_change or result.changes[0]
        metric = self._named("rank correlation of influence with training", lead)
        found = []
        for group, chosen in (
            ("all treatments", np.ones(len(result.swaps), np.bool_)),
            ("random treatments", self._random()),
        ):
            first, second = result.predicted[chosen], result.distances[lead][chosen]
            pairs = int(np.count_nonzero(~(np.isnan(first) | np.isnan(second))))
            value = rank_correlation(first.ravel(), second.ravel())
            shared = self._about("rank-correlation", lead)
            shared |= {"metric": metric, "n": pairs, "group": group, "unit": "pair"}
            if np.isnan(value):
                reason, code = "there is no formula for this model", "not-estimable"
                if not np.isnan(result.predicted).all():
                    reason, code = "one of the two does not vary", "no-variation"
                found.append(Estimate.undefined(reason_code=code, reason=reason, **shared))
                continue
            method = "none: pairs share treatments and users"
            found.append(Estimate(value=value, interval=None, method=method, **shared))
        return found
