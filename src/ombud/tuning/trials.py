"""Finished trials of a search, one line each, on disk as soon as they are done."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from ombud.errors import ResultError
from ombud.files import read_json, write_json

__all__ = ["Journal", "Trial"]


@dataclass(frozen=True)
class Trial:
    """One set of parameters and what came of it.

    Parameters
    ----------
    number
        Counted from 0.
    parameters
        What was tried.
    value
        The metric; None when the trial failed.
    seconds
        How long it took.
    reason
        Why it failed; empty otherwise.
    """

    number: int
    parameters: Mapping[str, Any]
    value: float | None
    seconds: float
    reason: str = field(default="")


class Journal:
    """The trials of one search, in a folder or in memory.

    A line is written and synced when a trial ends. After a kill at any moment the file holds all
    finished trials, and at most one torn line at its end, which is dropped.

    Parameters
    ----------
    folder
        Where; None for memory only.
    identity
        What the search is. A folder that holds another search is refused.
    """

    def __init__(self, folder: Path | None, identity: Mapping[str, Any]) -> None:
        self.trials: list[Trial] = []
        self._file: IO[str] | None = None
        if folder is None:
            return
        marker = folder / "search.json"
        if marker.exists():
            result = read_json(marker)
            differing = sorted(k for k in identity if result.get(k) != identity[k])
            if differing:
                raise ResultError(
                    f"{folder} holds another search (different: {', '.join(differing)}). "
                    "Choose another folder, or delete this one."
                )
        elif folder.exists() and any(folder.iterdir()):
            raise ResultError(f"{folder} is not empty and holds no search; choose another folder")
        else:
            write_json(marker, identity)
        path = folder / "trials.jsonl"
        # Opened for reading and appending: the lock must be held before anything is read.
        self._file = path.open("a+", encoding="utf-8")
        self._lock(folder)
        self._read(path)

    def _lock(self, folder: Path) -> None:
        assert self._file is not None
        try:
            import fcntl
        except ImportError:  # Windows: two searches at once are not noticed there
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ResultError(
                f"another search is running in {folder}; wait for it, or choose another folder"
            ) from None

    def _read(self, path: Path) -> None:
        assert self._file is not None
        self._file.seek(0)
        text = self._file.read()
        whole, _, torn = text.rpartition("\n")
        if torn:
            self._file.truncate(len((whole + "\n").encode()) if whole else 0)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                self.trials.append(Trial(**json.loads(line)))
            except (ValueError, TypeError):
                self._file.close()
                raise ResultError(
                    f"{path}, line {number} is not a trial; delete the folder, or that line"
                ) from None

    def add(self, trial: Trial) -> None:
        """Add a finished trial; on return it is on disk."""
        self.trials.append(trial)
        if self._file is not None:
            self._file.write(json.dumps(asdict(trial), allow_nan=False) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()
