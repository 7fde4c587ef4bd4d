"""How much data a plan needs: a small world is audited as the plan says, and scaled.

The standard error of every number of the engine falls with the root of its units. So one small
simulated audit tells how many users or texts a wanted precision takes. What it assumes is that the
plan's own data is spread like the world's; a finished result can be given instead, and then it is
spread like the result's.

How many units find an effect in a group is computed for the contrast, test and correction of the
plan, and then simulated at that size (`ombud.worlds.power`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from ombud.audits.audit import Audit
from ombud.audits.compare import stored_rows
from ombud.audits.load import load_metrics
from ombud.audits.plan import Plan
from ombud.audits.presets import complete
from ombud.audits.result import Result
from ombud.data.dataset import Dataset
from ombud.data.splits import split
from ombud.errors import OmbudError, PlanError
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.estimator import Settings
from ombud.stats.estimate import Estimate
from ombud.stats.power import POWER, is_ratio, standard_error, units_for_half_width, units_for_power
from ombud.stats.statistics import Mean, OfSums
from ombud.worlds.moderators import PlantedModerator
from ombud.worlds.power import Design, needed_for_power
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
    # In which share of simulated audits of this size the effect was found; None where the size
    # rests on the formula alone.
    power: float | None = None
    assumption: str = ""  # What was simulated


def size(
    plan: Plan,
    *,
    half_width: float | None = None,
    effect: float | None = None,
    power: float = POWER,
    comparisons: int = 1,
    rate: float = 0.1,
    pilot: Result | None = None,
    groups: int | None = None,
    cluster_size: int = 1,
    icc: float = 0.1,
    audits: int = 400,
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
        How many comparisons p-values are corrected over; default, one. Where it is the number of
        groups, simulated audits are corrected as the plan says; else each comparison is tested as
        the first of Holm's procedure is.
    rate
        The false-positive rate of the simulated moderator: of a difference, on the other groups; of
        a ratio, on all texts.
    pilot
        A finished result to take the spread from, instead of a small world.
    groups
        How many groups of equal size there are; default, as many as comparisons, and at least two.
    cluster_size, icc
        How many texts share a cluster (a template, a show), and the correlation of their flags.
    audits
        How many audits are simulated at the size that comes out; 0 for the formula alone.

    Raises
    ------
    PlanError
        If neither or both of half-width and effect are given, or they make no sense, or no group
        can differ by the effect.

    Examples
    --------
    >>> plan = Plan(metrics=({"name": "share-gap", "k": 10},))
    >>> needed = size(plan, half_width=0.02)[0]
    >>> needed.about, needed.unit, 100 < needed.n < 2000
    ('everyone', 'user', True)
    """
    _check(half_width, effect, power, comparisons, rate)
    count = max(2, comparisons) if groups is None else groups
    for name, value, least in (("groups", count, 2), ("cluster-size", cluster_size, 1)):
        if value < least:
            raise PlanError(f"{name} is {value}; at least {least} is expected")
    if not 0 <= icc < 1 or audits < 0:
        raise PlanError(f"icc is {icc} and audits {audits}; 0 to 1 and at least 0 are expected")
    if groups is not None and comparisons == 1 and groups > 2:
        comparisons = groups
    if comparisons > 1 and plan.statistics.correction == "none":
        raise PlanError(
            'the plan has correction = "none", so nothing is corrected for; remove --comparisons '
            "and --groups, or that line"
        )
    shape = _Shape(count, comparisons, cluster_size, icc, rate)
    plan = complete(plan)
    level = plan.statistics.level
    # The first step of Holm, and the strictest of Benjamini and Hochberg.
    strict = 1 - (1 - level) / comparisons
    needed: list[Needed] = []
    metrics = load_metrics(plan.metrics)
    if not metrics:
        raise PlanError("the plan names no metric, so nothing can be sized")
    worlds: dict[str, World] = {}
    refused: list[str] = []
    for metric in metrics:
        try:
            estimates = _estimates(metric, metrics, plan, rate, pilot, worlds)
        except OmbudError as error:
            unit = "user" if metric.of == "recommender" else "text"
            needed.append(
                Needed(metric.title, "everyone", unit, None, None, None, reason=str(error))
            )
            continue
        design = None
        if effect is not None:
            design = _design(metric, plan, effect, shape, pilot, worlds)
            why = "" if design is None else design.impossible()
            if why:
                refused.append(f"{metric.title}: {why}")
                unit = "user" if metric.of == "recommender" else "text"
                needed.append(
                    Needed(metric.title, "a group against the rest", unit, None, None, None,
                           metric.contrast == "ratio", why)
                )  # fmt: skip
                continue
        for about in _ABOUT:
            found = _spreads(estimates, about)
            if not found:
                continue
            ratio, unit = found[0][1], found[0][2]
            spreads = [spread for spread, _, _ in found]
            middle, most = float(np.median(spreads)), float(np.max(spreads))
            sides = 2 if about == "a group against the rest" and not ratio else 1

            def units(spread: float, groups: int = sides, ratio: bool = ratio) -> int:
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
            if design is not None and about == "a group against the rest" and audits:
                n, reached = needed_for_power(design, power, audits, plan.seed)
                wider = math.ceil(n * (most / middle) ** 2) if design.rate is None else n
                needed.append(
                    Needed(metric.title, about, unit, middle, n, wider, ratio, "", reached,
                           design.assumption())
                )  # fmt: skip
                continue
            needed.append(
                Needed(metric.title, about, unit, middle, units(middle), units(most), ratio)
            )
    if refused and not any(one.n for one in needed):
        raise PlanError("\n".join(["no group can differ by this effect:", *refused]))
    return tuple(needed)


