"""Assertions on results, for the tests of a system that is audited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ombud.audits.condition import Condition
from ombud.audits.gate import Gate
from ombud.audits.result import Result
from ombud.errors import PlanError
from ombud.metrics.engine.signs import by_sign, reading
from ombud.stats.estimate import Estimate

_MOST = 10


def assert_no_finding(
    result: Result,
    where: str = "",
    *,
    direction: Literal["above", "below", "either"] = "either",
    **about: Any,
) -> None:
    """Assert that nothing lies clearly above or below what means no difference.

    *Clearly* is after correction for many comparisons, at the level of the plan, as the report
    marks it. Not finding anything is no proof that nothing is there: a limit says how much is too
    much (`assert_expected`).

    Parameters
    ----------
    result
        What an audit found.
    where
        Which estimates, as a condition of ``ombud check``; one that names neither `kind` nor
        `against` is about levels only. Default, all estimates, comparisons too.
    direction
        What counts as a finding.
    **about
        Fields that must be equal, such as ``system="ours"`` or ``kind="level"``.

    Raises
    ------
    AssertionError
        If there is a finding, or if nothing could be tested: an empty audit proves nothing.

    Examples
    --------
    >>> from ombud.audits import Plan
    >>> e = Estimate(metric="m", value=0.2, interval=(0.1, 0.3), method="x", n=9, null=0.0)
    >>> assert_no_finding(Result(Plan(), (e,)), direction="below")
    >>> assert_no_finding(Result(Plan(), (e,)))
    Traceback (most recent call last):
      ...
    AssertionError: 1 finding in 1 tested estimate of 1:
      above: m: 0.2 [0.1, 0.3] (95% x, n = 9 rows)
    """
    __tracebackhide__ = True
    chosen = [
        e for e in _chosen(result, where) if all(getattr(e, k) == v for k, v in about.items())
    ]
    if not chosen:
        raise AssertionError(f"no estimate is such that {where or about}")
    tested = [e for e in chosen if reading(e) not in {"untested", "undefined"}]
    if not tested:
        raise AssertionError(
            f"none of {_count(len(chosen), 'estimate')} could be tested; the first: {chosen[0]}"
        )
    signs = by_sign(tested)
    wanted: tuple[Literal["above", "below"], ...] = (
        ("above", "below") if direction == "either" else (direction,)
    )
    found = [(sign, e) for sign in wanted for e in signs.get(sign, ())]
    if found:
        lines = [f"  {sign}: {e}" for sign, e in found[:_MOST]]
        lines += [f"  and {len(found) - _MOST:,} more"] if len(found) > _MOST else []
        tests = _count(len(tested), "tested estimate")
        told = f"{_count(len(found), 'finding')} in {tests} of {len(chosen):,}:"
        raise AssertionError("\n".join([told, *lines]))


def assert_expected(result: Result, gate: Gate | None = None, *, undecided: bool = False) -> None:
    """Assert that limits are met: those of a gate, or what the plan of the result declares.

    Parameters
    ----------
    result
        What an audit found.
    gate
        The limits; default, those of the plan.
    undecided
        Whether an undecided limit passes.

    Raises
    ------
    AssertionError
        If a limit is not met, or undecided, or about nothing, or if there are none.
    """
    __tracebackhide__ = True
    expected = (gate or Gate.of(result.plan)).judge(result.estimates, result.answers)
    if not expected:
        raise AssertionError("the plan of the result expects nothing; give a gate")
    passing = {"met", "undecided"} if undecided else {"met"}
    failed = [one for one in expected if one.fault or one.state not in passing]
    if failed:
        lines = []
        for one in failed:
            lines.append(f"  {one.state}: {one.said} ({one.why})")
            lines += [f"    {e}" for e in (one.broken or one.undecided)[:_MOST]]
        told = f"{len(failed)} of {_count(len(expected), 'limit')} not kept:"
        raise AssertionError("\n".join([told, *lines]))


def _chosen(result: Result, where: str) -> Sequence[Estimate]:
    if not where:
        return result.estimates
    condition = Condition(where)
    try:
        about = condition.about(result.estimates)
    except PlanError as error:
        raise AssertionError(str(error)) from None
    return [e for e in about if condition.judge(e) is not False]


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
