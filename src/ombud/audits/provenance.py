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


def fingerprint_data(data: Dataset) -> str:
    """Return a hash of the content of a data set, whatever it was read from."""
    parts: list[Any] = []
    for table in (data.interactions, data.test):
        if table is not None:
            parts += [table.users.ids, table.items.ids]
            parts += [table.matrix.indptr, table.matrix.indices, table.matrix.data]
    if data.labels is not None:
        parts += [data.labels.items.ids, np.array(data.labels.names), data.labels.states]
        parts += [v for v in (data.labels.yes, data.labels.no) if v is not None]
        if data.labels.unlabeled == "no":
            parts.append(data.labels.labeled)
    if data.texts is not None:
        parts += [data.texts.ids, data.texts.texts, data.texts.truth]
        given = data.texts
        shared = (given.clusters, given.families, given.sets, given.languages, given.yes, given.no)
        parts += [column for column in shared if column is not None]
    for groups in (data.users, data.text_groups):
        if groups is not None:
            parts += [groups.units.ids, np.array(groups.names), groups.members]
    if data.items is not None:
        parts.append(data.items.items.ids)
        for name in data.items.attributes:
            parts += [np.array([name]), data.items.values[name], data.items.status[name]]
    if data.audited is not None:
        parts.append(np.asarray(data.audited))
    return _digest(parts)


def fingerprint_parts(data: Dataset) -> dict[str, str]:
    """Return a hash of each part of a data set, so that it can be said which of them differ.

    ``texts`` and ``interactions`` are the units themselves: what is measured on them can be paired
    only where these are the same.
    """
    result = {}
    for name in ("interactions", "test", "labels", "texts", "users", "text_groups", "items"):
        part = getattr(data, name)
        if part is not None:
            result[name] = fingerprint_data(Dataset(**{name: part}))
    return result


def _digest(parts: list[NDArray[Any]]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        if part.dtype.kind in "OU":
            digest.update("\x1f".join(map(str, part.tolist())).encode("utf-8", "surrogatepass"))
        else:
            digest.update(np.ascontiguousarray(part).data)
        digest.update(str(part.shape).encode())
    return digest.hexdigest()
