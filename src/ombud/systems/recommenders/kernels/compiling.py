"""Saying that a kernel is compiled, to whoever waits for it.

The first use of a kernel on a machine takes seconds in which nothing else is told. This module
imports no compiler, so what needs no kernel can ask to be told too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ombud.systems.base import Progress

_listener: ContextVar[Progress | None] = ContextVar("ombud_compiling", default=None)


@contextmanager
def telling(progress: Progress | None) -> Iterator[None]:
    """Tell `progress` of every kernel that is compiled within, not only read from the cache.

    Examples
    --------
    >>> with telling(lambda done, total, note: print(note)):
    ...     say_compiling("solve")
    compiling solve: once on this machine
    """
    before = _listener.set(progress)
    try:
        yield
    finally:
        _listener.reset(before)


def say_compiling(name: str) -> None:
    """Say that a kernel of some name is compiled now."""
    progress = _listener.get()
    if progress is not None:
        progress(0, 1, f"compiling {name.lstrip('_')}: once on this machine")
