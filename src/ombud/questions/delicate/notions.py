"""Several labels of the same texts, such as delicate, hateful, offensive and profane."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, open_frame, read_table
from ombud.data.ids import Vocabulary
from ombud.errors import DataError
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.agreement import kappa_estimate
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.text.tagging import texts_of

if TYPE_CHECKING:
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


_TRUTH = "label"


@analysis("label-cross-table")
@dataclass(frozen=True)
class LabelCrossTable(Analysis):
    """How far several labels of the same texts agree: the paper's Table 1 as a cross-table.

    For each pair of labels: the share of texts on which the two say the same, Cohen's kappa, and
    the share of each label's texts that have the other one as well. The label of the audit itself
    counts as one of them (*label*) where it is known.

    - **Unit**: the text, or what texts share (kappa: the text).
    - **Undefined**: for a pair that no text has both of; kappa where a label never varies.
    - **Does not capture**: which of two labels is right, or whether they mean to say the same.

    Parameters
    ----------
    labels
        A file with `id` and one column of true and false for each label; empty where unknown.
    """

    labels: Path | str

    def analyze(self, context: Context) -> AnalysisResult:
        """Return agreement and counts of every pair of labels."""
        data, settings = context.data, context.settings
        texts = texts_of(data, "label-cross-table")
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
        For each label one value a text (1, 0, NaN where it is unknown), and what was left out.
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
