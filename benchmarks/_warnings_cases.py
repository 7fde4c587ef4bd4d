"""What `warnings.py` compares: the same definitions, by ombud and as others write them.

Permutation: for each of 137 labels, the difference in mean popularity between items with it and
items without it, and its p-value from 1,000 permutations, over 33,000 items of which votes decide
about one in five (the published data set's shares). Amplification@100 of 1,000 users and 137
labels: top quartile of ratings, imaginary item where the label is absent.

Peers of the permutation test:

- ``numba``: a compiled loop, k steps of Fisher-Yates for each draw;
- ``numpy``: all labels share a block of random keys, `numpy.partition` chooses the items;
- ``gemm``: values permuted over all items, one matrix product for all labels. It tests another
  hypothesis, because items of which a label is unknown take part, and is shown for its speed;
- ``pandas``: one DataFrame resampled per permutation, as a researcher writes it first.

Peers of amplification: ``sparse`` (sparse matrices of users times a dense table of labels),
``sparse_sparse`` (both sparse), both with the share of recommendations and histories that is
labeled, which ombud reports beside each number; ``half_stars`` is ``sparse`` with a faster sort
that only ratings in half stars allow (ombud takes any); ``sparse_values`` (the sparse product of
the trial in which ombud took twice as long) and ``pandas`` (one merge per user and side) compute
amplification alone.

Shares: for each of the same users and labels, the share of their list that carries the label minus
that of their whole history, among items of which the label is known. Peers: ``sparse`` (sparse
matrices times dense tables) with the labeled shares, ``sparse_values`` without.

Peers of the test compute differences and p-values alone; the time of ombud's test includes
Welch's interval and the rank-based effect size that it always gives. With ``--quick`` pandas runs a
named part of the permutations and of the users, and its CPU time is scaled up in proportion, which
the output says; at full size it runs whole. Every case runs in a process of its own with one
thread, in three rounds of all cases, so that the load of others meets all alike; the least CPU time
counts. Memory is the peak while computing, over what the process held when its input was ready.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from _isolated import finish, main_of_case, measure

SEED = 20261115
SIZES = {"items": 33_000, "labels": 137, "permutations": 1000, "users": 1000, "k": 100}
MANY = 10_000
PEER = {"quick": {"permutations": 20, "users": 100}, "full": {"permutations": 1000, "users": 1000}}
ROUNDS = 3
SLOW = ("numpy", "pandas")


def memory(key: str) -> float:
    """Return a figure of this process in MiB; NaN where the system does not say."""
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    return int(text.split(key + ":")[1].split()[0]) / 1024


def timed(function: Callable[[], Any], repeats: int) -> tuple[Any, dict[str, float]]:
    """Return a result with its least CPU seconds and the memory it needed beyond its input."""
    function() if repeats > 1 else None  # imports and caches
    gc.collect()
    base = float("nan")
    if sys.platform == "linux":
        # Give freed memory back, so that it counts when it is used, and start the peak anew.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        try:
            Path("/proc/self/clear_refs").write_text("5")
            base = memory("VmRSS")
        except OSError:
            pass
    times, found, peak = [], None, float("nan")
    for index in range(repeats):
        found = None
        started = time.process_time()
        found = function()
        times.append(time.process_time() - started)
        if not index:
            peak = memory("VmHWM")
    return found, {"cpu": min(times), "over_data": peak - base}


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


def tested_of(options: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return popularity_of(options), np.maximum(states_of(options), -1)


def permutation_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.stats.permutation import label_tests

    values, states = tested_of(options)
    found, cost = timed(
        lambda: label_tests(
            values, states, permutations=options["permutations"], rng=np.random.default_rng(1)
        ),
        3,
    )
    np.savez(options["out"], difference=found.difference, p=found.p)
    return cost


def known_values(values: np.ndarray, column: np.ndarray) -> tuple[np.ndarray, int, float, float]:
    """Return centered values, smaller group first; its size; what is extreme; the difference."""
    yes, no = values[column == 1], values[column == 0]
    both = np.concatenate(sorted((yes, no), key=len))
    both -= both.mean()
    k = min(len(yes), len(no))
    return both, k, abs(both[:k].sum()) * (1 - 1e-12), yes.mean() - no.mean()


def permutation_numba(options: Mapping[str, Any]) -> dict[str, Any]:
    import numba

    @numba.njit
    def extremes(both, k, draws, limit, state):  # type: ignore[no-untyped-def]
        extreme = 0
        for _ in range(draws):
            total = 0.0
            for i in range(k):
                # xorshift64*, and Lemire's reduction of its upper 32 bits
                state ^= state >> np.uint64(12)
                state ^= state << np.uint64(25)
                state ^= state >> np.uint64(27)
                upper = (state * np.uint64(2685821657736338717)) >> np.uint64(32)
                j = i + np.int64((upper * np.uint64(len(both) - i)) >> np.uint64(32))
                value = both[j]
                both[j] = both[i]
                both[i] = value
                total += value
            if abs(total) >= limit:
                extreme += 1
        return extreme

    values, states = tested_of(options)

    def test() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(2)
        difference, p = np.empty((2, options["labels"]))
        for label, column in enumerate(np.ascontiguousarray(states.T)):
            both, k, limit, difference[label] = known_values(values, column)
            seed = np.uint64(rng.integers(1, 2**63))
            extreme = extremes(both, k, options["permutations"], limit, seed)
            p[label] = (extreme + 1) / (options["permutations"] + 1)
        return difference, p

    extremes(np.zeros(4), 2, 1, 0.0, np.uint64(1))  # compiled before the time is taken
    found, cost = timed(test, 3 if options["permutations"] <= 1000 else 1)
    np.savez(options["out"], difference=found[0], p=found[1])
    return cost


def weights_of(states: np.ndarray) -> np.ndarray:
    """Items x labels such that values @ weights is mean of yes minus mean of no."""
    yes, no = states == 1, states == 0
    return yes / yes.sum(axis=0) - no / no.sum(axis=0)


def permutation_numpy(options: Mapping[str, Any]) -> dict[str, Any]:
    values, states = tested_of(options)

    def test() -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(3)
        parts = []
        for column in np.ascontiguousarray(states.T):
            items = np.flatnonzero(column >= 0)
            yes, centered = column[items] == 1, values[items] - values[items].mean()
            k = int(min(yes.sum(), len(items) - yes.sum()))
            limit = abs(centered[yes].sum()) * (1 - 1e-6)
            parts.append((items, k, centered.astype(np.float32), limit))
        extreme = np.zeros(len(parts), dtype=np.int64)
        for start in range(0, options["permutations"], 32):
            rows = min(32, options["permutations"] - start)
            keys = rng.random((rows, len(values)), dtype=np.float32)
            for label, (items, k, centered, limit) in enumerate(parts):
                own = keys.take(items, axis=1)
                edge = np.partition(own, k - 1, axis=1)[:, k - 1 : k]
                chosen = (own <= edge).astype(np.float32)
                extreme[label] += np.count_nonzero(np.abs(chosen @ centered) >= limit)
        return values @ weights_of(states), (extreme + 1) / (options["permutations"] + 1)

    found, cost = timed(test, 1)
    np.savez(options["out"], difference=found[0], p=found[1])
    return cost


def permutation_gemm(options: Mapping[str, Any]) -> dict[str, Any]:
    values, states = tested_of(options)

    def test() -> tuple[np.ndarray, np.ndarray]:
        rng, weights = np.random.default_rng(4), weights_of(states)
        observed = values @ weights
        limit = np.abs(observed) * (1 - 1e-12)
        extreme = np.zeros(len(observed), dtype=np.int64)
        shuffled = np.empty((128, len(values)))
        for start in range(0, options["permutations"], 128):
            part = shuffled[: min(128, options["permutations"] - start)]
            part[:] = values
            rng.permuted(part, axis=1, out=part)
            extreme += (np.abs(part @ weights) >= limit).sum(axis=0)
        return observed, (extreme + 1) / (options["permutations"] + 1)

    found, cost = timed(test, 3)
    np.savez(options["out"], difference=found[0], p=found[1])
    return cost


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


def measured_by_ombud(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    import polars as pl

    from ombud.data.dataset import Dataset
    from ombud.data.ids import Vocabulary
    from ombud.data.interactions import Interactions
    from ombud.data.labels import Labels
    from ombud.data.recommendations import Recommendations
    from ombud.metrics import ShareGap
    from ombud.questions.warnings.amplification.metric import Amplification

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
    interactions, states = Interactions.from_frame(frame), states_of(options)
    shown = Recommendations(np.arange(len(lists)), lists.astype(np.int32), items)
    asked = {"amplification": Amplification, "shares": ShareGap}[name](k=options["k"])

    def value() -> Any:
        # New labels each time: what one measurement stores with them would speed up the next.
        return asked.measure(shown, Dataset(interactions, Labels(items, names, states)))

    rows, cost = timed(value, 25)
    labeled = [
        [rows.details[label].get(name, 1.0) for label in rows.labels]
        for name in ("labeled_recommended", "labeled_history")
    ]
    np.savez(options["out"], value=rows.columns["value"], labeled=labeled)
    return cost


def amplification_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    return measured_by_ombud("amplification", options)


def shares_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    return measured_by_ombud("shares", options)


def shares_by_products(options: Mapping[str, Any], denominators: bool) -> dict[str, Any]:
    """Share of each label among known items of a list, minus that of the user's history."""
    history, _, lists = users_of(options)
    states, users = states_of(options), options["users"]

    def value() -> tuple[np.ndarray, Any]:
        carried, known = (states == 1).view(np.uint8), (states >= 0).view(np.uint8)
        shares, labeled = [], []
        for side in (lists, history):
            ends = np.arange(0, side.size + 1, side.shape[1])
            matrix: Any = sparse.csr_array(
                (np.ones(side.size, np.uint8), side.ravel(), ends), (users, options["items"])
            )
            counted = matrix @ known
            with np.errstate(invalid="ignore"):
                shares.append((matrix @ carried) / counted)
            if denominators:
                labeled.append((counted / side.shape[1]).mean(axis=0))
        return shares[0] - shares[1], labeled

    found, cost = timed(value, 25)
    np.savez(options["out"], value=found[0], labeled=found[1])
    return cost


