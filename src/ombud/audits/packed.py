"""The archive of a result: its manifest, and whether its files are those of the manifest."""

from __future__ import annotations

import json
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile, ZipInfo

from ombud.errors import ResultError

MANIFEST = "manifest.json"
"""Names every other file of an archive, with its length and SHA-256."""

PACK_SCHEMA = 1
"""The version of the archive's form that this ombud writes, and the newest it reads."""

Redaction = Literal["none", "texts", "ids"]
"""What is left out of an archive, from nothing to everything about single users and texts."""

LEFT_OUT: dict[Redaction, tuple[str, ...]] = {
    "none": ("paths and folders of the machine that ran the audit",),
    "texts": (
        "paths and folders of the machine that ran the audit",
        "texts: the stored data, and tables that hold texts",
        "lists of terms in the plan (their number and SHA-256 stand for them)",
    ),
    "ids": (
        "paths and folders of the machine that ran the audit",
        "texts: the stored data, and tables that hold texts",
        "lists of terms in the plan (their number and SHA-256 stand for them)",
        "ids of users and texts, and everything about single ones: what systems answered, what was "
        "measured on each, tables and pages of single people",
    ),
}
"""What each level leaves out, in words."""

_MOST_ENTRIES = 100_000
_MOST_MANIFEST = 64 << 20
_BLOCK = 1 << 20


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of an archive that `ombud.report.pack` wrote.

    Raises
    ------
    ResultError
        If it is no such archive. Nothing of it is unpacked or run.
    """
    try:
        with ZipFile(path) as archive:
            return _manifest(archive, path)
    except FileNotFoundError:
        raise ResultError(f"there is no archive {path}") from None
    except (BadZipFile, OSError, RuntimeError, ValueError, zlib.error) as error:
        raise ResultError(f"{path} is no archive that can be read: {error}") from None


def _manifest(archive: ZipFile, path: Path) -> dict[str, Any]:
    names = [info.filename for info in archive.infolist()]
    if MANIFEST not in names or len(names) > _MOST_ENTRIES:
        raise ResultError(f"{path} has no {MANIFEST}; it was not written by ombud pack")
    if archive.getinfo(MANIFEST).file_size > _MOST_MANIFEST:
        raise ResultError(f"{path}: its {MANIFEST} is too large to be one")
    try:
        read: object = json.loads(archive.read(MANIFEST))
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: its {MANIFEST} is damaged: {error}") from None
    content: dict[str, Any] = read if isinstance(read, dict) else {}
    files = content.get("files")
    if not isinstance(files, dict) or not all(_is_entry(one) for one in files.values()):
        raise ResultError(f"{path}: its {MANIFEST} names no files")
    version = content.get("schema_version")
    if not isinstance(version, int) or version > PACK_SCHEMA:
        raise ResultError(
            f"{path} has schema version {version}; this ombud reads up to {PACK_SCHEMA}. "
            "Install a newer ombud: pip install --upgrade ombud"
        )
    return content


def _is_entry(one: object) -> bool:
    return (
        isinstance(one, dict)
        and isinstance(one.get("sha256"), str)
        and isinstance(one.get("bytes"), int)
    )


def packed_state(path: Path) -> tuple[str, list[tuple[str, str]]]:
    """Return the SHA-256 of the manifest, and the state of each file of an archive.

    A file is ``intact``, ``changed``, ``missing``, or ``not recorded`` in the manifest. One that
    is longer than the manifest says is not read to its end.
    """
    files = read_manifest(path)["files"]
    states: list[tuple[str, str]] = []
    try:
        with ZipFile(path) as archive:
            fingerprint = sha256(archive.read(MANIFEST)).hexdigest()
            held: dict[str, list[ZipInfo]] = {}
            for info in archive.infolist():
                held.setdefault(info.filename, []).append(info)
            for name, said in files.items():
                states.append((name, _state(archive, held.get(name, []), said)))
            known = {*files, MANIFEST}
            states += [(name, "not recorded") for name in held if name not in known]
            if len(held[MANIFEST]) > 1:
                states.append((MANIFEST, "changed"))
    except (BadZipFile, OSError, RuntimeError, zlib.error) as error:
        raise ResultError(f"{path} is no archive that can be read: {error}") from None
    return fingerprint, states


def _state(archive: ZipFile, entries: list[ZipInfo], said: dict[str, Any]) -> str:
    if not entries:
        return "missing"
    if len(entries) > 1 or entries[0].file_size != said["bytes"]:
        return "changed"
    digest, length = sha256(), 0
    try:
        with archive.open(entries[0]) as stream:
            while block := stream.read(_BLOCK):
                length += len(block)
                if length > said["bytes"]:
                    return "changed"
                digest.update(block)
    except (BadZipFile, EOFError, OSError, ValueError, RuntimeError, zlib.error):
        return "changed"
    return "intact" if digest.hexdigest() == said["sha256"] else "changed"
