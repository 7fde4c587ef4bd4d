"""Histories and futures: the design of Curmei, Dean & Recht (2021) on MovieLens.

A person may give any ratings to m items, of their own history (*history*) or new ones (*future*);
how probable can an item be made when the first item is drawn by softmax? Every problem is convex
and solved to a proved optimum. Printed: for each model, kind and m, the median over people of the
mean log-lift, the median gain, rank today and at best, and the rank correlation over items of an
item's mean log-lift with its popularity.

    python examples/counterfactual/histories_and_futures.py data/movielens-1m --users 20

Curmei, Dean & Recht (2021), "Quantifying availability and discovery in recommender systems via
stochastic reachability", ICML.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ombud.probes.affine import AffineScores, affine_scores, most_probable
from ombud.probes.distances import probabilities
from ombud.probes.edits import History
from ombud.probes.models import open_box
from ombud.probes.stability_estimates import rank_correlation
from ombud.registry import create

MODELS = {
    "SVD": ("svd", {"factors": 32, "seed": 1}),
    "ALS ratings": ("explicit-als", {"factors": 32, "seed": 1}),
    "Item kNN": ("item-knn", {}),
    "EASE": ("ease", {}),
}


def action_sets(
    history: History, n_items: int, most: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Return items of the history, and new ones, in random order: the first m are the set of m."""
    new = np.setdiff1d(np.arange(n_items), history.items)
    return {
        "history": rng.permutation(history.items)[:most].astype(np.int32),
        "future": rng.permutation(new)[:most].astype(np.int32),
    }


def ranks(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the rank of some candidates, from 1, for one row of scores each."""
    return (scores > scores[np.arange(len(places)), places][:, None]).sum(axis=1) + 1


def of_user(
    box: Any, history: History, goals: np.ndarray, sets: dict[str, np.ndarray], options: Any
) -> Iterator[dict[str, Any]]:
    """Yield one row for each kind, m, beta and goal."""
    for kind, items in sets.items():
        for m in options.m:
            scores: AffineScores = affine_scores(box, history, np.sort(items[:m]), *options.scale)
            now = box.scores([history])[0][scores.candidates]
            place = {int(item): p for p, item in enumerate(scores.candidates.tolist())}
            wanted = [int(g) for g in goals if int(g) in place and np.isfinite(now[place[int(g)]])]
            places = np.array([place[g] for g in wanted], np.int64)
            if not len(places):
                continue
            for beta in options.beta:
                start = scores.today if kind == "history" else None
                found = most_probable(scores, places, beta, start=start)
                today = probabilities(now[None], beta, nothing=0.0)[0]
                best = ranks(scores.at(found.values), places)
                before = ranks(np.tile(now, (len(places), 1)), places)
                for row, goal in enumerate(wanted):
                    yield {
                        "kind": kind, "m": m, "beta": beta, "item": goal,
                        "today": float(today[places[row]]),
                        "best": float(np.exp(found.log_probability[row])),
                        "lift": float(found.log_probability[row] - np.log(today[places[row]])),
                        "rank_today": int(before[row]), "rank_best": int(best[row]),
                        "gap": float(found.gap[row]),
                    }  # fmt: skip


def run(options: Any) -> pl.DataFrame:
    """Solve all problems of all models and return one row each."""
    data = create("source", "movielens", {"path": options.path}).interactions
    options.scale = data.rating_scale
    lengths = np.diff(data.matrix.indptr)
    rng = np.random.default_rng(options.seed)
    able = np.flatnonzero(lengths >= max(options.m))
    people = rng.choice(able, min(options.users, len(able)), replace=False)
    goals = rng.choice(data.n_items, min(options.goals, data.n_items), replace=False)
    rows = []
    for name, (kind, given) in MODELS.items():
        model = create("recommender", kind, given).fit(data)
        box, started = open_box(model), time.process_time()
        before = len(rows)
        for user in people.tolist():
            history = History.of_user(data, user)
            own = np.random.default_rng([options.seed, user])
            sets = action_sets(history, data.n_items, max(options.m), own)
            for row in of_user(box, history, goals, sets, options):
                rows.append({"model": name, "user": user, **row})
        cpu = time.process_time() - started
        count = max(len(rows) - before, 1)
        print(f"{name}: {count:,} problems, {1e3 * cpu / count:.2f} CPU ms each", flush=True)
    popularity = np.bincount(data.matrix.indices, minlength=data.n_items)
    return pl.DataFrame(rows).with_columns(
        popularity=pl.Series(popularity[[row["item"] for row in rows]])
    )


def summary(found: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each model, kind, m and beta."""
    by = ["model", "kind", "m", "beta"]
    rows = []
    for key, part in found.group_by(by, maintain_order=True):
        users = part.group_by("user").agg(pl.col("lift").mean())
        items = part.group_by("item").agg(pl.col("lift").mean(), pl.col("popularity").first())
        told = rank_correlation(
            items["popularity"].to_numpy().astype(float), items["lift"].to_numpy()
        )
        rows.append(
            dict(zip(by, key, strict=True))
            | {
                "mean log-lift of a person, median": users["lift"].median(),
                "gain, mean": (part["best"] - part["today"]).mean(),
                "rank today": part["rank_today"].median(),
                "best rank": part["rank_best"].median(),
                "first": (part["rank_best"] == 1).mean(),
                "lift and popularity": told,
            }
        )
    return pl.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", help="a MovieLens folder or archive")
    parser.add_argument("--users", type=int, default=176)
    parser.add_argument("--goals", type=int, default=500)
    parser.add_argument("--m", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--beta", type=float, nargs="+", default=[1.0, 2.0, 4.0, 10.0])
    parser.add_argument("--seed", type=int, default=1)
    found = run(parser.parse_args())
    print(f"optima proved to {found['gap'].max():.1e} (log-probability)")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=160, float_precision=3):
        print(summary(found))


if __name__ == "__main__":
    main()
