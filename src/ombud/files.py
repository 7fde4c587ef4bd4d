"""Files written whole or not at all."""

from __future__ import annotations

import errno
import glob
import json
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from ombud.errors import DataError, ResultError


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
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_own_prefix(path), suffix=".part")
    os.close(handle)
    neighbour = Path(name)
    try:
        try:
            write(neighbour)
        except pl.exceptions.PolarsError as error:  # its word for a full disk, among others
            raise OSError(errno.EIO, f"it could not be written: {error}", str(path)) from None
        except OSError as error:
            if error.errno is not None:  # one without a number would lose its words
                error.filename = error.filename or str(path)
            raise
        with neighbour.open("rb") as written:
            os.fsync(written.fileno())
        neighbour.chmod(0o644)
        neighbour.replace(path)
    finally:
        neighbour.unlink(missing_ok=True)


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """Write a folder through a neighbour that takes its place when it is complete.

    Killed at any moment, the folder is the old one or the new one, or, where it takes the place of
    another, the old one under a hidden name, which the next call puts back. What killed calls left
    behind is removed.

    Parameters
    ----------
    path
        The folder to write. One that is there is replaced.
    write
        Called with the path of the neighbour, an empty folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    part = Path(tempfile.mkdtemp(dir=path.parent, prefix=_own_prefix(path), suffix=".part"))
    try:
        write(part)
        for file in part.rglob("*"):
            if file.is_file():
                with file.open("rb") as written:
                    os.fsync(written.fileno())
        part.chmod(0o755)
        if path.exists():
            path.replace(_aside(path))
        part.replace(path)
        shutil.rmtree(_aside(path), ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove_leftovers(path: Path) -> None:
    """Remove what killed writes of a file or folder left beside it; put a replaced folder back."""
    aside = _aside(path)
    if aside.exists() and not path.exists():
        aside.replace(path)
    shutil.rmtree(aside, ignore_errors=True)
    _remove(path.parent.glob(f".{glob.escape(path.name)}.*.part"))


def sweep(folder: Path) -> None:
    """Remove what killed writes left anywhere in a folder."""
    _remove(folder.rglob(".*.part"))


def _remove(neighbours: Iterable[Path]) -> None:
    """Remove what processes left that ended; what one still writes, or another machine, stays."""
    host = re.escape(socket.gethostname())
    for path in list(neighbours):
        found = re.search(rf"\.{host}-(\d+)\.\w+\.part$", path.name)
        if found is None or _runs(int(found[1])):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _aside(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _own_prefix(path: Path) -> str:
    """Who writes, in the name: so that what a killed process left can be told."""
    return f".{path.name}.{socket.gethostname()}-{os.getpid()}."


def _runs(process: int) -> bool:
    if os.name == "nt":  # there, asking in this way would end it
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it is another user's
        return True
    return True


def is_leftover(path: Path, name: str) -> bool:
    """Whether a file is what a killed write of a file of this name left behind."""
    return path.name.startswith(f".{name}.") and path.name.endswith(".part")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys, atomically; NaN and infinity are refused."""
    form: dict[str, Any] = {"indent": 1, "sort_keys": True, "allow_nan": False}
    text = json.dumps(content, ensure_ascii=False, **form)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character can be written as an escape only
        text = json.dumps(content, **form)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write text as UTF-8, atomically."""

    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8")

    write_atomically(path, write)


MAX_PLAIN = 1 << 30
"""Bytes of a file that is read as a whole."""


def read_plain(path: Path | str, largest: int = MAX_PLAIN) -> bytes:
    """Return what is in a regular file; OSError for pipes, devices, and files that are too large.

    A pipe would wait here for a writer, a device would never end.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = opened.read(largest + 1) if status.st_size <= largest else b""
        if max(len(content), status.st_size) > largest:
            raise OSError(errno.EFBIG, f"it has more than {largest >> 20:,} MB", str(path))
        return content


