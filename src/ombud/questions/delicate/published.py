"""Published, rounded figures beside one's own: the counts behind them, and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.frames import Column, read_table
from ombud.errors import DataError
from ombud.questions.delicate.detection import Confusion, f1_statistic
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.resample import estimate
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.taxonomy.resources import parse_commented_csv

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


_FIGURES = ("precision", "recall", "f1", "accuracy", "macro_f1")


class PublishedRow(NamedTuple):
    """Published figures of one method on one data set, in per cent.

    Parameters
    ----------
    dataset, method
        What was tested, and on what.
    precision, recall, f1
        The figures, as printed.
    note
        What must be known before comparing.
    """

    dataset: str
    method: str
    precision: float
    recall: float
    f1: float
    note: str


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
            float(row["f1"]), row["note"],
        )
        for row in rows
    )  # fmt: skip


def _shipped(name: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    text = files("ombud.questions.delicate").joinpath("files", name).read_text(encoding="utf-8")
    return [dict(row) for _, row in parse_commented_csv(text, name, columns)[1]]


@analysis("published-figures")
@dataclass(frozen=True)
class PublishedFigures(Analysis):
    """Precision, recall and F1 of published methods, with intervals that were not published.

    Rounded rates and class sizes often tell the counts behind them. Every integer confusion matrix
    that rounds to the printed figures is found; where there is just one, the figures get
    intervals as if the counts had been published.

    - **Unit**: the text (Wilson for precision and recall, bootstrap for F1).
    - **Undefined**: where no matrix fits the figures, or several do.
    - **Does not capture**: that the published texts are not those of this audit. A row marked #
      has a threshold that was chosen on the test itself.

    Parameters
    ----------
    figures
        A file with `system`, `positives` and `negatives` (class sizes), some of `precision`,
        `recall`, `f1`, `accuracy`, `macro_f1` (per cent), and optionally `decimals` (1 by
        default); empty for those of the benchmark (Table 5 of the paper).
    """

    figures: Path | str = ""

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
        return AnalysisResult(tuple(estimates), {"published-figures": _table(rows)})


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


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
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
