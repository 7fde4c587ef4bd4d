"""Presets: a plan that names one is completed by it, and what the plan says itself stands.

A preset is a class with `complete`, registered with ``@ombud.registry.preset("name")``; one that
must also change the data, such as by tagging texts, overrides `prepare`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from pydantic import BaseModel

from ombud import registry
from ombud.audits.plan import Plan
from ombud.data.dataset import Dataset
from ombud.errors import PlanError

__all__ = ["Preset", "complete", "prepared"]


class Preset(ABC):
    """What completes a plan, and may prepare its data."""

    options: ClassVar[type[BaseModel]]
    """The model of what a plan can say under ``[options]``."""

    @abstractmethod
    def complete(self, plan: Plan) -> Plan:
        """Return the plan with what it leaves open filled in."""

    def prepare(self, plan: Plan, data: Dataset) -> Dataset:
        """Return the data that is audited.

        Called wherever the plan's data is loaded, also when a stored result is measured again: it
        must give the same each time.
        """
        del plan
        return data


def complete(plan: Plan) -> Plan:
    """Return the plan with what its preset fills in; the plan itself when it names none."""
    if plan.preset is None and plan.options:
        told = ", ".join(sorted(plan.options))
        raise PlanError(f"[options] ({told}) are those of a preset, and the plan names none")
    return plan if plan.preset is None else _preset(plan.preset).complete(plan)


def prepared(plan: Plan, data: Dataset) -> Dataset:
    """Return the data as the preset of its plan wants it."""
    return data if plan.preset is None else _preset(plan.preset).prepare(plan, data)


def _preset(name: str) -> Preset:
    preset: Preset = registry.create("preset", name)
    return preset
