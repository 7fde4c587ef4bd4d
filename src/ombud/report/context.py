"""The estimates of a result by metric and role, indexed once.

A section declares what it needs as a `Select`; nothing scans the result, and a section whose
select is empty costs one dictionary lookup.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

import polars as pl

from ombud.audits.result import MetricInfo, Result
from ombud.metrics.engine.estimator import ATTRIBUTE_GAP
from ombud.report.names import Names
from ombud.stats.estimate import Estimate

Role: TypeAlias = Literal["overall", "group", "contrast", "spread", "systems"]
"""Everyone's level, a group's level, a group against others, largest minus smallest group of an
attribute, two systems compared."""

ROLES: tuple[Role, ...] = ("overall", "group", "contrast", "spread", "systems")


def role_of(estimate: Estimate) -> Role:
    """Return what an estimate is about."""
    if estimate.key.endswith(ATTRIBUTE_GAP):
        return "spread"
    if estimate.kind == "level":
        return "group" if estimate.group else "overall"
    return "contrast" if estimate.group else "systems"


@dataclass(frozen=True)
class Select:
    """Which estimates something is about."""

    metric: str  # The registered name of a metric, or the key of an analysis
    roles: tuple[Role, ...] = ()  # Some of the roles; default, all
    # Options that the metric must have.
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    label: str | None = None  # An exact label (empty for all content combined); None for any
    exact: bool = False  # Whether `metric` is the key of the estimates, options included


@dataclass(frozen=True)
class Context:
    """A result with its index and its display names: all that a section may look at."""

    result: Result
    names: Names
    set: str = ""  # Its name among the data sets of a study; empty in a report of its own

    @classmethod
    def of(cls, result: Result, name: str = "") -> Context:
        """Return the context of a result, which a study may give a name."""
        return cls(result, Names.of(result), name)

    @cached_property
    def _infos(self) -> dict[str, list[MetricInfo]]:
        found: dict[str, list[MetricInfo]] = {}
        for info in self.result.metrics:
            found.setdefault(str(info.spec.get("name", "")), []).append(info)
        return found

    @cached_property
    def by_key(self) -> dict[tuple[str, Role], list[Estimate]]:
        """The estimates by the key of their metric and their role."""
        found: dict[tuple[str, Role], list[Estimate]] = {}
        for e in self.result.estimates:
            key = (e.key or e.metric).removesuffix(ATTRIBUTE_GAP)
            found.setdefault((key, role_of(e)), []).append(e)
        return found

    @cached_property
    def titles(self) -> dict[str, str]:
        """The title of each metric and analysis, by key."""
        named = {(i.key or i.title): i.title for i in self.result.metrics}
        return {key: named.get(key, found[0].metric) for (key, _), found in self.by_key.items()}

    def info(self, select: Select) -> MetricInfo | None:
        """Return the first metric that a select is about."""
        matching = (
            info
            for info in self._infos.get(select.metric, ())
            if all(info.spec.get(k) == v for k, v in select.options.items())
        )
        return next(matching, None)

    def key(self, select: Select) -> str | None:
        """Return the key of the estimates that a select is about; None where there are none."""
        info = None if select.exact else self.info(select)
        if info is None:
            return None if select.options else select.metric
        return info.key or info.title

    def find(self, *selects: Select) -> tuple[Estimate, ...]:
        """Return the estimates of some selects, in the order of the result."""
        found: list[Estimate] = []
        for select in selects:
            key = self.key(select)
            if key is None:
                continue
            for role in select.roles or ROLES:
                some = self.by_key.get((key, role), ())
                found += [e for e in some if select.label is None or e.label == select.label]
        return tuple(found)

    def is_reference(self, system: str) -> bool:
        """Return whether a system is a baseline that nobody audits."""
        return self.result.plan.systems.get(system, {}).get("type") in {"random", "popular"}

    def table(self, name: str) -> pl.DataFrame | None:
        """Return a table that an analysis stored."""
        return self.result.tables.get(name)

    def rows(self, name: str, **about: Any) -> list[dict[str, Any]]:
        """Return the rows of a stored table that have some values; none without the table."""
        table = self.table(name)
        rows = [] if table is None else table.to_dicts()
        return [row for row in rows if all(row[key] == value for key, value in about.items())]
