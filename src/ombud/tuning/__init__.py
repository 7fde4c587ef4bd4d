"""Tuning: the search for a model's settings."""

from ombud.tuning.tuning import Tuned, tune

__all__ = ["Tuned", "tune"]
