"""Three labels made of ratings: how raters agree, and how systems do against each label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.data.decisions import Decisions
from ombud.metrics.engine.estimate import estimate_metric
from ombud.questions.delicate.judged import of_texts
from ombud.questions.delicate.metrics import F1Score, Precision, Recall
from ombud.questions.delicate.ratings import Ratings, read_ratings
from ombud.questions.delicate.risk_ratings import DELICATE_FROM, HIGHEST_RISK, risk_agreement
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.agreement import kappa_estimate
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.means import mean_estimate
from ombud.stats.proportions import proportion
from ombud.text.tagging import texts_of

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


Floats = NDArray[np.float64]
_LEAST_CHANCE = 1e-6


@analysis("rating-labels")
@dataclass(frozen=True)
class RatingLabels(Analysis):
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

    Parameters
    ----------
    ratings
        A file with `id`, `rater` and `risk`, as the annotation app exports them.
    """

    ratings: Path | str

    def analyze(self, context: Context) -> AnalysisResult:
        """Return agreement and detection."""
        data, outputs, settings = context.data, context.outputs, context.settings
        texts = texts_of(data, "rating-labels")
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
    score = of_texts(some, texts, np.where(some.decided, some.scores.astype(float), np.nan))
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

    Parameters
    ----------
    predicted, risk
        Classes from 0 to 5, -1 where there is none.
    prefix
        Of the keys.
    about
        Fields of the estimates, `system` among them.
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
