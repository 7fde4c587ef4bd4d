"""Detectors of ombud: heads and rules, long texts, and texts that they have seen before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.audits.presets import Options
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, read_table
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.metrics.engine.estimate import correct, estimate_metric
from ombud.probes.swaps import country_probe, swap_probe
from ombud.questions.delicate.agreement import class_agreement
from ombud.questions.delicate.comparison import accuracy_difference
from ombud.questions.delicate.metrics import (
    F1Score,
    FlagShare,
    Precision,
    Recall,
    judged,
    labelled_texts,
)
from ombud.questions.delicate.options import DelicateOptions, Model, Share
from ombud.questions.delicate.ratings import HIGHEST_RISK, read_ratings
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.systems.base import Moderator
from ombud.systems.detectors import (
    Detector,
    EmbeddingDetector,
    Head,
    NgramDetector,
    TransformerDetector,
)
from ombud.systems.detectors.base import Scores
from ombud.systems.detectors.heads import HeadKind, Rule
from ombud.systems.detectors.saved import detector_in
from ombud.systems.detectors.training_texts import (
    AgainstBias,
    TrainingTexts,
    with_other_countries,
    with_swapped_copies,
)
from ombud.systems.detectors.transformer import Recipe
from ombud.systems.moderators.local import clean_texts
from ombud.text.dedup import content_keys
from ombud.text.swaps import GenderSwap

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.engine.estimator import Settings


_WORDS = {"gender-swap": "gender-swapped copies", "countries": "countries replaced"}


@dataclass(frozen=True, eq=False)
class _Training:
    """Texts to learn from and texts to set a threshold on."""

    texts: list[str]
    ratings: NDArray[np.int64]
    validation: list[str]
    validation_ratings: NDArray[np.int64]


@analysis("head-comparison")
class HeadComparison(Options, Analysis):
    """Multiclass, ordinal and binary heads with both rules, trained alike and compared in pairs.

    Detectors are trained on the texts of a file, their thresholds are set on a part of it that is
    held out, and all are asked about the audited texts. Training texts that stand in the audit are
    left out and counted.

    - ``heads/f1``, ``heads/precision``, ``heads/recall``: of each head and rule; differences to
      the first head with the same rule, and of the two rules of a head, on the same texts.
    - ``heads/accuracy-difference``: which of the two is right more often (McNemar).
    - ``heads/within-one``, ``heads/weighted-kappa``: predicted risk classes against those of
      raters (with `ratings`); a binary head has no classes.
    - ``training/f1``, ``training/flips``, ``training/country-sd``: the first head trained on
      changed texts (`against_bias`), before and after: F1, decisions that a gender swap flips,
      spread of scores over countries.

    - **Unit**: the text, or what texts share.
    - **Undefined**: without enough labelled texts.
    - **Does not capture**: chance of training (one seed each), or what a larger model would do.
    """

    train: Path | str = DelicateOptions.field("train", required=True)
    model: Model = DelicateOptions.field("model")
    base: Path | str = DelicateOptions.field("base")
    updates: int = DelicateOptions.field("updates")
    heads: tuple[HeadKind, ...] = Field(default=("multiclass", "ordinal", "binary"), min_length=1)
    """The heads to compare; the others are compared with the first."""
    rules: tuple[Rule, ...] = Field(default=("threshold", "argmax"), min_length=1)
    """The rules to compare."""
    against_bias: tuple[AgainstBias, ...] = DelicateOptions.field("against_bias")
    ratings: Path | str = DelicateOptions.field("ratings")
    validation: Share = 0.2
    """The share of texts that is held out to set thresholds, where the file has no `split`."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the comparisons and the confusion matrices of risk classes."""
        data, settings = context.data, context.settings
        texts = labelled_texts(data, "head-comparison")
        training, exclusions = self._read(clean_texts(texts), settings)
        risk = read_ratings(self.ratings, texts).labels.risk if self.ratings else None
        said: dict[str, Decisions] = {}
        estimates: list[Estimate] = []
        confusion: list[dict[str, Any]] = []
        facts: list[dict[str, Any]] = []
        first: Detector | None = None
        # The first head last: the engine takes the later of two systems from the earlier.
        for kind in reversed(self.heads):
            plain = TrainingTexts(training.texts, training.ratings, 0)
            detector = self._trained(kind, plain, training, settings)
            first = detector
            _, scores = detector.score(clean_texts(texts))
            for rule in reversed(self.rules):
                said[f"{kind}, {rule}"] = _decided(detector, scores, rule, texts.ids)
            facts.append({"head": kind, "threshold": detector.threshold,
                          "training texts": len(training.texts),
                          "validation texts": len(training.validation)})  # fmt: skip
            predicted = detector.head.predicted(scores.outputs)
            if risk is not None and predicted is not None:
                about = {"system": kind, "label": "risk class", "level": settings.level}
                found, rows = class_agreement(predicted, risk, "heads", about)
                estimates += found
                confusion += rows
        estimates += self._compared(data, said, settings)
        assert first is not None  # there is at least one head
        for option, after, changed in self._changed(training, settings):
            facts.append({"head": f"{self.heads[0]}, {_WORDS[option]}",
                          "threshold": after.threshold, "training texts": changed,
                          "validation texts": len(training.validation)})  # fmt: skip
            estimates += _before_after(data, first, after, option, settings)
        tables = {"heads": pl.DataFrame(facts)}
        if confusion:
            tables["head-confusion"] = pl.DataFrame(confusion)
        return AnalysisResult(tuple(estimates), tables, exclusions)

    def _read(
        self, audited: list[str], settings: Settings
    ) -> tuple[_Training, tuple[Exclusion, ...]]:
        """Return the training texts; those of the audit are left out."""
        source = str(self.train)
        columns = [Column("text", "text"), Column("split", "text", required=False)]
        columns.append(Column("risk", "count", low=0, high=HIGHEST_RISK))
        table = read_table(source, columns)
        texts = table["text"].to_list()
        again = np.isin(content_keys(texts), content_keys(audited))
        exclusions: tuple[Exclusion, ...] = ()
        if again.any():
            reason = "they are audited texts"
            count = int(again.sum())
            exclusions = (
                Exclusion("head-comparison", "training texts", count, reason, len(texts)),
            )
            table = table.filter(pl.Series(~again))
        # A text that stands twice must not be learnt from and tuned on.
        _, keep = np.unique(content_keys(table["text"].to_list()), return_index=True)
        table = table[np.sort(keep).tolist()]
        if "split" in table.columns:
            wrong = set(table["split"].to_list()) - {"train", "validation", "test"}
            if wrong:
                raise DataError(source, ["column 'split' has other values than train, validation"])
            held = (table["split"] == "validation").to_numpy()
            used = (table["split"] != "test").to_numpy()
            table, held = table.filter(pl.Series(used)), held[used]
        else:
            rng = generator(settings.seed, "head-comparison")
            held = rng.random(table.height) < self.validation
        words, ratings = table["text"].to_list(), table["risk"].to_numpy().astype(np.int64)
        parts = [np.flatnonzero(~held), np.flatnonzero(held)]
        if not all(len(part) for part in parts):
            raise DataError(source, ["there are no texts to train on, or none to validate on"])
        training = _Training(
            [words[i] for i in parts[0]], ratings[parts[0]],
            [words[i] for i in parts[1]], ratings[parts[1]],
        )  # fmt: skip
        return training, exclusions

    def _trained(
        self, kind: HeadKind, given: TrainingTexts, training: _Training, settings: Settings
    ) -> Detector:
        head = Head(kind=kind)
        detector: NgramDetector | EmbeddingDetector | TransformerDetector
        if self.model == "transformer":
            recipe = Recipe(updates=self.updates, seed=settings.seed)
            detector = TransformerDetector(head=head, base=str(self.base), recipe=recipe)
            with TemporaryDirectory() as folder:
                detector.fit(given.texts, given.ratings, folder=folder)
        elif self.model == "ngrams":
            detector = NgramDetector(head=head, seed=settings.seed)
            detector.fit(given.texts, given.ratings)
        else:
            detector = EmbeddingDetector(head=head, encoder=self.model, seed=settings.seed)
            detector.fit(given.texts, given.ratings)
        return detector.calibrate(training.validation, training.validation_ratings)

    def _changed(
        self, training: _Training, settings: Settings
    ) -> Iterator[tuple[AgainstBias, Detector, int]]:
        """Train the first head on changed texts."""
        for option in self.against_bias:
            if option == "gender-swap":
                given = with_swapped_copies(training.texts, training.ratings)
            else:
                given = with_other_countries(training.texts, training.ratings, settings.seed)
            yield option, self._trained(self.heads[0], given, training, settings), len(given.texts)

    def _compared(
        self, data: Dataset, said: dict[str, Decisions], settings: Settings
    ) -> list[Estimate]:
        pairs = [
            (f"{kind}, {rule}", f"{self.heads[0]}, {rule}")
            for kind in self.heads[1:] for rule in self.rules
        ] + [
            (f"{kind}, {self.rules[1]}", f"{kind}, {self.rules[0]}")
            for kind in self.heads if len(self.rules) > 1
        ]  # fmt: skip
        result: list[Estimate] = []
        for key, metric in (("f1", F1Score()), ("precision", Precision()), ("recall", Recall())):
            rows = {name: metric.measure(some, data) for name, some in said.items()}
            found = estimate_metric(metric, rows, None, settings)
            about = {"key": f"heads/{key}"}
            result += [e.replace(**about) for e in found if e.kind == "level"]
            at = {(e.system, e.against): e for e in found if e.kind == "gap"}
            gaps = [at[pair] for pair in pairs]
            result += [e.replace(**about) for e in correct(gaps, settings.correction)]
        texts = {name: judged(some, data, "head-comparison") for name, some in said.items()}
        right = [
            accuracy_difference(texts[a], texts[b], a, b, settings).replace(
                key="heads/accuracy-difference"
            )
            for a, b in pairs
        ]
        return result + correct(right, settings.correction)