def read_utf8(path: Path) -> str:
    """Return the text of a file that a person wrote; refuse one that is not UTF-8."""
    try:
        return read_plain(path, _MAX_TEXT).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        fault = f"byte {error.start:,}: not UTF-8; save the file as UTF-8"
    except OSError as error:
        fault = f"the file cannot be read: {error.strerror}"
    raise DataError(str(path), [fault])


def csv_text(frame: pl.DataFrame) -> str:
    r"""Return a frame as CSV that a spreadsheet opens without running what is in its cells.

    A cell or column name that a spreadsheet would take for a formula gets an apostrophe in front
    (`without_apostrophe` takes it away), numbers excepted. Control characters are removed, and
    those that turn the direction of text.

    Examples
    --------
    >>> print(csv_text(pl.DataFrame({"=a": ["=1+1", "-5", "-x"], "n": [-1, 2, 3]})), end="")
    '=a,n
    '=1+1,-1
    -5,2
    '-x,3
    """
    cells = [
        pl.col(name).cast(pl.String).str.replace_all(_CONTROL, "")
        for name, kind in frame.schema.items()
        if kind in (pl.String, pl.Categorical, pl.Enum)
    ]
    words = frame.select(
        pl.when(cell.str.contains(_FORMULA) & ~cell.str.contains(_NUMBER))
        .then(pl.concat_str(pl.lit("'"), cell))
        .otherwise(cell)
        .alias(cell.meta.output_name())
        for cell in cells
    )
    safe = frame.with_columns(words.get_columns())
    named: dict[str, str] = {}
    for name in safe.columns:
        plain = re.sub(_CONTROL, "", name)
        plain = f"'{plain}" if _is_formula(plain) else plain
        named[name] = plain if plain not in named.values() else f"{plain} ({len(named) + 1})"
    return safe.rename(named).write_csv()


def without_apostrophe(cell: str) -> str:
    """Return a cell as it was before `csv_text` put an apostrophe in front of it."""
    return cell[1:] if cell[:1] == "'" and _is_formula(cell[1:]) else cell


def _is_formula(cell: str) -> bool:
    return re.match(_FORMULA, cell) is not None and re.match(_NUMBER, cell) is None


def write_parquet(path: Path, frame: pl.DataFrame) -> None:
    """Write a frame as Parquet, atomically."""
    write_atomically(path, lambda part: frame.write_parquet(part, compression="zstd"))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, with an error that names the file."""
    _check_plain(path)
    try:
        content = json.loads(read_plain(path).decode("utf-8"), **_NUMBERS)
    except FileNotFoundError:
        raise ResultError(f"{path} is missing") from None
    except OSError as error:
        raise ResultError(f"{path} cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise ResultError(f"{path} is nested too deeply to be read") from None
    except ValueError as error:
        raise ResultError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ResultError(f"{path} holds a {type(content).__name__}; an object was expected")
    return content


def _check_plain(path: Path) -> None:
    """Refuse a pipe or a device, which might never end."""
    if path.exists() and not path.is_dir() and not is_plain_file(path):
        raise ResultError(f"{path} is no ordinary file")


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > 20:
        raise ValueError(f"{digits[:10]}... has {len(digits):,} digits")
    return int(digits)


def _real(digits: str) -> float:
    number = float(digits)
    if abs(number) > _LARGEST_NUMBER:
        raise ValueError(f"{digits[:20]} is beyond what is computed with")
    return number


_LARGEST_NUMBER = 1e150  # whose square is still a number
_NUMBERS: dict[str, Any] = {"parse_constant": _refuse, "parse_int": _whole, "parse_float": _real}


def read_parquet(path: Path) -> pl.DataFrame:
    """Read a Parquet file of a result, with an error that names the file."""
    _check_plain(path)
    try:
        return pl.read_parquet(path)
    except FileNotFoundError:
        raise ResultError(f"{path} is missing") from None
    except OSError as error:
        raise ResultError(f"{path} cannot be read: {error.strerror or error}") from None
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ResultError(
            f"{path} is not Parquet, or is damaged: {without_advice(error)}"
        ) from None


def without_advice(error: BaseException | str) -> str:
    """Return what an error of another package says, without advice about that package's options.

    Examples
    --------
    >>> without_advice("cannot parse 'x'. You might want to try: - increasing `schema_length`")
    "cannot parse 'x'."
    """
    text = " ".join(str(error).split())
    return _ADVICE.sub("", text) or "it cannot be read"


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the right to write into a folder; a killed process lets go of it by itself.

    The lock is the folder's own, not a file in it, so nothing is left behind.
    """
    if find_spec("fcntl") is None:  # Windows: two runs at once are not noticed there
        yield
        return
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResultError(
                f"another run is writing to {folder}; wait for it, or choose another folder"
            ) from None
        except OSError:  # a file system without locks
            yield
        else:
            yield
    finally:
        os.close(handle)


