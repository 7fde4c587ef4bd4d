"""Presets: a plan that names one is completed by it, and what the plan says itself stands.

A preset is a class with `complete`, registered with ``@ombud.registry.preset("name")``; one that
must also change the data, such as by tagging texts, overrides `prepare`, and `tagger` where each
text can be tagged by itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from ombud import registry
from ombud.audits.plan import Plan
from ombud.data.dataset import Dataset
from ombud.errors import PlanError


class Tagger(Protocol):
    """What finds the groups that a text names, in that text alone."""

    @property
    def names(self) -> tuple[str, ...]:
        """The groups."""
        ...

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attribute of each group."""
        ...

    def tag(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        """Return texts x groups."""
        ...


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

    def tagger(self, plan: Plan) -> Tagger | None:
        """Return what finds groups in texts for an audit in blocks, which sees no whole data.

        None where the groups of the data stay as they are. A preset that changes the data in other
        ways raises a `PlanError`, as this one does.
        """
        if type(self).prepare is not Preset.prepare:
            raise PlanError(f"preset: {plan.preset!r} prepares all data at once")
        return None


def complete(plan: Plan) -> Plan:
    """Return the plan with what its preset fills in; the plan itself when it names none."""
    if plan.preset is None and plan.options:
        told = ", ".join(sorted(plan.options))
        raise PlanError(f"[options] ({told}) are those of a preset, and the plan names none")
    return plan if plan.preset is None else _preset(plan.preset).complete(plan)


def prepared(plan: Plan, data: Dataset) -> Dataset:
    """Return the data as the preset of its plan wants it."""
    return data if plan.preset is None else _preset(plan.preset).prepare(plan, data)


def tagger_of(plan: Plan) -> Tagger | None:
    """Return what finds the groups of texts in an audit in blocks; None for none."""
    return None if plan.preset is None else _preset(plan.preset).tagger(plan)


def _preset(name: str) -> Preset:
    preset: Preset = registry.create("preset", name)
    return preset
