"""Resampled units, and the estimates that are made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from ombud.metrics.base import Metric, Rows, key_of
from ombud.metrics.denominators import coverage_of
from ombud.metrics.engine.label_uncertainty import with_label_doubt
from ombud.metrics.engine.layout import EVENTS, Layout
from ombud.metrics.engine.paired import SharedUnits
from ombud.stats.bootstrap.replicates import Replicates, ResampledStatistic
from ombud.stats.estimate import Estimate, ReasonCode
from ombud.stats.extremes import largest_gap
from ombud.stats.intervals import Method
from ombud.stats.statistics import Floats

Correction: TypeAlias = Literal["benjamini-hochberg", "holm", "none"]


ATTRIBUTE_GAP = "/attribute-gap"
"""Ends the key of a gap between the largest and the smallest group of an attribute."""


_NO_COVERAGE = "the number of labeled items is not known for both sides of the comparison"
_LABELED = {"labeled_recommended": 1.0, "labeled_history": 1.0}
FEW = 50
"""Below this many units the BCa interval covers too little: 89% instead of 95% at 10 units."""


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
        ``bca`` (bias-corrected and accelerated; below 50 units, where it is too short, an
        expanded percentile interval instead, and named so), ``percentile`` or ``expanded``.
    correction
        Correction of p-values over all comparisons of one kind and one metric.
    minimum
        With fewer units there is no number but the words "not enough data".
    small_groups
        How reports show groups of fewer users: ``merged`` into one line, or ``listed``.
    seed
        The seed of the whole audit.
    matters
        The smallest difference that matters, of all measures or by the name of each; see
        `ombud.metrics.engine.comparisons`.
    unlabeled
        The plausible range of rates among unlabeled items, relative to labeled ones: `lowest`,
        `highest` and the `reason` for them; default, 0.5 to 2.
    """

    level: float = 0.95
    replicates: int = 2000
    interval: Method = "bca"
    correction: Correction = "benjamini-hochberg"
    minimum: int = 10
    small_groups: str = "merged"
    seed: int = 0
    matters: float | Mapping[str, float] | None = None
    unlabeled: Mapping[str, Any] | None = None

    @property
    def plausible(self) -> tuple[float, float]:
        """Between what the ratio of rates among unlabeled and labeled items plausibly lies."""
        told = self.unlabeled or {}
        return float(told.get("lowest", 0.5)), float(told.get("highest", 2.0))