def _decided(detector: Detector, scores: Scores, rule: Rule, ids: NDArray[Any]) -> Decisions:
    if rule == "argmax":
        flagged = detector.head.decide(scores.outputs, "argmax", detector.threshold)
    else:
        flagged = detector.of_windows(scores) > detector.threshold
    score = detector.of_windows(scores).astype(np.float32)
    return Decisions(np.asarray(ids), np.asarray(flagged, dtype=np.int8), score)


def _before_after(
    data: Dataset, before: Detector, after: Detector, option: AgainstBias, settings: Settings
) -> list[Estimate]:
    """Return F1 and what sways decisions, with and without changed training texts."""
    assert data.texts is not None  # analyse has checked
    label = _WORDS[option]
    both = {label: after, "as given": before}
    rows = {name: F1Score().measure(d.moderate(data.texts), data) for name, d in both.items()}
    found = estimate_metric(F1Score(), rows, None, settings)
    result = [e.replace(key="training/f1", label=label) for e in found]
    texts = clean_texts(data.texts)
    for name, detector in both.items():
        if option == "gender-swap":
            probe = swap_probe(detector, texts, GenderSwap(), level=settings.level)
            sway, key = probe["swap/flips-changed"], "training/flips"
        else:
            sway = country_probe(detector, level=settings.level)["country/score-sd"]
            key = "training/country-sd"
        result.append(sway.replace(key=key, system=name, label=label))
    return result


