"""The command line: the same words as the Python API."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ombud.cli.commands import app

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; stopped while it is still being loaded, it says nothing."""
    # SIGTERM (a job that is ended, a machine that shuts down) is treated as Ctrl-C is.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from ombud.cli.commands import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        if "ombud.cli.console" in sys.modules:
            from ombud.cli.console import let_go

            # A pipe that was closed before the last words does not change the exit code.
            if not let_go():
                sys.exit(2)


def __getattr__(name: str) -> Any:
    if name == "app":
        from ombud.cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return ["app", *__all__]
