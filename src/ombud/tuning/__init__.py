"""Tuning: the search for a model's settings."""
