"""The questions ombud answers, one folder each: preset, metrics, analyses, section and figures.

Every folder in here registers what it has when it is imported, exactly as a plugin does; a new
question is a new folder.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

__all__ = ["register_questions"]


def register_questions() -> None:
    """Import every question, so that the registry knows what it offers."""
    for result in iter_modules(__path__, f"{__name__}."):
        import_module(result.name)
