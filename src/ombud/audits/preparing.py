"""A preset may prepare the data, such as by tagging texts, whenever its plan is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ombud import registry
from ombud.audits.plan import Plan
from ombud.data.dataset import Dataset

__all__ = ["prepared", "prepares"]

Preparation = Callable[[Plan, Dataset], Dataset]
Completion = TypeVar("Completion", bound=Callable[[Plan], Plan])


def prepares(prepare: Preparation) -> Callable[[Completion], Completion]:
    """Return a decorator that says how a preset prepares the data.

    Parameters
    ----------
    prepare
        From a plan and its data to the data that is audited. Called wherever the plan's data is
        loaded, also when a stored result is measured again: it must give the same each time.
    """

    def decorate(preset: Completion) -> Completion:
        setattr(preset, "prepare", prepare)  # noqa: B010 - a function with one attribute more
        return preset

    return decorate


def prepared(plan: Plan, data: Dataset) -> Dataset:
    """Return the data as the preset of its plan wants it."""
    if plan.preset is None:
        return data
    prepare: Preparation | None = getattr(registry.get("preset", plan.preset), "prepare", None)
    return data if prepare is None else prepare(plan, data)
