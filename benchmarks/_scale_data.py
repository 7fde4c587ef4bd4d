"""Interactions, lists, labels and groups of any size, written as Parquet a part at a time.

Rows come in the order of time, so the rows of a user are spread over the whole file: the order in
which a lake has them, and the hardest one for blocks of users.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

PART = 1 << 20


def mixed(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(29)
    return x


def items_of(users: np.ndarray, turn: int, turns: int, items: int, salt: int) -> np.ndarray:
    """The turn-th item of users: popular ones first, no item twice for one user."""
    edge = [int((items - turns) * (t / turns) ** 2.5) + t for t in (turn, turn + 1)]
    drawn = mixed(users + (turn + 1) * 7_919_777 + salt) >> np.uint64(33)
    return (edge[0] + drawn % np.uint64(max(1, edge[1] - edge[0]))).astype(np.int32)


def write(options: Mapping[str, Any]) -> dict[str, Any]:
    folder = Path(options["folder"])
    users, rows, items = options["users"], options["rows"], options["items"]
    labels, k = options["labels"], options["k"]
    folder.mkdir(parents=True, exist_ok=True)
    turns = rows // users
    everyone = np.arange(users, dtype=np.int64)

    def table(name: str, count: int, salt: int, columns: str) -> None:
        writer = None
        for turn in range(count):
            # Each turn goes through the users in another order.
            start = (turn * 2_654_435_761) % users
            for low in range(0, users, PART):
                some = (everyone[low : low + PART] * 48_271 + start) % users
                item = items_of(some, turn, count, items, salt)
                if columns == "rating":
                    stars = (mixed(some + turn) >> np.uint64(40)) % np.uint64(10)
                    last = pa.array((stars.astype(np.float32) + 1) / 2)
                else:
                    last = pa.array(np.full(len(some), turn + 1, dtype=np.int32))
                part = pa.table([pa.array(some), pa.array(item), last], ["user", "item", columns])
                if writer is None:
                    path = folder / f"{name}.parquet"
                    # A dictionary of nearly as many users as rows would be half the work.
                    few = ["item", columns]
                    writer = pq.ParquetWriter(
                        path, part.schema, compression="zstd", use_dictionary=few
                    )
                writer.write_table(part)
        assert writer is not None
        writer.close()

    if users % 48_271 == 0:
        raise ValueError("choose another number of users: turns would repeat some")
    table("interactions", turns, 0, "rating")
    for number, system in enumerate(options["systems"], 1):
        table(system, k, number * 1_000_003, "rank")
    rng = np.random.default_rng(1)
    yes = 0.02 + 0.2 * rng.random(labels)
    drawn = rng.random((items, labels))
    states = np.where(drawn < yes, 1, np.where(drawn < 0.8, 0, -1))
    at, label = np.nonzero(states >= 0)
    frame = pl.DataFrame({"item": at, "label": label, "state": states[at, label]})
    frame.select(
        "item", label=pl.format("w{}", pl.col("label")), present=pl.col("state") == 1
    ).write_parquet(folder / "labels.parquet")
    attributes = {
        f"a{a}": pl.Series((mixed(everyone + a) >> np.uint64(35)) % np.uint64(3)).cast(pl.String)
        for a in range(options["groups"] // 3)
    }
    pl.DataFrame({"user": everyone, **attributes}).write_parquet(folder / "users.parquet")
    size = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    return {"bytes": size}


def write_texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Texts in clusters of ten, three attributes, decisions of each system; a part at a time."""
    folder, count = Path(options["folder"]), options["texts"]
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, pq.ParquetWriter] = {}
    for low in range(0, count, PART):
        ids = np.arange(low, min(low + PART, count), dtype=np.int64)

        def drawn(salt: int, kinds: int, ids: np.ndarray = ids) -> np.ndarray:
            return ((mixed(ids + salt) >> np.uint64(35)) % np.uint64(kinds)).astype(np.int64)

        text = pa.array(["my sister went to the sea"] * len(ids))
        truth = pa.array(drawn(1, 5) == 0)
        parts = {"texts": {"id": ids, "text": text, "label": truth}}
        if options["clusters"]:
            parts["texts"]["cluster"] = ids // 10
        named = {f"a{a}": drawn(a + 2, 3).astype(str) for a in range(options["groups"] // 3)}
        parts["groups"] = {"id": ids, **named}
        for number, system in enumerate(options["systems"]):
            parts[f"said-{system}"] = {"id": ids, "flagged": drawn(number + 9, 12) == 0}
        for name, columns in parts.items():
            part = pa.table(columns)
            if name not in writers:
                path = folder / f"{name}.parquet"
                writers[name] = pq.ParquetWriter(path, part.schema, compression="zstd")
            writers[name].write_table(part)
    for writer in writers.values():
        writer.close()
    return {}


def plan_of_texts(options: Mapping[str, Any], engine: Mapping[str, Any]) -> dict[str, Any]:
    folder = Path(options["folder"])
    data = {"texts": str(folder / "texts.parquet"), "text_groups": str(folder / "groups.parquet")}
    return {
        "data": data,
        "systems": {
            name: {"type": "recorded", "path": str(folder / f"said-{name}.parquet")}
            for name in options["systems"]
        },
        "metrics": [{"name": "false-positive-rate"}, {"name": "suppression"}],
        "statistics": {"replicates": options["replicates"]},
        "engine": dict(engine),
    }


def plan_of(options: Mapping[str, Any], engine: Mapping[str, Any]) -> dict[str, Any]:
    folder = Path(options["folder"])
    data = {name: str(folder / f"{name}.parquet") for name in ("interactions", "labels", "users")}
    k = options["k"]
    return {
        "data": data,
        "systems": {
            name: {"type": "recorded", "path": str(folder / f"{name}.parquet")}
            for name in options["systems"]
        },
        "metrics": [{"name": "share-gap", "k": k}, {"name": "amplification", "k": k}],
        "statistics": {"replicates": options["replicates"]},
        "engine": dict(engine),
    }
