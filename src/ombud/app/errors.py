"""What can go wrong in the annotation app, as sentences."""

from __future__ import annotations

from ombud.errors import OmbudError


class AppError(OmbudError):
    """A request that the annotation app cannot do."""


class ConflictError(AppError):
    """The text was answered, reviewed or decided already, in another tab or by another person."""


class NotAllowedError(AppError):
    """The person may not do this."""


class NotStoredError(AppError):
    """The database could not be written, so nothing was confirmed and nothing changed."""
