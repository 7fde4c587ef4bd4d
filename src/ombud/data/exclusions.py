"""What was left out, counted, so that nothing is dropped in silence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Exclusion"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A number of things left out of an audit, where, and why.

    Parameters
    ----------
    where
        The table or step, such as ``"labels"``.
    what
        What was left out, in the plural: ``"rows"``, ``"users"``.
    count
        How many.
    reason
        Why, in words a reader of the report understands.
    of
        Out of how many, where that is known.
    """

    where: str
    what: str
    count: int
    reason: str
    of: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return asdict(self)

    def __str__(self) -> str:
        total = f" of {self.of:,}" if self.of is not None else ""
        return f"{self.where}: {self.count:,}{total} {self.what} left out: {self.reason}"
