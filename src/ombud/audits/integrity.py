"""What a finished result is bound to: the SHA-256 of each of its files, in its provenance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from ombud.errors import ResultError
from ombud.files import hash_file, inside, is_plain_file, read_json, write_json

REPORTS = "reports.json"
"""Names the reports that were written into a result folder, each with its hash."""

_SINGLE = ("plan.toml", "run.json", "estimates.json", "verdict.json", "held_out.parquet")
_FOLDERS = ("outputs", "predictions", "rows", "tables", "inputs", "repeats")


@dataclass(frozen=True)
class Integrity:
    """Whether the files that a result was read from are those that the audit wrote.

    Parameters
    ----------
    changed
        The files that are not as the provenance has them.
    recorded
        Whether the provenance has hashes at all.
    """

    changed: tuple[str, ...] = ()
    recorded: bool = True

    @property
    def said(self) -> str:
        """A sentence for the top of what is shown; empty when nothing is amiss."""
        if not self.recorded:
            return (
                "Not bound: this result has no hashes of its files (an older ombud wrote it, or "
                "they were taken out), so an edit of its numbers could not be seen."
            )
        if not self.changed:
            return ""
        shown = ", ".join(self.changed[:3])
        more = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
        return (
            f"EDITED: {shown}{more} changed after the audit was finished. What is shown here is "
            "not what the audit wrote; ombud verify says what else changed."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"recorded": self.recorded, "changed": list(self.changed)}


def file_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that a result consists of, by its place in the folder.

    Caches of answers and reports are no part of it: they may grow, or be written again.
    """
    found = [folder / name for name in _SINGLE]
    for name in _FOLDERS:
        found += sorted((folder / name).rglob("*"))
    return {
        path.relative_to(folder).as_posix(): hash_file(path)
        for path in found
        if is_plain_file(path) and not path.name.startswith(".") and path.parent.name != "parts"
    }


def place_of(folder: Path, name: str) -> Path:
    """Return where a recorded file lies; refuse a name or a link that leads out of the folder."""
    parts = PurePosixPath(name).parts
    if not parts or "\0" in name:
        raise ResultError(f"{name!r} names no file of {folder}")
    return inside(folder.resolve(), *parts)


def read_integrity(folder: Path, provenance: Mapping[str, Any], names: Iterable[str]) -> Integrity:
    """Compare some files of a result with what its provenance says of them."""
    recorded = provenance.get("files")
    if recorded is None:
        return Integrity(recorded=False)
    return Integrity(tuple(n for n in names if recorded.get(n) != _hash(folder, n)))


def _hash(folder: Path, name: str) -> str:
    """Return the hash of a file of the folder; empty for what is no file of it."""
    try:
        path = place_of(folder, name)
        return hash_file(path, afresh=True) if is_plain_file(path) else ""
    except (ResultError, OSError):
        return ""


def record_reports(folder: Path, written: Iterable[Path]) -> None:
    """Note the hashes of reports that lie in a result folder, so that `verify` can check them."""
    here = folder.resolve()
    inner = [path for path in written if path.resolve().is_relative_to(here)]
    if not inner:
        return
    try:
        known = read_json(here / REPORTS).get("files")
    except ResultError:  # there is none yet, or it is damaged: it is written anew
        known = None
    hashes = {path.resolve().relative_to(here).as_posix(): hash_file(path) for path in inner}
    write_json(here / REPORTS, {"files": {**(known if isinstance(known, dict) else {}), **hashes}})


DEEPEST = 50
"""How deep the values of a stored result may be nested."""


def check_provenance(path: Path, provenance: Mapping[str, Any]) -> None:
    """Refuse a provenance whose parts are not of the form that ombud writes."""
    versions = provenance.get("versions", {})
    if not (isinstance(versions, dict) and all(isinstance(v, str) for v in versions.values())):
        raise ResultError(f"{path} is damaged: versions must name packages, each with a word")
    for part in ("files", "inputs"):
        hashes = provenance.get(part, {})
        if not (isinstance(hashes, dict) and all(isinstance(v, str) for v in hashes.values())):
            raise ResultError(f"{path} is damaged: {part} must name files, each with its hash")
    if is_deeper(provenance, DEEPEST):
        raise ResultError(f"{path} is damaged: it is nested more than {DEEPEST} deep")


def is_deeper(value: Any, limit: int) -> bool:
    """Whether nested values go deeper than a limit; parsers of others give up there, or hang."""
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return limit == 0 or any(is_deeper(part, limit - 1) for part in parts)
