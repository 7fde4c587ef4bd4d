"""Suppression benchmarks: tagging texts by terms, against one ``re`` pattern per term; measures.

The measures: false-positive rate, suppression (over all texts, and over the others), its largest
and its pooled value, and suppression by median score, with 2,000 bootstrap replicates on 500,000
texts x 9 groups x 5 systems.

Run: ``python benchmarks/suppression.py`` (the peer alone takes about 20 CPU minutes);
``--quick`` runs the peer on a named part of the texts and scales its time up.
The last line is one JSON object. Times are CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.metrics import FalsePositiveRate
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.suppression.metrics import PooledSuppression, Suppression, WorstSuppression
from ombud.taxonomy import load_terms
from ombud.text import TermMatcher, fold

SUFFIXES = ("", "s", "es")
QUICK_PEER_TEXTS = 1_000
ENDINGS = np.array([*[""] * 60, *",.!?:;)" * 3, '"', " -", "…"])
ACCENTS = str.maketrans("aeiou", "áèïöū")


def synthetic_texts(n: int, terms: list[str], seed: int = 20261115) -> list[str]:
    """Return texts of invented words, some with terms, capitals, punctuation and accents."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    weights = 1 / np.arange(1, len(letters) + 1)
    lengths = rng.integers(1, 10, 30_000)
    stream = "".join(rng.choice(letters, lengths.sum(), p=weights / weights.sum()))
    cuts = np.concatenate(([0], np.cumsum(lengths)))
    words = [stream[a:b] for a, b in zip(cuts, cuts[1:], strict=False)]
    words = [word.translate(ACCENTS) if i % 200 == 199 else word for i, word in enumerate(words)]
    words = [word.capitalize() if i % 7 == 0 else word for i, word in enumerate(words)]
    vocabulary = np.array([*words, *terms], dtype=object)
    # Frequencies fall with rank; one word in 30 is a term, hyphenated ones included.
    chance = np.concatenate((1 / np.arange(3, len(words) + 3), np.ones(len(terms))))
    chance[: len(words)] *= 29 / 30 / chance[: len(words)].sum()
    chance[len(words) :] *= 1 / 30 / len(terms)
    sizes = rng.integers(3, 20, n)
    chosen = vocabulary[rng.choice(len(vocabulary), sizes.sum(), p=chance)]
    chosen = chosen + ENDINGS[rng.integers(0, len(ENDINGS), len(chosen))].astype(object)
    ends = np.concatenate(([0], np.cumsum(sizes)))
    return [" ".join(chosen[a:b]) for a, b in zip(ends, ends[1:], strict=False)]


def re_per_term(texts: list[str], patterns: list[str]) -> NDArray[np.int64]:
    """Return pair codes (text * patterns + pattern) by one compiled pattern per term."""
    compiled = [re.compile(rf"(?<!\w){re.escape(pattern)}(?!\w)").search for pattern in patterns]
    pairs = []
    for row, text in enumerate(texts):
        text = fold(text)
        pairs += [row * len(patterns) + i for i, search in enumerate(compiled) if search(text)]
    return np.asarray(pairs, dtype=np.int64)


def cpu_seconds(work: Callable[[], NDArray[np.int64]]) -> tuple[float, NDArray[np.int64]]:
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


