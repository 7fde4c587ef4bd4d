"""What `warnings.py` compares: the same definitions, by ombud and as a researcher writes them.

Permutation: for each of 137 labels, the difference in mean popularity between items with it and
items without it, and its p-value from 1,000 permutations, over 33,000 items of which votes decide
about one in five (the published data set's shares). Amplification@100 of 1,000 users and 137
labels: top quartile of ratings, imaginary item where the label is absent.

The pandas side takes the time it takes: one DataFrame resampled per permutation, one merge per
user and side. It computes differences, p-values and amplification alone; the time of ombud
includes the intervals and the rank-based effect size that its test always gives. With ``--quick``
pandas runs a named part of the permutations and of the users, and its CPU time is scaled up in
proportion, which the output says; at full size it runs whole.
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
SIZES = {"items": 33_000, "labels": 137, "permutations": 1000, "users": 1000, "k": 100}
PEER = {"quick": {"permutations": 20, "users": 100}, "full": {"permutations": 1000, "users": 1000}}


def states_of(options: Mapping[str, Any]) -> np.ndarray:
    """Items x labels in the shares of the published data: 3.5% yes, 17% no, the rest unknown."""
    rng = np.random.default_rng(SEED)
    drawn = rng.random((options["items"], options["labels"]))
    yes = 0.035 * rng.gamma(1.0, 1.0, options["labels"]).clip(0.1, 4)
    return np.where(drawn < yes, 1, np.where(drawn < yes + 0.17, 0, -2)).astype(np.int8)


def popularity_of(options: Mapping[str, Any]) -> np.ndarray:
    rng = np.random.default_rng(SEED + 1)
    label = (states_of(options) == 1) @ rng.normal(0, 0.02, options["labels"])
    return rng.normal(3.1, 0.5, options["items"]) + label


def users_of(options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return histories (users x 140 items), ratings, and lists (users x k), long-tailed."""
    rng = np.random.default_rng(SEED + 2)
    weight = np.log(1 / np.arange(1, options["items"] + 1) ** 0.8)
    history, lists = [], []
    for _ in range(options["users"]):
        order = np.argsort(-(weight + rng.gumbel(size=options["items"])))
        history.append(np.sort(order[:140]))
        lists.append(order[140 : 140 + options["k"]])
    ratings = rng.integers(1, 11, (options["users"], 140)) / 2
    return np.array(history), ratings, np.array(lists)


def permutation_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.stats.permutation import label_tests

    values, states = popularity_of(options), np.maximum(states_of(options), -1)
    times = []
    for _ in range(3):
        started = time.process_time()
        found = label_tests(
            values,
            states,
            permutations=options["permutations"],
            rng=np.random.default_rng(1),
        )
        times.append(time.process_time() - started)
    np.savez(options["out"], difference=found.difference, p=found.p)
    return {"cpu": min(times)}


def permutation_pandas(options: Mapping[str, Any]) -> dict[str, Any]:
    import pandas as pd

    table = pd.DataFrame(states_of(options), columns=[f"w{w}" for w in range(options["labels"])])
    table["popularity"] = popularity_of(options)
    rng = np.random.default_rng(2)

    def shift(items: pd.DataFrame, label: str) -> float:
        with_label = items[items[label] == 1]["popularity"]
        without = items[items[label] == 0]["popularity"]
        return float(with_label.mean() - without.mean())

    drawn = options["peer_permutations"]
    started = time.process_time()
    differences, p_values = [], []
    for label in table.columns[:-1]:
        known = table[table[label] >= 0][[label, "popularity"]]
        observed = shift(known, label)
        extreme = 0
        for _ in range(drawn):
            order = known["popularity"].sample(frac=1, random_state=rng)
            shuffled = known.assign(popularity=order.to_numpy())
            extreme += abs(shift(shuffled, label)) >= abs(observed)
        differences.append(observed)
        p_values.append((extreme + 1) / (drawn + 1))
    measured = time.process_time() - started
    np.savez(options["out"], difference=differences, p=p_values)
    scale = options["permutations"] / drawn
    return {"cpu": measured * scale, "measured": measured, "scale": scale}


