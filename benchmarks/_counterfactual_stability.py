"""Stability: influence of every other user by formula, and by training again, on the same data.

One case, `influence_vs_retrain`, for `benchmarks/counterfactual.py`; run alone it prints a table:

    python benchmarks/_counterfactual_stability.py [--quick]

For each model the influence of all users on a few targets is computed by formula (setup
included), and a few users, half of them those ranked first, are really removed and the model is
trained again: anew, and from where it stands with a control. CPU seconds of one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from _isolated import finish, main_of_case, measure
from _recommenders_data import load

SEED = 20261115
TARGETS = 4
PASSES = 4


def models() -> dict[str, Any]:
    from ombud.systems.recommenders import EASE, SVD, ExplicitALS, ImplicitALS, ItemKNN, UserKNN

    return {
        "explicit-als": ExplicitALS(factors=16, iterations=15, regularization=0.1, threads=1),
        "implicit-als": ImplicitALS(factors=32, iterations=15, regularization=1.0, threads=1),
        "svd": SVD(factors=16, epochs=20, threads=1),
        "ease": EASE(regularization=250.0),
        "user-knn": UserKNN(threads=1),
        "item-knn": ItemKNN(threads=1),
    }


def interactions(size: str, explicit: bool) -> Any:
    from ombud.data.ids import Vocabulary
    from ombud.data.interactions import Interactions

    data = load(size)
    matrix = data.matrix(explicit)
    from scipy import sparse

    rows = sparse.csr_array(matrix)
    users, items = (Vocabulary(np.arange(n)) for n in rows.shape)
    scale = (float(data.ratings.min()), float(data.ratings.max())) if explicit else None
    return Interactions(users, items, rows, explicit, scale)


def softmax_tv(before: np.ndarray, after: np.ndarray, beta: float) -> np.ndarray:
    from ombud.probes.distances import probabilities, total_variation

    return total_variation(probabilities(before, beta), probabilities(after, beta))


def scores_of(model: Any, data: Any, rows: list[int]) -> np.ndarray:
    from ombud.probes.influence import masked

    found = model.score(data.users.take(np.array(rows)), data.items.arrow)
    return np.array([masked(s, data, j) for s, j in zip(found, rows, strict=True)])


def influence_vs_retrain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return CPU seconds per candidate by formula and by training, and their rank correlation."""
    from ombud.probes.influence import predict
    from ombud.probes.models import influence_of
    from ombud.probes.others import OtherUsers, swapped
    from ombud.probes.stability_estimates import rank_correlation

    name = options["model"]
    data = interactions(options["size"], explicit=name not in {"implicit-als", "ease"})
    rng = np.random.default_rng(SEED)
    model = models()[name]
    trained = replace(model).fit(data)  # compiles too
    swaps = OtherUsers(data, "removed").removals()
    rows = sorted(rng.choice(data.n_users, options["targets"], replace=False).tolist())
    ranked = swaps if name != "item-knn" else swaps[: options["slow_candidates"]]
    influence = influence_of(trained)
    assert influence is not None
    predict(influence, data, rows[:1], swaps[:2])
    started = time.process_time()
    influence = influence_of(trained)
    assert influence is not None
    setup = time.process_time() - started
    started = time.process_time()
    first = predict(influence, data, rows[:TARGETS], ranked)
    per_candidate = (time.process_time() - started) / (TARGETS * len(ranked))
    per_candidate += setup / (TARGETS * len(swaps))
    best = np.argsort(-np.nan_to_num(first.moved), axis=0)[: options["removals"] // 8].T.ravel()
    others = rng.choice(len(swaps), options["removals"] // 2, replace=False)
    chosen = [swaps[number] for number in dict.fromkeys([*best.tolist(), *others.tolist()])]
    predicted = predict(influence, data, rows, chosen, beta=first.beta).moved
    base = scores_of(trained, data, rows)
    result: dict[str, Any] = {"setup": setup, "per_candidate": per_candidate}
    for how in ("cold", "warm") if hasattr(trained, "continued") else ("cold",):
        control = base if how == "cold" else scores_of(trained.continued(data, PASSES), data, rows)
        moved, cpu = np.empty(predicted.shape), 0.0
        for number, swap in enumerate(chosen):
            after = swapped(data, swap)
            started = time.process_time()
            again = trained.continued(after, PASSES) if how == "warm" else replace(model).fit(after)
            cpu += time.process_time() - started
            moved[number] = softmax_tv(control, scores_of(again, data, rows), first.beta)
        moved[np.isnan(predicted)] = np.nan
        result[f"{how}_cpu"] = cpu / len(chosen)
        result[f"{how}_ratio"] = cpu / len(chosen) / per_candidate
        result[f"{how}_correlation"] = rank_correlation(predicted.ravel(), moved.ravel())
        # The order of candidates for one target at a time, which is what the shortlist uses.
        each = [rank_correlation(p, m) for p, m in zip(predicted.T, moved.T, strict=True)]
        result[f"{how}_correlation_per_target"] = float(np.nanmean(each))
    return result


def figures(quick: bool, names: Sequence[str] = ("explicit-als", "ease")) -> dict[str, float]:
    """Return the named figures: `influence_vs_retrain` is that of explicit ALS, trained anew."""
    options = {
        "size": "tiny" if quick else "1m",
        "targets": 20 if quick else 100,
        "removals": 16 if quick else 24,
        "slow_candidates": 40,
    }
    result: dict[str, float] = {}
    for name in names:
        found = measure(__file__, "influence_vs_retrain", options | {"model": name})
        for key, value in found.items():
            if key not in {"cpu", "mib"}:
                result[f"influence_{name}_{key}"] = value
        line = ", ".join(f"{key} {value:.4g}" for key, value in found.items())
        print(f"{name}: {line}", flush=True)
        if name == "explicit-als":
            result["influence_vs_retrain"] = found["cold_ratio"]
            result["influence_rank_correlation"] = found["cold_correlation"]
    return result


def main() -> None:
    asked = [word for word in sys.argv[1:] if not word.startswith("-")]
    finish("_counterfactual_stability", figures("--quick" in sys.argv, asked or list(models())))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--case"]:
        main_of_case({"influence_vs_retrain": influence_vs_retrain})
    else:
        main()
