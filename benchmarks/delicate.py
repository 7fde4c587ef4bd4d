"""Sourcing, near duplicates and scoring of delicate texts, against what people use today.

    python benchmarks/delicate.py                   full size: 1 GB of text, then 2 GB more
    python benchmarks/delicate.py --gigabytes 10    full size: 1 GB of text, then 9 GB more
    python benchmarks/delicate.py --quick           about a minute

`score_vs_sklearn`: texts per CPU second of the n-gram detector against the scikit-learn pipeline of
the same features (two TfidfVectorizers, logistic regression) trained on the same texts.
`source_mb_per_cpu_s`: megabytes of text per CPU second of `ombud text source` on generated WET
files, with its peak memory at two sizes. `dedup_vs_datasketch`: CPU time of finding near duplicates
as they stream by, at the same signature length, with the recall of both on planted copies.
`train_f1_vs_sklearn`: F1 on test texts of a detector trained as `ombud text train` does by default,
minus that of the best of six scikit-learn pipelines on the same parts; the smallest such difference
of OLID, Davidson and HatEval (in OMBUD_REALDATA; generated texts without it).
`train_cpu_vs_sklearn`: CPU time of the six pipelines over that of the detector, the smallest too.
`alpha_vs_krippendorff`: Krippendorff's alpha at three levels with bootstrap intervals.
"""

from __future__ import annotations

import argparse
import html
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from _delicate_agreement import CASES as AGREEMENT
from _delicate_agreement import LEVELS
from _delicate_corpus import Wet, sentences
from _isolated import finish, main_of_case, measure

SEED = 20261116


def labelled(count: int) -> tuple[list[str], np.ndarray]:
    """Texts of two sentences; those with a term are mostly labelled 1."""
    plain = sentences(20_000, 0.0)
    charged = sentences(20_000, 1.0, seed=SEED + 1)
    rng = np.random.default_rng(SEED)
    truth = rng.integers(0, 2, count)
    other = rng.random(count) < 0.1
    pools = (plain, charged)
    texts = [
        f"{pools[int(label) ^ int(noise)][i]} {plain[j]}"
        for label, noise, i, j in zip(
            truth,
            other,
            rng.integers(0, 20_000, count),
            rng.integers(0, 20_000, count),
            strict=True,
        )
    ]
    return texts, truth


def split(options: Mapping[str, Any]) -> tuple[list[str], np.ndarray, list[str], np.ndarray]:
    texts, truth = labelled(options["train"] + options["test"])
    at = options["train"]
    return texts[:at], truth[:at], texts[at:], truth[at:]


def score_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from sklearn.metrics import f1_score

    from ombud.systems.detectors import Head, NgramDetector

    train, labels, test, truth = split(options)
    detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1)).fit(train, labels)
    detector.score(test[:10])
    started = time.process_time()
    score, _ = detector.score(test)
    cpu = time.process_time() - started
    return {"cpu": cpu, "rate": len(test) / cpu, "f1": float(f1_score(truth, score > 0.5))}


def score_sklearn(options: Mapping[str, Any]) -> dict[str, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline, make_union

    train, labels, test, truth = split(options)
    common = {"min_df": 2, "sublinear_tf": True}
    model = make_pipeline(
        make_union(
            TfidfVectorizer(ngram_range=(1, 2), **common),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), **common),
        ),
        LogisticRegression(C=4.0, max_iter=1000),
    ).fit(train, labels)
    started = time.process_time()
    score = model.predict_proba(test)[:, 1]
    cpu = time.process_time() - started
    return {"cpu": cpu, "rate": len(test) / cpu, "f1": float(f1_score(truth, score > 0.5))}


