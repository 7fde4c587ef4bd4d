"""A condition on estimates, of a gate or a limit.

It is read as an expression, never executed: names of an estimate's fields, numbers and
quoted words, ``== != < <= > >= in``, ``and or not`` and parentheses. It is true, false, or, where
it hangs on a number that an estimate does not have, undefined (Kleene's three-valued logic).

A condition that names neither ``kind`` nor ``against`` is about levels only: what a group or a
system does, not how it compares with another. So a gate does not close because a rival improved.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Literal

from ombud.errors import PlanError
from ombud.stats.estimate import Estimate

_WORDS = ("metric", "system", "label", "group", "against", "kind")
_NUMBERS = ("value", "low", "high", "n", "p_value", "p_adjusted")

VERDICT = "verdict"
"""What a condition names to be about the verdict of a result, and nothing else."""

_UNDECIDED = "cannot tell"

FIELDS = (*_WORDS, *_NUMBERS)
"""What a condition may name; `low` and `high` are the ends of the interval."""

ANSWERS = ("yes", "no clear evidence", "mixed", "cannot tell")
"""What a verdict can be."""

_Type = Literal["a word", "a list of words", "a number", "a comparison"]

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_DEEPEST = 50


@dataclass(frozen=True)
class _Range:
    """Where a number lies that is not known exactly, ends included."""

    low: float
    high: float


def _fields(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval if estimate.interval is not None else (None, None)
    known = {name: getattr(estimate, name) for name in FIELDS if name not in {"low", "high"}}
    return known | {"low": low, "high": high}


@dataclass(frozen=True)
class ConditionResult:
    """What a condition says about some estimates."""

    met: tuple[Estimate, ...]  # the estimates that meet it
    # Those that might meet it, but lack a number it asks for: no value, no interval, no p-value.
    undefined: tuple[Estimate, ...]
    judged: int  # how many of those that its words are about could be judged


@dataclass(frozen=True)
class Condition:
    """A condition on estimates.

    Parameters
    ----------
    text
        Such as ``metric == "share gap@10" and low > 0.02``.

    Examples
    --------
    >>> e = Estimate(metric="gap", value=0.3, interval=(0.2, 0.4), method="wilson", n=50)
    >>> Condition('metric == "gap" and low > 0.1').matches(e)
    True
    """

    text: str

    def __post_init__(self) -> None:
        result = self._type(self._tree)
        if result != "a comparison":
            raise PlanError(
                f"{self.text!r} is {result}; a condition must compare, as in low > 0.02"
            )

    @property
    def is_about_verdict(self) -> bool:
        """Whether it is about the verdict of a result rather than about estimates."""
        return self.names(VERDICT)

    def judge_answer(self, answer: str) -> bool | None:
        """Whether a verdict meets the condition; None for *cannot tell*, unless it is named.

        Examples
        --------
        >>> [Condition('verdict == "yes"').judge_answer(a) for a in ("yes", "cannot tell")]
        [True, None]
        """
        named = any(isinstance(n, ast.Constant) and n.value == _UNDECIDED
                    for n in ast.walk(self._tree))  # fmt: skip
        if answer == _UNDECIDED and not named:
            return None
        return self._truth(self._tree, {VERDICT: answer})

    def judge(self, estimate: Estimate) -> bool | None:
        """Whether an estimate meets the condition; None when that hangs on an undefined number."""
        return self._truth(self._tree, _fields(estimate))

    def judge_over(self, estimate: Estimate) -> bool | None:
        """Whether the condition holds wherever in its interval the value lies.

        None when it holds for a part of the interval only, and when there is no interval: the
        data then do not decide.

        Examples
        --------
        >>> e = Estimate(metric="gap", value=0.3, interval=(0.2, 0.4), method="wilson", n=50)
        >>> [Condition(f"value <= {limit}").judge_over(e) for limit in (0.5, 0.3, 0.1)]
        [True, None, False]
        """
        fields = _fields(estimate)
        fields["value"] = None if estimate.interval is None else _Range(*estimate.interval)
        return self._truth(self._tree, fields)

    def matches(self, estimate: Estimate) -> bool:
        """Whether an estimate is known to meet the condition, and is of a kind it is about."""
        return self.covers(estimate) and self.judge(estimate) is True

    def names(self, *fields: str) -> bool:
        """Whether the condition names any of these fields."""
        return any(isinstance(n, ast.Name) and n.id in fields for n in ast.walk(self._tree))

    def covers(self, estimate: Estimate) -> bool:
        """Whether an estimate is of a kind that the condition is about: a level, unless it says."""
        return estimate.kind == "level" or self.names("kind", "against")

    def check(self, estimates: Sequence[Estimate]) -> ConditionResult:
        """Return which estimates meet the condition, and which could not be judged.

        Raises
        ------
        PlanError
            If the condition names a metric, system, label or group that no estimate has, or
            names them together as no estimate does: such a gate would never close.
        """
        about = self.about(estimates)
        judged = [(e, self.judge(e)) for e in about]
        met = tuple(e for e, verdict in judged if verdict)
        undefined = tuple(e for e, verdict in judged if verdict is None)
        return ConditionResult(met, undefined, len(about) - len(undefined))

    def find(self, estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return the estimates that meet the condition; see `check`."""
        return self.check(estimates).met

    def about(
        self, estimates: Sequence[Estimate], *, any_kind: bool = False
    ) -> tuple[Estimate, ...]:
        """Return the estimates that could meet the condition, whatever their numbers.

        Parameters
        ----------
        estimates
            Those of a result.
        any_kind
            Whether comparisons are meant too, though the condition names no kind.

        Raises
        ------
        PlanError
            If there is none; see `check`.
        """
        self._check_words(estimates)
        meant = [e for e in estimates if self._is_about(e)]
        about = tuple(e for e in meant if any_kind or self.covers(e))
        if about:
            return about
        if meant:
            kinds = " or ".join(
                f'kind == "{kind}"' for kind in dict.fromkeys(e.kind for e in meant)
            )
            raise PlanError(
                f"{self.text!r} names no kind, so it is about levels only, and no level is meant; "
                f"this gate could never close. Comparisons are meant by adding: and {kinds}"
            )
        raise PlanError(
            f"{self.text!r} could hold for no estimate of this result, whatever its numbers; "
            "this gate could never close"
        )

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            single = re.search(r"(?<![<>=!])=(?!=)", re.sub(r"'[^']*'|\"[^\"]*\"", "", self.text))
            reason = "write == to compare; = sets something" if single else str(error)
            raise PlanError(f"cannot read the condition {self.text!r}: {reason}") from None

    def _type(self, node: ast.expr, depth: int = 0) -> _Type:
        """Return what a part of the condition is; refuse what is not understood."""
        if depth > _DEEPEST:
            raise PlanError(f"the condition is nested more than {_DEEPEST} deep")
        match node:
            case ast.Name(id=name) if name == VERDICT:
                if self.names(*FIELDS):
                    raise PlanError(
                        f"{self.text!r}: a condition on the verdict can name nothing else"
                    )
                return "a word"
            case ast.Name(id=name) if name in FIELDS:
                return "a word" if name in _WORDS else "a number"
            case ast.Name(id=name):
                known = ", ".join((*FIELDS, VERDICT))
                raise PlanError(f"{self.text!r}: unknown name {name!r}; known: {known}")
            case ast.Constant(value=str()):
                return "a word"
            case ast.Constant(value=float() as value) if not isfinite(value):
                raise PlanError(f"{self.text!r}: a number in it is infinite")
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return "a number"
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) if parts:
                if all(isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts):
                    return "a list of words"
            case ast.UnaryOp(op=ast.USub(), operand=part):
                return self._needs("a number", part, "-", depth)
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return self._needs("a comparison", part, "not", depth)
            case ast.BoolOp(op=joint, values=parts):
                word = "and" if isinstance(joint, ast.And) else "or"
                for part in parts:
                    self._needs("a comparison", part, word, depth)
                return "a comparison"
            case ast.Compare(left=left, ops=ops, comparators=others):
                for op, one, other in zip(ops, (left, *others), others, strict=False):
                    self._check_comparison(op, one, other, depth)
                return "a comparison"
        raise PlanError(
            f"{self.text!r}: only names, numbers, quoted words, lists of quoted words, "
            "comparisons, and, or, not are understood"
        )

    def _needs(self, wanted: _Type, node: ast.expr, word: str, depth: int) -> _Type:
        result = self._type(node, depth + 1)
        if result != wanted:
            part = ast.unparse(node)
            raise PlanError(f"{self.text!r}: {word!r} needs {wanted}; {part} is {result}")
        return result

    def _check_comparison(self, op: ast.cmpop, one: ast.expr, other: ast.expr, depth: int) -> None:
        if type(op) not in _COMPARE:
            raise PlanError(f"{self.text!r}: only == != < <= > >= in are understood")
        left, right = (self._type(part, depth + 1) for part in (one, other))
        if isinstance(op, ast.In | ast.NotIn):
            fits = left == "a word" and right in {"a word", "a list of words"}
        else:
            fits = left == right and left in {"a word", "a number"}
        if not fits:
            shown = f"{ast.unparse(one)} ({left}) and {ast.unparse(other)} ({right})"
            raise PlanError(f"{self.text!r}: {shown} cannot be compared so")

    def _truth(self, node: ast.expr, fields: Mapping[str, Any]) -> bool | None:
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return _all(self._truth(part, fields) for part in parts)
            case ast.BoolOp(values=parts):
                return _not(_all(_not(self._truth(part, fields)) for part in parts))
            case ast.UnaryOp(operand=part):
                return _not(self._truth(part, fields))
            case ast.Compare(left=left, ops=ops, comparators=others):
                values = [_value(part, fields) for part in (left, *others)]
                pairs = zip(ops, values, values[1:], strict=False)
                return _all(_compared(op, a, b) for op, a, b in pairs)
        raise AssertionError(node)  # _type lets nothing else through

    def _is_about(self, estimate: Estimate) -> bool:
        """Whether an estimate could meet the condition if its numbers were any."""
        unknown = _fields(estimate) | dict.fromkeys(_NUMBERS)
        return self._truth(self._tree, unknown) is not False

    def check_answers(self) -> None:
        """Refuse a verdict that there is not: such a gate could never close."""
        for name, op, word, shown in self._named():
            if name == VERDICT and not any(op(known, word) for known in ANSWERS):
                known = ", ".join(ANSWERS)
                raise PlanError(f"no verdict is such that {shown}; there are: {known}")

    def _check_words(self, estimates: Sequence[Estimate]) -> None:
        for name, op, word, shown in self._named():
            result = {str(getattr(e, name)) for e in estimates}
            if not any(op(known, word) for known in result):
                known = ", ".join(sorted(result - {""})[:8]) or "none"
                raise PlanError(
                    f"no estimate has {shown}, so this gate could never close; found: {known}"
                )

    def _named(self) -> Iterable[tuple[str, Callable[[str, str], bool], str, str]]:
        """Yield every comparison of a field with a quoted word, and of each word of a list."""
        for node in ast.walk(self._tree):
            if not isinstance(node, ast.Compare):
                continue
            parts = (node.left, *node.comparators)
            for op, one, other in zip(node.ops, parts, parts[1:], strict=False):
                match op, one, other:
                    case (
                        (ast.Eq(), ast.Name(id=name), ast.Constant(value=str() as word))
                        | (ast.Eq(), ast.Constant(value=str() as word), ast.Name(id=name))
                    ):  # fmt: skip
                        yield name, operator.eq, word, f"{name} == {word!r}"
                    case ast.In(), ast.Name(id=name), ast.Constant(value=str() as word):
                        yield name, _within, word, f"{name} in {word!r}"
                    case ast.In(), ast.Constant(value=str() as word), ast.Name(id=name):
                        yield name, operator.contains, word, f"{word!r} in {name}"
                    case ast.In(), ast.Name(id=name), ast.Tuple() | ast.List() | ast.Set():
                        for word in _value(other, {}):
                            yield name, operator.eq, word, f"{name} == {word!r}"


