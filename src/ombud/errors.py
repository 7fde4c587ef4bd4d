"""Every error that ombud raises on purpose.

::

    OmbudError                 catch this to catch them all
    ├── DataError              a table or file is not what it must be (all faults at once)
    ├── PlanError              a plan asks for something that cannot be done
    ├── RegistryError          a name that nobody registered, or arguments it does not take
    ├── ResultError            a result folder is damaged, incomplete or from a newer ombud
    │   └── EditedResultError  a result is not what the audit wrote
    ├── ReportError            a report cannot be written in the form asked for
    ├── AuditedSystemError     a recommender or moderator did not answer as its protocol says
    └── MissingExtraError      an optional package is needed; the message has the install line

A message says what was found, what was expected, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec


class OmbudError(Exception):
    """Base of all errors that ombud raises on purpose."""


class DataError(OmbudError):
    """A table or file is not what it must be; carries every fault found.

    Parameters
    ----------
    source
        The file or table, as the reader would name it.
    faults
        One sentence each, with row numbers where there are rows.
    """

    def __init__(self, source: str, faults: Sequence[str]) -> None:
        self.source = source
        self.faults = tuple(faults)
        count = len(self.faults)
        head = f"{source}: {count} fault{'s' if count != 1 else ''}"
        super().__init__("\n".join([head, *(f"  - {fault}" for fault in self.faults)]))


class PlanError(OmbudError):
    """A plan asks for something that cannot be done."""


class RegistryError(OmbudError):
    """A name that nobody registered, or arguments that the named thing does not take."""


class ResultError(OmbudError):
    """A result folder is damaged, incomplete, or written by a newer ombud."""


class EditedResultError(ResultError):
    """A result is not what the audit wrote, or not the one that a fingerprint names."""


class ReportError(OmbudError):
    """A report cannot be written in the form asked for."""


class AuditedSystemError(OmbudError):
    """A recommender or moderator did not answer as its protocol says."""


class MissingExtraError(OmbudError, ImportError):
    """An optional package is needed; the message has the install line."""


def require(module: str, extra: str) -> None:
    """Fail at the point of use, with the install line, when an optional package is absent.

    Parameters
    ----------
    module
        The import name of the package.
    extra
        The extra of ombud that brings it.
    """
    if find_spec(module) is None:
        raise MissingExtraError(
            f"this needs the package {module!r}, which is not installed. "
            f"Install it with: pip install 'ombud[{extra}]'"
        )
