"""How much data a plan needs: a small world is audited as the plan says, and scaled.

The standard error of every number of the engine falls with the root of its units. So one small
simulated audit tells how many users or texts a wanted precision takes. What it assumes is that the
plan's own data is spread like the world's; a finished result can be given instead, and then it is
spread like the result's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ombud.audits.audit import Audit
from ombud.audits.load import load_metrics
from ombud.audits.plan import Plan
from ombud.audits.presets import complete
from ombud.audits.result import Result
from ombud.data.dataset import Dataset
from ombud.data.splits import split
from ombud.errors import OmbudError, PlanError
from ombud.metrics.base import Metric
from ombud.stats.estimate import Estimate
from ombud.stats.power import POWER, is_ratio, standard_error, units_for_half_width, units_for_power
from ombud.worlds.moderators import PlantedModerator
from ombud.worlds.spec import Amplification, WorldSpec
from ombud.worlds.world import World, build_world

About = Literal["everyone", "each group", "a group against the rest", "two systems"]
"""What a number is about."""

_ABOUT: tuple[About, ...] = ("everyone", "each group", "a group against the rest", "two systems")
_REPLICATES = 400
_UNITS = 600


@dataclass(frozen=True)
class Needed:
    """How many units one kind of number needs."""

    metric: str  # The metric as printed
    # What the number is about. Users or texts are counted for each group where there are groups;
    # two groups that are compared are taken to be equally large.
    about: About
    # What is counted: ``user``, ``text``. Behind a false-positive rate only acceptable texts count.
    unit: str
    # The standard deviation of one unit, of the label in the middle; of a ratio, on the logarithm.
    spread: float | None
    # How many units the label in the middle needs; None where that could not be simulated.
    n: int | None
    n_most: int | None  # How many the label with the widest spread needs
    ratio: bool = False  # Whether half-width and effect are those of a logarithm
    reason: str = ""  # Why there is no number


def size(
    plan: Plan,
    *,
    half_width: float | None = None,
    effect: float | None = None,
    power: float = POWER,
    comparisons: int = 1,
    rate: float = 0.1,
    pilot: Result | None = None,
) -> tuple[Needed, ...]:
    """Return how many users or texts a plan's metrics need for a wanted precision.

    Parameters
    ----------
    plan
        What is to be audited; its data need not be there.
    half_width
        Half of the width of the intervals that are wanted. Of a ratio, on the logarithm: 0.2
        reaches from 0.82 to 1.22 times.
    effect
        Or: the difference that is to be found, of a ratio the factor.
    power
        With what chance it is to be found.
    comparisons
        How many comparisons p-values are corrected over; each is then tested as the first of
        Holm's procedure is.
    rate
        The false-positive rate of the simulated moderator.
    pilot
        A finished result to take the spread from, instead of a small world.

    Raises
    ------
    PlanError
        If neither or both of half-width and effect are given, or they make no sense.

    Examples
    --------
    >>> plan = Plan(metrics=({"name": "share-gap", "k": 10},))
    >>> needed = size(plan, half_width=0.02)[0]
    >>> needed.about, needed.unit, 100 < needed.n < 2000
    ('everyone', 'user', True)
    """
    _check(half_width, effect, power, comparisons, rate)
    plan = complete(plan)
    level = plan.statistics.level
    # The first step of Holm, and the strictest of Benjamini and Hochberg.
    strict = 1 - (1 - level) / comparisons
    needed: list[Needed] = []
    metrics = load_metrics(plan.metrics)
    if not metrics:
        raise PlanError("the plan names no metric, so nothing can be sized")
    worlds: dict[str, World] = {}
    for metric in metrics:
        try:
            estimates = _estimates(metric, metrics, plan, rate, pilot, worlds)
        except OmbudError as error:
            unit = "user" if metric.of == "recommender" else "text"
            needed.append(
                Needed(metric.title, "everyone", unit, None, None, None, reason=str(error))
            )
            continue
        for about in _ABOUT:
            found = _spreads(estimates, about)
            if not found:
                continue
            ratio, unit = found[0][1], found[0][2]
            spreads = [spread for spread, _, _ in found]
            middle, most = float(np.median(spreads)), float(np.max(spreads))
            groups = 2 if about == "a group against the rest" and not ratio else 1

            def units(spread: float, groups: int = groups, ratio: bool = ratio) -> int:
                if half_width is not None:
                    n = units_for_half_width(spread * math.sqrt(groups), half_width, level)
                else:
                    assert effect is not None  # one of the two is given
                    far = abs(math.log(effect)) if ratio else abs(effect)
                    n = units_for_power(spread * math.sqrt(groups), far, power, strict)
                return max(n, plan.statistics.minimum)

            if effect is not None and ratio and (effect <= 0 or effect == 1):
                reason = "of a ratio the effect is a factor, such as 1.5"
                needed.append(Needed(metric.title, about, unit, middle, None, None, ratio, reason))
                continue
            needed.append(
                Needed(metric.title, about, unit, middle, units(middle), units(most), ratio)
            )
    return tuple(needed)


def _check(
    half_width: float | None, effect: float | None, power: float, comparisons: int, rate: float
) -> None:
    if (half_width is None) == (effect is None):
        raise PlanError("give a half-width, or an effect that is to be found, and not both")
    if half_width is not None and not 0 < half_width < math.inf:
        raise PlanError(f"half-width is {half_width}; it must be above 0")
    if effect is not None and (effect == 0 or not math.isfinite(effect)):
        raise PlanError(f"effect is {effect}; any other number is expected")
    for name, value in (("power", power), ("rate", rate)):
        if not 0 < value < 1:
            raise PlanError(f"{name} is {value}; it lies between 0 and 1")
    if comparisons < 1:
        raise PlanError(f"comparisons is {comparisons}; at least 1 is expected")


def _estimates(
    metric: Metric,
    metrics: Sequence[Metric],
    plan: Plan,
    rate: float,
    pilot: Result | None,
    worlds: dict[str, World],
) -> tuple[Estimate, ...]:
    if pilot is not None:
        found = tuple(e for e in pilot.estimates if e.metric == metric.title)
        if not found:
            raise PlanError(f"the result did not measure {metric.title}")
        return found
    if metric.of not in worlds:
        worlds[metric.of] = _world(metrics, plan)
    world = worlds[metric.of]
    data, systems = _audited(metric, world, plan, rate)
    statistics = plan.statistics.model_copy(update={"replicates": _REPLICATES})
    audit = Audit(data, systems, [metric], statistics=statistics, seed=plan.seed)
    return audit.run().estimates


def _world(metrics: Sequence[Metric], plan: Plan) -> World:
    """Return a small world whose lists are as long as those of the plan."""
    depth = max([metric.depth for metric in metrics] + [10])
    reserve = max(50, depth + 20)
    spec = WorldSpec(
        "size",
        users=_UNITS,
        items=max(300, 4 * reserve),
        depth=depth,
        reserve=reserve,
        texts=4 * _UNITS,
        templates=4 * _UNITS,
        ratings=True,
        amplifications={"other": Amplification("violence", 1.2)},
    )
    return build_world(spec, plan.seed)


def _audited(
    metric: Metric, world: World, plan: Plan, rate: float
) -> tuple[Dataset, Mapping[str, Any]]:
    if metric.of == "moderator":
        # A text here stands for itself; those that share a template or an author count for fewer.
        texts = replace(world.texts, clusters=None)
        data = Dataset(texts=texts, text_groups=world.dataset.text_groups)
        names = ("one", "other")
        return data, {name: PlantedModerator(world, base_fpr=rate, name=name) for name in names}
    users = world.dataset.users
    if plan.by == ():
        users = None
    data = Dataset(
        interactions=world.dataset.interactions, labels=world.dataset.labels, users=users
    )
    if plan.split and data.interactions is not None:
        cut = split(data.interactions, **({"seed": plan.seed} | plan.split))
        data = replace(data, interactions=cut.train, test=cut.test)
    return data, {system.name: system for system in world.recommenders()}


def _about(estimate: Estimate) -> About:
    if estimate.kind == "level":
        return "each group" if estimate.group else "everyone"
    return "a group against the rest" if estimate.group else "two systems"


def _spreads(estimates: Sequence[Estimate], about: About) -> list[tuple[float, bool, str]]:
    """Return the spread of one unit for every number of a kind that has one."""
    levels = [e for e in estimates if e.kind == "level"]
    sizes = {(e.system, e.label, e.group): e.n for e in levels}
    found = []
    for e in estimates:
        error = standard_error(e) if _about(e) == about else None
        if not error:
            continue
        n: float = e.n
        if about == "a group against the rest" and not is_ratio(e):
            # 1 / n = 1 / n_group + 1 / n_rest: the spread is then that of one unit.
            own = sizes.get((e.system, e.label, e.group), e.n)
            rest = sizes.get((e.system, e.label, ""), 0) - own
            n = own * rest / (own + rest) if rest > 0 else own
        if n > 0:
            found.append((error * math.sqrt(n), is_ratio(e), e.unit))
    return found
