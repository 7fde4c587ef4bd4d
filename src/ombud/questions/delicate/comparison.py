"""Detectors compared with each other, with repeats of themselves, and with published figures."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.decisions import Decisions
from ombud.data.frames import Column, read_table
from ombud.data.ids import Vocabulary
from ombud.errors import DataError
from ombud.metrics.engine.estimate import correct
from ombud.metrics.engine.text_rows import was_flagged
from ombud.questions.delicate.metrics import (
    Confusion,
    Judged,
    f1_statistic,
    judged,
    labelled_texts,
    precision_recall_curve,
)
from ombud.questions.delicate.options import DelicateOptions
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import estimate, resample
from ombud.stats.estimate import Estimate
from ombud.stats.paired import paired_proportion_estimate
from ombud.stats.proportions import proportion
from ombud.stats.roc import auc_difference, auc_estimate
from ombud.systems.detectors.heads import best_threshold
from ombud.taxonomy.resources import parse_commented_csv

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


_CURVE_POINTS = 60


@analysis("detector-comparison")
class DetectorComparison(Options, Analysis):
    """Counts, ROC areas, F1 at a threshold tuned on the test (#), and paired tests of detectors.

    - ``detection/auc``: area under the ROC curve, and paired differences (DeLong).
    - ``detection/tuned-f1``: the largest F1 that any threshold reaches on these very texts. It is
      too high by its making; its interval tunes again in each replicate, so it says how far the
      *tuning on such a test* varies, not how the threshold does on new texts. Marked with #.
    - ``detection/accuracy-difference``: which of two is right more often, on the same texts
      (McNemar's mid-p, Newcombe's interval; over clusters a bootstrap).

    - **Unit**: the text, or what texts share.
    - **Undefined**: areas and tuned F1 without scores or with one class only.
    - **Does not capture**: cost of the two kinds of errors.
    """

    replicates: int = Field(default=500, ge=1)
    """The number of bootstrap replicates of the tuned F1."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the estimates, the table of counts and the precision-recall curves."""
        data, outputs, settings = context.data, context.outputs, context.settings
        found = {
            name: judged(some, data, "detector-comparison")
            for name, some in decisions_in(outputs, "detector-comparison").items()
        }
        estimates: list[Estimate] = []
        for name, texts in found.items():
            about: dict[str, Any] = {"system": name, "unit": texts.unit, "level": settings.level}
            estimates += [self._area(texts, about), self._tuned(texts, about, settings)]
        pairs = list(combinations(found, 2))
        areas = [_area_gap(found[a], found[b], a, b, settings) for a, b in pairs]
        right = [accuracy_difference(found[a], found[b], a, b, settings) for a, b in pairs]
        estimates += correct(areas, settings.correction) + correct(right, settings.correction)
        return AnalysisResult(
            tuple(estimates),
            {"detection-counts": _counts(found), "precision-recall": _curves(found)},
        )

    def _area(self, texts: Judged, about: dict[str, Any]) -> Estimate:
        known = ~np.isnan(texts.score)
        if not known.any():
            return Estimate.undefined(
                reason_code="not-measured",
                metric="area under the ROC curve", key="detection/auc", n=len(texts),
                reason="the system gives no scores", **about,
            )  # fmt: skip
        clusters = None if texts.clusters is None else texts.clusters[known]
        return auc_estimate(
            texts.score[known], texts.truth[known], clusters=clusters, key="detection/auc", **about
        )

    def _tuned(self, texts: Judged, about: dict[str, Any], settings: Settings) -> Estimate:
        about = about | {"metric": "F1 at the threshold tuned on the test (#)"}
        about["key"] = "detection/tuned-f1"
        known = ~np.isnan(texts.score)
        truth = texts.truth[known]
        if not truth.any():
            scored = "no scored text should be flagged" if known.any() else "it gives no scores"
            return Estimate.undefined(
                reason_code="no-variation" if known.any() else "not-measured",
                reason=scored,
                n=int(known.sum()),
                **about,
            )
        scores = texts.score[known]
        if truth.all():
            return Estimate.undefined(
                reason_code="no-variation",
                reason="every text should be flagged",
                n=len(truth),
                **about,
            )
        threshold, f1 = best_threshold(scores, truth)
        units = np.arange(len(scores)) if texts.clusters is None else texts.clusters[known]
        _, codes = np.unique(units, return_inverse=True)
        size = int(codes.max()) + 1
        rng = generator(settings.seed, "tuned F1", about["system"])
        draws = []
        for _ in range(self.replicates):
            counts = np.bincount(rng.integers(size, size=size), minlength=size)[codes]
            if (counts * truth).any() and (counts * ~truth).any():
                draws.append(best_threshold(scores, truth, counts)[1])
        tail = (1 - settings.level) / 2
        low, high = np.quantile(draws, [tail, 1 - tail])
        return Estimate(
            value=f1,
            interval=(min(float(low), f1), max(float(high), f1)),
            method="bootstrap, tuned again each time",
            n=size,
            note="# tuned on the test itself: too high for new texts",
            details={"threshold": threshold, "tuned": True},
            **about,
        )


def _area_gap(one: Judged, two: Judged, a: str, b: str, settings: Settings) -> Estimate:
    at, x, y = _shared(one, two)
    known = ~np.isnan(one.score[x]) & ~np.isnan(two.score[y])
    about: dict[str, Any] = {"key": "detection/auc", "system": a, "against": b}
    about |= {"unit": one.unit, "level": settings.level}
    if not known.any():
        return Estimate.undefined(
            reason_code="not-measured",
            metric="area under the ROC curve", kind="gap", null=0.0, n=len(at),
            reason="one of the two gives no scores", **about,
        )  # fmt: skip
    clusters = None if one.clusters is None else one.clusters[x][known]
    return auc_difference(
        one.score[x][known], two.score[y][known], one.truth[x][known], clusters=clusters, **about
    )


def accuracy_difference(one: Judged, two: Judged, a: str, b: str, settings: Settings) -> Estimate:
    """Return how much more often one of two detectors is right, on the same texts."""
    at, x, y = _shared(one, two)
    truth = one.truth[x]
    about: dict[str, Any] = {
        "metric": "right decisions", "key": "detection/accuracy-difference", "system": a,
        "against": b, "unit": one.unit, "level": settings.level, "kind": "gap", "null": 0.0,
    }  # fmt: skip
    n = len(at) if one.clusters is None else len(np.unique(one.clusters[x]))
    if n < settings.minimum:
        reason = f"not enough data: {n} {one.unit}s, at least {settings.minimum} wanted"
        return Estimate.undefined(reason_code="too-few-units", reason=reason, n=n, **about)
    right = [np.where(truth, f, 1 - f) for f in (one.flagged[x], two.flagged[y])]
    if one.independent and two.independent:
        better = int(((right[0] == 1) & (right[1] == 0)).sum())
        worse = int(((right[0] == 0) & (right[1] == 1)).sum())
        about["details"] = {"only first right": better, "only second right": worse}
        return paired_proportion_estimate(right[0], right[1], **about)
    drawn = resample(
        [Sample(right[0] - right[1])],
        clusters=None if one.clusters is None else one.clusters[x],
        replicates=settings.replicates,
        rng=generator(settings.seed, "right decisions", a, b),
    )
    return drawn.at(0).estimate(method=settings.interval, **about)


def _shared(
    one: Judged, two: Judged
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return np.intersect1d(one.index, two.index, assume_unique=True, return_indices=True)


def _counts(found: Mapping[str, Judged]) -> pl.DataFrame:
    return pl.DataFrame(
        [{"system": name, "texts": len(texts)} | texts.counts._asdict()
         for name, texts in found.items()]
    )  # fmt: skip


def _curves(found: Mapping[str, Judged]) -> pl.DataFrame:
    """Return precision and recall at some thresholds of each system that gives scores."""
    parts = []
    for name, texts in found.items():
        known = ~np.isnan(texts.score)
        truth = texts.truth[known]
        if not truth.any() or truth.all():
            continue
        curve = precision_recall_curve(texts.score[known], truth)
        kept = np.unique(np.linspace(0, curve.height - 1, _CURVE_POINTS).astype(int))
        parts.append(curve[kept.tolist()].insert_column(0, pl.Series("system", [name] * len(kept))))
    schema = {"system": pl.String, "threshold": pl.Float64, "precision": pl.Float64}
    return pl.concat(parts) if parts else pl.DataFrame(schema=schema | {"recall": pl.Float64})


@analysis("decision-stability")
class DecisionStability(Options, Analysis):
    """Share of texts whose decision changes when they are asked about again.

    - ``repeats/changed``: texts with both decisions among their repeats (Wilson, or a
      bootstrap over clusters).
    - ``repeats/f1-one-answer``: F1 of a single answer a text. Its interval draws a text's answer
      anew in each replicate, so it holds both the choice of texts and the system's own chance.
      (The F1 of the other tables averages over repeats.)

    - **Unit**: the text, or what texts share.
    - **Undefined**: without repeats.
    - **Does not capture**: change over months, which is drift; published outcomes moved between
      two runs of the same authors.
    """

    replicates: int = Field(default=1000, ge=1)
    """The number of bootstrap replicates of the F1 of one answer."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return how stable each system is; systems that were asked once have no numbers."""
        data, outputs, settings = context.data, context.outputs, context.settings
        texts = labelled_texts(data, "decision-stability")
        estimates: list[Estimate] = []
        rows: list[dict[str, Any]] = []
        by_text: list[pl.DataFrame] = []
        for name, some in decisions_in(outputs, "decision-stability").items():
            about: dict[str, Any] = {"system": name, "level": settings.level}
            about["unit"] = "text" if texts.clusters is None else "cluster"
            table = _table(some, np.asarray(texts.ids))
            asked = (~np.isnan(table)).sum(axis=1)
            again = asked >= 2
            if not again.any():
                continue
            share = np.nanmean(table[again], axis=1)
            clusters = None if texts.clusters is None else texts.clusters[again]
            details = {
                "texts": int(again.sum()),
                "repeats": int(asked[again].min()),
                "changed": int(_mixed(share).sum()),
                "largest sd of decisions": float(np.sqrt(share * (1 - share)).max()),
                "largest sd of scores": _score_sd(some, np.asarray(texts.ids)),
            }
            estimates.append(_changed(share, clusters, settings, about | {"details": details}))
            estimates.append(self._f1(table, texts, about, settings))
            rows.append({"system": name} | details)
            by_text.append(_spread(name, table, some, np.asarray(texts.ids)))
        tables = {"decision-stability": pl.DataFrame(rows)} if rows else {}
        if by_text:
            tables["decision-stability-texts"] = pl.concat(by_text)
        return AnalysisResult(tuple(estimates), tables)

    def _f1(self, table: Any, texts: Any, about: dict[str, Any], settings: Settings) -> Estimate:
        about = about | {"metric": "F1 of one answer", "key": "repeats/f1-one-answer"}
        kept = (texts.truth >= 0) & (~np.isnan(table)).any(axis=1)
        table, truth = table[kept], texts.truth[kept] == 1
        units = np.arange(len(table)) if texts.clusters is None else texts.clusters[kept]
        _, codes = np.unique(units, return_inverse=True)
        size = int(codes.max(initial=-1)) + 1
        if size < settings.minimum or not truth.any():
            return Estimate.undefined(
                reason_code="too-few-units", reason="not enough labelled texts", n=size, **about
            )
        known = ~np.isnan(table)
        share = np.where(known, table, 0).sum(axis=1) / known.sum(axis=1)
        rng = generator(settings.seed, "one answer", about["system"])
        draws = np.empty(self.replicates)
        for b in range(self.replicates):
            weight = np.bincount(rng.integers(size, size=size), minlength=size)[codes]
            flags = rng.random(len(share)) < share
            tp = (weight * (flags & truth)).sum()
            whole = (weight * flags).sum() + (weight * truth).sum()
            draws[b] = 2 * tp / whole if whole else np.nan
        # The expectation of one answer, to first order: that of its cells.
        value = float(2 * share[truth].sum() / (share.sum() + truth.sum()))
        tail = (1 - settings.level) / 2
        low, high = np.nanquantile(draws, [tail, 1 - tail])
        return Estimate(
            value=value,
            interval=(min(float(low), value), max(float(high), value)),
            method="bootstrap of texts and answers",
            n=size,
            undefined_replicates=int(np.isnan(draws).sum()),
            **about,
        )


def _spread(system: str, table: Any, some: Decisions, ids: Any) -> pl.DataFrame:
    """Return the texts whose decision or score changed, with standard deviations over repeats."""
    row, repeat, width = _places(some, ids)
    scores = np.full((len(ids), width), np.nan)
    known = row >= 0
    scores[row[known], repeat[known]] = np.where(some.decided, some.scores, np.nan)[known]
    asked = (~np.isnan(table)).sum(axis=1)
    few = asked < 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without any answer
        share, sd = np.nanmean(table, axis=1), np.nanstd(table, axis=1)
        score_sd = np.nanstd(scores, axis=1)
    shown = np.flatnonzero(~few & ((sd > 0) | (score_sd > 0)))
    return pl.DataFrame(
        {
            "system": [system] * len(shown),
            "id": [str(name) for name in ids[shown]],
            "answers": asked[shown],
            "flagged": share[shown],
            "sd_of_decisions": sd[shown],
            "sd_of_scores": score_sd[shown],
        },
        schema_overrides={"system": pl.String, "id": pl.String},
    ).fill_nan(None)


def _mixed(share: Any) -> Any:
    """Return whether a text was decided both ways."""
    return (share > 0) & (share < 1)


def _changed(share: Any, clusters: Any, settings: Settings, about: dict[str, Any]) -> Estimate:
    """Return the share of texts that were decided both ways."""
    mixed = _mixed(share)
    about = about | {"metric": "texts decided both ways when asked again"}
    about["key"] = "repeats/changed"
    if clusters is None:
        return proportion(int(mixed.sum()), len(mixed), **about)
    drawn = resample(
        [Sample(mixed.astype(np.float64))],
        clusters=clusters,
        replicates=settings.replicates,
        rng=generator(settings.seed, "repeats", about["system"]),
    )
    return drawn.at(0).estimate(method=settings.interval, **about)


def _places(some: Decisions, ids: Any) -> tuple[Any, Any, int]:
    row = Vocabulary(ids).codes(some.ids)
    repeat = np.zeros(len(some), dtype=np.int64) if some.repeats is None else some.repeats
    return row, repeat, int(repeat.max(initial=0)) + 1


def _table(some: Decisions, ids: Any) -> Any:
    """Return texts x repeats: 1 flagged, 0 allowed, NaN neither."""
    row, repeat, width = _places(some, ids)
    table = np.full((len(ids), width), np.nan)
    table[row[row >= 0], repeat[row >= 0]] = was_flagged(some)[row >= 0]
    return table


def _score_sd(some: Decisions, ids: Any) -> float | None:
    row, repeat, width = _places(some, ids)
    scores = np.where(some.answered, some.scores.astype(np.float64), np.nan)
    table = np.full((len(ids), width), np.nan)
    table[row[row >= 0], repeat[row >= 0]] = scores[row >= 0]
    twice = (~np.isnan(table)).sum(axis=1) >= 2
    return float(np.nanstd(table[twice], axis=1).max()) if twice.any() else None


_FIGURES = ("precision", "recall", "f1", "accuracy", "macro_f1")


class PublishedRow(NamedTuple):
    """Published figures of one method on one data set, in per cent."""

    # What was tested, and on what.
    dataset: str
    method: str
    # The figures, as printed.
    precision: float
    recall: float
    f1: float
    n: int | None  # How many texts; None where it is not published
    note: str  # What must be known before comparing


@cache
def published_transfer() -> tuple[PublishedRow, ...]:
    """Return the published figures on sets of toxic language (Table 4 of the DeTexD paper).

    Examples
    --------
    >>> [row.f1 for row in published_transfer() if row.method == "DeTexD RoBERTa"]
    [81.0, 69.0, 71.1, 62.0, 55.8]
    """
    rows = _shipped("published-transfer.csv", PublishedRow._fields)
    return tuple(
        PublishedRow(
            row["dataset"], row["method"], float(row["precision"]), float(row["recall"]),
            float(row["f1"]), int(row["n"]) if row["n"] else None, row["note"],
        )
        for row in rows
    )  # fmt: skip


def _shipped(name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    text = files("ombud.questions.delicate").joinpath("files", name).read_text(encoding="utf-8")
    return [dict(row) for _, row in parse_commented_csv(text, name, columns)[1]]


@analysis("published-figures")
class PublishedFigures(Options, Analysis):
    """Precision, recall and F1 of published methods, with intervals that were not published.

    Rounded rates and class sizes often tell the counts behind them. Without a file, the figures are
    those of the benchmark (Table 5 of the paper). Every integer confusion matrix
    that rounds to the printed figures is found; where there is just one, the figures get
    intervals as if the counts had been published.

    - **Unit**: the text (Wilson for precision and recall, bootstrap for F1).
    - **Undefined**: where no matrix fits the figures, or several do.
    - **Does not capture**: that the published texts are not those of this audit. A row marked #
      has a threshold that was chosen on the test itself.
    """

    figures: Path | str = DelicateOptions.field("published_file")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the counts behind each row, and its figures with intervals."""
        settings = context.settings
        estimates: list[Estimate] = []
        rows: list[dict[str, Any]] = []
        for row in _figures(self.figures):
            figures = {name: row[name] for name in _FIGURES if row.get(name) is not None}
            positives, negatives = int(row["positives"]), int(row["negatives"])
            try:
                found = recover_counts(
                    positives, negatives, decimals=int(row.get("decimals") or 0), **figures
                )
            except ValueError as fault:
                raise DataError(
                    str(self.figures) or "published figures", [f"{row['system']}: {fault}"]
                ) from None
            name = str(row["system"])
            counts = found[0]._asdict() if len(found) == 1 else dict.fromkeys(Confusion._fields)
            rows.append({"system": name, **figures, "matrices": len(found), **counts})
            estimates += _estimates(found, name, settings)
        return AnalysisResult(tuple(estimates), {"published-figures": _figures_table(rows)})


def _figures(given: Path | str) -> list[dict[str, Any]]:
    if not given:
        columns = ("system", "positives", "negatives", "precision", "recall", "f1", "decimals")
        return [
            {name: row[name] if name == "system" else float(row[name]) for name in columns}
            for row in _shipped("published-benchmark.csv", columns)
        ]
    rates = [Column(c, "number", required=False, nullable=True, low=0, high=100) for c in _FIGURES]
    sizes = [Column(c, "count", low=1) for c in ("positives", "negatives")]
    decimals = Column("decimals", "count", required=False, low=0, high=6)
    table = read_table(str(given), [Column("system", "text"), *sizes, *rates, decimals])
    if "decimals" not in table.columns:
        table = table.with_columns(decimals=pl.lit(1))
    return table.to_dicts()


def _figures_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    shown = [name for name in _FIGURES if any(name in row for row in rows)]
    numbers = dict.fromkeys(shown, pl.Float64) | {"matrices": pl.Int64}
    schema = {"system": pl.String} | numbers | dict.fromkeys(Confusion._fields, pl.Int64)
    return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)


def _estimates(found: tuple[Confusion, ...], name: str, settings: Settings) -> list[Estimate]:
    about: dict[str, Any] = {"system": name, "unit": "text", "level": settings.level}
    titles = {"precision": "precision", "recall": "recall", "f1": "F1"}
    names: dict[str, dict[str, Any]] = {
        key: {"key": f"published/{key}", "metric": f"published {title}"}
        for key, title in titles.items()
    }
    if len(found) != 1:
        reason = f"{len(found)} confusion matrices round to the printed figures"
        if not found:
            reason = "no confusion matrix of these class sizes rounds to the printed figures"
        return [
            Estimate.undefined(reason_code="not-estimable", reason=reason, n=0, **about, **more)
            for more in names.values()
        ]
    counts = found[0]
    about["details"] = counts._asdict()
    result = []
    for key, size in (("precision", counts.tp + counts.fp), ("recall", counts.tp + counts.fn)):
        if size:
            result.append(proportion(counts.tp, size, **about, **names[key]))
        else:
            empty = Estimate.undefined(
                reason_code="too-few-events",
                reason="nothing is flagged",
                n=0,
                **about,
                **names[key],
            )
            result.append(empty)
    # Texts that are neither flagged nor delicate do not enter F1.
    rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], [counts.tp, counts.fp + counts.fn], axis=0)
    if not len(rows):
        reason = "nothing is flagged and nothing should be"
        return [
            *result,
            Estimate.undefined(
                reason_code="too-few-events", reason=reason, n=0, **about, **names["f1"]
            ),
        ]
    drawn = estimate(
        np.concatenate([rows, np.zeros((counts.tn, 2))]),
        f1_statistic(),
        rng=generator(settings.seed, "published", name),
        replicates=settings.replicates,
        method=settings.interval,
        **about,
        **names["f1"],
    )
    return [*result, drawn]


# Confusion matrices that fit published, rounded figures.


def recover_counts(
    positives: int,
    negatives: int,
    *,
    precision: float | None = None,
    recall: float | None = None,
    f1: float | None = None,
    accuracy: float | None = None,
    macro_f1: float | None = None,
    decimals: int = 1,
) -> tuple[Confusion, ...]:
    """Return every confusion matrix that gives the published figures after rounding.

    All pairs of true and false positives are tried. One result means that the figures determine
    the counts; none means that figures and class sizes cannot belong together.

    Parameters
    ----------
    positives, negatives
        Class sizes.
    precision, recall, f1, accuracy, macro_f1
        Published figures in per cent; at least one.
    decimals
        To how many decimals (of per cent) they were rounded. A figure fits when it lies within
        half a unit of the last decimal, ends included, whichever way halves were rounded.

    Examples
    --------
    >>> recover_counts(336, 687, precision=81.4, recall=78.3, f1=79.8)
    (Confusion(tp=263, fp=60, fn=73, tn=627),)
    """
    given = {
        "precision": precision,
        "recall": recall,
        "f1": f1,
        "accuracy": accuracy,
        "macro_f1": macro_f1,
    }
    wanted = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        raise ValueError("no figure was given")
    if positives < 1 or negatives < 1:
        raise ValueError("both classes need at least one text")
    tp = np.arange(positives + 1)[:, None].astype(np.float64)
    fp = np.arange(negatives + 1)[None, :].astype(np.float64)
    fn, tn = positives - tp, negatives - fp
    with np.errstate(all="ignore"):
        one = 2 * tp / (2 * tp + fp + fn)
        zero = 2 * tn / (2 * tn + fp + fn)
        figures = {
            "precision": tp / (tp + fp),
            "recall": tp / positives + 0 * fp,
            "f1": one,
            "accuracy": (tp + tn) / (positives + negatives),
            # A class that is neither met nor named has no F1; it counts as 0, as scikit-learn does.
            "macro_f1": (np.nan_to_num(one) + np.nan_to_num(zero)) / 2,
        }
    fits = np.ones((positives + 1, negatives + 1), dtype=bool)
    half = 0.5 * 10.0**-decimals
    for name, value in wanted.items():
        with np.errstate(invalid="ignore"):
            fits &= np.abs(100 * figures[name] - value) <= half + 1e-9
    return tuple(
        Confusion(int(a), int(b), positives - int(a), negatives - int(b))
        for a, b in np.argwhere(fits)
    )
