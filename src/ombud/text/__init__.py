"""Term matching, identity tagging and masking."""

from __future__ import annotations

from ombud.text.folding import fold, mask
from ombud.text.identity import IdentityTags, TagDifference, tag_identities
from ombud.text.matching import Matches, TermMatcher
from ombud.text.quality import TagQuality, tag_quality

__all__ = [
    "IdentityTags",
    "Matches",
    "TagDifference",
    "TagQuality",
    "TermMatcher",
    "fold",
    "mask",
    "tag_identities",
    "tag_quality",
]