# The cut text last: the engine takes the later of two systems from the earlier.
_WAYS = ("max", "mean", "cut")


@analysis("long-texts")
@dataclass(frozen=True)
class LongTexts(Analysis):
    """Detection on texts longer than a detector's window: cut, and in windows.

    Published detectors cut a text where their window ends. For every detector of ombud that has a
    window, F1, precision, recall and the share flagged of the texts that do not fit are given for
    the first window alone (*cut*), for the highest window (*max*) and for the mean of windows
    (*mean*), each decided by the detector's threshold; the last two are compared with the first on
    the same texts.

    - **Unit**: the text, or what texts share.
    - **Undefined**: when fewer texts are longer than the window than the least number of the audit.
    - **Does not capture**: whether the threshold, set on other texts, suits long ones; a highest
      window grows with the number of windows.
    """

    asks_systems = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Return detection on long texts, of every live detector."""
        data, settings = context.data, context.settings
        texts = labelled_texts(data, "long-texts")
        estimates: list[Estimate] = []
        rows: list[dict[str, Any]] = []
        exclusions: list[Exclusion] = []
        for number, (name, system) in enumerate(context.systems.items()):
            detector = detector_in(system)
            if isinstance(system, Moderator) and system.record is not None:
                reason = "recorded decisions do not tell how much of a text was read"
                exclusions.append(Exclusion("long texts", "systems", 1, reason, system=name))
            if detector is None:
                continue
            context.progress(number, len(context.systems), f"long texts: {name}")
            some = _may_be_long(texts, detector)
            _, scores = detector.score(clean_texts(some))
            long = (scores.windows > 1) & (some.truth >= 0)
            rows.append(_row(name, len(texts), detector, scores, long))
            if long.any():
                # Texts that fit are decided alike either way: only the others are measured.
                only = replace(some, truth=np.where(long, some.truth, -1).astype(np.int8))
                said = {way: _said(detector, scores, way, some.ids) for way in _WAYS}
                estimates += _estimates(replace(data, texts=only), said, name, settings)
        tables = {"long-texts": pl.DataFrame(rows)} if rows else {}
        return AnalysisResult(tuple(estimates), tables, tuple(exclusions))


def _may_be_long(texts: Texts, detector: Detector) -> Texts:
    """Return the texts that may not fit into the window: a token has at least one byte."""
    sizes = np.array([len(text.encode()) for text in clean_texts(texts)])
    room = detector.window or np.inf
    # Room is kept for the tokens that begin and end a text.
    kept = np.flatnonzero(sizes > room - 4)
    return Texts(
        texts.ids[kept],
        texts.texts[kept],
        texts.truth[kept],
        None if texts.clusters is None else texts.clusters[kept],
    )


def _row(
    name: str, texts: int, detector: Detector, scores: Scores, long: NDArray[np.bool_]
) -> dict[str, Any]:
    cut = detector.of_windows(scores, "cut") > detector.threshold
    row: dict[str, Any] = {"system": name, "window": detector.window or None, "texts": texts}
    row["longer than the window"] = int(long.sum())
    row["most windows"] = int(scores.windows.max(initial=1))
    row["used"] = detector.long_texts
    for way in _WAYS[:2]:
        other = detector.of_windows(scores, way) > detector.threshold
        row[f"{way} differs from cut"] = int((long & (other != cut)).sum())
    return row


def _said(detector: Detector, scores: Scores, way: str, ids: NDArray[Any]) -> Decisions:
    score = detector.of_windows(scores, way)
    flagged = (score > detector.threshold).astype(np.int8)
    return Decisions(np.asarray(ids), flagged, score.astype(np.float32))


def _estimates(
    data: Dataset, said: dict[str, Decisions], system: str, settings: Settings
) -> list[Estimate]:
    """Return levels of each way of reading, and differences to the texts that were cut."""
    result: list[Estimate] = []
    for key, metric in (
        ("f1", F1Score()), ("precision", Precision()), ("recall", Recall()),
        ("flag-share", FlagShare()),
    ):  # fmt: skip
        rows = {way: metric.measure(some, data) for way, some in said.items()}
        found = estimate_metric(metric, rows, None, settings)
        fields = {"system": system, "key": f"long-texts/{key}"}
        result += [e.replace(label=e.system, **fields) for e in found if e.kind == "level"]
        gaps = [e for e in found if e.kind == "gap" and e.against == "cut"]
        result += [e.replace(label=e.system, **fields) for e in correct(gaps, settings.correction)]
    return result


@analysis("seen-texts")
@dataclass(frozen=True)
class SeenTexts(Analysis):
    """How each detector of ombud decides, and how many audited texts it has seen before.

    A detector remembers the words of the texts that it was trained on and that its threshold was
    set on. Where audited texts are among them, its figures are marked with #: they are too good.

    - **Unit**: the text; counts, not estimates.
    - **Does not capture**: texts that a checkpoint or an embedding had seen before training, or
      that nearly repeat a training text.
    """

    asks_systems = True

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each live detector."""
        data = context.data
        given: Texts = data.need("texts", "seen-texts")
        texts = [str(text) for text in given]
        sets = None if given.sets is None else given.sets.tolist()
        rows: list[dict[str, Any]] = []
        by_set: list[dict[str, Any]] = []
        for name, system in context.systems.items():
            detector = detector_in(system)
            if detector is None:
                continue
            rows.append(
                {
                    "system": name,
                    "kind": detector.kind,
                    "head": detector.head.kind,
                    "rule": detector.rule,
                    "threshold": detector.threshold if detector.rule == "threshold" else None,
                    "set on": detector.calibrated or "given, not calibrated",
                    "texts": len(texts),
                    **_seen(detector, texts),
                }
            )
            for part in sorted(set(sets or ())):
                some = [text for text, of in zip(texts, sets or (), strict=True) if of == part]
                row = {"system": name, "set": part, "texts": len(some), **_seen(detector, some)}
                by_set.append(row)
        tables = {"seen-texts": pl.DataFrame(rows)} if rows else {}
        if by_set:
            tables["seen-by-set"] = pl.DataFrame(by_set)
        return AnalysisResult(tables=tables)


def _seen(detector: Detector, texts: list[str]) -> dict[str, int | None]:
    seen = detector.seen(texts)
    return {"trained on": seen.get("training"), "calibrated on": seen.get("validation")}
