"""How scores of texts that should not be flagged are spread, by system and group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.metrics.engine.text_rows import max_score, measure_texts
from ombud.registry import analysis

if TYPE_CHECKING:
    pass


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The points of a distribution that are kept."""


@analysis("score-spread")
@dataclass(frozen=True)
class ScoreSpread(Analysis):
    """Quantiles of the scores of texts that should not be flagged, by system and group.

    They describe these texts; they are not estimates of other texts. Groups with fewer texts than
    the plan's minimum are left out.

    Parameters
    ----------
    categories
        Take the largest score of these categories; default, each system's own score.
    """

    categories: tuple[str, ...] = ()

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each system and group."""
        data, outputs, settings = context.data, context.outputs, context.settings
        rows = []
        for name, decisions in decisions_in(outputs, "score-spread").items():
            if self.categories and decisions.category_scores is None:
                continue
            measured = measure_texts(
                decisions, data, lambda d: max_score(d, self.categories, "score-spread")
            )
            values = measured.columns["value"][:, 0]
            groups = {"": np.ones(len(values), dtype=bool)}
            if data.text_groups is not None:
                inside = data.text_groups.aligned(measured.ids)
                groups |= dict(zip(data.text_groups.names, inside.T, strict=True))
            for group, member in groups.items():
                some = values[member]
                if len(some) >= settings.minimum:
                    points = np.quantile(some, QUANTILES).tolist()
                    rows.append((name, group, len(some), *points))
        schema = {"system": pl.String, "group": pl.String, "texts": pl.Int64}
        named = {f"q{round(100 * q):02d}": pl.Float64 for q in QUANTILES}
        table = pl.DataFrame(rows, schema={**schema, **named}, orient="row")
        return AnalysisResult(tables={"score-spread": table} if table.height else {})
