"""A list of words: the oldest moderator, and still the most common."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import PlanError
from ombud.files import read_utf8
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator
from ombud.taxonomy import load_dictionary, load_terms
from ombud.text import TermMatcher


@moderator("keyword")
@dataclass(kw_only=True)
class KeywordModerator(LocalModerator):
    """Flags a text that holds any term of a list as a whole word, in any case.

    The score is the number of different terms found.

    Parameters
    ----------
    terms
        The terms.
    path
        A file of terms, one a line, UTF-8; blank lines and lines that begin with ``#`` are
        skipped.
    builtin
        A term list of ombud, such as ``terms-identity@1``, of which the slurs count.
    dictionary
        A dictionary of ombud, such as ``delicate@1``.
    severity
        Of the dictionary, count terms of this severity and stronger ones, such as ``offensive``;
        empty for all.
    plurals
        Whether a term with ``s`` or ``es`` after it counts as well.
    name
        The system's name in the report.
    """

    terms: list[str] = field(default_factory=list, repr=False)
    path: Path | None = None
    builtin: str = ""
    dictionary: str = ""
    severity: str = ""
    plurals: bool = False
    name: str = "keyword"

    def __post_init__(self) -> None:
        if not (self.terms or self.path or self.builtin or self.dictionary):
            raise PlanError(
                f"{self.name}: give terms, path or builtin (such as 'terms-identity@1'), or a "
                "dictionary (such as 'delicate@1')"
            )
        if self.severity and not self.dictionary:
            raise PlanError(f"{self.name}: severity is for a dictionary, and none is named")
        self.all_terms()  # Its faults are told before any system is asked.

    def all_terms(self) -> list[str]:
        """Return every term of all lists, each once, sorted."""
        result = set(self.terms)
        if self.path is not None:
            result |= set(_lines(Path(self.path)))
        if self.builtin:
            result |= {t.text for t in load_terms(self.builtin).terms if t.kind == "slur"}
        return sorted(result | self._of_dictionary())

    def _of_dictionary(self) -> set[str]:
        if not self.dictionary:
            return set()
        found = load_dictionary(self.dictionary)
        scale = list(found.scale)
        if self.severity and self.severity not in scale:
            raise PlanError(f"{self.name}: severity is one of {', '.join(scale)}")
        counted = scale[: scale.index(self.severity) + 1] if self.severity else scale
        return {term.text for term in found.terms if term.severity in counted}

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        matcher = TermMatcher(self.all_terms(), suffixes=("", "s", "es") if self.plurals else ("",))
        matches = matcher.match(texts)
        counts = np.bincount(matches.text_index, minlength=len(texts))
        outcomes = (counts > 0).astype(np.int8)
        return Decisions(ids, outcomes, counts.astype(np.float32))


def _lines(path: Path) -> list[str]:
    lines = read_utf8(path).splitlines()
    return [term for line in lines if (term := line.strip()) and not term.startswith("#")]
