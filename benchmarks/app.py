"""The annotation app under load and under kill -9, and alpha against the `krippendorff` package.

    python benchmarks/app.py            50 raters for 5 minutes, 30 kills, 100,000 ratings
    python benchmarks/app.py --quick    under a minute
    python benchmarks/app.py --people   load and kills alone

Load: raters click about once a second each, far faster than people; an answer's time is from
sending a click to having the next text, with the click on disk. Kills: raters click without pause
and the server is killed at random moments; what was confirmed must be there, once. List: the CPU
time of the list of results.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from _app_load import Outcome, Server, check, kill_at_random_moments, make_project, rate_for
from _delicate_agreement import CASES, LEVELS
from _isolated import finish, main_of_case, measure
from ombud.app.web.result_pages import find_results
from ombud.audits import Audit
from ombud.metrics import ShareGap
from ombud.worlds import small_world


def load(folder: Path, raters: int, seconds: float, think: float) -> Outcome:
    people = make_project(folder, texts=max(200, int(raters * seconds)), raters=raters)
    outcome = Outcome()
    server = Server(folder)
    try:
        rate_for(people, server.url, seconds, think, outcome)
    finally:
        server.stop()
    check(folder, people, outcome)
    return outcome


def agreement(quick: bool) -> dict[str, float]:
    options = {
        "ratings": 30_000 if quick else 99_999,
        "replicates": 1_000,
        "peer_replicates": 10 if quick else 100,
    }
    print(f"agreement: {options}", flush=True)
    ours = measure(__file__, "agreement_ombud", options)
    theirs = measure(__file__, "agreement_krippendorff", options)
    for level in LEVELS:
        print(
            f"    {level}: {ours[f'{level}_value']:.6f} [{ours[f'{level}_low']:.4f}, "
            f"{ours[f'{level}_high']:.4f}] and {theirs[f'{level}_value']:.6f} "
            f"[{theirs[f'{level}_low']:.4f}, {theirs[f'{level}_high']:.4f}]"
        )
    worst = max(abs(ours[f"{lv}_value"] - theirs[f"{lv}_value"]) for lv in LEVELS)
    if worst > 1e-9:
        raise SystemExit(f"the alphas differ by {worst:g}")
    ratio = theirs["cpu"] / ours["cpu"]
    print(f"  agreement: {ratio:.1f} times the CPU time of ombud for krippendorff")
    return {"agreement_vs_krippendorff": ratio, "agreement_difference": worst}


def listing(folder: Path) -> dict[str, float]:
    """Return the CPU seconds of a list of 200 results with 20,000 estimates each."""
    world = small_world(seed=2)
    audit = Audit(world.dataset, [world.recommenders()[1]], [ShareGap(k=10)])
    first = folder / "0"
    audit.run(first)
    content = json.loads((first / "estimates.json").read_text())
    content["estimates"] = [content["estimates"][i % 5] for i in range(20_000)]
    (first / "estimates.json").write_text(json.dumps(content))
    for number in range(1, 200):
        shutil.copytree(first, folder / str(number), copy_function=os.link)
    start = time.process_time()
    found = find_results(folder)
    seconds = time.process_time() - start
    if [entry.answer for entry in found] != ["yes"] * 200:
        raise SystemExit("the list lacks verdicts")
    print(f"  list: 200 results, {seconds:.3f} CPU s")
    return {"list_cpu_s": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--people", action="store_true", help="load and kills alone")
    quick = (given := parser.parse_args()).quick
    figures = {} if given.people else agreement(quick)
    with tempfile.TemporaryDirectory() as folder:
        figures |= listing(Path(folder) / "list")
        raters, seconds, kills = (10, 10.0, 3) if quick else (50, 300.0, 30)
        print(f"load: {raters} raters, {seconds:g} s", flush=True)
        found = load(Path(folder) / "load", raters, seconds, think=1.0)
        print(
            f"  load: {len(found.times):,} clicks, {found.stored:,} ratings, lost {found.lost}, "
            f"doubled {found.doubled}; answer time median {1000 * found.quantile(0.5):.1f} ms, "
            f"p99 {1000 * found.quantile(0.99):.1f} ms, most {1000 * max(found.times):.1f} ms",
            flush=True,
        )
        figures |= {
            "load_clicks": len(found.times),
            "load_lost": found.lost,
            "load_doubled": found.doubled,
            "load_p50_ms": 1000 * found.quantile(0.5),
            "load_p99_ms": 1000 * found.quantile(0.99),
        }
        print(f"kill -9: {kills} times", flush=True)
        people = make_project(Path(folder) / "kill", texts=60_000, raters=8)
        killed = kill_at_random_moments(Path(folder) / "kill", people, kills)
        told = sum(len(rater.stored) for rater in people)
        print(
            f"  kill: {told:,} ratings confirmed, {killed.stored:,} stored, lost {killed.lost}, "
            f"doubled {killed.doubled}"
        )
        figures |= {
            "kill_confirmed": told,
            "kill_lost": killed.lost,
            "kill_doubled": killed.doubled,
        }
    finish("app", figures)


if __name__ == "__main__":
    if "--case" in sys.argv[1:2]:
        main_of_case(CASES)
    else:
        main()
