"""The classifier of the package ``alt-profanity-check``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import require
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator, in_chunks, package_version, scored


@moderator("profanity-check")
@dataclass(kw_only=True)
class ProfanityCheck(LocalModerator):
    """A linear model on bags of words, trained on 200,000 labelled comments and tweets.

    The package opens its own model with joblib, which runs code from that file: as trustworthy
    as the rest of the installed package, and no more.

    Parameters
    ----------
    threshold
        Flag when the probability reaches it.
    name
        The system's name in the report.
    """

    threshold: float = 0.5
    name: str = "profanity-check"

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        require("profanity_check", "moderators")
        from profanity_check import predict_prob

        scores = in_chunks(predict_prob, texts)
        version = package_version("alt-profanity-check")
        return scored(ids, scores, self.threshold, version=version)
