"""Bootstrap, permutation tests and loading: ombud and the plain way, on the same data.

    python benchmarks/core.py            full size
    python benchmarks/core.py --quick    about a minute

Full size: 100,000 units x 2,000 replicates x 50 metrics; 137 labels x 10,000 permutations x
33,000 items; a Parquet file of 25 million interactions. The peers are what a careful user would
write today: `scipy.stats.bootstrap`, `scipy.stats.permutation_test`, and pandas with checks and
`factorize`. They run on a stated part of the work (the whole would take hours) and their CPU time
is scaled up in proportion; the output says by how much.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from _isolated import finish, main_of_case, measure

SEED = 20261115


def metrics_of(units: int, metrics: int) -> np.ndarray:
    return np.random.default_rng(SEED).gamma(2.0, 1.0, (units, metrics))


def bootstrap_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.stats import Sample, resample

    values = metrics_of(options["units"], options["metrics"])
    started = time.process_time()
    drawn = resample(
        Sample.many(values), replicates=options["replicates"], rng=np.random.default_rng(1)
    )
    intervals = drawn.intervals(method="bca")
    cpu = time.process_time() - started
    width = float(np.mean(intervals.high - intervals.low))
    return {"cpu": cpu, "width": width}


def bootstrap_scipy(options: Mapping[str, Any]) -> dict[str, Any]:
    from scipy.stats import bootstrap

    values = metrics_of(options["units"], options["metrics"])
    started = time.process_time()
    widths = []
    for column in range(options["peer_metrics"]):
        found = bootstrap(
            (values[:, column],),
            np.mean,
            n_resamples=options["peer_replicates"],
            batch=100,
            method="percentile",
            rng=np.random.default_rng(1),
        )
        widths.append(found.confidence_interval.high - found.confidence_interval.low)
    cpu = time.process_time() - started
    done = options["peer_metrics"] * options["peer_replicates"]
    scale = options["metrics"] * options["replicates"] / done
    return {"cpu": cpu * scale, "measured": cpu, "scale": scale, "width": float(np.mean(widths))}


def labelled(items: int, labels: int) -> tuple[np.ndarray, np.ndarray]:
    """Popularity counts and states: most labels unknown, some no, few yes, as in ML-DDD."""
    rng = np.random.default_rng(SEED)
    popularity = rng.lognormal(2, 1.5, items)
    states = rng.choice([-1, 0, 1], p=[0.78, 0.18, 0.04], size=(items, labels)).astype(np.int8)
    return popularity, states


def permutation_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.stats.permutation import label_tests

    popularity, states = labelled(options["items"], options["labels"])
    started = time.process_time()
    found = label_tests(
        popularity, states, permutations=options["permutations"], rng=np.random.default_rng(1)
    )
    return {
        "cpu": time.process_time() - started,
        "p": float(np.mean(found.p[: options["peer_labels"]])),
    }


def permutation_scipy(options: Mapping[str, Any]) -> dict[str, Any]:
    from scipy.stats import permutation_test

    popularity, states = labelled(options["items"], options["labels"])

    def difference(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.mean(a, axis=axis) - np.mean(b, axis=axis)

    started = time.process_time()
    p = []
    for label in range(options["peer_labels"]):
        groups = (popularity[states[:, label] == 1], popularity[states[:, label] == 0])
        found = permutation_test(
            groups,
            difference,
            n_resamples=options["peer_permutations"],
            vectorized=True,
            batch=100,
            rng=np.random.default_rng(1),
        )
        p.append(found.pvalue)
    cpu = time.process_time() - started
    done = options["peer_labels"] * options["peer_permutations"]
    scale = options["labels"] * options["permutations"] / done
    return {"cpu": cpu * scale, "measured": cpu, "scale": scale, "p": float(np.mean(p))}


def write_file(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.worlds import large_world
    from ombud.worlds.large import write_interactions

    world = large_world(interactions=options["rows"], seed=SEED, ratings=True)
    write_interactions(world, options["path"])
    return {}


def loading_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.data import Interactions

    started = time.process_time()
    found = Interactions.from_frame(options["path"], rating_scale=(0.5, 5))
    cpu = time.process_time() - started
    return {"cpu": cpu, "rows": len(found), "sum": float(found.matrix.data.sum(dtype=np.float64))}


def loading_pandas(options: Mapping[str, Any]) -> dict[str, Any]:
    import pandas as pd
    from scipy import sparse

    started = time.process_time()
    table = pd.read_parquet(options["path"])
    if table[["user", "item", "rating"]].isna().any().any():
        raise ValueError("missing values")
    if not table["rating"].between(0.5, 5).all():
        raise ValueError("ratings outside the scale")
    if table.duplicated(["user", "item"]).any():
        raise ValueError("duplicates")
    users, user_ids = pd.factorize(table["user"], sort=True)
    items, item_ids = pd.factorize(table["item"], sort=True)
    matrix = sparse.csr_matrix(
        (table["rating"].to_numpy(np.float32), (users, items)), (len(user_ids), len(item_ids))
    )
    cpu = time.process_time() - started
    return {"cpu": cpu, "rows": matrix.nnz, "sum": float(matrix.data.sum(dtype=np.float64))}


CASES = {
    "bootstrap_ombud": bootstrap_ombud,
    "bootstrap_scipy": bootstrap_scipy,
    "permutation_ombud": permutation_ombud,
    "permutation_scipy": permutation_scipy,
    "write_file": write_file,
    "loading_ombud": loading_ombud,
    "loading_pandas": loading_pandas,
}


def sizes(quick: bool) -> dict[str, dict[str, int]]:
    if quick:
        return {
            "bootstrap": {
                "units": 20_000, "replicates": 1_000, "metrics": 20,
                "peer_metrics": 2, "peer_replicates": 500,
            },
            "permutation": {
                "items": 10_000, "labels": 40, "permutations": 2_000,
                "peer_labels": 4, "peer_permutations": 500,
            },
            "loading": {"rows": 2_000_000},
        }  # fmt: skip
    return {
        "bootstrap": {
            "units": 100_000, "replicates": 2_000, "metrics": 50,
            "peer_metrics": 2, "peer_replicates": 1_000,
        },
        "permutation": {
            "items": 33_000, "labels": 137, "permutations": 10_000,
            "peer_labels": 5, "peer_permutations": 1_000,
        },
        "loading": {"rows": 25_000_000},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute")
    quick = parser.parse_args().quick
    figures: dict[str, float] = {}
    pairs = {"bootstrap": "scipy", "permutation": "scipy", "loading": "pandas"}
    with tempfile.TemporaryDirectory() as folder:
        for name, peer in pairs.items():
            options: dict[str, Any] = dict(sizes(quick)[name])
            print(f"{name}: {options}", flush=True)
            if name == "loading":
                options["path"] = str(Path(folder) / "interactions.parquet")
                measure(__file__, "write_file", options)
            ours = measure(__file__, f"{name}_ombud", options)
            theirs = measure(__file__, f"{name}_{peer}", options)
            if "scale" in theirs:
                print(f"    ({peer}: {theirs['measured']:.1f} s measured x {theirs['scale']:.0f})")
            ratio = theirs["cpu"] / ours["cpu"]
            print(f"  {name}: {ratio:.1f} times the CPU time of ombud for {peer}")
            figures[f"{name}_vs_{peer}"] = ratio
            figures[f"{name}_cpu"] = ours["cpu"]
            figures[f"{name}_mib"] = ours["mib"]
            figures[f"{name}_mib_{peer}"] = theirs["mib"]
            quality = {"bootstrap": "width", "permutation": "p", "loading": "sum"}[name]
            figures[f"{name}_quality"] = ours[quality]
            figures[f"{name}_quality_{peer}"] = theirs[quality]
    finish("core", figures)


if __name__ == "__main__":
    if "--case" in sys.argv[1:2]:
        main_of_case(CASES)
    else:
        main()
