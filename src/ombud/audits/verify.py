"""Is a stored result still what the audit wrote? Everything in it is hashed again.

Hashes find what was changed by mistake, by a disk, or by someone who did not change the provenance
too. Who can write the whole folder can make it agree with itself: against that, note the
fingerprint (the SHA-256 of ``provenance.json``) where others can read it, such as in a paper, and
give it as what is expected; or compute the numbers again (``recompute``).
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast
from zipfile import BadZipFile, ZipFile, ZipInfo

from ombud.audits.plan import Plan
from ombud.audits.provenance import (
    REPORTS,
    Integrity,
    check_provenance,
    file_hashes,
    input_files,
    place_of,
)
from ombud.errors import EditedResultError, OmbudError, ResultError
from ombud.files import hash_file, is_plain_file, read_json

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
                states.append((name, _entry_state(archive, held.get(name, []), said)))
            known = {*files, MANIFEST}
            states += [(name, "not recorded") for name in held if name not in known]
            if len(held[MANIFEST]) > 1:
                states.append((MANIFEST, "changed"))
    except (BadZipFile, OSError, RuntimeError, zlib.error) as error:
        raise ResultError(f"{path} is no archive that can be read: {error}") from None
    return fingerprint, states


def _entry_state(archive: ZipFile, entries: list[ZipInfo], said: dict[str, Any]) -> str:
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


State: TypeAlias = Literal["intact", "changed", "missing", "not reachable", "not recorded"]
_BAD: tuple[State, ...] = ("changed", "missing")
_KINDS = {
    "plan.toml": "plan",
    "run.json": "run",
    "estimates.json": "estimates",
    "verdict.json": "verdict",
}


@dataclass(frozen=True)
class Check:
    """What became of one file."""

    # What it is: ``plan``, ``run``, ``estimates``, ``outputs``, ``predictions``, ``rows``,
    # ``tables``, ``inputs``, ``reports``, ``provenance``, or ``archive``.
    kind: str
    name: str  # its place in the folder; of an input, the place in the plan that names it
    # Whether it is as recorded. *Not reachable* is an input that is not on this machine, *not
    # recorded* a file that no hash is known of.
    state: State


@dataclass(frozen=True)
class Verification:
    """What became of each file of a result.

    Parameters
    ----------
    folder
        The result.
    fingerprint
        The SHA-256 of its ``provenance.json``, which holds the hashes of all else.
    checks
        One for each file.
    """

    folder: Path
    fingerprint: str
    checks: tuple[Check, ...]

    @property
    def is_intact(self) -> bool:
        """Whether nothing changed and nothing is missing; inputs may be out of reach."""
        return not any(check.state in _BAD for check in self.checks)

    def select(self, *states: State) -> tuple[Check, ...]:
        """Return the checks that ended in one of some states."""
        return tuple(check for check in self.checks if check.state in states)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "folder": str(self.folder),
            "intact": self.is_intact,
            "fingerprint": self.fingerprint,
            "checks": [vars(check) for check in self.checks],
        }


def verify(folder: Path | str, *, expect: str | None = None) -> Verification:
    """Hash everything that a result consists of again.

    Parameters
    ----------
    folder
        A finished result, or an archive of one (`ombud.report.pack`).
    expect
        The fingerprint that was noted when it was made; of an archive, that of its manifest.

    Returns
    -------
    What is intact, changed, missing, or not reachable.

    Raises
    ------
    ResultError
        If it is no finished result, or holds no hashes.
    """
    folder = Path(folder)
    if folder.is_file():
        return _verify_packed(folder, expect)
    if not folder.is_dir():
        raise ResultError(f"there is no result folder {folder}")
    source = folder / "provenance.json"
    provenance = read_json(source)
    check_provenance(source, provenance)
    files = provenance.get("files")
    if not files:
        raise ResultError(
            f"{folder} holds no hashes of its files: an older ombud wrote it, or they were taken "
            "out. ombud rescore makes a new result that has them"
        )
    fingerprint = hash_file(source, afresh=True)
    checks: list[Check] = []
    if expect is not None:
        same = expect.strip().lower() == fingerprint
        checks.append(Check("provenance", source.name, "intact" if same else "changed"))
    checks += [
        Check(_kind(name), name, _state(folder, name, digest)) for name, digest in files.items()
    ]
    checks += [
        Check(_kind(name), name, "not recorded")
        for name in file_hashes(folder)
        if name not in files
    ]
    checks += _inputs(folder, provenance)
    checks += _reports(folder)
    return Verification(folder, fingerprint, tuple(checks))


def require_unedited(
    folder: Path, *, expect: str | None = None, ignore: tuple[str, ...] = ()
) -> None:
    """Refuse a result that `verify` refuses, or that has no hashes to verify.

    Parameters
    ----------
    folder
        A finished result.
    expect
        The fingerprint that the result must have.
    ignore
        Kinds of checks that do not count, such as ``inputs``.

    Raises
    ------
    EditedResultError
        With the names of what changed.
    """
    provenance = read_json(folder / "provenance.json")
    check_provenance(folder / "provenance.json", provenance)
    if not provenance.get("files"):
        raise EditedResultError(f"{folder}: {Integrity(recorded=False).said}")
    found = verify(folder, expect=expect)
    changed = [c for c in found.select(*_BAD) if c.kind not in ignore]
    if not changed:
        return
    shown = ", ".join(f"{check.name} ({check.state})" for check in changed[:5])
    more = f" and {len(changed) - 5} more" if len(changed) > 5 else ""
    why = ""
    if expect is not None and changed[0].kind == "provenance":
        why = f" Its fingerprint is {found.fingerprint}; {expect.strip().lower()} was expected."
    raise EditedResultError(
        f"EDITED: {folder} is not what the audit wrote: {shown}{more}.{why} "
        "ombud verify lists every file"
    )


def _verify_packed(path: Path, expect: str | None) -> Verification:
    """Hash every file of an archive again, without unpacking it."""
    fingerprint, states = packed_state(path)
    checks = [Check("archive", name, cast(State, state)) for name, state in states]
    if expect is not None:
        same = expect.strip().lower() == fingerprint
        checks.insert(0, Check("archive", MANIFEST, "intact" if same else "changed"))
    return Verification(path, fingerprint, tuple(checks))


def _kind(name: str) -> str:
    return _KINDS.get(name) or name.partition("/")[0]


def _state(folder: Path, name: str, digest: str) -> State:
    try:
        path = place_of(folder, name)
        if not is_plain_file(path):
            return "changed" if path.exists() else "missing"
        return "intact" if hash_file(path, afresh=True) == digest else "changed"
    except (ResultError, OSError):  # it leads out of the folder, or cannot be read
        return "changed"


def _inputs(folder: Path, provenance: Mapping[str, Any]) -> Iterator[Check]:
    recorded = provenance.get("inputs", {})
    try:
        there = input_files(Plan.load(folder / "plan.toml"))
    except OmbudError:  # the plan is damaged, which is said of the plan
        there = {}
    for place, digest in recorded.items():
        path = there.get(place)
        state: State = "not reachable"
        if path is not None:
            try:
                state = "intact" if hash_file(path, afresh=True) == digest else "changed"
            except OSError:
                state = "not reachable"
        yield Check("inputs", place, state)


def _reports(folder: Path) -> Iterator[Check]:
    try:
        files = read_json(folder / REPORTS).get("files")
    except ResultError:
        return
    for name, digest in files.items() if isinstance(files, dict) else ():
        yield Check("reports", name, _state(folder, name, str(digest)))