def amplification_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    import polars as pl

    from ombud.data.dataset import Dataset
    from ombud.data.ids import Vocabulary
    from ombud.data.interactions import Interactions
    from ombud.data.labels import Labels
    from ombud.data.recommendations import Recommendations
    from ombud.questions.warnings.amplification import Amplification

    history, ratings, lists = users_of(options)
    names = tuple(f"w{w}" for w in range(options["labels"]))
    items = Vocabulary(np.arange(options["items"]))
    frame = pl.DataFrame(
        {
            "user": np.repeat(np.arange(len(history)), 140),
            "item": history.ravel(),
            "rating": ratings.ravel(),
        }
    )
    data = Dataset(Interactions.from_frame(frame), Labels(items, names, states_of(options)))
    shown = Recommendations(np.arange(len(lists)), lists.astype(np.int32), items)
    times = []
    for _ in range(5):
        started = time.process_time()
        rows = Amplification(k=options["k"]).measure(shown, data)
        times.append(time.process_time() - started)
    np.savez(options["out"], value=rows.columns["value"])
    return {"cpu": min(times)}


def amplification_pandas(options: Mapping[str, Any]) -> dict[str, Any]:
    import pandas as pd

    history, ratings, lists = users_of(options)
    n = options["peer_users"]
    labels = [f"w{w}" for w in range(options["labels"])]
    sensitivity = pd.DataFrame(states_of(options) == 1, columns=labels)
    sensitivity["item"] = np.arange(options["items"])
    interactions = pd.DataFrame(
        {
            "user": np.repeat(np.arange(len(history)), 140),
            "item": history.ravel(),
            "rating": ratings.ravel(),
        }
    )
    shown = pd.DataFrame(
        {"user": np.repeat(np.arange(len(lists)), options["k"]), "item": lists.ravel()}
    )
    started = time.process_time()
    rows = []
    for user in range(n):
        mine = interactions[interactions["user"] == user]
        relevant = mine[mine["rating"] >= mine["rating"].quantile(0.75)]
        past = relevant.merge(sensitivity, on="item", how="left")[labels]
        listed = shown[shown["user"] == user].merge(sensitivity, on="item", how="left")[labels]
        before = past.sum() / len(past)
        before[before == 0] = 1 / (len(past) + 1)
        rows.append(listed.sum() / options["k"] / before - 1)
    found = pd.DataFrame(rows)
    measured = time.process_time() - started
    np.savez(options["out"], value=found.to_numpy(dtype=float))
    scale = options["users"] / n
    return {"cpu": measured * scale, "measured": measured, "scale": scale}


CASES = {
    "permutation_ombud": permutation_ombud,
    "permutation_pandas": permutation_pandas,
    "amplification_ombud": amplification_ombud,
    "amplification_pandas": amplification_pandas,
}


def agreement(folder: Path, options: Mapping[str, Any]) -> dict[str, float]:
    """Compare results: differences and amplification number by number, p-values by chance."""
    one, other = (np.load(folder / f"permutation_{side}.npz") for side in ("ombud", "pandas"))
    p = np.clip((one["p"] + other["p"]) / 2, 0.002, 0.998)
    error = np.sqrt(p * (1 - p) * (1 / options["permutations"] + 1 / options["peer_permutations"]))
    fast, slow = (
        np.load(folder / f"amplification_{side}.npz")["value"] for side in ("ombud", "pandas")
    )
    return {
        "permutation_difference_max_gap": float(
            np.abs(one["difference"] - other["difference"]).max()
        ),
        "permutation_p_rms_gap_in_standard_errors": float(
            np.sqrt(np.mean(((one["p"] - other["p"]) / error) ** 2))
        ),
        "amplification_max_gap": float(np.abs(fast[: len(slow)] - slow).max()),
    }


def run(script: str) -> None:
    """Run the benchmark, or the one case that the command line names."""
    if sys.argv[1:2] == ["--case"]:
        main_of_case(CASES)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run pandas on a part and scale up")
    quick = parser.parse_args().quick
    peer = PEER["quick" if quick else "full"]
    options: dict[str, Any] = dict(SIZES) | {f"peer_{name}": n for name, n in peer.items()}
    print(f"{options}", flush=True)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what in ("permutation", "amplification"):
            found = {}
            for side in ("ombud", "pandas"):
                case = f"{what}_{side}"
                out = {"out": str(folder / f"{case}.npz")}
                found[side] = measure(script, case, options | out)
            theirs, ours = found["pandas"], found["ombud"]
            if theirs["scale"] > 1:
                print(f"    (pandas: {theirs['measured']:.1f} s measured x {theirs['scale']:.0f})")
            figures[f"{what}_vs_pandas"] = theirs["cpu"] / ours["cpu"]
            figures[f"{what}_cpu"] = ours["cpu"]
            figures[f"{what}_cpu_pandas"] = theirs["cpu"]
            figures[f"{what}_mib"] = ours["mib"]
            figures[f"{what}_mib_pandas"] = theirs["mib"]
            print(f"  {what}: pandas takes {figures[f'{what}_vs_pandas']:.0f} times the CPU time")
        figures |= agreement(folder, options)
    finish("warnings", figures)