def _within(known: str, word: str) -> bool:
    return bool(known) and known in word


def _value(node: ast.expr, fields: Mapping[str, Any]) -> Any:
    match node:
        case ast.Name(id=name):
            return fields[name]
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(operand=part):
            value = _value(part, fields)
            if isinstance(value, _Range):
                return _Range(-value.high, -value.low)
            return None if value is None else -value
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return [_value(part, fields) for part in parts]
    raise AssertionError(node)  # Condition._type lets nothing else through


def _compared(op: ast.cmpop, one: Any, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    if not isinstance(one, _Range) and not isinstance(other, _Range):
        return bool(_COMPARE[type(op)](one, other))
    a, b = (x if isinstance(x, _Range) else _Range(x, x) for x in (one, other))
    match op:
        case ast.Lt():
            return True if a.high < b.low else False if a.low >= b.high else None
        case ast.LtE():
            return True if a.high <= b.low else False if a.low > b.high else None
        case ast.Gt():
            return _compared(ast.Lt(), b, a)
        case ast.GtE():
            return _compared(ast.LtE(), b, a)
        case ast.NotEq():
            return _not(_compared(ast.Eq(), a, b))
    if a.high < b.low or b.high < a.low:
        return False
    return True if a == b and a.low == a.high and math.isfinite(a.low) else None


def _not(truth: bool | None) -> bool | None:
    return None if truth is None else not truth


def _all(truths: Iterable[bool | None]) -> bool | None:
    result = set(truths)
    if False in result:
        return False
    return None if None in result else True
