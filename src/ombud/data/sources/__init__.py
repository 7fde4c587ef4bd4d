"""Published data sets: how each is read, and what everyone should know about it."""

from __future__ import annotations

from importlib import import_module

__all__: list[str] = []

for _module in ("ao3", "ml_ddd", "movielens", "tmdb_keywords"):
    import_module(f"{__name__}.{_module}")
