"""Train a detector from a table: split, tune, calibrate, test, and record what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, Frame, has_columns, read_table
from ombud.errors import DataError, PlanError
from ombud.rng import generator
from ombud.stats.proportions import wilson
from ombud.systems.base import Progress
from ombud.systems.detectors.base import Detector
from ombud.systems.detectors.embeddings import EmbeddingDetector
from ombud.systems.detectors.heads import Head, HeadKind, best_threshold, fit_linear
from ombud.systems.detectors.ngrams import NgramDetector
from ombud.systems.detectors.transformer import TransformerDetector
from ombud.text.dedup import NearDuplicates, content_keys

TrainedModel = Literal["embeddings", "minilm", "ngrams", "transformer"]
"""What a trained detector reads."""

_RISK = 5
_STRENGTHS = (0.5, 2.0, 8.0)
_PARTS = ("train", "validation", "test")
_BINS = 10
_RATERS = 99


@dataclass(frozen=True, eq=False)
class LabeledTexts:
    """Texts to train, validate and test on."""

    texts: dict[str, list[str]]  # by part: train, validation, test
    classes: dict[str, NDArray[np.int64]]
    graded: bool  # whether classes are risks from 0 to 5, or 0 and 1
    exclusions: tuple[Exclusion, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """A detector, and how well it does on texts that it never met."""

    detector: Detector
    # Rows of what was tried: strength, balanced, and F1 on the validation texts.
    tried: tuple[dict[str, Any], ...]
    # On the test texts, or the validation texts where there are none: precision, recall, F1, their
    # intervals, Brier score and calibration error before and after calibration.
    test: dict[str, Any]
    # Of `reliability`: predicted, share, low, high, n.
    reliability: tuple[dict[str, float], ...]
    exclusions: tuple[Exclusion, ...] = field(default=())


def read_labeled(
    table: Frame,
    *,
    test: Frame | None = None,
    shares: tuple[float, float] = (0.15, 0.15),
    near: float = 0.8,
    seed: int = 0,
) -> LabeledTexts:
    """Read texts to train on, in three parts that do not repeat one another.

    Without a column ``split``, texts are split at random. A text that repeats or nearly repeats a
    test text is dropped from the other parts, and a training text that nearly repeats a validation
    text from training; all are counted. Texts without a label are excluded and counted.

    Parameters
    ----------
    table
        Has `text` and one of `risk` (0 to 5), `label` (true or false) or `annotator_1`,
        `annotator_2` ... (0 to 5); optionally `split` (train, validation or test).
    test
        A table of test texts, in the same form.
    shares
        Of validation and of test texts, where the table has no split.
    near
        The similarity from which texts are near duplicates.
    seed
        Of the split.
    """
    texts, classes, split, graded, exclusions = _read(table, "training table")
    if split is None:
        draw = generator(seed, "train", "split").random(len(texts))
        edges = (shares[0], shares[0] + (0 if test is not None else shares[1]))
        if not 0 < shares[0] < 1 or edges[1] >= 1:
            raise PlanError("shares of validation and test texts must leave some to train on")
        split = np.where(draw < edges[0], "validation", np.where(draw < edges[1], "test", "train"))
    if test is not None:
        if (split == "test").any():
            raise PlanError("the table has test texts of its own; give no other test table")
        more, more_classes, _, also, left = _read(test, "test table")
        if also != graded:
            raise PlanError("one table has risks and the other true or false; expected the same")
        texts, classes = [*texts, *more], np.concatenate([classes, more_classes])
        split = np.concatenate([split, np.full(len(more), "test")])
        exclusions += left
    keep, dropped = _without_repeats(texts, split, near)
    exclusions += dropped
    parts: dict[str, list[str]] = {}
    of: dict[str, NDArray[np.int64]] = {}
    for part in _PARTS:
        index = np.flatnonzero(keep & (split == part))
        parts[part], of[part] = [texts[i] for i in index], classes[index]
    cut = Head().cut if graded else 1
    for part in _PARTS[:2]:
        if len(np.unique(of[part] >= cut)) < 2:
            raise PlanError(f"the {part} texts are {len(of[part]):,}, not of both kinds; more texts"
                            " are needed, delicate and not")  # fmt: skip
    return LabeledTexts(parts, of, graded, tuple(exclusions))


def _read(
    table: Frame, source: str
) -> tuple[list[str], NDArray[np.int64], NDArray[Any] | None, bool, list[Exclusion]]:
    name = str(table) if isinstance(table, str | Path) else source
    raters: list[str] = []
    while len(raters) < _RATERS and has_columns(table, f"annotator_{len(raters) + 1}"):
        raters.append(f"annotator_{len(raters) + 1}")
    columns = [Column("text", "text", nullable=True), Column("split", "text", required=False)]
    columns.append(Column("risk", "number", required=False, nullable=True, low=0, high=_RISK))
    columns.append(Column("label", "flag", required=False, nullable=True))
    columns += [Column(rater, "number", nullable=True, low=0, high=_RISK) for rater in raters]
    found = read_table(table, columns, source)
    graded = "risk" in found.columns or bool(raters)
    if "risk" in found.columns:
        value = pl.col("risk").round()
    elif raters:
        # The middle rating: with three raters, the one that two give, where two agree.
        value = pl.concat_list(raters).list.drop_nulls().list.median().round()
    elif "label" in found.columns:
        value = pl.col("label").cast(pl.Int64)
    else:
        need = "a column 'risk' (0 to 5), 'label' (true or false), or 'annotator_1' and so on"
        raise DataError(name, [f"it needs {need}"])
    found = found.with_columns(value.cast(pl.Int64).alias("class"))
    usable = found.filter(pl.col("class").is_not_null(), pl.col("text").is_not_null())
    exclusions = []
    if gone := found.height - usable.height:
        reason = "they have no text or no label"
        exclusions.append(Exclusion(source, "texts", gone, reason, found.height))
    split = None
    if "split" in found.columns:
        split = usable["split"].replace({"val": "validation", "dev": "validation"}).to_numpy()
        if wrong := sorted(set(split.tolist()) - set(_PARTS)):
            raise DataError(
                name, [f"column 'split' has {wrong[0]!r}; expected {', '.join(_PARTS)}"]
            )
    return usable["text"].to_list(), usable["class"].to_numpy(), split, graded, exclusions


def _without_repeats(
    texts: Sequence[str], split: NDArray[Any], near: float
) -> tuple[NDArray[np.bool_], list[Exclusion]]:
    """Return which texts are kept so that no part repeats another, and no text its own part."""
    keep = np.ones(len(texts), dtype=bool)
    exclusions = []
    keys, index = content_keys(list(texts)), NearDuplicates(near)
    for part in reversed(_PARTS):
        mine = np.flatnonzero(split == part)
        if not len(mine):
            continue
        _, first = np.unique(keys[mine], return_index=True)
        again = np.setdiff1d(mine, mine[first])
        mine = mine[np.sort(first)]
        size = index.size
        repeats = index.add([texts[i] for i in mine.tolist()])
        alike = mine[(repeats >= 0) & (repeats < size)]
        keep[again], keep[alike] = False, False
        for rows, reason in (
            (again, f"they repeat another {part} text"),
            (alike, "they nearly repeat a text that is held out"),
        ):
            if len(rows):
                total = int((split == part).sum())
                exclusions.append(Exclusion(f"{part} part", "texts", len(rows), reason, total))
    return keep, exclusions


def make_detector(
    model: TrainedModel, head: Head, *, seed: int = 0, base: str | Path = ""
) -> NgramDetector | EmbeddingDetector | TransformerDetector:
    """Return a detector of a kind that is not trained yet."""
    if model == "ngrams":
        return NgramDetector(head=head, seed=seed)
    if model == "transformer":
        return TransformerDetector(head=head, base=str(base))
    encoder: Literal["wordllama", "minilm"] = "minilm" if model == "minilm" else "wordllama"
    return EmbeddingDetector(head=head, encoder=encoder, seed=seed, tokens=True)


def train_detector(
    data: LabeledTexts,
    detector: NgramDetector | EmbeddingDetector | TransformerDetector,
    *,
    folder: str | Path = "",
    probabilities: Literal["platt", "isotonic", "none"] = "platt",
    progress: Progress | None = None,
) -> Trained:
    """Train a detector, tune it on the validation texts, and test it.

    Of linear heads, the penalty and whether classes are weighted are those with the best F1 on the
    validation texts; these also set the threshold and the calibration. A transformer is trained by
    its recipe, with checkpoints in the folder.
    """
    texts, classes = data.texts["train"], data.classes["train"]
    held, held_classes = data.texts["validation"], data.classes["validation"]
    tried: list[dict[str, Any]] = []
    if isinstance(detector, TransformerDetector):
        detector.fit(texts, classes, folder=folder, progress=progress)
    else:
        tried = _tuned(detector, texts, classes, held, held_classes, progress)
    detector.calibrate(held, held_classes, probabilities=probabilities)
    part = "test" if data.texts["test"] else "validation"
    truth = data.classes[part] >= detector.head.cut
    score, scores = detector.score(data.texts[part])
    plain = replace(detector, calibration=None).of_windows(scores)
    test = {"part": part} | _rates(detector.flags(scores), truth)
    test |= {"brier before calibration": float(np.mean((plain - truth) ** 2)),
             "brier": float(np.mean((score - truth) ** 2)),
             "calibration error before calibration": _error(reliability(plain, truth)),
             "calibration error": _error(reliability(score, truth))}  # fmt: skip
    detector.facts |= {"tried": tried, "test": test}
    detector.facts["texts"] = {part: len(some) for part, some in data.texts.items()}
    detector.facts["excluded"] = [str(one) for one in data.exclusions]
    bins = tuple(reliability(score, truth))
    detector.facts["reliability"] = list(bins)
    return Trained(detector, tuple(tried), test, bins, data.exclusions)


def _tuned(
    detector: NgramDetector | EmbeddingDetector,
    texts: list[str],
    classes: NDArray[np.int64],
    held: list[str],
    held_classes: NDArray[np.int64],
    progress: Progress | None,
) -> list[dict[str, Any]]:
    """Fit a detector with the penalty and the class weights that do best on held-out texts."""
    features = detector.learn_features(texts, progress=progress)
    other = detector.features(held)
    truth = held_classes >= detector.head.cut
    tried: list[dict[str, Any]] = []
    best, head = -1.0, detector.head
    trials = [(strength, balanced) for strength in _STRENGTHS for balanced in (False, True)]
    for number, (strength, balanced) in enumerate(trials):
        fitted = fit_linear(
            features, classes, head, seed=detector.seed, strength=strength, balanced=balanced
        )
        score = head.score(np.asarray(other @ fitted.weights + fitted.intercept))
        f1 = best_threshold(score, truth)[1]
        tried.append({"strength": strength, "balanced": balanced, "validation F1": f1})
        if f1 > best:
            best = f1
            detector.set_weights(fitted)
            detector.strength, detector.balanced = strength, balanced
        if progress is not None:
            progress(number + 1, len(trials), "tuning")
    detector.facts |= {
        "training texts": len(texts),
        "class counts": np.bincount(classes, minlength=head.classes).tolist(),
        "training keys": content_keys(texts),
    }
    return tried


def reliability(
    scores: NDArray[np.float64], truth: NDArray[np.bool_], bins: int = _BINS
) -> list[dict[str, float]]:
    """Return how often texts are delicate, by their predicted probability, in bins of equal size.

    Each bin has the mean prediction, the share that is delicate with a Wilson interval, and n.

    Examples
    --------
    >>> found = reliability(np.array([0.1, 0.1, 0.9, 0.9]), np.array([0, 0, 1, 1], bool), bins=2)
    >>> [(round(row["predicted"], 1), row["share"], row["n"]) for row in found]
    [(0.1, 0.0, 2), (0.9, 1.0, 2)]
    """
    order = np.argsort(scores, kind="stable")
    rows = []
    for part in np.array_split(order, min(bins, len(order)) or 1):
        if len(part):
            count = int(truth[part].sum())
            low, high = wilson(count, len(part))
            rows.append({"predicted": float(scores[part].mean()), "share": count / len(part),
                         "low": float(low), "high": float(high), "n": len(part)})  # fmt: skip
    return rows


def _error(rows: Sequence[dict[str, float]]) -> float:
    """Return the expected calibration error: the mean gap of the bins, weighted by their size."""
    total = sum(row["n"] for row in rows)
    return sum(row["n"] * abs(row["predicted"] - row["share"]) for row in rows) / total


def _rates(flags: NDArray[np.bool_], truth: NDArray[np.bool_]) -> dict[str, Any]:
    """Return precision, recall and F1 with intervals (Wilson; bootstrap of the counts for F1)."""
    counts = {"tp": int((flags & truth).sum()), "fp": int((flags & ~truth).sum()),
              "fn": int((~flags & truth).sum()), "tn": int((~flags & ~truth).sum())}  # fmt: skip
    tp, fp, fn, _ = counts.values()
    found: dict[str, Any] = dict(counts)
    for name, of in (("precision", tp + fp), ("recall", tp + fn)):
        low, high = wilson(tp, of)
        found[name] = tp / of if of else None
        found[f"{name} interval"] = [float(low), float(high)] if of else None
    n = len(flags)
    drawn = generator(0, "train", "f1").multinomial(n, np.array(list(counts.values())) / n, 2000)
    with np.errstate(invalid="ignore"):
        f1 = 2 * drawn[:, 0] / (2 * drawn[:, 0] + drawn[:, 1] + drawn[:, 2])
    found["f1"] = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None
    found["f1 interval"] = [float(end) for end in np.nanquantile(f1, [0.025, 0.975])]
    return found


def head_for(data: LabeledTexts, kind: HeadKind = "multiclass") -> Head:
    """Return the head that fits the labels: six classes, or yes and no."""
    return Head(kind=kind) if data.graded else Head(kind="binary", classes=2, cut=1)
