"""Balanced reranking: all users at once against a plain loop over users and items.

    python benchmarks/_authors_rerank.py            5,000 users x 1,000 candidates, lists of 100
    python benchmarks/_authors_rerank.py --quick    the loop on 200 of the users, scaled up

Two identities (GreedyEQ, SingleEQ, GreedyReflect) and four (the quota rule). The loop walks the
remaining ranking from its top for every place, as the paper's algorithm does, on plain lists; its
answers must be the same.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from math import ceil, floor
from typing import Any

import numpy as np

from _isolated import finish, main_of_case, measure

SEED = 20261115
CASES_OF = {
    "GreedyEQ": (2, "greedy", False),
    "SingleEQ": (2, "single", False),
    "GreedyReflect": (2, "greedy", True),
    "quota of 4": (4, "greedy", False),
}


def rankings(options: Mapping[str, Any], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (a fifth unknown, identities at 3 : 1 : ...) and a target for each user."""
    groups, _, own = CASES_OF[name]
    rng = np.random.default_rng(SEED)
    shares = np.r_[0.2, 0.8 * np.r_[3, np.ones(groups - 1)] / (groups + 2)]
    shape = (options["users"], options["candidates"])
    codes = rng.choice(np.arange(-1, groups), shape, p=shares)
    target = np.full((shape[0], groups), 1 / groups)
    if own:
        target = rng.dirichlet(np.full(groups, 3.0), shape[0])
    return codes, target


def digest(order: np.ndarray) -> int:
    weights = np.random.default_rng(1).integers(1, 2**20, order.shape)
    return int((order * weights).sum())


def rerank_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.systems.rerankers.quota import choose_by_quota

    found: dict[str, Any] = {"cpu": 0.0}
    # Compiled, or read from numba's cache, before anything is timed.
    for take in ("greedy", "single"):
        choose_by_quota(np.zeros((2, 2), dtype=np.int64), [0.5, 0.5], 1, take=take)  # type: ignore[arg-type]
    for name, (_, take, _) in CASES_OF.items():
        codes, target = rankings(options, name)
        started = time.process_time()
        order = choose_by_quota(codes, target, options["n"], take=take).order  # type: ignore[arg-type]
        cpu = time.process_time() - started
        found["cpu"] += cpu
        found[name] = {"cpu": cpu, "digest": digest(order[: options["loop_users"]])}
    return found


def loop(codes: list[int], target: list[float], n: int, single: bool) -> list[int]:
    counts, known, chosen = [0] * len(target), 0, []
    remaining = list(enumerate(codes))

    def allowed(g: int) -> bool:
        if len(target) == 2:
            return counts[g] <= target[g] * known + 1e-9
        if counts[g] + 1 > ceil(target[g] * (known + 1) - 1e-9):
            return False
        for place in range(known + 1, n + 1):
            needed = 0
            for h, p in enumerate(target):
                needed += max(0, floor(p * place + 1e-9) - counts[h] - (h == g))
            if needed > place - known - 1:
                return False
        return True

    while len(chosen) < n:
        may = [allowed(g) for g in range(len(target))]
        at = 0
        while at < len(remaining) and remaining[at][1] >= 0 and not may[remaining[at][1]]:
            at += 1
        if at == len(remaining):
            break
        index, code = remaining[at]
        chosen.append(index)
        remaining = remaining[at + 1 :] if single else remaining[:at] + remaining[at + 1 :]
        if code >= 0:
            counts[code] += 1
            known += 1
    return chosen + [-1] * (n - len(chosen))


def rerank_python(options: Mapping[str, Any]) -> dict[str, Any]:
    scale = options["users"] / options["loop_users"]
    found: dict[str, Any] = {"cpu": 0.0}
    for name, (_, take, _) in CASES_OF.items():
        codes, target = rankings(options, name)
        part = slice(options["loop_users"])
        plain = list(zip(codes[part].tolist(), target[part].tolist(), strict=True))
        started = time.process_time()
        order = [loop(c, t, options["n"], take == "single") for c, t in plain]
        cpu = (time.process_time() - started) * scale
        found["cpu"] += cpu
        found[name] = {"cpu": cpu, "digest": digest(np.array(order))}
    return found


CASES = {"rerank_ombud": rerank_ombud, "rerank_python": rerank_python}


def rerank_vs_python(script: str, quick: bool) -> dict[str, float]:
    """Run both and return the named figures; `script` must hand `CASES` to `main_of_case`."""
    options = {"users": 5_000, "candidates": 1_000, "n": 100, "loop_users": 200 if quick else 5_000}
    print(f"rerank: {options}")
    ours = measure(script, "rerank_ombud", options)
    loops = measure(script, "rerank_python", options)
    figures = {"rerank_mib": ours["mib"]}
    ratios = {name: loops[name]["cpu"] / ours[name]["cpu"] for name in CASES_OF}
    # The rule that gains least is the one to be held to.
    figures["rerank_vs_python"] = min(ratios.values())
    for name in CASES_OF:
        if ours[name]["digest"] != loops[name]["digest"]:
            raise RuntimeError(f"{name}: the answers differ")
        figures[f"rerank_vs_python {name}"] = ratio = ratios[name]
        print(f"  {name}: {ours[name]['cpu']:.3f} and {loops[name]['cpu']:.2f} CPU s, {ratio:.0f}x")
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--case"]:
        main_of_case(CASES)
        return
    parser = argparse.ArgumentParser(description="Balanced reranking against a plain loop.")
    parser.add_argument("--quick", action="store_true")
    finish("authors_rerank", rerank_vs_python(__file__, parser.parse_args().quick))


if __name__ == "__main__":
    main()
