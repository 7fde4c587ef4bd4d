"""What reachability says of items, of users and of the system, with two-way intervals.

Users and targets are both samples, so both are resampled (`ombud.stats.resample_crossed`). A pair
that is neither proved reachable nor proved unreachable counts in neither way: shares are printed
as a range, from what is proved reachable to what is not proved unreachable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.rng import generator
from ombud.stats import Estimate, Sample, proportion, resample
from ombud.stats.crossed import CrossedReplicates, resample_crossed

if TYPE_CHECKING:
    from ombud.probes.recipe import Policy, Status


STATUS: tuple[Status, ...] = ("proved", "searched", "undecided")

Floats = NDArray[np.float64]
Groups = Mapping[str, NDArray[np.bool_]]
"""Members of each group by its name; groups may overlap."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReachTable:
    """What users can reach: one row per user, one column per target.

    Parameters
    ----------
    reachable
        1 where it is proved that the target can be in the list, 0 where the opposite is proved,
        0.5 where it is undecided; NaN for a pair that is not asked about (such as a target that
        the user has seen).
    system, policy, budget, k
        What the numbers are about.
    today, best
        Probability of the target without an edit, and the greatest found; NaN where unknown.
    rank_today, rank_best
        Rank of the target without an edit, and the best found; NaN where it has none.
    status
        How the best probability is known: 0 proved, 1 searched, 2 undecided; NaN for no pair.
    listed
        The share of trainings in which the target is in the list without an edit.
    shown
        1 where the best probability is at least that of today's last place of the list, else 0.
    above_noise
        1 where the interval of what is won, over seeds of training, excludes 0, else 0.
    user_weights, target_weights
        How many users and targets of the population each stands for.
    user_strata, target_strata
        Strata in which they were drawn.
    """

    reachable: Floats
    system: str
    policy: Policy
    budget: int
    k: int
    today: Floats | None = None
    best: Floats | None = None
    rank_today: Floats | None = None
    rank_best: Floats | None = None
    status: Floats | None = None
    listed: Floats | None = None
    shown: Floats | None = None
    above_noise: Floats | None = None
    user_weights: Floats | None = None
    target_weights: Floats | None = None
    user_strata: NDArray[Any] | None = None
    target_strata: NDArray[Any] | None = None
    _shape: tuple[int, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.reachable.shape
        if len(shape) != 2:
            raise ValueError(f"reachable has shape {shape}; expected users x targets")
        known = self.reachable[~np.isnan(self.reachable)]
        if not np.isin(known, (0.0, 0.5, 1.0)).all():
            raise ValueError("reachable has values other than 0, 0.5, 1 and NaN")
        for name in ("today", "best", "rank_today", "rank_best", "status", "listed"):
            table = getattr(self, name)
            if table is not None and table.shape != shape:
                raise ValueError(f"{name} has shape {table.shape}; expected {shape}")
        for first, second in (("today", "best"), ("rank_today", "rank_best")):
            if (getattr(self, first) is None) != (getattr(self, second) is None):
                raise ValueError(f"{first} and {second} go together; one is missing")
        object.__setattr__(self, "_shape", shape)

    @classmethod
    def from_reaches(cls, reaches: Sequence[Sequence[Any | None]], **about: Any) -> ReachTable:
        """Build a table from what `ombud.probes.reachability` found; None for a pair not asked."""
        shape = (len(reaches), max((len(row) for row in reaches), default=0))
        tables: dict[str, Any] = {
            name: np.full(shape, np.nan)
            for name in (
                "reachable", "today", "best", "rank_today", "rank_best", "status", "listed",
                "above_noise",
            )
        }  # fmt: skip
        decided = {True: 1.0, False: 0.0, None: 0.5}
        for u, row in enumerate(reaches):
            for t, reach in enumerate(row):
                if reach is None:
                    continue
                tables["reachable"][u, t] = decided[reach.reachable]
                # Without a softmax, an item is drawn if it is in the list.
                drawn = reach.in_list if reach.probability is None else reach.probability
                tables["today"][u, t] = drawn.today
                tables["best"][u, t] = drawn.attained
                tables["status"][u, t] = STATUS.index(drawn.status)
                tables["listed"][u, t] = reach.in_list.today
                if reach.gain_interval is not None:
                    tables["above_noise"][u, t] = reach.gain_interval[0] > 0
                for name in ("rank_today", "rank_best"):
                    if getattr(reach, name) is not None:
                        tables[name][u, t] = getattr(reach, name)
        return cls(**tables, **about)

    def measures(self) -> dict[str, tuple[Floats, str]]:
        """Return every measure by key: its table, and how it is summarised."""
        known = ~np.isnan(self.reachable)
        found = {
            "availability/proved": (np.where(known, self.reachable == 1, np.nan), "mean"),
            "availability/possible": (np.where(known, self.reachable > 0, np.nan), "mean"),
        }
        if self.today is not None and self.best is not None:
            found["today"] = (self.today, "mean")
            found["best"] = (self.best, "mean")
            found["today/median"] = (self.today, "median")
            found["best/median"] = (self.best, "median")
            found["gain"] = (self.best - self.today, "mean")
            none = self.today == 0
            found["new"] = (np.where(none, self.best > 0, np.nan), "mean")
            if self.listed is not None:
                outside = self.listed < 0.5
                found["outside/today"] = (np.where(outside, self.today, np.nan), "mean")
                found["outside/best"] = (np.where(outside, self.best, np.nan), "mean")
            positive = (self.today > 0) & (self.best > 0)
            lift = np.full(self._shape, np.nan)
            lift[positive] = np.log(self.best[positive] / self.today[positive])
            found["log-lift"] = (lift, "mean")
            found["log-lift/median"] = (lift, "median")
        if self.status is not None and self.today is not None:
            for code, word in enumerate(STATUS):
                share = np.where(np.isnan(self.status), np.nan, self.status == code)
                found[f"status/{word}"] = (share, "mean")
        if self.shown is not None:
            found["could-be-shown"] = (self.shown, "mean")
        if self.above_noise is not None and not np.isnan(self.above_noise).all():
            found["above-noise"] = (self.above_noise, "mean")
        if self.rank_today is not None and not np.isnan(self.rank_today).all():
            assert self.rank_best is not None  # they go together
            found["rank/today"] = (self.rank_today, "median")
            found["rank/best"] = (self.rank_best, "median")
        return found


_WORDS = {
    "availability/proved": "availability, proved reachable",
    "availability/possible": "availability, not proved unreachable",
    "agency/proved": "agency, targets proved reachable",
    "agency/possible": "agency, targets not proved unreachable",
    "today": "probability today, mean",
    "best": "best probability, mean",
    "today/median": "probability today, median",
    "best/median": "best probability, median",
    "outside/today": "probability today, items outside the list",
    "outside/best": "best probability, items outside the list",
    "new": "items with probability 0 today that can be reached",
    "could-be-shown": "best probability at least that of the last place today",
    "above-noise": "gain above the noise of training",
    "status/proved": "best probability proved",
    "status/searched": "best probability searched",
    "status/undecided": "best probability undecided",
    "gain": "gain in probability",
    "log-lift": "log-lift, mean",
    "log-lift/median": "log-lift, median",
    "rank/today": "rank today, median",
    "rank/best": "best rank, median",
}


def reach_summary(
    table: ReachTable,
    *,
    user_groups: Groups | None = None,
    target_groups: Groups | None = None,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> list[Estimate]:
    """Return availability, agency, gain, log-lift and rank: of all, by user group, by target group.

    - *availability*: the share of pairs of a user and a target in which the target can be in the
      list; a range of two numbers, proved and not excluded.
    - *agency*: how many targets a user can reach, on average; the same share times the number of
      targets in the population (the sum of the weights).
    - *gain* and *log-lift*: the probability won, and its logarithm (raw lift is ruled by tiny
      probabilities). Pairs whose probability is 0 today have no lift; they are counted in details.
    - *today* and *best*: the probability without an edit and at best, mean and median; of items
      outside the list; *new*: the share of pairs with probability 0 today that can be reached;
      *status*: how the best probability is known.
    - *rank*: the median rank of targets today and at best.

    Parameters
    ----------
    table
        What was found.
    user_groups, target_groups
        Members of groups by name (a label, a popularity decile); each is reported against all
        others of the other side.
    level, replicates, seed
        Of the two-way bootstrap.
    """
    users, targets = table.reachable.shape
    rows = {"": np.ones(users, np.bool_)} | dict(user_groups or {})
    columns = {"": np.ones(targets, np.bool_)} | dict(target_groups or {})
    for name, groups, size in (("user", rows, users), ("target", columns, targets)):
        for group, members in groups.items():
            if np.asarray(members).shape != (size,):
                raise ValueError(f"{name} group {group!r} must have one boolean per {name}")
    weights = np.ones(targets) if table.target_weights is None else table.target_weights
    found: list[Estimate] = []
    for key, (values, summary) in table.measures().items():
        drawn = resample_crossed(
            values,
            summary=summary,  # type: ignore[arg-type]
            row_weights=table.user_weights,
            column_weights=table.target_weights,
            row_strata=table.user_strata,
            column_strata=table.target_strata,
            row_groups=np.column_stack(list(rows.values())),
            column_groups=np.column_stack(list(columns.values())),
            replicates=replicates,
            rng=generator(seed, "reach", key),
        )
        for g, group in enumerate(rows):
            for h, label in enumerate(columns):
                if g and h:
                    continue
                size = float(weights[columns[label]].sum())
                about = {"system": table.system, "group": group, "label": label, "level": level}
                found += _named(table, key, drawn, (0, g, h), size, about)
    return found


def _named(
    table: ReachTable,
    key: str,
    drawn: CrossedReplicates,
    cell: tuple[int, int, int],
    size: float,
    about: dict[str, Any],
) -> list[Estimate]:
    details = {
        "policy": table.policy,
        "budget": table.budget,
        "k": table.k,
        "pairs": int(drawn.pairs[cell]),
        "users": int(drawn.rows[cell]),
        "targets": int(drawn.columns[cell]),
    }
    ending = f" (budget {table.budget}, {table.policy})@{table.k}"
    estimate = drawn.estimate(
        cell, metric=_WORDS[key] + ending, key=f"reach/{key}", details=details, **about
    )
    found = [estimate]
    if key.startswith("availability/"):
        agency = key.replace("availability", "agency")
        fields = {
            "metric": _WORDS[agency] + ending,
            "key": f"reach/{agency}",
            "details": details | {"targets in the population": size},
        }
        if estimate.value is None:
            found.append(estimate.replace(**fields))
        else:
            ends = estimate.interval
            scaled = None if ends is None else (ends[0] * size, ends[1] * size)
            found.append(estimate.replace(value=estimate.value * size, interval=scaled, **fields))
    return found


def attainable_summary(
    metric: str,
    observed: Floats,
    attainable: Floats,
    *,
    broad: Floats | None = None,
    narrow: float | None = None,
    system: str,
    policy: Policy,
    budget: int,
    higher: bool = True,
    groups: Groups | None = None,
    level: float = 0.95,
    replicates: int = 2000,
    seed: int = 0,
) -> list[Estimate]:
    """Return an observed metric of users' lists beside what they could attain.

    A narrow list with a large attainable value points to the user's own taste; a narrow list that
    stays narrow points to the system. Users are the units of resampling. It says nothing of whether
    a user wants the other list.

    Parameters
    ----------
    metric
        The metric's name, such as ``"intra-list diversity@10"``.
    observed, attainable
        One value per user: of the list today, and the best within the budget (a lower bound);
        NaN where undefined.
    broad
        The value when the history is replaced by that of users of broad taste and the same
        activity.
    narrow
        Lists at or below (above, when lower is better) this value are narrow; by default the first
        quartile of the observed values. Half the way from there to the median of all users counts
        as leaving.
    system, policy, budget
        What the numbers are about.
    higher
        Whether a higher value is the broader one.
    groups
        Members of user groups by name.
    level, replicates, seed
        Of the bootstrap.
    """
    sign = 1.0 if higher else -1.0
    short = ~(np.isnan(observed) | np.isnan(attainable))
    if np.any(sign * (attainable - observed)[short] < -1e-9):
        raise ValueError("an attainable value is worse than the observed one; no edit is an edit")
    about: dict[str, Any] = {
        "system": system,
        "unit": "user",
        "level": level,
        "details": {"policy": policy, "budget": budget},
    }
    members = {"": np.ones(len(observed), np.bool_)} | dict(groups or {})
    columns = {"observed": observed, "attainable": attainable}
    if broad is not None:
        columns["broad history"] = broad
    drawn = resample(
        [Sample(values) for values in columns.values()],
        groups=np.column_stack(list(members.values())),
        replicates=replicates,
        rng=generator(seed, "attainable", metric),
    )
    ending = f"(budget {budget}, {policy})"
    found: list[Estimate] = []
    for g, group in enumerate(members):
        for s, name in enumerate(columns):
            key = f"attainable/{name.replace(' ', '-')}"
            words = f"{metric}, {name} {ending}"
            found.append(
                drawn.at(s, g).estimate(metric=words, group=group, **(about | {"key": key}))
            )
        gap = drawn.contrast((1, g), (0, g))
        words = f"{metric}, attainable beyond observed {ending}"
        fields = about | {"key": "attainable/gap", "against": "observed"}
        found.append(gap.estimate(metric=words, group=group, **fields))
    if np.any(short):
        found += _narrow(metric, ending, observed, attainable, sign, narrow, members, about)
    return found


def _narrow(
    metric: str,
    ending: str,
    observed: Floats,
    attainable: Floats,
    sign: float,
    narrow: float | None,
    members: Groups,
    about: dict[str, Any],
) -> list[Estimate]:
    """Return the share of users with narrow lists who can leave them."""
    known = ~(np.isnan(observed) | np.isnan(attainable))
    ranked = sign * observed[known]
    edge = float(np.quantile(ranked, 0.25)) if narrow is None else sign * narrow
    goal = (edge + float(np.median(ranked))) / 2
    details = about["details"] | {"narrow": sign * edge, "left": sign * goal}
    found = []
    for group, inside in members.items():
        short = known & inside & (sign * observed <= edge)
        leaves = short & (sign * attainable > goal)
        found.append(
            proportion(
                int(leaves.sum()),
                int(short.sum()),
                metric=f"{metric}, narrow lists that can be left {ending}",
                group=group,
                **(about | {"key": "attainable/narrow-left", "details": details}),
            )
        )
    return found