def memory_mib(field: str) -> float:
    """Return VmRSS (now) or VmHWM (peak since the last reset) of this process; Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def tagging(quick: bool, n: int) -> dict[str, object]:
    """Tag `n` texts with 2,384 patterns, by the matcher and by ``re``."""
    spellings = dict.fromkeys(fold(term.text) for term in load_terms("terms-identity@1").terms)
    patterns = list(dict.fromkeys(fold(term + end) for term in spellings for end in SUFFIXES))
    texts = synthetic_texts(n, list(spellings))
    size = sum(len(text.encode()) for text in texts) / 1e6
    print(f"{len(patterns)} patterns, {n} texts, {size:.0f} MB")
    figures: dict[str, object] = {"tagging_texts": n, "tagging_patterns": len(patterns)}

    def tag() -> NDArray[np.int64]:
        found = TermMatcher(patterns).match(texts)
        return found.text_index * len(patterns) + found.term_index

    reset_peak()
    before = memory_mib("VmRSS")
    fast, answer = min((cpu_seconds(tag) for _ in range(3)), key=lambda run: run[0])
    figures["tagging_cpu_s"] = round(fast, 3)
    figures["tagging_peak_mib"] = round(memory_mib("VmHWM") - before)
    print(f"ombud: {fast:.2f} CPU s, {len(answer)} pairs")
    part = min(QUICK_PEER_TEXTS, n) if quick else n
    seconds, reference = cpu_seconds(lambda: re_per_term(texts[:part], patterns))
    if part < n:
        print(f"re per term: {seconds:.1f} CPU s for the first {part} texts, scaled to {n}")
        figures["tagging_re_scaled_from_texts"] = part
        seconds *= n / part
    figures["tagging_re_cpu_s"] = round(seconds, 1)
    limit = part * len(patterns)
    figures["tagging_equal_to_re"] = bool(np.array_equal(answer[answer < limit], reference))
    figures["tagging_vs_re"] = round(seconds / fast, 1)
    print(f"re per term: {seconds:.0f} CPU s, {seconds / fast:,.0f} times as much")
    return figures


def measured_world(n: int, seed: int = 20261115) -> tuple[Dataset, dict[str, Decisions]]:
    """Return texts in nine groups and what five systems decided about them."""
    rng = np.random.default_rng(seed)
    ids = np.arange(n)
    shares = np.array([0.2, 0.15, 0.12, 0.1, 0.08, 0.05, 0.03, 0.02, 0.005])
    members = rng.random((n, len(shares))) < shares
    truth = (rng.random(n) < 0.3).astype(np.int8)
    texts = Texts(ids, np.full(n, "", dtype=object), truth)
    names = tuple(f"group {g}" for g in range(len(shares)))
    groups = Grouping(Vocabulary(ids), names, members, names)
    outputs = {}
    for s in range(5):
        factor = np.where(members[:, s], 2.0, 1.0)
        flagged = rng.random(n) < np.where(truth == 1, 0.8, 0.05 * (s + 1) * factor / 2)
        outcomes = flagged.astype(np.int8)
        outcomes[rng.random(n) < 0.005] = Outcome.REFUSED
        scores = (0.5 * flagged + 0.5 * rng.random(n)).astype(np.float32)
        outputs[f"system {s}"] = Decisions(ids, outcomes, scores)
    return Dataset(texts=texts, text_groups=groups), outputs


def measures(quick: bool, n: int) -> dict[str, object]:
    """Measure suppression with 2,000 replicates; `quick` takes a tenth of the texts."""
    n = n // 10 if quick else n
    data, outputs = measured_world(n)
    figures: dict[str, object] = {"measures_texts": n}
    kinds = {
        "rates": (FalsePositiveRate(),),
        "suppression": (
            Suppression(),
            Suppression(against="outside"),
            WorstSuppression(),
            PooledSuppression(),
        ),
        "medians": (Suppression(by="scores"),),
    }
    reset_peak()
    before = memory_mib("VmRSS")
    total = 0.0
    for name, metrics in kinds.items():
        start = time.process_time()
        count = 0
        for metric in metrics:
            rows = {system: metric.measure(some, data) for system, some in outputs.items()}
            count += len(estimate_metric(metric, rows, data.text_groups, Settings()))
        seconds = time.process_time() - start
        total += seconds
        figures[f"measures_{name}_cpu_s"] = round(seconds, 2)
        print(f"{name}: {seconds:.1f} CPU s, {count} estimates")
    figures["measures_cpu_s"] = round(total, 1)
    figures["measures_peak_mib"] = round(memory_mib("VmHWM") - before)
    return figures


PARTS: dict[str, Callable[[bool, int], dict[str, object]]] = {
    "tagging": tagging,
    "measures": measures,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="scale the peer up from a part")
    parser.add_argument("--texts", type=int, default=500_000)
    parser.add_argument("--only", choices=sorted(PARTS), action="append")
    options = parser.parse_args()
    figures: dict[str, object] = {}
    for name in options.only or PARTS:
        figures |= PARTS[name](options.quick, options.texts)
    print(json.dumps({"benchmark": "suppression", "quick": options.quick, "figures": figures}))


if __name__ == "__main__":
    main()
