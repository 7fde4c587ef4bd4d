"""What went wrong while reading, counted, with a few examples; reading goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_EXAMPLES = 5


@dataclass
class Problems:
    """Counts of faults and of things left out, by source and reason.

    Examples
    --------
    >>> problems = Problems()
    >>> problems.add("a.mrc", "the record is cut", "record 3")
    >>> problems.rows()
    [{'source': 'a.mrc', 'reason': 'the record is cut', 'count': 1, 'examples': ['record 3']}]
    """

    _counts: dict[tuple[str, str], int] = field(default_factory=dict)
    _examples: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def add(self, source: str, reason: str, example: str = "", count: int = 1) -> None:
        """Count a fault; an example is kept while there are few."""
        if count <= 0:
            return
        key = (source, reason)
        self._counts[key] = self._counts.get(key, 0) + count
        kept = self._examples.setdefault(key, [])
        if example and len(kept) < _EXAMPLES:
            kept.append(example[:120])

    def count(self, reason: str) -> int:
        """Return how often something happened in all sources."""
        return sum(n for (_, r), n in self._counts.items() if r == reason)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a source and reason."""
        return [
            {"source": s, "reason": r, "count": n, "examples": self._examples.get((s, r), [])}
            for (s, r), n in self._counts.items()
        ]
