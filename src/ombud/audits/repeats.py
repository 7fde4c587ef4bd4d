"""Repeats of an audit: another split and other trainings, and which chance that covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ombud import registry
from ombud.audits.plan import Plan
from ombud.errors import OmbudError, PlanError

REPEATS = "repeats"
"""The folder of a result that holds what systems answered in further repeats."""

_FOLDS = "k-fold"


@dataclass(frozen=True)
class Randomness:
    """What in an audit hangs on chance, beside which users or texts are in the data.

    Parameters
    ----------
    repeats
        How often the audit was made; more than 1 brings `split` and `training` into intervals.
    split
        Whether what was held out was drawn at random.
    training
        Whether a system is trained, or makes its lists, with a seed.
    labels
        Whether doubt about labels is in the intervals of some measure.
    """

    repeats: int
    split: bool
    training: bool
    labels: bool

    @property
    def said(self) -> str:
        """One sentence, or two: what an interval holds, and what not."""
        parts = []
        if self.split:
            parts.append("what was held out")
        if self.training:
            parts.append("the chance in training")
        inside = "which users or texts happened to be in the data"
        if self.repeats > 1 and parts:
            inside += f", {' and '.join(parts)} (over {self.repeats} repeats)"
        if self.labels:
            inside += ", and doubt about labels where a measure says so"
        text = f"An interval covers chance: {inside}."
        if self.repeats == 1 and parts:
            verb = "was" if len(parts) == 1 else "were"
            text += (
                f" It does not cover {' or '.join(parts)}, which {verb} drawn once; repeat = 5 in "
                "the plan would bring that in."
            )
        return text


def randomness_of(plan: Plan) -> Randomness:
    """Return what hangs on chance in the audit of a plan.

    Examples
    --------
    >>> plan = Plan(systems={"a": {"type": "svd"}}, split={"method": "per-user"}, repeat=5)
    >>> randomness_of(plan)
    Randomness(repeats=5, split=True, training=True, labels=False)
    """
    return Randomness(
        repeats=plan.repeat,
        split=bool(plan.split) and plan.split.get("method", "per-user") != "time",
        training=any(_seeded(config) for config in plan.systems.values()),
        labels=any(spec.get("votes") == "probability" for spec in plan.metrics),
    )


def check_repeats(plan: Plan) -> None:
    """Refuse repeats that would all be the same, or that ask for more folds than there are."""
    if plan.repeat == 1:
        return
    found = randomness_of(plan)
    if not found.split and not found.training:
        raise PlanError(
            f"repeat = {plan.repeat} would repeat the same: the plan holds nothing out at random, "
            "and no system is trained with a seed"
        )
    folds = int(plan.split.get("folds", 5))
    if plan.split.get("method") == _FOLDS and plan.repeat > folds:
        raise PlanError(f"repeat = {plan.repeat}, but the split has {folds} folds; give it more")


def repeated_plan(plan: Plan, number: int) -> Plan:
    """Return the plan of one repeat: another fold or split, and another seed of every system.

    Parameters
    ----------
    plan
        The plan, completed by its preset.
    number
        Which repeat, from 1; repeat 0 is the plan itself.
    """
    split = dict(plan.split)
    if split.get("method") == _FOLDS:
        folds = int(split.get("folds", 5))
        split["fold"] = (int(split.get("fold", 0)) + number) % folds
    elif split:
        split["seed"] = int(split.get("seed", plan.seed)) + number
    systems = {name: _reseeded(config, number) for name, config in plan.systems.items()}
    return plan.model_copy(update={"repeat": 1, "split": split, "systems": systems})


def _takes_seed(kind: object) -> bool:
    try:
        return "seed" in registry.argument_types("recommender", str(kind))
    except OmbudError:  # a moderator, or a system from Python
        return False


def _trains(kind: object) -> bool:
    # A seed of what asks a service is of its waits.
    return kind != "http" and _takes_seed(kind)


def _seeded(config: dict[str, Any]) -> bool:
    inner = config.get("inner")
    return _trains(config.get("type")) or (isinstance(inner, dict) and _seeded(inner))


def _reseeded(config: dict[str, Any], number: int) -> dict[str, Any]:
    made = dict(config)
    if _trains(config.get("type")):
        made["seed"] = int(config.get("seed", 0)) + number
    if isinstance(config.get("inner"), dict):
        made["inner"] = _reseeded(config["inner"], number)
    return made
