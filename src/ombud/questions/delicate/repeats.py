"""Does a system decide the same when it is asked again?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.data.decisions import Decisions
from ombud.data.ids import Vocabulary
from ombud.metrics.engine.text_rows import was_flagged
from ombud.questions.delicate.judged import labelled_texts
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


@analysis("decision-stability")
@dataclass(frozen=True)
class DecisionStability(Analysis):
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

    Parameters
    ----------
    replicates
        Of the F1 of one answer.
    """

    replicates: int = 1000

    def analyze(self, context: Context) -> AnalysisResult:
        """Return how stable each system is; systems that were asked once have no numbers."""
        data, outputs, settings = context.data, context.outputs, context.settings
        texts = labelled_texts(data, "decision-stability")
        estimates: list[Estimate] = []
        rows = []
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
        return AnalysisResult(
            tuple(estimates), {"decision-stability": pl.DataFrame(rows)} if rows else {}
        )

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
    scores = np.where(some.decided, some.scores.astype(np.float64), np.nan)
    table = np.full((len(ids), width), np.nan)
    table[row[row >= 0], repeat[row >= 0]] = scores[row >= 0]
    twice = (~np.isnan(table)).sum(axis=1) >= 2
    return float(np.nanstd(table[twice], axis=1).max()) if twice.any() else None