def shares_sparse(options: Mapping[str, Any]) -> dict[str, Any]:
    return shares_by_products(options, denominators=True)


def shares_sparse_values(options: Mapping[str, Any]) -> dict[str, Any]:
    return shares_by_products(options, denominators=False)


def upper_quartiles(ratings: sparse.csr_array, half_stars: bool) -> np.ndarray:
    """Return for each rating the 75th percentile of its user, as `numpy.quantile` defines it.

    With `half_stars`, which only such ratings allow, user and rating are sorted as one integer.
    """
    starts, lengths = ratings.indptr, np.diff(ratings.indptr)
    rows = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
    if half_stars:
        key = rows * 16 + (ratings.data * 2).astype(np.int32)
        key.sort()
        ordered = (key % 16) / 2
    else:
        ordered = ratings.data[np.lexsort((ratings.data, rows))]
    at = 0.75 * (lengths - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, lengths - 1)
    below, above = ordered[starts[:-1] + low], ordered[starts[:-1] + high]
    return np.repeat(below + (at - low) * (above - below), lengths)


def amplification_by_products(
    options: Mapping[str, Any], dense: bool, denominators: bool = True, half_stars: bool = False
) -> dict[str, Any]:
    history, stars, lists = users_of(options)
    states, users, k = states_of(options), options["users"], options["k"]
    shape = (users, options["items"])
    starts = np.arange(0, stars.size + 1, stars.shape[1])
    ratings = sparse.csr_array(
        (stars.ravel(), history.ravel().astype(np.int32), starts), shape=shape
    )

    def value() -> tuple[np.ndarray, Any]:
        top = ratings.data >= upper_quartiles(ratings, half_stars) - 1e-9
        own = np.concatenate([[0], np.cumsum(top)])[ratings.indptr]
        kind = np.uint8 if dense else np.int16
        carried: Any = (states == 1).view(np.uint8)
        if not dense:
            carried = sparse.csr_array(states == 1, dtype=kind)
        past: Any = sparse.csr_array((np.ones(own[-1], kind), ratings.indices[top], own), shape)
        ends = np.arange(0, lists.size + 1, k)
        shown: Any = sparse.csr_array((np.ones(lists.size, kind), lists.ravel(), ends), shape)
        before, now = past @ carried, shown @ carried
        if not dense:
            before, now = before.toarray(), now.toarray()
        n = np.diff(own)[:, None]
        values = now / k / np.where(before == 0, 1 / (n + 1), before / n) - 1
        if not denominators:
            return values, None
        known = (states >= 0).view(np.uint8)
        labeled = [(part @ known / many).mean(axis=0) for part, many in ((shown, k), (past, n))]
        return values, labeled

    found, cost = timed(value, 25)
    labeled = [] if found[1] is None else found[1]
    np.savez(options["out"], value=found[0], labeled=labeled)
    return cost


