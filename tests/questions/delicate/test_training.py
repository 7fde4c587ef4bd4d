"""Heads and rules, long texts, texts seen before, several labels, published figures, transfer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan
from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.questions.delicate.agreement import LabelCrossTable
from ombud.questions.delicate.bias import ErrorTerms
from ombud.questions.delicate.comparison import PublishedFigures, published_transfer
from ombud.questions.delicate.detectors import HeadComparison, LongTexts, SeenTexts
from ombud.report.report import Report
from ombud.systems.detectors import Detector, Head, NgramDetector
from ombud.systems.detectors.base import Scores, windowed
from ombud.systems.detectors.training_texts import with_other_countries, with_swapped_copies
from ombud.text.windows import slide

QUICK = Settings(replicates=100)


class Window(Detector):
    """Scores a window of four words by its share of the word *grief*."""

    kind: ClassVar[str] = "window"

    @property
    def window(self) -> int:
        return 4

    def outputs(self, texts: Sequence[str]) -> Scores:
        words = [text.split() for text in texts]
        spans = slide([len(w) for w in words], 4, 4)
        share = np.array(
            [words[t][a:b].count("grief") / (b - a) for t, a, b in zip(*spans, strict=True)]
        )
        logits = np.log((share + 0.01) / (1.01 - share))[:, None]
        return windowed(self.head, logits, spans.text, len(texts))

    def _write(self, folder: Path) -> None: ...

    @classmethod
    def _read(cls, folder: Path, content: dict[str, Any], common: dict[str, Any]) -> Self:
        return cls(**common)


def binary() -> Head:
    return Head(kind="binary", classes=2, cut=1)


def data_of(texts: list[str], truth: list[int], **more: Any) -> Dataset:
    ids = np.arange(len(texts))
    return Dataset(texts=Texts(ids, np.array(texts, object), np.array(truth, np.int8), **more))


def test_what_stands_after_the_window_is_missed_when_texts_are_cut() -> None:
    """Twenty texts tell of grief in their second window, ten in the first, twenty never."""
    late = ["a b c d grief grief grief e"] * 20
    early = ["grief grief grief d e f g h"] * 10
    never = ["a b c d e f g h"] * 20
    short = ["grief grief"] * 5
    data = data_of(late + early + never + short, [1] * 30 + [0] * 20 + [1] * 5)
    found = LongTexts().analyze(Context(data, {}, QUICK, dict(d=Window(head=binary()))))
    row = found.tables["long-texts"].to_dicts()[0]
    assert row["longer than the window"] == 50 and row["window"] == 4 and row["used"] == "max"
    assert row["max differs from cut"] == 20 and row["mean differs from cut"] == 10
    at = {(e.key, e.label, e.kind): e for e in found.estimates}
    assert at["long-texts/recall", "cut", "level"].value == pytest.approx(10 / 30)
    assert at["long-texts/recall", "max", "level"].value == 1.0
    # F1 cut: 2*10 / (10 + 30); the mean of 0.75 and 0 is below one half: nothing is flagged.
    assert at["long-texts/f1", "cut", "level"].value == pytest.approx(0.5)
    assert at["long-texts/f1", "mean", "level"].value == 0.0
    gain = at["long-texts/f1", "max", "gap"]
    assert gain.value == pytest.approx(0.5) and gain.against == "cut" and gain.interval[0] > 0
    whole = LongTexts().analyze(Context(data, {}, QUICK, dict(n=trained())))
    assert not whole.estimates and whole.tables["long-texts"]["longer than the window"][0] == 0


def trained() -> NgramDetector:
    texts = ["a sad and heavy loss", "a heavy sad night", "bread and honey", "honey and a boat"]
    return NgramDetector(head=binary(), min_texts=1).fit(texts, [1, 1, 0, 0])


def test_texts_that_were_trained_on_are_counted() -> None:
    detector = trained().calibrate(["a sad song", "a big boat"], [1, 0])
    data = data_of(["A sad and heavy loss!", "a big boat", "something new"], [1, 0, 0])
    table = SeenTexts().analyze(Context(data, {}, QUICK, dict(d=detector, other=object()))).tables
    row = table["seen-texts"].to_dicts()[0]
    assert table["seen-texts"].height == 1
    assert (row["trained on"], row["calibrated on"]) == (1, 1)
    assert row["rule"] == "threshold" and "validation" in row["set on"]
    sets = np.array(["a", "b", "b"], dtype=object)
    data = data_of(["A sad and heavy loss!", "a big boat", "something new"], [1, 0, 0], sets=sets)
    rows = (
        SeenTexts().analyze(Context(data, {}, QUICK, dict(d=detector))).tables["seen-by-set"].rows()
    )
    assert rows == [("d", "a", 1, 1, 0), ("d", "b", 2, 0, 1)]


def test_labels_are_set_against_each_other_by_hand(tmp_path: Path) -> None:
    """hate: 10 of 40, all of them offensive; offensive: 20; they agree on 30 of 40."""
    data = data_of(["x"] * 40, [1] * 10 + [0] * 30)
    frame = {"id": [*range(40), 99], "hate": [True] * 10 + [False] * 31}
    frame |= {"offensive": [True] * 20 + [False] * 20 + [None]}
    pl.DataFrame(frame).write_csv(tmp_path / "notions.csv")
    found = LabelCrossTable(labels=tmp_path / "notions.csv").analyze(Context(data, {}, QUICK))
    at = {(e.key, e.label, e.group): e for e in found.estimates}
    pair = "hate and offensive"
    assert at["notions/agreement", pair, ""].value == 0.75
    assert at["notions/given", pair, "hate"].value == 1.0
    assert at["notions/given", pair, "offensive"].value == 0.5
    # Expected by chance: 1/4 * 1/2 + 3/4 * 1/2 = 1/2.
    assert at["notions/kappa", pair, ""].value == pytest.approx((0.75 - 0.5) / 0.5)
    assert at["notions/agreement", "label and hate", ""].value == 1.0
    rows = found.tables["label-cross-table"].to_dicts()
    assert [r["both"] for r in rows] == [10, 10, 10] and found.exclusions[0].count == 1
    pl.DataFrame({"id": [1]}).write_csv(tmp_path / "none.csv")
    with pytest.raises(DataError, match="no column of labels"):
        LabelCrossTable(labels=tmp_path / "none.csv").analyze(Context(data, {}, QUICK))
    pl.DataFrame({"id": [99], "hate": [True]}).write_csv(tmp_path / "other.csv")
    with pytest.raises(DataError, match="none of its ids"):
        LabelCrossTable(labels=tmp_path / "other.csv").analyze(Context(data, {}, QUICK))


def test_published_figures_get_their_counts_and_intervals(tmp_path: Path) -> None:
    data = data_of(["x"], [1])
    found = PublishedFigures().analyze(Context(data, {}, QUICK))
    at = {(e.key, e.system): e for e in found.estimates}
    best = at["published/f1", "DeTexD RoBERTa"]
    assert best.value == pytest.approx(0.798, abs=5e-4) and best.interval is not None
    assert best.details == {"tp": 263, "fp": 60, "fn": 73, "tn": 627}
    assert at["published/recall", "DeTexD RoBERTa"].interval[0] == pytest.approx(0.736, abs=2e-3)
    assert "no confusion matrix" in at["published/f1", "OpenAI content filter"].reason
    assert "2 confusion matrices" in at["published/f1", "HateBERT HatEval#"].reason
    rows = {r["system"]: r for r in found.tables["published-figures"].to_dicts()}
    assert rows["HateBERT HatEval#"]["matrices"] == 2 and rows["HateBERT HatEval#"]["tp"] is None
    own = tmp_path / "own.csv"
    own.write_text("system,positives,negatives,accuracy,macro_f1,decimals\nx,10,20,80.0,75.0,1\n")
    assert (
        PublishedFigures(figures=own)
        .analyze(Context(data, {}, QUICK))
        .tables["published-figures"]
        .height
        == 1
    )
    own.write_text("system,positives,negatives\nx,10,20\n")
    with pytest.raises(DataError, match="no figure was given"):
        PublishedFigures(figures=own).analyze(Context(data, {}, QUICK))


def test_training_texts_are_changed_in_one_respect() -> None:
    ratings = np.array([3, 0, 2])
    texts = ["Her son fled from Mali.", "It rains.", "The Netherlands won."]
    swapped = with_swapped_copies(texts, ratings)
    assert swapped.changed == 1 and len(swapped.texts) == 4 and swapped.ratings.tolist()[-1] == 3
    assert swapped.texts[3] == "His daughter fled from Mali."
    moved = with_other_countries(texts, ratings)
    assert moved.changed == 2 and "Mali" not in moved.texts[0]
    assert "Netherlands" not in moved.texts[2] and moved.texts[2][0].isupper()
    assert moved.texts == with_other_countries(texts, ratings).texts
    twice = with_other_countries(["Mali and Mali"], np.array([0])).texts[0].split(" and ")
    assert twice[0].lower() == twice[-1].lower()


WORDS = {0: "bread honey boat garden", 2: "report court police law", 5: "grief cry loss wound"}


def made(n: int, seed: int) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    risk = rng.choice(list(WORDS), n)
    texts = [
        " ".join([*rng.choice(WORDS[int(r)].split(), 3), rng.choice(["he", "she"]), f"no{i}{seed}"])
        for i, r in enumerate(risk)
    ]
    return texts, np.clip(risk + rng.integers(-1, 2, n), 0, 5)


def files(folder: Path) -> Path:
    train, risk = made(300, 1)
    pl.DataFrame({"text": train, "risk": risk}).write_csv(folder / "train.csv")
    texts, found = made(120, 2)
    ids = [f"t{i}" for i in range(120)]
    table = {
        "id": ids,
        "text": [*texts[:119], train[0]],
        "set": ["OLID A", "Davidson hate only"] * 60,
    }
    table |= {"language": ["en"] * 90 + ["de"] * 30}
    pl.DataFrame(table).write_csv(folder / "texts.csv")
    rows = [{"id": i, "rater": f"r{k}", "risk": int(r)} for i, r in zip(ids, found, strict=True)
            for k in range(3)]  # fmt: skip
    pl.DataFrame(rows).write_csv(folder / "ratings.csv")
    notions = {"id": ids, "hateful": found >= 4, "offensive": found >= 2}
    pl.DataFrame(notions).write_csv(folder / "notions.csv")
    NgramDetector(name="own").fit(train[:200], risk[:200]).save(folder / "own")
    return folder


def test_the_preset_compares_heads_labels_sets_and_published_figures(tmp_path: Path) -> None:
    folder = files(tmp_path)
    (folder / "plan.toml").write_text(
        'preset = "delicate"\n[options]\nratings = "ratings.csv"\nnotions = "notions.csv"\n'
        'train = "train.csv"\nagainst_bias = ["gender-swap", "countries"]\npublished = "detexd"\n'
        'examples = 2\ngroups = ["set", "language", "risk"]\n[data]\ntexts = "texts.csv"\n'
        '[statistics]\nreplicates = 100\n[systems.own]\ntype = "detector"\npath = "own"\n'
        '[systems.words]\ntype = "keyword"\nterms = ["grief", "cry", "bread"]\n'
    )
    result = Audit.from_plan(Plan.load(folder / "plan.toml")).run(folder / "result")
    level = {(e.key, e.system): e for e in result.estimates if e.kind == "level" and not e.group}
    names = [f"{head}, {rule}" for head in ("multiclass", "ordinal", "binary")
             for rule in ("threshold", "argmax")]  # fmt: skip
    assert all(level["heads/f1", name].value > 0.6 for name in names)
    gaps = {(e.system, e.against): e for e in result.select(key="heads/f1") if e.kind == "gap"}
    assert len(gaps) == 7 and ("binary, argmax", "multiclass, argmax") in gaps
    f1 = [level["heads/f1", n].value for n in ("ordinal, threshold", "multiclass, threshold")]
    assert gaps["ordinal, threshold", "multiclass, threshold"].value == pytest.approx(f1[0] - f1[1])
    assert len(result.select(key="heads/accuracy-difference")) == 7
    assert {e.system for e in result.select(key="heads/weighted-kappa")} == {
        "multiclass",
        "ordinal",
    }
    assert any(e.where == "head-comparison" and e.count == 1 for e in result.exclusions)
    training = {(e.label, e.system): e for e in result.select(key="training/f1") if not e.against}
    assert len(training) == 4 and len(result.select(key="training/country-sd")) == 2
    groups = {e.group for e in result.select(key="detection-f1") if e.group}
    assert {"set=OLID A", "language=de", "risk=5"} <= groups
    seen = result.tables["seen-texts"].to_dicts()[0]
    assert seen["system"] == "own" and seen["trained on"] == 1
    assert result.tables["error-examples"].height >= 2
    page = Report(result).html()
    for words in ("Heads and rules", "Several labels compared", "Published figures",
                  "Which delicate texts are missed", "its results are too good", "Zampieri 2019",
                  "countries replaced", "Weighted-kappa"):  # fmt: skip
        assert words in page, words


def test_examples_are_masked() -> None:
    data = data_of(["that bastard left", "a sunny day"] * 8, [0, 1] * 8)
    from ombud.data.decisions import Decisions

    flags = np.array([1, 0] * 8, dtype=np.int8)
    said = {"s": Decisions(np.arange(16), flags, np.arange(16, dtype=np.float32) / 16)}
    assert "error-examples" not in ErrorTerms().analyze(Context(data, said, QUICK)).tables
    shown = ErrorTerms(examples=3).analyze(Context(data, said, QUICK)).tables["error-examples"]
    wrong = shown.filter(pl.col("error") == "false positive")
    assert wrong["text"].to_list() == ["that b****** left"] * 3
    assert wrong["id"].to_list() == ["14", "12", "10"]
    missed = shown.filter(pl.col("error") == "false negative")
    assert missed["id"].to_list() == ["1", "3", "5"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"train": "x", "heads": ()}, "heads: Tuple should have at least 1 item"),
        ({"train": "x", "validation": 0.0}, "validation: Input should be greater than 0"),
    ],
)
def test_comparisons_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        HeadComparison(**options)


def test_training_files_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    data = data_of(["a", "b"], [1, 0])
    file = tmp_path / "train.csv"
    for text, words in (
        ("text,risk\nx,9\n", "risk"),
        ("text,risk,split\nx,1,other\n", "split"),
        ("text,risk,split\nx,1,train\n", "none to validate on"),
    ):
        file.write_text(text)
        with pytest.raises(DataError, match=words):
            HeadComparison(train=file).analyze(Context(data, {}, QUICK))


def test_published_transfer_rows_carry_their_caveats() -> None:
    assert all(row.note for row in published_transfer())
    assert {row.dataset for row in published_transfer()} >= {"OLID A", "HatEval A", "Founta"}
