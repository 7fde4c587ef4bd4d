"""The authors study: linking, the propagation model, reranking, and the study as a whole.

    python benchmarks/authors.py            full size; the study on 870,000 users
    python benchmarks/authors.py --quick    the study on a thousandth of it; NUTS on 500 users
    python benchmarks/authors.py --only study --share 0.01
    python benchmarks/authors.py --only study --folder study    resumes after a kill

The parts can be run alone: ``_authors_link.py``, ``_authors_propagation.py`` (time by regime, and
against NUTS), ``_authors_rerank.py``; ``propagation_calibration.py`` shows that the propagation
model is calibrated. The study is the preset on a made world of GoodReads' size: 1.1 million items,
189 million interactions, 5,000 audited users and 5,000 for accuracy, four implicit algorithms, all
analyses. BPR is trained for ``--epochs`` (default 100, as in the preset); every epoch takes the
same time. The benchmark gives no ratio to the published study, whose 676.5 CPU hours and 512 GiB
cover three data sets and other software.

The last line is JSON. Both forms have ``slowest_regime_cpu_s`` and ``propagation_vs_nuts``: the
quick one times only the slowest regimes, and compares with NUTS on 500 users instead of 5,000
(``propagation_vs_nuts_users``). Only the full form compares quantiles on hard sets.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from _authors_link import CASES as LINK
from _authors_link import linking_figures
from _authors_propagation import CASES as PROPAGATION
from _authors_propagation import PARTS as PROPAGATION_PARTS
from _authors_propagation import propagation_figures
from _authors_rerank import CASES as RERANK
from _authors_rerank import rerank_vs_python
from _isolated import finish, main_of_case, measure

SEED = 20210204
WHOLE = {"users": 870_000, "items": 1_100_000, "interactions": 189_000_000}
PARTS = ("link", "propagation", "rerank", "study")


def study(options: Mapping[str, Any]) -> dict[str, Any]:
    """Run the preset on a made world, and time its parts."""
    from ombud.audits import Audit, Plan
    from ombud.audits.backends.base import Run
    from ombud.audits.backends.memory import MemoryBackend
    from ombud.audits.load import load_system
    from ombud.audits.plan import build_named
    from ombud.audits.presets import Preset, complete
    from ombud.data.dataset import Dataset
    from ombud.data.items import Items
    from ombud.registry import create
    from ombud.worlds.large import draw_large
    from ombud.worlds.spec import WorldSpec

    share = options["share"]
    size = {name: max(1, int(n * share)) for name, n in WHOLE.items()}
    spec = WorldSpec(name="authors", users=size["users"], items=size["items"], ratings=False)
    world = draw_large(spec, size["interactions"], SEED)
    rng = np.random.default_rng(SEED)
    known = rng.random(size["items"]) < 0.42
    # By taste, so that profiles differ: without a spread there is no slope to fit.
    lean = world.truth.catalogue.factors[:, 0]
    female = 1 / (1 + np.exp(0.5 - 1.5 * lean))
    who = np.where(rng.random(size["items"]) < female, "female", "male").astype(object)
    who[~known] = None
    status = np.where(known, "known", "no_authority").astype(object)
    items = Items(world.dataset.interactions.items, {"gender": who}, {"gender": status})  # type: ignore[union-attr]
    data = Dataset(world.dataset.interactions, items=items)
    plan = complete(
        Plan(
            preset="authors",
            options={"feedback": "implicit", "users": 5000, "accuracy_users": 5000},
        )
    )
    plan.systems["BPR"]["epochs"] = options["epochs"]
    folder = Path(options["folder"]) if options.get("folder") else None
    noted = None if folder is None else folder.with_suffix(".parts.json")
    before = json.loads(noted.read_text()) if noted is not None and noted.exists() else {}
    parts: dict[str, float] = dict(before.get("parts", {}))
    started = [time.process_time()]

    def peak() -> float:
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return max(own, float(before.get("mib", 0.0)))

    def lap(name: str) -> None:
        now = time.process_time()
        # What a resumed run reads from its folder was paid for before.
        parts.setdefault(name, now - started[0])
        started[0] = now
        print(
            f"{name}: {parts[name]:.1f} CPU s, peak {peak():.0f} MiB", file=sys.stderr, flush=True
        )
        if noted is not None:
            noted.write_text(json.dumps({"parts": parts, "mib": peak()}))

    def note(done: int, total: int, what: str) -> None:
        used = time.process_time() - started[0]
        print(f"  {used:.0f} CPU s: {done} of {total} {what}", file=sys.stderr, flush=True)

    preset: Preset = create("preset", "authors")
    data = preset.prepare(plan, data)
    lap("samples")
    metrics, analyses = build_named(plan)
    audit = Audit(
        data,
        {name: load_system(name, config) for name, config in plan.systems.items()},  # type: ignore[misc]
        metrics,
        analyses=analyses,
        plan=plan,
    )
    store = None if folder is None else audit.open(folder)
    backend = audit.backend
    assert isinstance(backend, MemoryBackend)
    collector = backend.collector(Run(store, note))
    answers = {}
    for name, system in backend.systems.items():
        answers[name] = collector.ask(name, system)
        lap(f"lists of {name}")
    found = backend.score(answers, None, note)
    lap("metrics and analyses")
    return {
        "cpu": sum(parts.values()),
        "parts": parts,
        "estimates": len(found.estimates),
        "peak": peak(),
    }


CASES = {**LINK, **PROPAGATION, **RERANK, "study": study}


def study_figures(share: float, folder: str, epochs: int) -> dict[str, float]:
    """Run the study on a share of GoodReads' size, and return the named figures."""
    print(f"study: {share:.1%} of {WHOLE}", flush=True)
    asked = {"share": share, "folder": folder, "epochs": epochs}
    found = measure(__file__, "study", asked, aloud=True)
    for name, cpu in found["parts"].items():
        print(f"  {name}: {cpu:.1f} CPU s")
    hours = found["cpu"] / 3600
    print(f"  whole: {hours:.3f} CPU hours, {found['peak'] / 1024:.2f} GiB")
    figures = {f"study_s {name}": cpu for name, cpu in found["parts"].items()}
    figures |= {
        "study_bpr_epochs": epochs,
        "study_share": share,
        "study_cpu_hours": hours,
        "study_mib": found["peak"],
    }
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller data, shorter peers")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--share", type=float, help="of GoodReads' size, for the study")
    parser.add_argument("--folder", default="", help="where lists of the study are kept")
    parser.add_argument("--epochs", type=int, help="of BPR, in the study; default 100, quick 5")
    asked = parser.parse_args()
    quick = asked.quick
    share = asked.share or (0.001 if quick else 1.0)
    epochs = asked.epochs or (5 if quick else 100)
    figures: dict[str, float] = {}
    for part in (asked.only,) if asked.only else PARTS:
        if part == "link":
            figures |= linking_figures(quick, __file__)
        elif part == "propagation":
            # Long chains on hard sets take minutes.
            parts = ("regimes", "rate") if quick and not asked.only else PROPAGATION_PARTS
            figures |= propagation_figures(__file__, quick, parts)
        elif part == "rerank":
            figures |= rerank_vs_python(__file__, quick)
        else:
            figures |= study_figures(share, asked.folder, epochs)
    finish("authors", figures)


if __name__ == "__main__":
    if "--case" in sys.argv[1:2]:
        main_of_case(CASES)
    else:
        main()
