"""Labels compared: those that ratings make, and several labels of the same texts."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, open_frame, read_table
from ombud.data.ids import Vocabulary
from ombud.errors import DataError
from ombud.metrics.engine.estimate import estimate_metric
from ombud.questions.delicate.metrics import F1Score, Precision, Recall, of_texts
from ombud.questions.delicate.options import DelicateOptions
from ombud.questions.delicate.ratings import (
    DELICATE_FROM,
    HIGHEST_RISK,
    Ratings,
    read_ratings,
    risk_agreement,
)
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.agreement import kappa_estimate
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.proportions import proportion
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


_LEAST_CHANCE = 1e-6


@analysis("rating-labels")
class RatingLabels(Options, Analysis):
    """Agreement of raters, and detection against each label that their ratings make.

    - ``ratings/alpha``: the five alphas of Krippendorff (label says which).
    - ``ratings/f1``, ``ratings/precision``, ``ratings/recall``: against *identified* (majority of
      ratings above 0), *delicate* (majority of 3 and more), and *delicate, all raters agree*.
    - ``ratings/log-loss``, ``ratings/calibration``: the score as a probability, against the share
      of raters who say delicate. Only for systems whose scores lie within 0 and 1.
    - ``ratings/within-one``, ``ratings/weighted-kappa``: the most probable risk class against that
      of the raters, for systems that give the six classes.

    - **Unit**: the text, or what texts share (alphas: the text).
    - **Undefined**: without two ratings of a text (alphas), without scores, without classes.
    - **Does not capture**: who is right where raters differ.
    """

    ratings: Path | str = DelicateOptions.field("ratings", required=True)

    def analyze(self, context: Context) -> AnalysisResult:
        """Return agreement and detection."""
        data, outputs, settings = context.data, context.outputs, context.settings
        texts: Texts = data.need("texts", "rating-labels")
        given = read_ratings(self.ratings, texts)
        labels = given.labels
        estimates = [
            e.replace(key="ratings/alpha")
            for e in risk_agreement(
                given.matrix,
                rng=generator(settings.seed, "agreement"),
                replicates=settings.replicates,
                level=settings.level,
            )
        ]
        delicate = labels.delicate.astype(np.float64)
        targets = {
            "identified": np.where(labels.identified >= 0, labels.identified, np.nan),
            "delicate": np.where(delicate >= 0, delicate, np.nan),
            "delicate, all raters agree": np.where(given.unanimous, delicate, np.nan),
        }
        confusion: list[dict[str, Any]] = []
        for name, some in decisions_in(outputs, "rating-labels").items():
            for label, truth in targets.items():
                estimates += _detection(some, data, truth, name, label, settings)
            estimates += _soft(some, given, texts, name, settings)
            estimates += _classes(some, labels.risk, texts, name, settings, confusion)
        tables = {"rating-counts": _counts(given)}
        if confusion:
            tables["risk-confusion"] = pl.DataFrame(confusion)
        return AnalysisResult(tuple(estimates), tables, given.exclusions)


def _about(texts: Texts, name: str, label: str, settings: Settings) -> dict[str, Any]:
    unit = "text" if texts.clusters is None else "cluster"
    return {"system": name, "label": label, "unit": unit, "level": settings.level}


def _detection(
    some: Decisions, data: Dataset, truth: Floats, name: str, label: str, settings: Settings
) -> list[Estimate]:
    """Return F1, precision and recall against one of the labels, as the metrics make them."""
    assert data.texts is not None  # analyse has checked
    known = np.where(np.isnan(truth), -1, truth).astype(np.int8)
    about: dict[str, Any] = {"label": label, "level": settings.level}
    labelled = replace(data, texts=replace(data.texts, truth=known))
    result = []
    for key, metric in (("f1", F1Score()), ("precision", Precision()), ("recall", Recall())):
        about["key"] = f"ratings/{key}"
        if (known < 0).all():
            empty: dict[str, Any] = {"metric": metric.title, "system": name, "unit": "text"}
            empty |= {"n": 0} | about
            result.append(
                Estimate.undefined(
                    reason_code="no-labels", reason="no text has this label", **empty
                )
            )
            continue
        rows = metric.measure(some, labelled)
        result.append(estimate_metric(metric, {name: rows}, None, settings)[0].replace(**about))
    return result


def _soft(
    some: Decisions, given: Ratings, texts: Texts, name: str, settings: Settings
) -> list[Estimate]:
    """Return log loss and calibration of scores against the share of raters."""
    share = given.labels.shares[:, DELICATE_FROM:].sum(axis=1)
    score = of_texts(some, texts, np.where(some.answered, some.scores.astype(float), np.nan))
    known = ~np.isnan(share) & ~np.isnan(score)
    about = _about(texts, name, "soft labels", settings)
    quantities = (("log-loss", "log loss"), ("calibration", "score minus share of raters"))
    p = score[known]
    if not len(p) or p.min() < 0 or p.max() > 1:
        reason = "the scores are no probabilities" if len(p) else "no rated text has a score"
        return [
            Estimate.undefined(
                reason_code="not-measured",
                metric=m,
                key=f"ratings/{k}",
                reason=reason,
                n=len(p),
                **about,
            )
            for k, m in quantities
        ]
    q, p_safe = share[known], np.clip(p, _LEAST_CHANCE, 1 - _LEAST_CHANCE)
    loss = -(q * np.log(p_safe) + (1 - q) * np.log(1 - p_safe))
    result = []
    for (key, metric), values in zip(quantities, (loss, p - q), strict=True):
        fields = about | {"metric": metric, "key": f"ratings/{key}"}
        if key == "calibration":
            fields["null"] = 0.0
        if texts.clusters is None:
            result.append(mean_estimate(values, **fields))
            continue
        drawn = resample(
            [Sample(values)],
            clusters=texts.clusters[known],
            replicates=settings.replicates,
            rng=generator(settings.seed, "soft labels", key),
        )
        result.append(drawn.at(0).estimate(method=settings.interval, **fields))
    return result


def _classes(
    some: Decisions,
    risk: NDArray[np.int8],
    texts: Texts,
    name: str,
    settings: Settings,
    confusion: list[dict[str, Any]],
) -> list[Estimate]:
    """Return how near the most probable risk class is, and note the confusion matrix."""
    names = [f"risk {k}" for k in range(HIGHEST_RISK + 1)]
    if some.category_scores is None or not set(names) <= set(some.categories):
        return []
    chances = np.stack(
        [
            of_texts(some, texts, some.category_scores[:, some.categories.index(c)].astype(float))
            for c in names
        ],
        axis=1,
    )
    known = ~np.isnan(chances).any(axis=1)
    predicted = np.where(known, np.nan_to_num(chances).argmax(axis=1), -1)
    about = _about(texts, name, "risk class", settings)
    estimates, rows = class_agreement(predicted, risk, "ratings", about)
    confusion += rows
    return estimates


def class_agreement(
    predicted: NDArray[Any], risk: NDArray[Any], prefix: str, about: dict[str, Any]
) -> tuple[list[Estimate], list[dict[str, Any]]]:
    """Return how near predicted risk classes are to those of raters, and the confusion matrix.

    The share within one class (Wilson) and the quadratically weighted kappa (large sample). Unit:
    the text. Undefined without a text that has both classes.

    Classes are from 0 to 5, -1 where there is none. `prefix` is that of the keys; `about` are
    fields of the estimates, `system` among them.
    """
    known = (predicted >= 0) & (risk >= 0)
    said, true = predicted[known].astype(np.int64), risk[known].astype(np.int64)
    about = about | {"unit": "text"}
    names: tuple[dict[str, Any], ...] = (
        {"metric": "risk within one class", "key": f"{prefix}/within-one"},
        {"metric": "quadratically weighted kappa", "key": f"{prefix}/weighted-kappa"},
    )
    if not len(true):
        reason = "no text has a risk class of both raters and system"
        return [
            Estimate.undefined(reason_code="no-labels", reason=reason, n=0, **about, **name)
            for name in names
        ], []
    cells = np.zeros((HIGHEST_RISK + 1, HIGHEST_RISK + 1), dtype=np.int64)
    np.add.at(cells, (true, said), 1)
    rows = [
        {"system": about["system"], "risk": k, **{f"said {j}": int(n) for j, n in enumerate(row)}}
        for k, row in enumerate(cells)
    ]
    near = int((np.abs(said - true) <= 1).sum())
    found = [
        proportion(near, len(true), **about, **names[0]),
        kappa_estimate(
            true.astype(float), said.astype(float), weights="quadratic",
            categories=tuple(map(float, range(HIGHEST_RISK + 1))), **about, **names[1],
        ),
    ]  # fmt: skip
    return found, rows


def _counts(given: Ratings) -> pl.DataFrame:
    """Return how many texts each label has, in which class."""
    labels = given.labels
    rows = []
    for name, values in (
        ("identified", labels.identified), ("delicate", labels.delicate), ("risk", labels.risk)
    ):  # fmt: skip
        rated = values[labels.ratings > 0]
        rows += [
            {"label": name, "value": "no majority" if v < 0 else str(v), "texts": int(n)}
            for v, n in zip(*np.unique(rated, return_counts=True), strict=True)
        ]
    return pl.DataFrame(rows, schema={"label": pl.String, "value": pl.String, "texts": pl.Int64})


_TRUTH = "label"


@analysis("label-cross-table")
class LabelCrossTable(Options, Analysis):
    """How far several labels of the same texts agree: the paper's Table 1 as a cross-table.

    For each pair of labels: the share of texts on which the two say the same, Cohen's kappa, and
    the share of each label's texts that have the other one as well. The label of the audit itself
    counts as one of them (*label*) where it is known.

    - **Unit**: the text, or what texts share (kappa: the text).
    - **Undefined**: for a pair that no text has both of; kappa where a label never varies.
    - **Does not capture**: which of two labels is right, or whether they mean to say the same.
    """

    labels: Path | str = DelicateOptions.field("notions", required=True)

    def analyze(self, context: Context) -> AnalysisResult:
        """Return agreement and counts of every pair of labels."""
        data, settings = context.data, context.settings
        texts: Texts = data.need("texts", "label-cross-table")
        notions, exclusions = read_notions(self.labels, texts)
        if np.any(texts.truth >= 0) and _TRUTH not in notions:
            known = np.where(texts.truth >= 0, texts.truth, np.nan).astype(np.float64)
            notions = {_TRUTH: known} | notions
        estimates: list[Estimate] = []
        rows: list[dict[str, Any]] = []
        for one, two in combinations(notions, 2):
            row, found = _pair(one, two, notions[one], notions[two], texts, settings)
            rows.append(row)
            estimates += found
        return AnalysisResult(
            tuple(estimates), {"label-cross-table": pl.DataFrame(rows)}, exclusions
        )


def read_notions(
    path: Path | str, texts: Texts
) -> tuple[dict[str, NDArray[np.float64]], tuple[Exclusion, ...]]:
    """Read labels from a file with `id` and one column of true and false for each.

    Returns
    -------
    tuple
        For each label one value a text (1, 0, NaN where it is unknown), and what was excluded.
    """
    lazy, source = open_frame(str(path))
    names = [name for name in lazy.collect_schema().names() if name != "id"]
    if not names:
        raise DataError(source, ["it has no column of labels beside 'id'"])
    flags = [Column(name, "flag", nullable=True) for name in names]
    table = read_table(str(path), [Column("id", "id"), *flags])
    if table["id"].is_duplicated().any():
        raise DataError(source, ["an id stands twice"])
    row = Vocabulary(np.asarray(texts.ids)).codes(table["id"].to_arrow())
    known = row >= 0
    if not known.any():
        raise DataError(source, ["none of its ids is the id of a text of the audit"])
    exclusions = []
    if not known.all():
        reason = "they are of texts that are not in the data"
        count = int((~known).sum())
        exclusions.append(Exclusion("labels", "rows", count, reason, table.height))
    result = {}
    for name in names:
        values = np.full(len(texts), np.nan)
        values[row[known]] = table[name].cast(pl.Float64).fill_null(float("nan")).to_numpy()[known]
        result[name] = values
    return result, tuple(exclusions)


def _pair(
    one: str,
    two: str,
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    texts: Texts,
    settings: Settings,
) -> tuple[dict[str, Any], list[Estimate]]:
    both = ~np.isnan(a) & ~np.isnan(b)
    x, y = a[both] == 1, b[both] == 1
    cells = {
        "both": int((x & y).sum()),
        "first alone": int((x & ~y).sum()),
        "second alone": int((~x & y).sum()),
        "neither": int((~x & ~y).sum()),
    }
    row = {"first": one, "second": two, "texts": int(both.sum()), **cells}
    clusters = None if texts.clusters is None else texts.clusters[both]
    about: dict[str, Any] = {"label": f"{one} and {two}", "level": settings.level}
    agree = {"key": "notions/agreement", "metric": "texts on which two labels agree"}
    given = {"key": "notions/given", "metric": "texts with one label that have the other"}
    found = [
        _share(x == y, np.ones(len(x), dtype=bool), clusters, settings, about | agree),
        _share(y, x, clusters, settings, about | given | {"group": one, "against": two}),
        _share(x, y, clusters, settings, about | given | {"group": two, "against": one}),
        kappa_estimate(x.astype(float), y.astype(float), key="notions/kappa", unit="text", **about),
    ]
    return row, found


def _share(
    values: NDArray[np.bool_],
    part: NDArray[np.bool_],
    clusters: NDArray[np.int32] | None,
    settings: Settings,
    about: dict[str, Any],
) -> Estimate:
    about = about | {"unit": "text" if clusters is None else "cluster"}
    n = int(part.sum())
    if not n:
        return Estimate.undefined(reason_code="no-units", reason="no text has it", n=0, **about)
    if clusters is None:
        return proportion(int((values & part).sum()), n, **about)
    drawn = resample(
        [Sample(np.where(part, values, np.nan).astype(np.float64))],
        clusters=clusters,
        replicates=settings.replicates,
        rng=generator(settings.seed, "notions", about["label"], about.get("group", "")),
    )
    return drawn.at(0).estimate(method=settings.interval, **about)
