"""A gate for continuous integration: fail when an estimate meets a condition.

The condition is read as an expression, never executed: names of an estimate's fields, numbers and
quoted words, ``== != < <= > >= in``, ``and or not`` and parentheses.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ombud.errors import PlanError
from ombud.stats.estimate import Estimate

__all__ = ["FIELDS", "Condition"]

FIELDS = (
    "metric",
    "system",
    "label",
    "group",
    "against",
    "kind",
    "value",
    "low",
    "high",
    "n",
    "p_value",
    "p_adjusted",
)
"""What a condition may name; `low` and `high` are the ends of the interval."""

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


def _fields(estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval if estimate.interval is not None else (None, None)
    known = {name: getattr(estimate, name) for name in FIELDS if name not in {"low", "high"}}
    return known | {"low": low, "high": high}


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
        self._check(self._tree())

    def matches(self, estimate: Estimate) -> bool:
        """Whether an estimate meets the condition; an undefined number meets no comparison."""
        return bool(self._evaluate(self._tree(), _fields(estimate)))

    def find(self, estimates: Sequence[Estimate]) -> tuple[Estimate, ...]:
        """Return the estimates that meet the condition.

        Raises
        ------
        PlanError
            If the condition names a metric, system, label or group that no estimate has: such a
            gate would never close.
        """
        for name, word in self._words():
            found = {str(getattr(e, name)) for e in estimates}
            if word not in found:
                known = ", ".join(sorted(found - {""})[:8]) or "none"
                raise PlanError(
                    f"no estimate has {name} == {word!r}, so this gate could never close; "
                    f"found: {known}"
                )
        return tuple(e for e in estimates if self.matches(e))

    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise PlanError(f"cannot read the condition {self.text!r}: {error}") from None

    def _check(self, node: ast.expr) -> None:
        if isinstance(node, ast.BoolOp):
            for value in node.values:
                self._check(value)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
            self._check(node.operand)
        elif isinstance(node, ast.Compare):
            for part in (node.left, *node.comparators):
                self._check(part)
            if any(type(op) not in _COMPARE for op in node.ops):
                raise PlanError(f"{self.text!r}: only == != < <= > >= in are understood")
        elif isinstance(node, ast.Name):
            if node.id not in FIELDS:
                raise PlanError(
                    f"{self.text!r}: unknown name {node.id!r}; known: {', '.join(FIELDS)}"
                )
        elif not (isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)):
            raise PlanError(
                f"{self.text!r}: only names, numbers, quoted words, comparisons, "
                "and, or, not are understood"
            )

    def _evaluate(self, node: ast.expr, fields: dict[str, Any]) -> Any:
        if isinstance(node, ast.BoolOp):
            values = (self._evaluate(value, fields) for value in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        if isinstance(node, ast.UnaryOp):
            value = self._evaluate(node.operand, fields)
            return not value if isinstance(node.op, ast.Not) else -value
        if isinstance(node, ast.Name):
            return fields[node.id]
        if isinstance(node, ast.Compare):
            return self._compare(node, fields)
        assert isinstance(node, ast.Constant)  # _check lets nothing else through
        return node.value

    def _compare(self, node: ast.Compare, fields: dict[str, Any]) -> bool:
        left = self._evaluate(node.left, fields)
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self._evaluate(part, fields)
            if left is None or right is None:
                return False
            try:
                holds = _COMPARE[type(op)](left, right)
            except TypeError:
                raise PlanError(
                    f"{self.text!r}: {left!r} and {right!r} cannot be compared so"
                ) from None
            if not holds:
                return False
            left = right
        return True

    def _words(self) -> list[tuple[str, str]]:
        """Return every ``field == "word"`` of the condition."""
        return [
            (node.left.id, node.comparators[0].value)
            for node in ast.walk(self._tree())
            if isinstance(node, ast.Compare)
            and isinstance(node.ops[0], ast.Eq)
            and isinstance(node.left, ast.Name)
            and isinstance(node.comparators[0], ast.Constant)
            and isinstance(node.comparators[0].value, str)
        ]
