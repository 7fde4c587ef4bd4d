"""Presets: a plan that names one is completed by it, and what the plan says itself stands.

A preset is a class with `complete`, registered with ``@ombud.registry.preset("name")``; one that
must also change the data, such as by tagging texts, overrides `prepare`, and `tagger` where each
text can be tagged by itself.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from inspect import cleandoc
from textwrap import fill
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticUndefined

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


class Options(BaseModel):
    """The options of a preset or of an analysis: each is written once, as a field.

    The docstring below a field is its description. Validation, ``--help``, ``ombud describe`` and
    the documentation all read these fields. An analysis that shares options with a preset inherits
    from the preset's model, whose name ends with ``Options``, or takes single fields from it::

        class BaseRates(Options, Analysis):
            rates: tuple[Share, ...] = DelicateOptions.field("base_rates")
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    registered_name: ClassVar[str] = "options"
    """Who takes the options, for error messages; the decorator of an analysis sets it."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            faults = "".join(f"\n  - {self._fault(found)}" for found in error.errors())
            head = f"{self.registered_name}: {error.error_count()} of the options cannot be used"
            raise PlanError(head + faults) from None

    @classmethod
    def field(cls, name: str, *, required: bool = False) -> Any:
        """Return an option for another model: its default, limits and description."""
        own = cls.model_fields[name]
        return Field(description=own.description) if required else copy(own)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Add the options to the docstring of an analysis, which is a model of its own options."""
        if cls.__doc__ and not cls.__name__.endswith("Options"):
            cls.__doc__ = with_options(cls.__doc__, cls, "Parameters")

    @classmethod
    def _fault(cls, found: Any) -> str:
        in_preset = cls.__name__.endswith("Options")
        place = ".".join(["options"] * in_preset + [str(part) for part in found["loc"]])
        if found["type"] == "extra_forbidden" and len(found["loc"]) == 1:
            near = registry.hint(found["loc"][0], cls.model_fields)
            return f"{place} is not an option; {near}"
        if found["type"] == "value_error":
            said = str(found["ctx"]["error"])
            return f"{place}: {said}" if found["loc"] else said
        return f"{place}: {found['msg']} (found {found['input']!r:.80})"


def with_options(doc: str, options: type[Options], heading: str) -> str:
    """Return a docstring with a section about the options, before its references and examples."""
    lines = [heading, "-" * len(heading)]
    for name, field in options.model_fields.items():
        text = " ".join((field.description or "").split())
        default = field.get_default(call_default_factory=True)
        if default not in (None, "", (), PydanticUndefined) and default != {}:
            text += f" Default: ``{_as_toml(default)}``."
        lines += [name, fill(text, 96, initial_indent="    ", subsequent_indent="    ")]
    text = cleandoc(doc)
    last = re.search(r"^(?:References|Examples)\n-+$", text, re.MULTILINE)
    cut = last.start() if last else len(text)
    parts = [text[:cut].rstrip(), "\n".join(lines), text[cut:]]
    return "\n\n".join(part for part in parts if part)


def _as_toml(value: Any) -> str:
    """Return a default as a plan would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_as_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


class Preset(ABC):
    """What completes a plan, and may prepare its data."""

    options: ClassVar[type[Options]]
    """The model of what a plan can say under ``[options]``; it is added to the docstring."""

    def __init_subclass__(cls) -> None:
        if "options" in vars(cls):
            cls.__doc__ = with_options(cls.__doc__ or "", cls.options, "Options")

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
