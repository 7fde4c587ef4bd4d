"""Delicate text: which of it is found, which is missed, and what sways the finder."""

from ombud.questions.delicate.comparison import recover_counts
from ombud.questions.delicate.ratings import risk_labels

__all__ = ["recover_counts", "risk_labels"]
