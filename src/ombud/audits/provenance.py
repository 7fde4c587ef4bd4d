"""Where a result comes from: versions, seeds, hashes, times."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from ombud.audits.plan import FILES, Plan
from ombud.data.dataset import Dataset
from ombud.data.store import hash_file

__all__ = ["fingerprint_data", "input_hashes", "now", "versions"]

_PACKAGES = ("ombud", "numpy", "scipy", "polars", "pyarrow", "narwhals", "numba")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version(), "machine": platform.machine()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def input_hashes(plan: Plan) -> dict[str, str]:
    """Return the SHA-256 of every file that a plan names."""
    paths = [getattr(plan.data, name) for name in FILES]
    paths += [config.get("path") for config in plan.systems.values()]
    return {
        Path(path).name: hash_file(Path(path)) for path in paths if path and Path(path).is_file()
    }


def fingerprint_data(data: Dataset) -> str:
    """Return a hash of the content of a data set, whatever it was read from."""
    digest = blake2b(digest_size=16)
    parts: list[Any] = []
    for table in (data.interactions, data.test):
        if table is not None:
            parts += [table.users.ids, table.items.ids]
            parts += [table.matrix.indptr, table.matrix.indices, table.matrix.data]
    if data.labels is not None:
        parts += [data.labels.items.ids, np.array(data.labels.names), data.labels.states]
        parts += [v for v in (data.labels.yes, data.labels.no) if v is not None]
    if data.texts is not None:
        parts += [data.texts.ids, data.texts.texts, data.texts.truth]
    for groups in (data.users, data.text_groups):
        if groups is not None:
            parts += [groups.units.ids, np.array(groups.names), groups.members]
    for part in parts:
        if part.dtype.kind in "OU":
            digest.update("\x1f".join(map(str, part.tolist())).encode("utf-8", "surrogatepass"))
        else:
            digest.update(np.ascontiguousarray(part).data)
        digest.update(str(part.shape).encode())
    return digest.hexdigest()
