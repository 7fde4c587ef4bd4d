"""Audits larger than memory: one machine, Spark, and plain tools on the same data.

    python benchmarks/scale.py                    100 million interactions of 2 million users
    python benchmarks/scale.py --quick            small tables, about two minutes
    python benchmarks/scale.py --rows 1000000000  1 billion of 20 million users; 60 GB of disk

- ``embedded_vs_before``: CPU time of an audit in memory with sums by group and leave-one-out values
  one by one, as it was before, over that of now; same estimates. Full size is 22.7 million rows.
- ``peak_mib_1b``: peak memory of ``[engine] type = "stream"``; at the size that ran, which
  ``rows_streamed`` tells.
- ``texts_cpu``: CPU seconds of rates and suppression of a tenth as many texts in clusters.
- ``spark_equal``: largest difference of any value or end of an interval between a Spark cluster of
  two workers on this machine and one machine.
- ``vs_pandas``, ``vs_duckdb_sql``: CPU time of ombud for mean shares of each label, by group, with
  intervals, over that of the same shares without, written by hand.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from _isolated import finish, main_of_case, measure
from _scale_data import plan_of, plan_of_texts, write, write_texts

SYSTEMS = ["one", "two"]


def _run(
    options: Mapping[str, Any], engine: Mapping[str, Any], made: Any = plan_of, **more: Any
) -> Any:
    import pyarrow.dataset  # noqa: F401 - imports are not counted, here as in the peers

    from ombud.audits import Audit, Plan
    from ombud.registry import names

    names("metric")
    folder = Path(options["folder"]) / "result"
    shutil.rmtree(folder, ignore_errors=True)
    plan = made(options, engine) | more
    started = time.process_time()
    result = Audit.from_plan(Plan.from_dict(plan)).run(folder)
    cpu = time.process_time() - started
    shutil.rmtree(folder, ignore_errors=True)
    return result, cpu


def _numbers(result: Any) -> list[list[float]]:
    return [
        [e.value, *(e.interval or (e.value, e.value))]
        for e in result.estimates
        if e.value is not None
    ]


def stream(options: Mapping[str, Any]) -> dict[str, Any]:
    result, cpu = _run(options, {"type": "stream", "rows": False})
    return {"cpu": cpu, "estimates": len(result.estimates)}


def texts(options: Mapping[str, Any]) -> dict[str, Any]:
    result, cpu = _run(options, {"type": "stream", "rows": False}, plan_of_texts)
    return {"cpu": cpu, "estimates": len(result.estimates)}


def shares_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    metrics = [{"name": "history-share", "k": options["k"]}]
    engine = {"type": "stream", "rows": False}
    result, cpu = _run(options | {"systems": SYSTEMS[:1]}, engine, metrics=metrics)
    found = {(e.label, e.group): e.value for e in result.estimates if e.kind == "level"}
    return {"cpu": cpu, "mean": float(np.mean([v for v in found.values() if v is not None]))}


def shares_duckdb(options: Mapping[str, Any]) -> dict[str, Any]:
    import duckdb

    folder = options["folder"]
    groups = [f"a{a}" for a in range(options["groups"] // 3)]
    started = time.process_time()
    db = duckdb.connect()
    db.execute("set threads = 2")
    db.execute(
        f"""create temp table shares as
        select user, label, avg(present::int) as share
        from '{folder}/interactions.parquet' join '{folder}/labels.parquet' using (item)
        group by user, label"""
    )
    rows = db.execute("select '' as g, label, avg(share) from shares group by label").fetchall()
    for name in groups:
        rows += db.execute(
            f"""select {name}, label, avg(share) from shares
            join '{folder}/users.parquet' using (user) group by {name}, label"""
        ).fetchall()
    return {
        "cpu": time.process_time() - started,
        "mean": float(np.mean([value for _, _, value in rows])),
    }


def shares_pandas(options: Mapping[str, Any]) -> dict[str, Any]:
    import pandas as pd

    folder = Path(options["folder"])
    started = time.process_time()
    rows = pd.read_parquet(folder / "interactions.parquet", columns=["user", "item"])
    labels = pd.read_parquet(folder / "labels.parquet")
    users = pd.read_parquet(folder / "users.parquet")
    values = []
    for _, some in labels.groupby("label"):
        joined = rows.merge(some[["item", "present"]], on="item")
        share = joined.groupby("user")["present"].mean().rename("share").reset_index()
        values.append(share["share"].mean())
        grouped = share.merge(users, on="user")
        for name in users.columns[1:]:
            values += grouped.groupby(name)["share"].mean().tolist()
    return {"cpu": time.process_time() - started, "mean": float(np.mean(values))}


def memory(options: Mapping[str, Any]) -> dict[str, Any]:
    if options.get("before"):
        _as_before()
    result, cpu = _run(options, {})
    return {"cpu": cpu, "numbers": _numbers(result)}


def _as_before() -> None:
    """Sums group by group on all threads, leave-one-out values one by one, places by hashing."""
    from contextlib import nullcontext

    from ombud.data.recommendations import Recommendations
    from ombud.stats.bootstrap import resample as bootstrap
    from ombud.stats.bootstrap._design import Design
    from ombud.stats.bootstrap.replicates import Replicates

    def seen_in(self: Any, histories: Any) -> Any:
        items = self.in_catalogue(histories.items)
        users = histories.users.codes(self.users)
        result = np.zeros(items.shape, dtype=np.bool_)
        rows, places = np.nonzero((items >= 0) & (users >= 0)[:, None])
        if len(rows):
            width = len(histories.items)
            asked = np.unique(users[users >= 0])
            part = histories.matrix[asked].tocoo()
            known = asked[part.row].astype(np.int64) * width + part.col
            shown = users[rows].astype(np.int64) * width + items[rows, places]
            result[rows, places] = np.isin(shown, known)
        return result

    Recommendations.seen_in = seen_in  # type: ignore[method-assign]
    Design.kinds = lambda self, low, high: None  # type: ignore[method-assign]
    Replicates.moments = lambda self, s, g: None  # type: ignore[method-assign]
    bootstrap.one_thread = nullcontext  # type: ignore[assignment]


def spark(options: Mapping[str, Any]) -> dict[str, Any]:
    import ombud

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    here, _ = _run(options, {"type": "stream", "rows": False, "blocks": 3})
    engine = {
        "type": "spark",
        "master": "local-cluster[2,1,1024]",
        "blocks": 4,
        "options": {
            "spark.ui.enabled": "false",
            "spark.executor.memory": "1g",
            "spark.executorEnv.PYTHONPATH": str(Path(ombud.__file__).parents[1]),
        },
    }
    there, cpu = _run(options, engine)
    apart = np.abs(np.array(_numbers(here)) - np.array(_numbers(there))).max()
    return {"cpu": cpu, "apart": float(apart)}


CASES = {
    "write": write,
    "write_texts": write_texts,
    "stream": stream,
    "texts": texts,
    "memory": memory,
    "shares_ombud": shares_ombud,
    "shares_duckdb": shares_duckdb,
    "shares_pandas": shares_pandas,
    "spark": spark,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small tables; about two minutes")
    parser.add_argument("--rows", type=int, default=100_000_000, help="interactions to stream")
    parser.add_argument("--folder", help="where generated files go; default, a temporary folder")
    parser.add_argument("--without", nargs="*", default=[], choices=["spark", "before", "stream"])
    asked = parser.parse_args()
    rows = 200_000 if asked.quick else asked.rows
    before = 227_000 if asked.quick else 22_700_000
    compared = 500_000 if asked.quick else 10_000_000
    shape = {"items": 50_000, "labels": 20, "k": 10, "groups": 9, "systems": SYSTEMS}
    shape |= {"replicates": 2000}
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:

        def data(name: str, rows: int, users: int, **more: Any) -> dict[str, Any]:
            options = {**shape, "folder": f"{folder}/{name}", "rows": rows, "users": users, **more}
            measure(__file__, "write", options)
            return options

        if "before" not in asked.without:
            options = data("before", before, before // 140)
            old = measure(__file__, "memory", options | {"before": True})
            new = measure(__file__, "memory", options)
            figures["embedded_vs_before"] = old["cpu"] / new["cpu"]
            apart = np.abs(np.array(old["numbers"]) - np.array(new["numbers"])).max()
            figures["embedded_apart"] = float(apart)
            shutil.rmtree(options["folder"])
        options = data("compared", compared, compared // 50 + 3)
        ours = measure(__file__, "shares_ombud", options)
        for peer in ("duckdb", "pandas"):
            theirs = measure(__file__, f"shares_{peer}", options)
            name = "vs_duckdb_sql" if peer == "duckdb" else "vs_pandas"
            figures[name] = ours["cpu"] / theirs["cpu"]
            figures[f"{name}_apart"] = abs(ours["mean"] - theirs["mean"])
        shutil.rmtree(options["folder"])
        if "spark" not in asked.without:
            options = data("spark", 100_000, 2003, labels=3, items=2000, replicates=200)
            figures["spark_equal"] = measure(__file__, "spark", options)["apart"]
        if "stream" not in asked.without:
            options = data("stream", rows, rows // 50 + 3)
            found = measure(__file__, "stream", options)
            figures["peak_mib_1b"] = found["mib"]
            figures["rows_streamed"] = rows
            figures["stream_cpu"] = found["cpu"]
            shutil.rmtree(options["folder"])
            options = {**shape, "folder": f"{folder}/texts", "texts": rows // 10, "clusters": True}
            measure(__file__, "write_texts", options)
            figures["texts_cpu"] = measure(__file__, "texts", options)["cpu"]
    finish("scale", figures)


if __name__ == "__main__":
    if "--case" in sys.argv[1:2]:
        main_of_case(CASES)
    else:
        main()