def amplification_sparse(options: Mapping[str, Any]) -> dict[str, Any]:
    return amplification_by_products(options, dense=True)


def amplification_half_stars(options: Mapping[str, Any]) -> dict[str, Any]:
    return amplification_by_products(options, dense=True, half_stars=True)


def amplification_sparse_values(options: Mapping[str, Any]) -> dict[str, Any]:
    return amplification_by_products(options, dense=True, denominators=False)


def amplification_sparse_sparse(options: Mapping[str, Any]) -> dict[str, Any]:
    return amplification_by_products(options, dense=False)


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
    f"{what}_{side}": globals()[f"{what}_{side}"]
    for what, sides in (
        ("permutation", ("ombud", "numba", "gemm", "numpy", "pandas")),
        (
            "amplification",
            ("ombud", "sparse", "half_stars", "sparse_sparse", "sparse_values", "pandas"),
        ),
        ("shares", ("ombud", "sparse", "sparse_values")),
    )
    for side in sides
}


def agreement(folder: Path, options: Mapping[str, Any]) -> dict[str, float]:
    """Compare results: differences and amplification number by number, p-values by chance."""
    figures = {}
    one = np.load(folder / "permutation_ombud.npz")
    for side in ("numba", "numpy", "pandas"):
        other = np.load(folder / f"permutation_{side}.npz")
        drawn = options["peer_permutations" if side == "pandas" else "permutations"]
        p = np.clip((one["p"] + other["p"]) / 2, 0.002, 0.998)
        error = np.sqrt(p * (1 - p) * (1 / options["permutations"] + 1 / drawn))
        end = "" if side == "pandas" else f"_{side}"
        figures[f"permutation_difference_max_gap{end}"] = float(
            np.abs(one["difference"] - other["difference"]).max()
        )
        figures[f"permutation_p_rms_gap_in_standard_errors{end}"] = float(
            np.sqrt(np.mean(((one["p"] - other["p"]) / error) ** 2))
        )
    value = np.load(folder / "amplification_ombud.npz")["value"]
    for side in ("sparse", "half_stars", "sparse_sparse", "sparse_values", "pandas"):
        theirs = np.load(folder / f"amplification_{side}.npz")["value"]
        end = "" if side == "pandas" else f"_{side}"
        gap = float(np.abs(value[: len(theirs)] - theirs).max())
        figures[f"amplification_max_gap{end}"] = gap
    shares = [np.load(folder / f"shares_{side}.npz") for side in ("ombud", "sparse")]
    figures["shares_max_gap_sparse"] = float(
        np.nanmax(np.abs(np.subtract(*[s["value"] for s in shares])))
    )
    for what in ("amplification", "shares"):
        one, other = (
            np.load(folder / f"{what}_{side}.npz")["labeled"] for side in ("ombud", "sparse")
        )
        figures[f"{what}_labeled_max_gap_sparse"] = float(np.abs(one - other).max())
    return figures