def hash_file(path: Path, *, afresh: bool = False) -> str:
    """Return the SHA-256 of a file.

    Parameters
    ----------
    path
        The file.
    afresh
        Read it even if it seems unchanged (size, time and inode) since it was last read: times
        can be set back.
    """
    if afresh:
        return _digest(path)
    seen = path.stat()
    return _hashed(path.resolve(), seen.st_size, seen.st_mtime_ns, seen.st_ino)


def is_plain_file(path: Path) -> bool:
    """Whether there is a file that can be read to its end: no pipe, no device, no folder."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # a loop of links, a name that no file can have
        return False


@lru_cache(maxsize=256)
def _hashed(path: Path, *state: int) -> str:
    return _digest(path)


def _digest(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def inside(folder: Path, *parts: str) -> Path:
    """Return the path of a file in a subfolder; refuse what leads out of that subfolder.

    Parameters
    ----------
    folder
        A folder. Given alone with the name of a file, it must not be a link itself; with
        subfolders, it is the result's own folder, and how one gets there is the user's choice.
    parts
        The names of subfolders, none of which may be a link, and of the file.

    Raises
    ------
    ResultError
        If a part of the path is a link, or a name such as ``"../x"``, that leads elsewhere.
    """
    subfolders = parts[:-1]
    path = folder.joinpath(*parts).resolve()
    wanted = folder.resolve().joinpath(*subfolders)
    if (folder.is_symlink() and not subfolders) or not path.is_relative_to(wanted):
        raise ResultError(
            f"{'/'.join(parts)!r} leads out of the folder {folder}, by its name or by a link"
        )
    return path


_CONTROL = r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]"
# Full-width signs are read by spreadsheets too.
_FORMULA = r"^(?:[\t\n]|\s*'*[=@|%+\-\uff1d\uff20\uff0b\uff0d])"
_NUMBER = r"^[+\-]?(?:[0-9.,]+(?:[eE][+\-]?[0-9]+)?%?)?$"
_MAX_TEXT = 1 << 26
# What a library advises its own callers to do, which no user of ombud can.
_ADVICE = re.compile(
    r"\s*(?:You might want to try|Consider (?:passing|specifying|setting|increasing)|Hint:|Tip:"
    r"|Try (?:increasing|setting|passing|adding|to (?:increase|set))|(?:[Ii]ncrease|specify|set) "
    r"`|This error (?:occurred|means)|Resolved plan until failure).*",
    re.DOTALL,
)
_OTHERS = 40
"""Files that are open for a while beside those that someone counts: inputs, libraries, logs."""


@contextmanager
def open_files(count: int) -> Iterator[None]:
    """Permit, for a while, that so many more files are open, as far as the system lets us.

    Raises
    ------
    OSError
        If it does not; its text says how many are permitted.
    """
    if find_spec("resource") is None:  # Windows has no such limit
        yield
        return
    import resource

    here = Path("/dev/fd")
    needed = count + _OTHERS + (len(os.listdir(here)) if here.is_dir() else _OTHERS)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        yield
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    except (OSError, ValueError):
        raise OSError(f"the system permits {hard:,}") from None
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
