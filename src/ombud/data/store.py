"""Files written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from ombud.errors import ResultError

__all__ = [
    "hash_file",
    "inside",
    "read_json",
    "write_atomically",
    "write_json",
    "write_parquet",
    "write_text",
]


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file through a neighbour that replaces it in one step.

    Killed at any moment, the file is either the old one or the new one.

    Parameters
    ----------
    path
        The file to write; its folder is made if need be.
    write
        Called with the path of the neighbour.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    neighbour = Path(name)
    try:
        write(neighbour)
        with neighbour.open("rb") as written:
            os.fsync(written.fileno())
        neighbour.chmod(0o644)
        neighbour.replace(path)
    finally:
        neighbour.unlink(missing_ok=True)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys, atomically; NaN and infinity are refused."""
    text = json.dumps(content, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, atomically."""

    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def write_parquet(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet, atomically."""
    write_atomically(path, lambda part: frame.write_parquet(part, compression="zstd"))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, with an error that names the file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultError(f"{path} is missing") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ResultError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ResultError(f"{path} holds a {type(content).__name__}; an object was expected")
    return content


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def inside(folder: Path, name: str) -> Path:
    """Return the path of a name inside a folder; refuse names that lead out of it."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise ResultError(f"{name!r} leads out of the folder {folder}")
    return path
