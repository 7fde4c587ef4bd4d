"""The annotation app: people rate texts, and see results, in a browser on your own machine."""

from __future__ import annotations

from ombud.app.errors import AppError, ConflictError, NotAllowedError, NotStoredError
from ombud.app.project import Project
from ombud.app.settings import ProjectSettings, Support, Topic

__all__ = [
    "AppError",
    "ConflictError",
    "NotAllowedError",
    "NotStoredError",
    "Project",
    "ProjectSettings",
    "Support",
    "Topic",
]
