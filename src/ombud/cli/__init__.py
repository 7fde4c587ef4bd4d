"""The command line: the same words as the Python API."""

from ombud.cli.main import app, main

__all__ = ["app", "main"]