@dataclass(frozen=True)
class _Shape:
    """What the simulated audits are of."""

    groups: int
    comparisons: int
    cluster_size: int
    icc: float
    rate: float


def _design(
    metric: Metric,
    plan: Plan,
    effect: float,
    shape: _Shape,
    pilot: Result | None,
    worlds: dict[str, World],
) -> Design | None:
    """Return the contrast of a group as it is simulated; None where a metric has none."""
    if metric.comparisons.groups is None or not isinstance(metric.statistic, OfSums):
        return None
    rows = _rows_of(metric, plan, shape.rate, pilot, worlds)
    if rows is None:
        return None
    cubes = [
        np.stack([rows.columns[c][:, k] for c in metric.statistic.columns], axis=1).astype(float)
        for k in range(len(rows.labels))
    ]
    cubes = [cube[~np.isnan(cube).any(axis=1)] for cube in cubes]
    cubes = sorted((c for c in cubes if len(c)), key=lambda cube: float(np.std(cube[:, 0])))
    if not cubes:
        return None
    pool = cubes[len(cubes) // 2]
    flags = isinstance(metric.statistic, Mean) and bool(np.isin(pool, (0, 1)).all())
    if shape.cluster_size > 1 and not flags:
        raise PlanError(f"{metric.title}: clusters are simulated for flags of texts alone")
    settings = Settings(**plan.statistics.model_dump(), seed=plan.seed)
    return Design(
        metric, settings, shape.groups, effect,
        (shape.rate if pilot is None else float(pool.mean())) if flags else None,
        None if flags else pool, shape.cluster_size, shape.icc, shape.comparisons,
    )  # fmt: skip


def _rows_of(
    metric: Metric, plan: Plan, rate: float, pilot: Result | None, worlds: dict[str, World]
) -> Rows | None:
    """Return what a metric measures on one system: of the pilot, else of a small world."""
    if pilot is not None:
        places = [k for k, info in enumerate(pilot.metrics) if info.title == metric.title]
        if pilot.folder is None or not places:
            return None
        return stored_rows(pilot, places[0], pilot.systems[0], pilot.metrics[places[0]].unit)
    data, systems = _audited(metric, worlds[metric.of], plan, rate)
    system = next(iter(systems.values()))
    try:
        if metric.of == "moderator":
            return metric.measure(system.moderate(data.texts), data)
        assert data.interactions is not None
        depth = max(metric.depth, 1)
        return metric.measure(system.recommend(data.interactions.users.ids, depth), data)
    except OmbudError:
        return None


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
