"""Term matching, identity tagging and masking."""

from __future__ import annotations

from ombud.text.folding import fold, mask
from ombud.text.identity import IdentityTags, tag_identities
from ombud.text.matching import TermMatcher
from ombud.text.quality import tag_quality

__all__ = ["IdentityTags", "TermMatcher", "fold", "mask", "tag_identities", "tag_quality"]
