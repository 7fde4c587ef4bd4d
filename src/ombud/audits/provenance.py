"""Where a result comes from, and what binds it: versions, times, hashes of inputs and files."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.audits.plan import Plan
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.lake import LakeTable
from ombud.data.recommendations import Recommendations
from ombud.errors import ResultError
from ombud.files import hash_file, inside, is_plain_file, read_json, write_json
from ombud.systems.base import Moderator, Recommender

_PACKAGES = ("ombud", "numpy", "scipy", "polars", "pyarrow", "narwhals", "numba")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    result = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            continue
    return result


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def input_hashes(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of every file that a plan names, by the place that names it."""
    return {place: hash_file(path) for place, path in input_files(plan).items()}


def input_files(plan: Plan) -> dict[str, Path]:
    """Return every file that a plan names and that is there, by the place that names it."""
    parts = {"data", "systems", "metrics", "analyses", "options"}
    named = plan.model_dump(mode="json", include=parts)
    found: dict[str, Path] = {}
    for index, value in _leaves(named):
        # An answer cache is no input: it grows while services are asked.
        if index.endswith(".cache") or not isinstance(value, str):
            continue
        path = Path(value)
        if path.is_absolute() and is_plain_file(path):
            found[index] = path
        elif path.is_absolute() and plan.engine.type != "memory" and path.is_dir():
            files = LakeTable(value, name=index).files()
            found |= {f"{index}/{Path(f).relative_to(path).as_posix()}": Path(f) for f in files}
    return found


def _leaves(part: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every single value of nested tables, with its place."""
    if isinstance(part, dict | list):
        pairs = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in pairs:
            yield from _leaves(value, f"{place}.{key}" if place else str(key))
    else:
        yield place, part


def fingerprint_system(system: Recommender | Moderator) -> str:
    """Return a hash of what a recorded system holds; empty for a live one."""
    record = system.record
    if isinstance(record, Recommendations):
        scores = () if record.scores is None else (record.scores,)
        return _digest([record.users, record.items, record.catalogue.ids, *scores])
    if isinstance(record, Decisions):
        return _digest([record.ids, record.outcomes, record.scores])
    return ""


def fingerprint_data(data: Dataset) -> tuple[str, dict[str, str]]:
    """Return a hash of the content of a data set, whatever it was read from, and one of each table.

    Those of tables say which of them differ. ``texts`` and ``interactions`` are the units
    themselves: what is measured on them can be paired only where these are the same.
    """
    whole, tables = blake2b(digest_size=16), {}
    for name, arrays in _arrays_of(data).items():
        table = blake2b(digest_size=16)
        for array in arrays:
            for piece in _bytes_of(array):
                whole.update(piece)
                table.update(piece)
        tables[name] = table.hexdigest()
    if data.audited is not None:
        for piece in _bytes_of(np.asarray(data.audited)):
            whole.update(piece)
    return whole.hexdigest(), tables


def _arrays_of(data: Dataset) -> dict[str, list[NDArray[Any]]]:
    """Return what makes each table what it is; in the order in which all are hashed."""
    tables: dict[str, list[Any]] = {}
    for name, table in (("interactions", data.interactions), ("test", data.test)):
        if table is not None:
            tables[name] = [table.users.ids, table.items.ids]
            tables[name] += [table.matrix.indptr, table.matrix.indices, table.matrix.data]
    if data.labels is not None:
        labels = data.labels
        tables["labels"] = [labels.items.ids, np.array(labels.names), labels.states]
        tables["labels"] += [v for v in (labels.yes, labels.no) if v is not None]
        if labels.unlabeled == "no":
            tables["labels"].append(labels.labeled)
    if data.texts is not None:
        texts = data.texts
        tables["texts"] = [texts.ids, texts.texts, texts.truth, *texts.types.values()]
        shared = (texts.clusters, texts.families, texts.sets, texts.languages, texts.yes, texts.no,
                  texts.functions)  # fmt: skip
        tables["texts"] += [column for column in shared if column is not None]
    for name, groups in (("users", data.users), ("text_groups", data.text_groups)):
        if groups is not None:
            tables[name] = [groups.units.ids, np.array(groups.names), groups.members]
    if data.items is not None:
        items = data.items
        tables["items"] = [items.items.ids]
        for name in items.attributes:
            tables["items"] += [np.array([name]), items.values[name], items.status[name]]
    return tables


def _bytes_of(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind in "OU":
        content: Any = "\x1f".join(map(str, array.tolist())).encode("utf-8", "surrogatepass")
    else:
        content = np.ascontiguousarray(array).data
    return [content, str(array.shape).encode()]


def _digest(arrays: list[NDArray[Any]]) -> str:
    digest = blake2b(digest_size=16)
    for array in arrays:
        for piece in _bytes_of(array):
            digest.update(piece)
    return digest.hexdigest()


REPORTS = "reports.json"
"""Names the reports that were written into a result folder, each with its hash."""

_SINGLE = ("plan.toml", "run.json", "estimates.json", "verdict.json", "held_out.parquet")
_FOLDERS = ("outputs", "predictions", "rows", "groups", "tables", "inputs", "repeats")


@dataclass(frozen=True)
class Integrity:
    """Whether the files that a result was read from are those that the audit wrote."""

    changed: tuple[str, ...] = ()  # the files that are not as the provenance has them
    recorded: bool = True  # whether the provenance has hashes at all

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
