"""Limits that were declared beforehand, and whether the numbers keep to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from ombud.audits.condition import Condition
from ombud.audits.plan import ExpectPlan, GateFile, Plan, checked, read_toml
from ombud.errors import PlanError
from ombud.stats.estimate import Estimate

State = Literal["met", "not met", "undecided"]
"""Whether the numbers keep to a limit."""


@dataclass(frozen=True, eq=False)
class Expectation:
    """What was declared beforehand, and whether it holds.

    Parameters
    ----------
    state
        Whether it is met; *undecided* where an interval holds the limit, or is not there.
    said
        What was expected, in a few words.
    limit, where, reason
        The condition, what it is about, and why; see `ombud.audits.plan.ExpectPlan`.
    kept, broken, undecided
        The estimates that lie within the limit, beyond it, and on both sides.
    fault
        Why nothing could be judged: the words of a condition that no estimate has.
    source
        The file it was read from after the run; empty when the plan of the run declares it.
    answers
        For a limit on the verdict: the answers that decide.
    """

    state: State
    said: str
    limit: str = ""
    where: str = ""
    reason: str = ""
    kept: tuple[Estimate, ...] = ()
    broken: tuple[Estimate, ...] = ()
    undecided: tuple[Estimate, ...] = ()
    fault: str = ""
    source: str = ""
    answers: tuple[str, ...] = ()

    @property
    def why(self) -> str:
        """How many numbers decide, in words."""
        if self.answers:
            return f"the verdict is {' and '.join(self.answers)}"
        total = len(self.kept) + len(self.broken) + len(self.undecided)
        if self.fault or not total:
            return self.fault or "nothing was judged"
        reasons = {e.reason for e in self.undecided if e.value is None}
        if len(self.undecided) == total and len(reasons) == 1:
            return f"undefined: {reasons.pop()}"
        if total == 1:
            words = {"met": "within the limit", "not met": "beyond it"}
            return f"the one number is {words.get(self.state, 'not clear of the limit')}"
        parts = [f"{len(self.broken):,} beyond it"] if self.broken else []
        parts += [f"{len(self.undecided):,} not clear"] if self.undecided else []
        if not parts:
            return f"all {total:,} numbers are within the limit"
        return f"of {total:,} numbers {' and '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a program to read."""
        words = ("state", "said", "limit", "where", "reason", "fault", "source")
        counts = {name: len(getattr(self, name)) for name in ("kept", "broken", "undecided")}
        return {name: getattr(self, name) for name in words} | {"numbers": counts}


@dataclass(frozen=True)
class Gate:
    """Limits, by name.

    Parameters
    ----------
    expect
        The limits.
    source
        The name of the file they are from; empty for those of a plan.

    Examples
    --------
    >>> gate = Gate({"small gap": ExpectPlan(limit="value <= 0.1", reason="agreed")})
    >>> gap = Estimate(metric="gap", value=0.04, interval=(0.02, 0.06), method="wilson", n=50)
    >>> [(one.said, one.state) for one in gate.judge([gap])]
    [('small gap', 'met')]
    """

    expect: Mapping[str, ExpectPlan] = field(default_factory=dict)
    source: str = ""

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a gate from a TOML file with ``[expect]`` as a plan has it."""
        path = Path(path)
        return cls(checked(GateFile, read_toml(path, "gate"), str(path)).expect, path.name)

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """Return what a plan declares."""
        return cls(plan.expect)

    def judge(
        self, estimates: Sequence[Estimate], answers: Sequence[str] = ()
    ) -> tuple[Expectation, ...]:
        """Return each limit with whether the estimates, or the verdicts, keep to it.

        Parameters
        ----------
        estimates
            Those of a result.
        answers
            The answers to its questions (`Result.answers`), for limits on the verdict.

        Returns
        -------
        Each limit, judged.

        A limit that is about nothing is undecided, and says so in `Expectation.fault`.
        """
        return tuple(
            self._judge_answers(name, one, answers)
            if Condition(one.limit).is_about_verdict
            else self._judge(name, one, estimates)
            for name, one in self.expect.items()
        )

    @property
    def is_about_verdict(self) -> bool:
        """Whether any limit is about the verdict."""
        return any(Condition(one.limit).is_about_verdict for one in self.expect.values())

    def _judge_answers(self, name: str, asked: ExpectPlan, answers: Sequence[str]) -> Expectation:
        about = {"said": name, "source": self.source} | asked.model_dump()
        limit = Condition(asked.limit)
        try:
            limit.check_answers()
        except PlanError as error:
            return Expectation("undecided", **about, fault=str(error))
        if not answers:
            return Expectation("undecided", **about, fault="the result has no verdict")
        truths = [limit.judge_answer(answer) for answer in answers]
        state: State = "not met" if False in truths else "undecided" if None in truths else "met"
        return Expectation(state, **about, answers=tuple(answers))

    def _judge(self, name: str, asked: ExpectPlan, estimates: Sequence[Estimate]) -> Expectation:
        about = {"said": name, "source": self.source} | asked.model_dump()
        limit = Condition(asked.limit)
        found: dict[bool | None, list[Estimate]] = {True: [], False: [], None: []}
        try:
            for estimate in _meant(asked, limit, estimates):
                found[limit.judge_over(estimate)].append(estimate)
        except PlanError as error:
            return Expectation("undecided", **about, fault=str(error))
        state: State = "not met" if found[False] else "undecided" if found[None] else "met"
        kept, broken, undecided = (tuple(found[truth]) for truth in (True, False, None))
        return Expectation(state, **about, kept=kept, broken=broken, undecided=undecided)


def _meant(
    asked: ExpectPlan, limit: Condition, estimates: Sequence[Estimate]
) -> tuple[Estimate, ...]:
    """Return the estimates that a limit is about; refuse words that no estimate has."""
    if not asked.where:
        return limit.about(estimates)
    where = Condition(asked.where)
    about = where.about(estimates, any_kind=limit.names("kind", "against"))
    meant = [e for e in about if where.judge(e) is not False]
    if not meant:
        raise PlanError(f"no estimate is such that {asked.where}")
    return limit.about(meant, any_kind=True)
