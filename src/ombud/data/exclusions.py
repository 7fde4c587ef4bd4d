"""What was excluded, counted, so that nothing is dropped in silence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

NOTICES = frozenset(
    {
        "systems/different-units",
        "warning/near-identical",
        "warning/no-decisions",
        "warning/other-language",
        "warning/unknown-items",
        "warning/unlabeled-items",
        "unlabeled-items",
        "warning/worse-than-chance",
    }
)
"""Keys of what is counted and named though nothing of it is excluded."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A number of things excluded from an audit, where, and why.

    Parameters
    ----------
    where
        The table or step, such as ``"labels"``.
    what
        What was excluded, in the plural: ``"rows"``, ``"users"``.
    count
        How many.
    reason
        Why, in words a reader of the report understands.
    of
        Out of how many, where that is known.
    key
        What happened, for programs, such as ``avoid-list/emptied``; empty where none asks. Those
        that start with ``warning/`` stand at the top of the terminal and of the report: something
        that was given may not be what was meant. Those that start with ``assumed/`` exclude
        nothing: they say how a file was read.
    system
        The audited system that it is about; empty for the data.
    """

    where: str
    what: str
    count: int
    reason: str
    of: int | None = None
    key: str = ""
    system: str = ""

    @property
    def is_warning(self) -> bool:
        """Whether a reader must see it first."""
        return self.key.startswith("warning/")

    @property
    def is_assumption(self) -> bool:
        """Whether it says how a file was read, and excludes nothing."""
        return self.key.startswith("assumed/")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return asdict(self)

    @classmethod
    def merged(cls, exclusions: Iterable[Exclusion]) -> tuple[Exclusion, ...]:
        """Return one exclusion for all that differ in their counts alone, counts added up.

        Examples
        --------
        >>> one, two = (Exclusion("lists", "users", n, "none", 5) for n in (1, 2))
        >>> [str(e) for e in Exclusion.merged([one, two])]
        ['lists: 3 of 10 users excluded: none']
        """
        groups: dict[tuple[str, ...], list[Exclusion]] = {}
        for result in exclusions:
            about = (result.where, result.what, result.reason, result.key, result.system)
            groups.setdefault(about, []).append(result)
        merged = []
        for same in groups.values():
            known = [e.of for e in same if e.of is not None]
            of = sum(known) if len(known) == len(same) else None
            merged.append(replace(same[0], count=sum(e.count for e in same), of=of))
        return tuple(merged)

    def __str__(self) -> str:
        if not self.what:
            return f"{self.where}: {self.reason}"
        total = f" of {self.of:,}" if self.of is not None else ""
        gone = "" if self.key in NOTICES else " excluded"
        return f"{self.where}: {self.count:,}{total} {self.what}{gone}: {self.reason}"


def near_identical(where: str, names: Iterable[str]) -> list[Exclusion]:
    """Return a notice of names that differ only in case, spaces or punctuation.

    Examples
    --------
    >>> [str(e) for e in near_identical("groups", ["age=old", "age=old ", "age=young"])]
    ["groups: 2 of 3 names: 'age=old' and 'age=old ' look the same and are counted apart"]
    """
    every = list(dict.fromkeys(names))
    alike: dict[str, list[str]] = {}
    for name in every:
        plain = unicodedata.normalize("NFKC", name).casefold()
        alike.setdefault(re.sub(r"[\s_.\-]+", "", plain), []).append(name)
    some = [same for same in alike.values() if len(same) > 1]
    if not some:
        return []
    told = "; ".join(" and ".join(map(repr, same)) for same in some[:5])
    more = f"; and {len(some) - 5} more" if len(some) > 5 else ""
    reason = f"{told}{more} look the same and are counted apart"
    count = sum(map(len, some))
    return [Exclusion(where, "names", count, reason, len(every), "warning/near-identical")]