@dataclass(frozen=True)
class Beside:
    """What rows tell beside their number, in the shape of the replicates: samples x groups."""

    means: Mapping[str, Floats] = field(default_factory=dict)  # Means of `Rows.context`, by name
    events: Floats | None = None  # how many events there are; None where they are not counted

    @classmethod
    def of(cls, sums: Mapping[str, Floats], counts: Floats) -> Self:
        """Return it from sums and numbers of units, both groups x samples."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = {name: (values / counts).T for name, values in sums.items() if name != EVENTS}
        return cls(means, sums[EVENTS].T if EVENTS in sums else None)

    @classmethod
    def mean(cls, parts: Sequence[Self]) -> Self:
        """Return the mean over repeats of an audit."""
        first = parts[0]
        if len(parts) == 1:
            return first
        means = {n: np.mean([part.means[n] for part in parts], axis=0) for n in first.means}
        counted = [part.events for part in parts if part.events is not None]
        return cls(means, np.mean(counted, axis=0) if counted else None)

    def told(self, sample: int, group: int, before: str = "") -> dict[str, float]:
        """Return the means of one sample and group that exist, their names after `before`."""
        found = {before + name: float(means[sample, group]) for name, means in self.means.items()}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def count(self, *places: tuple[int, int]) -> int | None:
        """Return the most events of some places (sample and group); None if not counted."""
        if self.events is None:
            return None
        # A text that was flagged in half of its answers is half an event.
        return max(int(self.events[place] + 1e-9) for place in places)


@dataclass(frozen=True)
class MetricEstimator:
    """Turns replicates into estimates."""

    # What was measured, and on what.
    metric: Metric
    unit: str
    rows: Mapping[str, Rows]
    # One sample for each system and label; its groups are everyone, each group, and those outside
    # each group.
    replicates: Replicates
    layout: Layout  # where each system, label and group stands
    settings: Settings  # how uncertainty is computed
    # Pairs of systems that did not measure the same units, cut to those that both did.
    shared: SharedUnits = field(default_factory=SharedUnits)
    # The numbers of each repeat of the audit, in the shape of those of `replicates`.
    points: tuple[Floats, ...] = ()
    beside: Beside = field(default_factory=Beside)  # what rows tell beside the number

    def level(self, system: int, label: int, group: int) -> Estimate:
        """Return the estimate of one system, label and group (0 is everyone)."""
        s = self.layout.sample(system, label)
        about = self.about(system, label, group) | {"details": self._details(system, label, group)}
        if fault := self.why_undefined(label, system):
            return self._undefined(*fault, self._n(s, group), about)
        if self.too_few(s, group) and self._n(s, group) > 0:
            return self.not_enough(s, group, about)
        if rare := self._rare(self.replicates, s, group):
            return self._undefined("too-few-events", rare, self._n(s, group), about)
        result = self._estimate(self.replicates.at(s, group), about, self.metric.null)
        low, high = self.metric.possible
        if result.interval is not None and low <= (result.value or 0.0) <= high:
            ends = (max(result.interval[0], low), min(result.interval[1], high))
            result = result.replace(interval=ends)
        if tipping := self.metric.tipping(result, *self.settings.plausible):
            result = result.replace(tipping=tipping)
        result = with_label_doubt(result, self.metric.possible, about["details"])
        policy = self.metric.comparisons.events
        return result if policy is None else policy.level(result, self, s, group)

    def group_contrast(self, system: int, label: int, group: int, against: str) -> Estimate:
        """Return a group compared with those outside it, or with the whole it is part of."""
        here, sample = 1 + group, self.layout.sample(system, label)
        other, policy = self.layout.other(group), self.metric.comparisons.events
        known = not self.why_undefined(label, system)
        if policy is not None and known and (rare := policy.whole_is_too_rare(self, sample)):
            about = self.about(system, label, here) | {"kind": self._kind(), "against": against}
            about |= {"null": self.metric.null}
            return self._undefined("too-few-events", rare, self._n(sample, here), about)
        estimate = self.between(system, label, here, other, against)
        if policy is None or estimate.value is None:
            return estimate
        return policy.refine(estimate, self, sample, here, other)

    def between(self, system: int, label: int, one: int, other: int, against: str) -> Estimate:
        """Return the gap between two columns of the replicates, for one system and label."""
        s = self.layout.sample(system, label)
        about = self.about(system, label, one) | {"kind": self._kind(), "against": against}
        if fault := self.why_undefined(label, system):
            return self._undefined(*fault, self._n(s, one), about)
        for side in (one, other):
            if self.too_few(s, side):
                return self.not_enough(s, side, about)
            if rare := self._rare(self.replicates, s, side):
                return self._undefined("too-few-events", rare, self._n(s, side), about)
        contrast = self.replicates.contrast((s, one), (s, other), how=self.metric.contrast)
        about["details"] = self._both(contrast.parts) | self.beside.told(s, one)
        about["details"] |= self.beside.told(s, other, "other_")
        if not other:  # the whole holds the group: what those outside it have is told too
            outside = self.replicates.point[s, self.layout.rest(one - 1)]
            about["details"] |= {"outside_level": float(outside)} if outside == outside else {}
        result = self._estimate(contrast, about)
        return self._with_tipping(result, [(system, one), (system, other)], label)

    def _with_tipping(
        self, result: Estimate, sides: Sequence[tuple[int, int]], label: int, fault: str = ""
    ) -> Estimate:
        """Return a comparison with its tipping point, or with the reason why it has none.

        `sides` are the system and the group of both sides.
        """
        told = [self._details(system, label, group) for system, group in sides]
        if told:
            result = with_label_doubt(result, self.metric.possible, *told)
        ends, null = result.interval, 1.0 if self.metric.contrast == "ratio" else 0.0
        clear = ends is not None and not ends[0] <= null <= ends[1]
        if not clear or not any("unlabeled" in one for one in told):
            return result
        if not fault:
            # Where every item of one side is labeled, nothing says so there.
            for side, other in ((0, -1), (-1, 0)):
                if "unlabeled" not in told[side]:
                    beside = {"unlabeled": told[other]["unlabeled"]}
                    told[side] = {**_LABELED, **beside, **told[side]}
            tipping = self.metric.tipping(result, *self.settings.plausible, *told)
            if tipping is not None:
                return result.replace(tipping=tipping)
            fault = "" if all(map(coverage_of, told)) else _NO_COVERAGE
        return result.replace(details={**result.details, "no_tipping": fault}) if fault else result

    def _both(self, parts: tuple[float, float]) -> dict[str, Any]:
        """Return both sides of a contrast, where they exist."""
        known = math.isfinite(parts[0]) and math.isfinite(parts[1])
        return {"level": float(parts[0]), "other_level": float(parts[1])} if known else {}

    def attribute_gap(
        self, system: int, label: int, attribute: str, groups: Sequence[int]
    ) -> Estimate:
        """Return the gap between the largest and the smallest group of an attribute.

        Groups with too few units take no part; `ombud.stats.extremes.largest_gap` says how the
        interval allows for having chosen the two.
        """
        s = self.layout.sample(system, label)
        ratio = self.metric.contrast == "ratio"
        about = self.about(system, label, 0) | {
            "key": key_of(self.metric) + ATTRIBUTE_GAP,
            "kind": self._kind(),
            "group": attribute,
            "against": "its smallest group",
        }
        word = "over" if ratio else "minus"
        title = f"{self.metric.title}: largest {word} smallest group"
        kept = [g for g in groups if not self.too_few(s, 1 + g)]
        kept = [g for g in kept if not self._rare(self.replicates, s, 1 + g)]
        n = sum(self._n(s, 1 + g) for g in kept)
        code, reason = self.why_undefined(label, system) or ("not-estimable", "")
        if not reason and len(kept) < 2:
            wanted = f"with at least {self.settings.minimum} {self.unit}s; two are wanted"
            reason = f"not enough data: {len(kept)} of {len(groups)} groups {wanted}"
            code = "too-few-groups"
        if reason:
            return Estimate.undefined(reason_code=code, metric=title, reason=reason, n=n, **about)
        columns = [1 + g for g in kept]
        values = levels = self.replicates.point[s, columns]
        draws = self.replicates.draws[:, s, columns]
        if ratio:
            with np.errstate(all="ignore"):
                values, draws = np.log(values), np.log(draws)
        try:
            found = largest_gap(values, draws, self.settings.level)
        except ValueError:
            lost = "a group is undefined in too many replicates"
            return Estimate.undefined(
                reason_code="not-estimable", metric=title, reason=lost, n=n, **about
            )
        scale = math.exp if ratio else float
        by_chance = scale(found.by_chance)
        about["details"] = {
            "attribute": attribute,
            "largest": self.layout.groups[kept[found.high]],
            "smallest": self.layout.groups[kept[found.low]],
            "groups": len(kept),
            "groups_left_out": len(groups) - len(kept),
            "by_chance": by_chance,
            **self._both((levels[found.high], levels[found.low])),
        }
        told = f"the two of {len(kept)} groups that lie furthest apart; were all alike, chance "
        about["note"] = f"{told}alone would set them about {by_chance:.2g} apart"
        if found.ends[0] == found.ends[1]:
            method = "none: the replicates do not vary"
            return Estimate(
                metric=title, value=scale(found.value), interval=None, method=method, n=n, **about
            )
        result = Estimate(
            metric=title,
            value=scale(found.value),
            interval=(scale(found.ends[0]), scale(found.ends[1])),
            method="simultaneous bootstrap band over all pairs",
            n=n,
            null=scale(0.0),
            p_value=found.p,
            **about,
        )
        pair = [(system, columns[place]) for place in (found.high, found.low)]
        return self._with_tipping(result, pair, label)

    def system_gap(self, one: int, other: int, label: int, group: int = 0) -> Estimate:
        """Return the gap between two systems, on the units (of a group) that both measured."""
        about = self.about(one, label, group)
        about |= {"kind": self._kind(), "against": self.layout.systems[other]}
        a, b = self.layout.sample(one, label), self.layout.sample(other, label)
        # What both rest on is at least what the one with more events rests on.
        about["events"] = self.beside.count((a, group), (b, group))
        beside = self.beside.told(a, group) | self.beside.told(b, group, "other_")
        if fault := self.why_undefined(label, one, other):
            return self._undefined(*fault, int(self.replicates.n[a, 0]), about)
        unlike, drawn, index = "", self.replicates, (one, other, label)
        if self.shared.replicates is not None and index in self.shared.places:
            drawn, beside = self.shared.replicates, {}
            a, b = self.shared.places[index]
            text = f"{self.shared.dropped[index]:,} {self.unit}s that only one of the two measured"
            about["note"] = "; ".join(filter(None, (about["note"], f"without {text}")))
            unlike = f"the systems were measured on different {self.unit}s"
        if drawn.n[a, group] == 0:
            none = f"the systems measured no {self.unit} in common"
            return self._undefined("no-units", none, 0, about)
        if drawn.n[a, group] < self.settings.minimum:
            return self._few(int(drawn.n[a, group]), about)
        if rare := self._rare(drawn, a, group) or self._rare(drawn, b, group):
            return self._undefined("too-few-events", rare, int(drawn.n[a, group]), about)
        contrast = drawn.contrast((a, group), (b, group), how=self.metric.contrast)
        about["details"] = self._both(contrast.parts) | beside
        result = self._estimate(contrast, about)
        return self._with_tipping(result, [(one, group), (other, group)], label, unlike)

    def _estimate(
        self, number: ResampledStatistic, about: dict[str, Any], null: float | None = None
    ) -> Estimate:
        few = self.settings.interval == "bca" and number.smallest_n < FEW
        return number.estimate(
            metric=self.metric.title,
            method="expanded" if few else self.settings.interval,
            null=null,
            **about,
        )

    def about(self, system: int, label: int, group: int) -> dict[str, Any]:
        """Return the fields that name an estimate."""
        name, word = self.layout.systems[system], self.layout.labels[label]
        notes = self.rows[name].notes
        return {
            "key": key_of(self.metric),
            "unit": self.unit,
            "level": self.settings.level,
            "system": name,
            "label": word,
            "group": self.layout.groups[group - 1] if group else "",
            "note": notes.get(word, notes.get("", "")),
            "events": self.beside.count((self.layout.sample(system, label), group)),
        }

    def _details(self, system: int, label: int, group: int) -> dict[str, Any]:
        """Return what a number is made of: the means of its columns, and what the rows tell."""
        name, word = self.layout.systems[system], self.layout.labels[label]
        sample = self.layout.sample(system, label)
        statistic = self.replicates.samples[sample].statistic
        told = self.rows[name].details
        details = dict(told.get(word, told.get("", {})))
        if group:  # what the rows tell is of everyone, but for what unlabeled means
            here = details.get("label_errors_by_group", {})
            details = {n: details[n] for n in ("unlabeled", "label_errors") if n in details}
            if group <= len(self.layout.groups) and self.layout.groups[group - 1] in here:
                details["label_errors_here"] = here[self.layout.groups[group - 1]]
        if len(statistic.columns) > 1:
            means = self.replicates.column_means(sample, group)
            if means is not None:
                details |= dict(zip(statistic.columns, means.tolist(), strict=True))
        details |= self.beside.told(sample, group)
        if self.metric.sides is not None and all(name in details for name in self.metric.sides):
            one, other = (details[name] for name in self.metric.sides)
            details |= {"level": one, "other_level": other}
        if len(self.points) > 1:
            each = [float(point[sample, group]) for point in self.points]
            details["repeats"] = [None if math.isnan(value) else value for value in each]
        return details

    def why_undefined(self, label: int, *systems: int) -> tuple[ReasonCode, str] | None:
        """Return why what was measured on some systems makes no number; None if it does."""
        names = [self.layout.systems[system] for system in systems]
        every = {name: self.rows[name].why_undefined(self.layout.labels[label]) for name in names}
        reasons = {name: why for name, why in every.items() if why}
        if not reasons:
            return None
        code, reason = next(iter(reasons.values()))
        if len(systems) > 1:
            reason = "; ".join(f"{name}: {why}" for name, (_, why) in reasons.items())
        return code, reason

    def _kind(self) -> Literal["gap", "ratio"]:
        return "ratio" if self.metric.contrast == "ratio" else "gap"

    def _n(self, sample: int, group: int) -> int:
        return int(self.replicates.n[sample, group])

    def too_few(self, sample: int, group: int) -> bool:
        """Whether a group has fewer units than a number needs."""
        return self._n(sample, group) < self.settings.minimum

    def not_enough(self, sample: int, group: int, about: dict[str, Any]) -> Estimate:
        """Return the estimate that says that there are too few units."""
        return self._few(self._n(sample, group), about)

    def _few(self, n: int, about: dict[str, Any]) -> Estimate:
        wanted = f"at least {self.settings.minimum} wanted"
        units = f"{n} {self.unit}{'' if n == 1 else 's'}"
        return self._undefined("too-few-units", f"not enough data: {units}, {wanted}", n, about)

    def _undefined(self, code: ReasonCode, reason: str, n: int, about: dict[str, Any]) -> Estimate:
        return Estimate.undefined(
            reason_code=code, metric=self.metric.title, reason=reason, n=n, **about
        )

    def _rare(self, drawn: Replicates, sample: int, group: int) -> str:
        """Return why a statistic has too little of what it needs; empty if it has enough."""
        statistic = drawn.samples[sample].statistic
        needs = self.metric.needs
        if needs is None:
            return ""
        count = drawn.count_above_zero(sample, group, statistic.columns.index(needs.column))
        if count >= needs.smallest:
            return ""
        result = f"{count} {self.unit}{'' if count == 1 else 's'} {needs.description}"
        return f"not enough data: {result}, at least {needs.smallest} wanted"
