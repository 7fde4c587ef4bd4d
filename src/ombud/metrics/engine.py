"""One engine for every metric: intervals, groups, gaps and corrected comparisons.

All systems, labels and groups of a metric are resampled together, on the same users or texts. So
a gap is never read off two separate intervals, and two systems are compared on the same people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.metrics.base import Metric, Rows
from ombud.metrics.shared import add_shared
from ombud.rng import generator
from ombud.stats.bootstrap import resample
from ombud.stats.bootstrapped import Bootstrapped
from ombud.stats.estimate import Estimate
from ombud.stats.multiplicity import adjust
from ombud.stats.replicates import Replicates, Sample

Correction: TypeAlias = Literal["benjamini-hochberg", "holm", "none"]

__all__ = ["REST", "Settings", "correct", "estimate_metric"]

REST = "everyone else whose group is known"
"""What a group is compared with: the other units for which its attribute is known."""


@dataclass(frozen=True)
class Settings:
    """How uncertainty is computed.

    Parameters
    ----------
    level
        Coverage of the intervals.
    replicates
        Bootstrap replicates.
    interval
        ``bca`` (bias-corrected and accelerated) or ``percentile``.
    correction
        Correction of p-values over all comparisons of one kind and one metric.
    minimum
        Groups with fewer units get no number but the words "not enough data".
    seed
        The seed of the whole audit.
    """

    level: float = 0.95
    replicates: int = 2000
    interval: Literal["bca", "percentile"] = "bca"
    correction: Correction = "benjamini-hochberg"
    minimum: int = 10
    seed: int = 0


@dataclass(frozen=True)
class _Layout:
    """Where each system, label and group stands in the arrays of the bootstrap."""

    systems: tuple[str, ...]
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    def sample(self, system: int, label: int) -> int:
        return system * len(self.labels) + label

    def rest(self, group: int) -> int:
        """Column of "everyone of the same attribute who is not in the group"."""
        return 1 + len(self.groups) + group


def estimate_metric(
    metric: Metric,
    rows: Mapping[str, Rows],
    groups: Grouping | None = None,
    settings: Settings | None = None,
) -> list[Estimate]:
    """Return every estimate of one metric: levels, gaps between groups, gaps between systems.

    Parameters
    ----------
    metric
        The metric.
    rows
        What it measured, by system. Systems are compared on the units they share.
    groups
        Groups of units; each is also compared with the rest of its attribute.
    settings
        How uncertainty is computed.
    """
    settings = settings or Settings()
    systems = tuple(rows)
    first = rows[systems[0]]
    labels = first.labels
    units, _ = Vocabulary.encode(np.concatenate([rows[name].ids for name in systems]))
    if len(units) == 0:
        return [_nothing(metric, first, system, label) for system in systems for label in labels]
    members = None if groups is None else groups.aligned(units.ids)
    layout = _Layout(systems, labels, () if groups is None else groups.names)
    samples = [
        Sample(values, metric.statistic)
        for name in systems
        for values in _aligned(rows[name], units, metric.statistic.columns)
    ]
    columns = _columns(members, groups, len(units))
    replicates = resample(
        samples,
        groups=columns,
        clusters=_clusters(rows, units),
        replicates=settings.replicates,
        rng=generator(settings.seed, "bootstrap", metric.title),
    )
    shared = [rows[name].shared for name in systems]
    add_shared(replicates, shared, units, columns, generator(settings.seed, "shared", metric.title))
    maker = _Maker(metric, first.unit, rows, replicates, layout, settings)
    levels = [
        maker.level(s, w, g)
        for s in range(len(systems))
        for w in range(len(labels))
        for g in range(1 + len(layout.groups))
    ]
    between_groups = [
        maker.group_gap(s, w, g, rest)
        for s in range(len(systems))
        for w in range(len(labels))
        for g, rest in _compared(groups, members).items()
    ]
    between_systems = [
        maker.system_gap(a, b, w)
        for a in range(len(systems))
        for b in range(a + 1, len(systems))
        for w in range(len(labels))
    ]
    everyone = [e for e in levels if not e.group]
    by_group = [e for e in levels if e.group]
    families = (everyone, by_group, between_groups, between_systems)
    return [e for family in families for e in correct(family, settings.correction)]


def correct(estimates: Sequence[Estimate], correction: Correction) -> list[Estimate]:
    """Return the estimates with p-values adjusted over those that have one."""
    tested = [e for e in estimates if e.p_value is not None]
    if not tested or correction == "none":
        return list(estimates)
    adjusted = iter(adjust(np.array([e.p_value for e in tested], dtype=np.float64), correction))
    words = f"{correction} over {len(tested)}"
    return [
        e if e.p_value is None else e.with_(p_adjusted=float(next(adjusted)), correction=words)
        for e in estimates
    ]


def _nothing(metric: Metric, rows: Rows, system: str, label: str) -> Estimate:
    return Estimate.undefined(
        metric=metric.title,
        reason=f"no {rows.unit} could be measured",
        n=0,
        unit=rows.unit,
        system=system,
        label=label,
    )


def _aligned(rows: Rows, units: Vocabulary, columns: tuple[str, ...]) -> list[NDArray[np.float64]]:
    """Return, for each label, an array of all units x columns; NaN where a unit is missing."""
    place = units.codes(rows.ids)
    cube = np.full((len(units), len(rows.labels), len(columns)), np.nan)
    for c, column in enumerate(columns):
        cube[place, :, c] = rows.columns[column]
    return [cube[:, w, :] for w in range(len(rows.labels))]


def _columns(
    members: NDArray[np.bool_] | None, groups: Grouping | None, n: int
) -> NDArray[np.bool_] | None:
    """Return units x (everyone, each group, the rest of each group's attribute)."""
    if members is None or groups is None:
        return None
    rest = np.zeros(members.shape, dtype=bool)
    attributes = np.array(groups.attributes)
    for attribute in set(groups.attributes):
        same = np.flatnonzero(attributes == attribute)
        inside = members[:, same]
        rest[:, same] = inside.any(axis=1, keepdims=True) & ~inside
    return np.concatenate([np.ones((n, 1), dtype=bool), members, rest], axis=1)


def _compared(groups: Grouping | None, members: NDArray[np.bool_] | None) -> dict[int, str]:
    """Return the groups to compare with the rest, and the words for that rest.

    Two groups that share out an attribute between them make one comparison, not two.
    """
    if groups is None or members is None:
        return {}
    words: dict[int, str] = {}
    for g, attribute in enumerate(groups.attributes):
        same = [h for h, other in enumerate(groups.attributes) if other == attribute]
        if len(same) == 2 and not np.any(members[:, same[0]] & members[:, same[1]]):
            if g == same[0]:
                words[g] = groups.names[same[1]]
        elif len(same) > 1:
            words[g] = REST
    return words


def _clusters(rows: Mapping[str, Rows], units: Vocabulary) -> NDArray[np.int32] | None:
    if all(r.clusters is None for r in rows.values()):
        return None
    clusters = np.full(len(units), -1, dtype=np.int32)
    for r in rows.values():
        if r.clusters is not None:
            clusters[units.codes(r.ids)] = r.clusters
    return clusters


@dataclass(frozen=True)
class _Maker:
    """Turns replicates into estimates."""

    metric: Metric
    unit: str
    rows: Mapping[str, Rows]
    replicates: Replicates
    layout: _Layout
    settings: Settings

    def level(self, system: int, label: int, group: int) -> Estimate:
        """Return the estimate of one system, label and group (0 is everyone)."""
        s = self.layout.sample(system, label)
        about = self._about(system, label, group)
        if group and self._too_few(s, group):
            return self._not_enough(s, group, about)
        return self._estimate(self.replicates.at(s, group), about, self.metric.null)

    def group_gap(self, system: int, label: int, group: int, against: str) -> Estimate:
        """Return the gap between a group and the rest of its attribute."""
        s = self.layout.sample(system, label)
        here, rest = 1 + group, self.layout.rest(group)
        about = self._about(system, label, here) | {"kind": self._kind(), "against": against}
        for side in (here, rest):
            if self._too_few(s, side):
                return self._not_enough(s, side, about)
        contrast = self.replicates.contrast((s, here), (s, rest), how=self.metric.contrast)
        return self._estimate(contrast, about)

    def system_gap(self, one: int, other: int, label: int) -> Estimate:
        """Return the gap between two systems on everyone."""
        a, b = self.layout.sample(one, label), self.layout.sample(other, label)
        against = {"kind": self._kind(), "against": self.layout.systems[other]}
        contrast = self.replicates.contrast((a, 0), (b, 0), how=self.metric.contrast)
        return self._estimate(contrast, self._about(one, label, 0) | against)

    def _estimate(
        self, number: Bootstrapped, about: dict[str, Any], null: float | None = None
    ) -> Estimate:
        return number.estimate(
            metric=self.metric.title,
            method=self.settings.interval,
            null=null,
            **about,
        )

    def _about(self, system: int, label: int, group: int) -> dict[str, Any]:
        name, word = self.layout.systems[system], self.layout.labels[label]
        notes = self.rows[name].notes
        return {
            "unit": self.unit,
            "level": self.settings.level,
            "system": name,
            "label": word,
            "group": self.layout.groups[group - 1] if group else "",
            "note": notes.get(word, notes.get("", "")),
        }

    def _kind(self) -> Literal["gap", "ratio"]:
        return "ratio" if self.metric.contrast == "ratio" else "gap"

    def _n(self, sample: int, group: int) -> int:
        return int(self.replicates.n[sample, group])

    def _too_few(self, sample: int, group: int) -> bool:
        return self._n(sample, group) < self.settings.minimum

    def _not_enough(self, sample: int, group: int, about: dict[str, Any]) -> Estimate:
        n = self._n(sample, group)
        return Estimate.undefined(
            metric=self.metric.title,
            reason=f"not enough data: {n} {self.unit}s, at least {self.settings.minimum} wanted",
            n=n,
            **about,
        )
