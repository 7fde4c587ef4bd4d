"""Tuning: the search for a model's settings."""

from ombud.tuning.tuning import tune

__all__ = ["tune"]
