"""The only number a report may print."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

Kind = Literal["level", "gap", "ratio"]

ReasonCode = Literal[
    "lists-too-short",
    "no-decisions",
    "no-labels",
    "no-units",
    "no-variation",
    "not-estimable",
    "not-measured",
    "too-few-events",
    "too-few-groups",
    "too-few-units",
]
"""Why an estimate has no value, for programs; `REASONS` says what each means."""

REASONS: dict[ReasonCode, str] = {
    "lists-too-short": "all lists end before the place that the measure looks at",
    "no-decisions": "the system states scores and no decisions, and no threshold is set",
    "no-labels": "of nothing that counts it is known whether it carries the label",
    "no-units": "no user, item or text is of the kind that is measured",
    "no-variation": "all values are alike, so the number does not exist",
    "not-estimable": "the number does not exist on these data, or the model did not converge",
    "not-measured": "the system gave no scores, decisions or lists to measure",
    "too-few-events": "fewer flags, hits or misses than a number needs",
    "too-few-groups": "fewer groups than a comparison needs",
    "too-few-units": "fewer users, items or texts than a number needs",
}
"""What each code means, in words for readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TippingPoint:
    """How different unlabeled items would have to be for an estimate to lose its direction.

    Both points compare the rate of the label among unlabeled items with the rate among labeled
    ones. They start from the bound of the confidence interval that is nearest to no effect.
    """

    # The ratio of rates among recommended items at which the direction reverses (an increase
    # reverses below it, a decrease above it); None if no possible rate reverses it.
    recommended: float | None
    # The same for users' histories (an increase reverses above it, a decrease below it).
    history: float | None
    # Which share of the recommended items, and of the items in histories, has a label.
    labeled_recommended: float
    labeled_history: float
    # The range of both ratios that the plan regards as plausible.
    lowest: float = 0.5
    highest: float = 2.0
    reverses: bool = False  # whether the direction reverses anywhere within that range
    # Whether a reversal makes the verdict *cannot tell*; False where the plan declares that
    # unlabeled means *no*.
    decides: bool = True
    assumed: float = 1.0  # the ratio of rates that the estimate itself assumes


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with its uncertainty, its support and its name; or a reason why there is none.

    Parameters
    ----------
    metric
        The metric as printed, such as ``"share gap@10"``.
    value
        The number, or None when it is undefined.
    interval
        Lower and upper end, or None when no interval exists (`method` then says why).
    method
        How the interval was made, such as ``"BCa bootstrap"``; ``"none: <why>"`` without one.
    n
        How many *independent* units stand behind the value; never rows.
    unit
        What those units are: ``"user"``, ``"item"``, ``"text"``.
    level
        Coverage the interval aims at.
    kind
        ``"level"`` for a quantity of one group, ``"gap"`` for a difference and ``"ratio"`` for a
        quotient of two groups or two systems.
    system, label, group
        What it is about: the audited system, the content label, the group of units.
        Empty means *all*.
    against
        For gaps and ratios, what it is compared with, in the words of `group` or `system`.
    null
        The value that would mean "no difference", where there is one.
    p_value, p_adjusted, correction
        Two-sided p-value of `null`, the same after correction, and the name of the correction
        with the size of its family. Where p rests on resampling, neither is below one over the
        number of replicates plus one: so many replicates tell nothing smaller.
    family
        The question whose declared comparisons it is one of: these are corrected together. Empty
        for all others, whose correction is over one kind of number of one metric.
    undefined_replicates
        In how many bootstrap replicates the statistic did not exist.
    reason
        Why `value` is None. Empty otherwise.
    reason_code
        The same for programs, one of `REASONS`; empty where the value is defined.
    note
        Anything a reader must know beside the number.
    key
        What is measured, for programs: stable where `metric` is wording. That of a metric is its
        registered name with the options that are not the default, such as ``recall(k=50)``; that
        of an analysis its name and the quantity, such as ``drift/false-positive-rate``.
    details
        What `note` tells in words, as plain values (numbers, strings, lists) by name.
    events
        How many events the value rests on (flagged texts, hits, users with a nonzero difference),
        as the metric counts them; None where it does not count.
    tipping
        What unlabeled items would have to be like to reverse it; None where all are labeled.
    p_tail
        What the test gave before `p_value` was raised to the least that its replicates can tell.
        Corrections for many comparisons start from it, so that a lone finding among hundreds is
        not lost to the number of replicates. It is neither stored nor compared, and goes when
        `p_value` is replaced.

    Examples
    --------
    >>> e = Estimate(metric="share@10", value=0.25, interval=(0.2, 0.31), method="wilson", n=100)
    >>> str(e)
    'share@10: 0.25 [0.2, 0.31] (95% wilson, n = 100 rows)'
    >>> str(Estimate.undefined(metric="share@10", reason="no user has a list", n=0))
    'share@10: undefined (no user has a list, n = 0 rows)'
    """

    metric: str
    value: float | None
    interval: tuple[float, float] | None
    method: str
    n: int
    unit: str = "row"
    level: float = 0.95
    kind: Kind = "level"
    system: str = ""
    label: str = ""
    group: str = ""
    against: str = ""
    null: float | None = None
    p_value: float | None = None
    p_adjusted: float | None = None
    correction: str = ""
    undefined_replicates: int = 0
    reason: str = ""
    note: str = ""
    key: str = ""
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)
    reason_code: str = ""
    events: int | None = None
    tipping: TippingPoint | None = None
    family: str = ""
    p_tail: float | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.value is None:
            if not self.reason:
                raise ValueError(f"{self.metric}: an undefined estimate needs a reason")
            if self.interval is not None:
                raise ValueError(f"{self.metric}: an undefined estimate cannot have an interval")
        elif self.reason:
            raise ValueError(f"{self.metric}: a reason ({self.reason}) beside a defined value")
        elif not math.isfinite(self.value):
            raise ValueError(f"{self.metric}: value {self.value} is not finite; say undefined")
        if self.value is not None and self.interval is None and not self.method.startswith("none"):
            raise ValueError(f"{self.metric}: no interval; method must start with 'none: <why>'")
        if self.interval is not None:
            low, high = self.interval
            if math.isnan(low) or math.isnan(high) or low > high:
                raise ValueError(f"{self.metric}: interval ({low}, {high}) is not low to high")
        if not 0 < self.level < 1:
            raise ValueError(f"{self.metric}: level {self.level} is not between 0 and 1")
        if self.n < 0:
            raise ValueError(f"{self.metric}: n = {self.n} is negative")

    @classmethod
    def undefined(
        cls, *, metric: str, reason: str, n: int, reason_code: ReasonCode | str = "", **about: Any
    ) -> Self:
        """Return an estimate that says why it has no value, in words and by a code."""
        return cls(
            metric=metric,
            value=None,
            interval=None,
            method=f"none: {reason}",
            n=n,
            reason=reason,
            reason_code=reason_code,
            **about,
        )

    @property
    def is_defined(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def excludes_null(self) -> bool:
        """Whether the interval lies wholly on one side of `null`."""
        if self.interval is None or self.null is None:
            return False
        return self.interval[0] > self.null or self.interval[1] < self.null

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed (and checked again)."""
        if "p_value" in changes:
            changes = {"p_tail": None} | changes
        return dataclasses.replace(self, **changes)

    def resampled_p(self, p: float, replicates: int) -> Self:
        """Return it with the p-value of a test that rests on replicates.

        Parameters
        ----------
        p
            What the test gave.
        replicates
            How many there were; `p_value` is at least one over their number plus one.

        Examples
        --------
        >>> e = Estimate(metric="gap", value=1.0, interval=(0.9, 1.1), method="BCa", n=50, null=0.0)
        >>> e.resampled_p(7e-267, 1999).p_value, e.resampled_p(0.04, 1999).p_value
        (0.0005, 0.04)
        """
        return self.replace(p_value=max(p, 1 / (replicates + 1)), p_tail=p)

    def without_value(self, reason: str, code: ReasonCode, **changes: Any) -> Self:
        """Return the same estimate as undefined: what it is about stays, its numbers go."""
        return self.replace(
            value=None,
            interval=None,
            method=f"none: {reason}",
            reason=reason,
            reason_code=code,
            p_value=None,
            p_adjusted=None,
            correction="",
            undefined_replicates=0,
            **changes,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        # Large reports have ten thousands of them: nothing is copied that is not changed.
        names = (name for name in self.__slots__ if name != "p_tail")
        fields = {name: getattr(self, name) for name in names}
        fields["details"] = dict(self.details)
        if self.tipping is not None:
            fields["tipping"] = dataclasses.asdict(self.tipping)
        if self.interval is not None:
            # JSON has no infinity; an open end is written as a word.
            fields["interval"] = [end if math.isfinite(end) else str(end) for end in self.interval]
        return fields

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Rebuild an estimate from `to_dict`; unknown fields are refused by name."""
        fields = dict(fields)
        if fields.get("interval") is not None:
            low, high = fields["interval"]
            fields["interval"] = (float(low), float(high))
        if fields.get("tipping") is not None:
            fields["tipping"] = TippingPoint(**fields["tipping"])
        return cls(**fields)

    def __str__(self) -> str:
        about = " / ".join(part for part in (self.system, self.label, self.group) if part)
        name = f"{self.metric} [{about}]" if about else self.metric
        if self.against:
            name += f" against {self.against}"
        support = f"n = {self.n:,} {self.unit}s"
        if self.value is None:
            return f"{name}: undefined ({self.reason}, {support})"
        shown = f"{name}: {self.value:.4g}"
        if self.interval is None:
            return f"{shown} ({self.method}, {support})"
        low, high = self.interval
        return f"{shown} [{low:.4g}, {high:.4g}] ({self.level:.0%} {self.method}, {support})"
