"""Compiled inner loops of the rerankers; imported only where numba is installed."""

from __future__ import annotations

__all__: list[str] = []
