"""Where a result comes from: versions, seeds, hashes, times."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.audits.plan import Plan
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.lake import LakeTable
from ombud.data.recommendations import Recommendations
from ombud.files import hash_file, is_plain_file
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
        tables["texts"] = [texts.ids, texts.texts, texts.truth]
        shared = (texts.clusters, texts.families, texts.sets, texts.languages, texts.yes, texts.no)
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