def rounds(
    script: str, cases: list[str], options: Mapping[str, Any], folder: Path
) -> dict[str, dict[str, Any]]:
    """Run all cases, then all again; return the least CPU time and the most memory of each."""
    found: dict[str, dict[str, Any]] = {}
    for index in range(ROUNDS):
        for case in cases:
            if index and case.endswith(SLOW):
                continue
            out = {"out": str(folder / f"{case}.npz")}
            cost = measure(script, case, dict(options) | out)
            best = found.setdefault(case, cost)
            best["cpu"] = min(best["cpu"], cost["cpu"])
            for name in {"mib", "over_data"} & best.keys():
                best[name] = max(best[name], cost[name])
    return found


def run(script: str) -> None:
    """Run the benchmark, or the one case that the command line names."""
    if sys.argv[1:2] == ["--case"]:
        main_of_case(CASES)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="run pandas on a part and scale up")
    quick = parser.parse_args().quick
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ[name] = "1"
    peer = PEER["quick" if quick else "full"]
    options: dict[str, Any] = dict(SIZES) | {f"peer_{name}": n for name, n in peer.items()}
    print(f"{options}", flush=True)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what in ("permutation", "amplification", "shares"):
            cases = [case for case in CASES if case.startswith(what)]
            found = rounds(script, cases, options, folder)
            ours = found[f"{what}_ombud"]
            figures |= {f"{what}_cpu": ours["cpu"], f"{what}_mib": ours["mib"]}
            figures[f"{what}_over_data_mib"] = ours["over_data"]
            for case in cases[1:]:
                side, theirs = case.removeprefix(f"{what}_"), found[case]
                ratio = theirs["cpu"] / ours["cpu"]
                figures[f"{what}_vs_{side}"] = ratio
                figures[f"{what}_cpu_{side}"] = theirs["cpu"]
                figures[f"{what}_mib_{side}"] = theirs["mib"]
                needs = ""
                if "over_data" in theirs:
                    figures[f"{what}_over_data_mib_{side}"] = theirs["over_data"]
                    needs = (
                        f", memory over the data {theirs['over_data']:.0f} MiB"
                        f" (ombud {ours['over_data']:.0f} MiB)"
                    )
                part = ""
                if theirs.get("scale", 1) > 1:
                    part = f" ({theirs['measured']:.1f} s measured x {theirs['scale']:.0f})"
                print(f"  {what}: {side} takes {ratio:.2f} times the CPU time{part}{needs}")
        figures |= agreement(folder, options)
        many = dict(options) | {"permutations": MANY}
        found = rounds(script, ["permutation_ombud", "permutation_numba"], many, folder)
        ratio = found["permutation_numba"]["cpu"] / found["permutation_ombud"]["cpu"]
        figures[f"permutation_vs_numba_{MANY}"] = ratio
        print(f"  permutation, {MANY:,} draws: numba takes {ratio:.2f} times the CPU time")
    finish("warnings", figures)
