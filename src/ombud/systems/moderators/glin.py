"""The rule-based filter of the package ``glin-profanity``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ombud.data.decisions import Decisions
from ombud.data.texts import Texts
from ombud.errors import require
from ombud.registry import moderator
from ombud.systems.moderators.local import clean_texts, package_version


@moderator("glin-profanity")
@dataclass(kw_only=True)
class GlinProfanity:
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

    def moderate(self, texts: Texts) -> Decisions:
        """Return one outcome a text, in the order of the texts."""
        require("glin_profanity", "moderators")
        from glin_profanity import Filter

        words = Filter({"languages": self.languages, "detect_leetspeak": self.leetspeak})
        flags = np.array([words.is_profane(text) for text in clean_texts(texts)], dtype=np.int8)
        empty = np.full(len(flags), np.nan, dtype=np.float32)
        version = package_version("glin-profanity")
        return Decisions(np.asarray(texts.ids), flags, empty, version=version)
