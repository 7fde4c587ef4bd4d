"""Recommenders side by side: ombud against Surprise, implicit and LensKit on the same data.

``make bench NAME=recommenders`` or ``python benchmarks/recommenders.py``. Every case runs ombud
and the peer one after the other, each alone in a fresh process with two threads, on the same
generated data. The table gives the peer's CPU time over ombud's (more is better for ombud), the
same for wall time, peak memory, and the quality of both on held-out data: RMSE for svd and eals,
recall@100 for the rest. Compilation is timed apart, on a small set. The last line is JSON.

Options: ``--quick`` (about a minute or two: 1m size, fewer users, and without LensKit, whose torch
takes minutes to install, unless ``--only`` names one of its cases), ``--size 1m|20m``,
``--only svd,ials``, ``--huge``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from _env import LIGHT_PEERS, PEERS, ROOT, ensure_env

HERE = Path(__file__).resolve().parent
THREADS = 2


@dataclass(frozen=True)
class Case:
    """What is compared, with whom, in which phase, and the ratio to reach."""

    figure: str
    peer: str
    phase: str
    target: float
    metric: str


CASES = {
    "svd": Case("svd_vs_surprise", "Surprise", "fit", 5.0, "RMSE"),
    "ials": Case("ials_vs_implicit", "implicit", "fit", 1.5, "recall"),
    "eals": Case("eals_vs_lenskit", "LensKit", "fit", 5.0, "RMSE"),
    "bpr": Case("bpr_vs_implicit", "implicit", "fit", 1.2, "recall"),
    "itemknn_fit": Case("itemknn_fit_vs_implicit", "implicit", "fit", 1.2, "recall"),
    "itemknn_rec": Case("itemknn_rec_vs_lenskit", "LensKit", "rec", 5.0, "recall"),
    "userknn_rec": Case("userknn_rec_vs_lenskit", "LensKit", "rec", 10.0, "recall"),
    "topn": Case("topn_vs_lenskit", "LensKit", "rec", 8.0, "recall"),
}


def run(python: Path | str, side: str, case: str, size: str, users: int) -> dict[str, float]:
    """Run one side of one case in a fresh process and return what it measured."""
    command = [str(python), str(HERE / "_recommenders_cases.py"), side, case, size]
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(THREADS)}
    if side == "ombud":
        environment["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run(
        [*command, str(users), str(THREADS)], capture_output=True, text=True, env=environment
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"{side} {case} failed:\n{done.stderr[-3000:]}")
    result: dict[str, float] = json.loads(lines[0].removeprefix("RESULT "))
    return result


def asked(case: str, size: str, quick: bool) -> int:
    """Return how many users are asked; LensKit's user-kNN takes about 0.4 s each on 20m."""
    if case == "userknn_rec":
        return 100 if size == "20m" or quick else 1000
    return 1000 if quick else 5000


def compare(case: str, size: str, quick: bool, peers: Path) -> dict[str, float]:
    """Run both sides, print the row of the table, and return the figures."""
    spec, users = CASES[case], asked(case, size, quick)
    ours = run(sys.executable, "ombud", case, size, users)
    theirs = run(peers, "peer", case, size, users)
    cpu = theirs[f"{spec.phase}_cpu"] / ours[f"{spec.phase}_cpu"]
    wall = theirs[f"{spec.phase}_wall"] / ours[f"{spec.phase}_wall"]
    what = f"{case} {spec.phase}" if spec.phase == "fit" else f"{case} ({users:,} users)"
    print(
        f"| {size} | {what} | {spec.peer} | {ours[f'{spec.phase}_cpu']:.2f} / "
        f"{theirs[f'{spec.phase}_cpu']:.2f} | {cpu:.2f}x (to reach {spec.target:g}x) | {wall:.2f}x "
        f"| {ours['peak_mib']:.0f} / {theirs['peak_mib']:.0f} | {spec.metric} "
        f"{ours['quality']:.4f} / {theirs['quality']:.4f} | {ours['jit_cpu']:.1f} |",
        flush=True,
    )
    name = spec.figure
    figures = {
        name: cpu,
        f"{name}_quality": ours["quality"],
        f"{name}_quality_peer": theirs["quality"],
        f"{name}_wall": wall,
        f"{name}_peak_mib": ours["peak_mib"],
        f"{name}_peak_mib_peer": theirs["peak_mib"],
    }
    if case == "itemknn_rec":
        figures["itemknn_fit_vs_lenskit"] = theirs["fit_cpu"] / ours["fit_cpu"]
        print(
            f"| {size} | itemknn fit | LensKit | {ours['fit_cpu']:.2f} / {theirs['fit_cpu']:.2f} | "
            f"{figures['itemknn_fit_vs_lenskit']:.2f}x (to reach 2x) | | | | |",
            flush=True,
        )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="1m size, fewer users, no LensKit")
    parser.add_argument("--size", choices=["tiny", "1m", "20m"], action="append")
    parser.add_argument("--only", help=f"of {', '.join(CASES)}, joined by commas")
    parser.add_argument("--huge", action="store_true", help="189M interactions, implicit ALS only")
    options = parser.parse_args()
    if options.huge:
        command = [sys.executable, str(HERE / "_recommenders_huge.py")]
        raise SystemExit(subprocess.run(command).returncode)
    cases = options.only.split(",") if options.only else list(CASES)
    if options.quick and not options.only:
        cases = [case for case in cases if CASES[case].peer != "LensKit"]
    light = all(CASES[case].peer != "LensKit" for case in cases)
    peers = ensure_env("light-peers", LIGHT_PEERS) if light else ensure_env("peers", PEERS)
    sizes = options.size or (["1m"] if options.quick else ["1m", "20m"])
    print("| size | case | peer | CPU s, ombud / peer | CPU ratio | wall ratio "
          "| peak MiB | quality, ombud / peer | compile s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    figures: dict[str, float] = {}
    for size in sizes:
        for case in cases:
            found = compare(case, size, options.quick, peers)
            suffix = "" if size == sizes[0] else f"_{size}"
            figures.update({f"{name}{suffix}": value for name, value in found.items()})
    print(json.dumps({"benchmark": "recommenders", "figures": figures}))


if __name__ == "__main__":
    main()