def source(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.text.sourcing import Sourcing, source_texts

    files = [Path(name) for name in options["files"]]
    started = time.process_time()
    found = source_texts(files, settings=Sourcing(size=10_000))
    cpu = time.process_time() - started
    return {"cpu": cpu, "mb": found.facts["characters"] / 1e6, "sampled": found.candidates.height}


def copies(options: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Texts of made-up words, and copies in which one word in fifty is another."""
    draw = random.Random(SEED)
    words = [f"w{i}" for i in range(20_000)]
    base = [[draw.choice(words) for _ in range(draw.randint(20, 120))] for _ in range(options["n"])]
    changed = []
    for text in base:
        copy = list(text)
        for _ in range(max(1, len(copy) // 50)):
            copy[draw.randrange(len(copy))] = draw.choice(words)
        changed.append(" ".join(copy))
    return [" ".join(text) for text in base], changed


def similar(texts: list[str], changed: list[str]) -> np.ndarray:
    from ombud.text.dedup import _shingles

    def sets(some: list[str]) -> list[set[int]]:
        hashes, starts = _shingles(some, 3)
        return [set(part.tolist()) for part in np.split(hashes, starts[1:])]

    pairs = zip(sets(texts), sets(changed), strict=True)
    return np.array([len(a & b) / len(a | b) >= 0.8 for a, b in pairs])


def dedup_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.text.dedup import NearDuplicates

    texts, changed = copies(options)
    started = time.process_time()
    seen = NearDuplicates(0.8, permutations=128)
    for at in range(0, len(texts), 2000):
        seen.add(texts[at : at + 2000])
    found = np.concatenate(
        [seen.add(changed[at : at + 2000]) >= 0 for at in range(0, len(changed), 2000)]
    )
    cpu = time.process_time() - started
    return {"cpu": cpu, "recall": float(found[similar(texts, changed)].mean())}


def dedup_datasketch(options: Mapping[str, Any]) -> dict[str, Any]:
    from datasketch import MinHash, MinHashLSH

    texts, changed = copies(options)

    def sketch(text: str) -> Any:
        words = re.findall(r"\w+", text.lower())
        made = MinHash(num_perm=128)
        made.update_batch([" ".join(words[i : i + 3]).encode() for i in range(len(words) - 2)])
        return made

    started = time.process_time()
    # Weighted towards recall as ombud's bands are, and verified as ombud's are.
    index = MinHashLSH(threshold=0.8, num_perm=128, weights=(0.1, 0.9))
    kept: dict[int, Any] = {}
    found = np.zeros(len(changed), dtype=bool)
    for number, text in enumerate((*texts, *changed)):
        made = sketch(text)
        again = any(kept[key].jaccard(made) >= 0.8 for key in index.query(made))
        if number >= len(texts):
            found[number - len(texts)] = again
        if not again:
            index.insert(number, made)
            kept[number] = made
    cpu = time.process_time() - started
    return {"cpu": cpu, "recall": float(found[similar(texts, changed)].mean())}


def tweets(name: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts, labels and parts (train, validation, test) of a published set, or generated ones."""
    import polars as pl

    folder = Path(os.environ.get("OMBUD_REALDATA", ""))
    if name == "generated":
        texts, truth = labelled(4_000)
    elif name == "HatEval":
        parts = {"train": "train", "val": "validation", "test": "test"}
        rows = []
        for short, part in parts.items():
            both = [
                (folder / "tweeteval-hate" / f"{short}_{what}.txt").read_text().split("\n")
                for what in ("text", "labels")
            ]
            rows += [(t, int(y), part) for t, y in zip(*both, strict=False) if y.strip()]
        return [r[0] for r in rows], np.array([r[1] for r in rows]), np.array([r[2] for r in rows])
    else:
        file = {"OLID": "olid/olid_data.csv", "Davidson": "davidson/labeled_data.csv"}[name]
        table = pl.read_csv(folder / file)
        texts = [html.unescape(text) for text in table["tweet"]]
        flagged = table["subtask_a"] == "OFF" if name == "OLID" else table["class"] != 2
        truth = flagged.to_numpy().astype(int)
    draw = np.random.default_rng(SEED).random(len(texts))
    return texts, truth, np.where(draw < 0.7, "train", np.where(draw < 0.8, "validation", "test"))


def train_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    import polars as pl
    from sklearn.metrics import f1_score

    from ombud.systems.detectors.training import (
        head_for,
        make_detector,
        read_labeled,
        train_detector,
    )

    texts, truth, part = tweets(options["data"])
    started = time.process_time()
    table = pl.DataFrame({"text": texts, "label": truth.astype(bool), "split": part})
    data = read_labeled(table)
    detector = train_detector(data, make_detector("embeddings", head_for(data))).detector
    cpu = time.process_time() - started
    # On all test texts, those that repeat another included: the pipelines are tested on them too.
    test = np.flatnonzero(part == "test")
    _, scores = detector.score([texts[i] for i in test])
    return {"cpu": cpu, "f1": float(f1_score(truth[test], detector.flags(scores)))}


def train_sklearn(options: Mapping[str, Any]) -> dict[str, Any]:
    """Fit six pipelines on the training and validation texts."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.naive_bayes import ComplementNB
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    def words() -> Any:
        return TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)

    def letters() -> Any:
        return TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), min_df=2, sublinear_tf=True)

    def logistic(weights: str | None = "balanced") -> Any:
        return LogisticRegression(C=4, max_iter=1000, class_weight=weights)

    counts = CountVectorizer(ngram_range=(1, 2), min_df=2)
    pipelines = {
        "words, logistic": make_pipeline(words(), logistic(None)),
        "words, logistic, balanced": make_pipeline(words(), logistic()),
        "words, SVM": make_pipeline(words(), LinearSVC(C=0.5, class_weight="balanced")),
        "letters, SVM": make_pipeline(letters(), LinearSVC(C=0.5, class_weight="balanced")),
        "both, logistic": make_pipeline(make_union(words(), letters()), logistic()),
        "words, naive Bayes": make_pipeline(counts, ComplementNB()),
    }
    texts, truth, part = tweets(options["data"])
    rest, test = np.flatnonzero(part != "test"), np.flatnonzero(part == "test")
    started = time.process_time()
    for pipeline in pipelines.values():
        pipeline.fit([texts[i] for i in rest], truth[rest])
    cpu = time.process_time() - started
    held = [texts[i] for i in test]
    f1 = {name: float(f1_score(truth[test], p.predict(held))) for name, p in pipelines.items()}
    return {"cpu": cpu, "f1": max(f1.values()), "best": max(f1, key=lambda name: f1[name])}


CASES = {
    "train_ombud": train_ombud,
    "train_sklearn": train_sklearn,
    "score_ombud": score_ombud,
    "score_sklearn": score_sklearn,
    "source": source,
    "dedup_ombud": dedup_ombud,
    "dedup_datasketch": dedup_datasketch,
    **AGREEMENT,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--gigabytes", type=int, default=3, help="text of the larger sourcing run")
    quick, gigabytes = (given := parser.parse_args()).quick, given.gigabytes
    here = str(Path(__file__).resolve())
    figures: dict[str, float] = {}

    print("score: n-gram detector against scikit-learn, same features")
    size = {"train": 4_000, "test": 10_000} if quick else {"train": 20_000, "test": 50_000}
    ours, theirs = (measure(here, f"score_{name}", size) for name in ("ombud", "sklearn"))
    print(f"  {ours['rate']:,.0f} and {theirs['rate']:,.0f} texts per CPU s; ", end="")
    print(f"F1 {ours['f1']:.4f} and {theirs['f1']:.4f}")
    print(f"  peak {ours['mib']:.0f} and {theirs['mib']:.0f} MiB")
    figures |= {
        "score_vs_sklearn": ours["rate"] / theirs["rate"],
        "score_f1": ours["f1"],
        "score_f1_sklearn": theirs["f1"],
    }

    print("source: candidates from WET files")
    with tempfile.TemporaryDirectory(prefix="ombud-delicate-") as folder:
        sizes = (20, 60) if quick else (1_000, 1_000 * gigabytes)
        files: list[str] = []
        part = sizes[0] // 2
        corpus = Wet()
        for number in range(sizes[1] // part):
            file = Path(folder) / f"{number}.wet.gz"
            corpus.write(file, part, seed=SEED + number)
            files.append(str(file))
        small = measure(here, "source", {"files": files[:2]})
        large = measure(here, "source", {"files": files})
    for done in (small, large):
        print(f"  {done['mb']:,.0f} MB of text: {done['cpu']:.0f} CPU s", end=", ")
        print(f"peak {done['mib']:.0f} MiB")
    figures |= {
        "source_mb_per_cpu_s": large["mb"] / large["cpu"],
        "source_peak_mib": large["mib"],
        "source_peak_growth": large["mib"] / small["mib"],
    }

    print("dedup: near duplicates in a stream, 128 permutations")
    count = {"n": 3_000 if quick else 20_000}
    ours, theirs = (measure(here, f"dedup_{name}", count) for name in ("ombud", "datasketch"))
    print(f"  recall {ours['recall']:.3f} and {theirs['recall']:.3f}")
    figures |= {
        "dedup_vs_datasketch": theirs["cpu"] / ours["cpu"],
        "dedup_recall": ours["recall"],
        "dedup_recall_datasketch": theirs["recall"],
    }
    print("train: a detector from a table, against the best of six scikit-learn pipelines")
    sets = ("OLID", "Davidson", "HatEval") if os.environ.get("OMBUD_REALDATA") else ("generated",)
    gaps, ratios = [], []
    for name in sets:
        ours, theirs = (measure(here, f"train_{w}", {"data": name}) for w in ("ombud", "sklearn"))
        print(f"  {name}: F1 {ours['f1']:.4f} and {theirs['f1']:.4f} ({theirs['best']})")
        gaps.append(ours["f1"] - theirs["f1"])
        ratios.append(theirs["cpu"] / ours["cpu"])
    figures |= {"train_f1_vs_sklearn": min(gaps), "train_cpu_vs_sklearn": min(ratios)}
    print("agreement: three alphas with a bootstrap, against krippendorff")
    work = {
        "ratings": 9_999 if quick else 99_999,
        "replicates": 200 if quick else 1_000,
        "peer_replicates": 5,
    }
    ours, theirs = (measure(here, f"agreement_{name}", work) for name in ("ombud", "krippendorff"))
    figures |= {
        "alpha_vs_krippendorff": theirs["cpu"] / ours["cpu"],
        "alpha_largest_difference": max(
            abs(ours[f"{level}_value"] - theirs[f"{level}_value"]) for level in LEVELS
        ),
    }
    finish("delicate", figures)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--case":
        main_of_case(CASES)
    else:
        main()
