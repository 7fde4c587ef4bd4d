"""Take files out of archives that nobody vouches for: no path leads out, no size runs away."""

from __future__ import annotations

import gzip
import stat
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from ombud.errors import DataError

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Limits:
    """How much may come out of an archive."""

    total: int = 16 << 30  # Bytes of all files together
    # How many times larger than the archive the files may be together, once they are more than
    # `always` bytes.
    ratio: float = 200.0
    always: int = 16 << 20  # Bytes that are permitted whatever the ratio
    members: int = 10_000  # How many entries the archive may list

    def most(self, packed: int) -> int:
        """Return the bytes that may come out of an archive of so many bytes."""
        return min(self.total, max(self.always, int(self.ratio * packed)))


def _fault_of(entry: zipfile.ZipInfo) -> str:
    """Return what is wrong with an entry, or an empty text."""
    name = entry.filename
    path = PurePosixPath(name)
    if "\\" in name or "\x00" in name or ":" in name:
        return f"entry {name!r:.120} has a name that some systems read as another path"
    if path.is_absolute() or ".." in path.parts or not path.parts:
        return f"entry {name!r:.120} leads out of the folder"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return f"entry {name!r:.120} is a link"
    if entry.flag_bits & 0x1:
        return f"entry {name!r:.120} is encrypted"
    return ""


def extract_zip(
    archive: Path, to: Path, *, names: Sequence[str] | None = None, limits: Limits | None = None
) -> dict[str, Path]:
    """Take files out of a ZIP archive; nothing is written when any entry is suspect.

    Parameters
    ----------
    archive
        The archive.
    to
        An existing folder; files go there by their last name alone, without folders.
    names
        Take only files with these last names; default, all files.
    limits
        How much may come out.

    Returns
    -------
    dict
        The path of each file by its last name.
    """
    bounds = limits or Limits()
    try:
        with zipfile.ZipFile(archive) as opened:
            wanted = _wanted(opened, archive, names, bounds)
            left = bounds.most(archive.stat().st_size)
            result: dict[str, Path] = {}
            for entry in wanted:
                path = to / PurePosixPath(entry.filename).name
                with opened.open(entry) as source:
                    left -= _copy(source, path, left, archive.name)
                result[path.name] = path
            return result
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
        raise DataError(archive.name, [f"it cannot be read as a ZIP archive: {error}"]) from None


def _wanted(
    opened: zipfile.ZipFile, archive: Path, names: Sequence[str] | None, bounds: Limits
) -> list[zipfile.ZipInfo]:
    entries = opened.infolist()
    if len(entries) > bounds.members:
        fault = f"it lists {len(entries):,} entries; at most {bounds.members:,} are read"
        raise DataError(archive.name, [fault])
    faults = [fault for entry in entries if (fault := _fault_of(entry))]
    files = [entry for entry in entries if not entry.is_dir()]
    if names is not None:
        files = [entry for entry in files if PurePosixPath(entry.filename).name in names]
    last = [PurePosixPath(entry.filename).name for entry in files]
    faults += [f"two files are called {name!r:.120}" for name in set(last) if last.count(name) > 1]
    size = sum(entry.file_size for entry in files)
    most = bounds.most(archive.stat().st_size)
    if size > most:
        faults.append(f"its files would take {size:,} bytes; at most {most:,} are taken out")
    if faults:
        raise DataError(archive.name, faults[:20])
    return files


def gunzip(packed: Path, to: Path, *, limits: Limits | None = None) -> Path:
    """Unpack a gzip file to a path, and return the path."""
    bounds = limits or Limits()
    try:
        with gzip.open(packed) as source:
            _copy(source, to, bounds.most(packed.stat().st_size), packed.name)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(packed.name, [f"it cannot be read as a gzip file: {error}"]) from None
    return to


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def _copy(source: _Readable, path: Path, most: int, name: str) -> int:
    """Copy no more than so many bytes; what an archive declares is not believed."""
    done = 0
    with path.open("wb") as target:
        while block := source.read(_BLOCK):
            done += len(block)
            if done > most:
                target.close()
                path.unlink()
                raise DataError(name, [f"{path.name} grows beyond {most:,} bytes; it is refused"])
            target.write(block)
    return done
