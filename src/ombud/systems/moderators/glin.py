"""The rule-based filter of the package ``glin-profanity``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import require
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator, package_version


@moderator("glin-profanity")
@dataclass(kw_only=True)
class GlinProfanity(LocalModerator):
    """Dictionaries of profanities in 24 languages, with rules for disguised spellings.

    It decides without a score.

    Parameters
    ----------
    languages
        Whose dictionaries to use, such as ``english``.
    leetspeak
        Whether digits and signs that stand for letters are read as those.
    name
        The system's name in the report.
    """

    languages: list[str] = field(default_factory=lambda: ["english"])
    leetspeak: bool = False
    name: str = "glin-profanity"

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        require("glin_profanity", "moderators")
        from glin_profanity import Filter

        words = Filter({"languages": self.languages, "detect_leetspeak": self.leetspeak})
        flags = np.array([words.is_profane(text) for text in texts], dtype=np.int8)
        empty = np.full(len(flags), np.nan, dtype=np.float32)
        version = package_version("glin-profanity")
        return Decisions(ids, flags, empty, version=version)
