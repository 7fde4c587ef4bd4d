"""Two versions of a moderator, or an old and a new one: whose decisions change?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.decisions import NO_DECISIONS, Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.metrics.engine.changes import estimate_changes
from ombud.metrics.engine.estimate import correct
from ombud.metrics.engine.text_rows import measure_texts, was_flagged
from ombud.metrics.rates import FalsePositiveRate
from ombud.questions.suppression.options import Match, SuppressionOptions
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.paired import paired_proportion_estimate

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


@analysis("drift")
class Drift(Options, Analysis):
    r"""Change of the false-positive rate from one version or date to another, on the same texts.

    .. math:: FPR_{after} - FPR_{before}

    over texts that both decided and that should not be flagged, for everyone and for each group.
    Independent texts: McNemar's mid-p and Newcombe's paired interval; texts that share something:
    the bootstrap of the paired differences over clusters.

    - **Unit**: the text, or what texts share.
    - **Undefined**: when both decided too few texts of a group.
    - **Does not capture**: why it changed, or whether texts that only one of both decided differ.
    """

    before: str = SuppressionOptions.field("before", required=True)
    after: str = SuppressionOptions.field("after", required=True)

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the change for everyone and for each group."""
        data, outputs, settings = context.data, context.outputs, context.settings
        result = decisions_in(outputs, "drift")
        unknown = [name for name in (self.before, self.after) if name not in result]
        if unknown:
            known = ", ".join(result)
            raise PlanError(f"drift: no moderator is called {unknown[0]!r}; known: {known}")
        scored = [name for name in (self.before, self.after) if result[name].lacks_decisions]
        rows = [
            measure_texts(first_answers(result[name]), data, was_flagged)
            for name in (self.after, self.before)
        ]
        units = np.intersect1d(rows[0].ids, rows[1].ids)
        flags = np.full((len(units), 2), np.nan)
        for index, measured in enumerate(rows):
            here = Vocabulary(measured.ids).codes(units)
            flags[:, index] = measured.columns["value"][here, 0]
        clusters = None
        if rows[0].clusters is not None:
            clusters = rows[0].clusters[Vocabulary(rows[0].ids).codes(units)]
        groups: dict[str, NDArray[np.bool_]] = {"": np.ones(len(units), dtype=bool)}
        if data.text_groups is not None:
            inside = data.text_groups.aligned(units)
            groups |= dict(zip(data.text_groups.names, inside.T, strict=True))
        changes = [
            self._change(
                flags[m], None if clusters is None else clusters[m], group, settings, scored
            )
            for group, m in groups.items()
        ]
        everyone, by_group = changes[:1], correct(changes[1:], settings.correction)
        lost = len(np.union1d(rows[0].ids, rows[1].ids)) - len(units)
        reason = f"only one of {self.before} and {self.after} decided them"
        exclusions = (Exclusion("drift", "texts", lost, reason),) if lost else ()
        return AnalysisResult((*everyone, *by_group), exclusions=exclusions)

    def _change(
        self,
        flags: NDArray[np.float64],
        clusters: NDArray[np.int32] | None,
        group: str,
        settings: Settings,
        scored: Sequence[str],
    ) -> Estimate:
        about: dict[str, Any] = {
            "metric": "drift of the false-positive rate",
            "key": "drift/false-positive-rate",
            "unit": "text" if clusters is None else "cluster",
            "level": settings.level,
            "system": self.after,
            "against": self.before,
            "group": group,
            "kind": "gap",
            "null": 0.0,
        }
        n = len(flags) if clusters is None else len(np.unique(clusters))
        if scored:
            reason = f"{' and '.join(scored)}: {NO_DECISIONS}"
            return Estimate.undefined(reason_code="no-decisions", reason=reason, n=0, **about)
        if n < settings.minimum:
            reason = f"not enough data: {n} {about['unit']}s, at least {settings.minimum} wanted"
            return Estimate.undefined(reason_code="too-few-units", reason=reason, n=n, **about)
        shares = flags.mean(axis=0)
        about["details"] = {
            "before": float(shares[1]),
            "after": float(shares[0]),
            "texts": len(flags),
        }
        note = f"from {shares[1]:.2%} to {shares[0]:.2%} of {len(flags):,} texts"
        if clusters is None:
            return paired_proportion_estimate(flags[:, 0], flags[:, 1], note=note, **about)
        drawn = resample(
            [Sample(flags[:, 0] - flags[:, 1])],
            clusters=clusters,
            replicates=settings.replicates,
            rng=generator(settings.seed, "drift", group),
        )
        return drawn.at(0).estimate(method=settings.interval, note=note, **about)


# One answer for each text, where a moderator was asked repeatedly.


def first_answers(decisions: Decisions) -> Decisions:
    """Return the first answer about each text: pairs are of one answer each."""
    if decisions.repeats is None:
        return decisions
    first = decisions.repeats == 0
    return Decisions(decisions.ids[first], decisions.outcomes[first], decisions.scores[first])


WRONG = "migration/false-positive-rate"
"""The key of changes on texts that should not be flagged."""

RIGHT = "migration/true-positive-rate"
"""The key of changes on texts that should be flagged."""


def matched_threshold(scores: NDArray[np.floating[Any]], flagged: int) -> tuple[float, int]:
    """Return the threshold at which scores flag as nearly as possible so many, and how many.

    A score is flagged when it reaches the threshold. Texts with equal scores are flagged together,
    so the number may not be met; of two as near, the threshold that flags fewer is taken.

    Examples
    --------
    >>> matched_threshold(np.array([0.9, 0.8, 0.8, 0.1]), 2)
    (0.9, 1)
    >>> matched_threshold(np.array([0.9, 0.8, 0.7, 0.1]), 2)
    (0.8, 2)
    """
    values, counts = np.unique(scores, return_counts=True)
    at_least = np.concatenate([np.cumsum(counts[::-1]), [0]])[np.r_[len(counts), : len(counts)]]
    places = np.concatenate([[np.inf], values[::-1]])
    best = int(np.argmin(np.abs(at_least - flagged)))
    return float(places[best]), int(at_least[best])


@analysis("migration")
class Migration(Options, Analysis):
    r"""Whose decisions change when a new moderator replaces an old one, on the same texts.

    .. math:: FPR_{new} - FPR_{old}, \qquad TPR_{new} - TPR_{old}

    for everyone, each group, each family of texts and each data set, over texts that both decided.
    Two moderators at their own settings differ first of all in how much they flag. So the new
    one's threshold can be set to flag as many texts, or as many acceptable ones, as the old one
    does: what then changes is *who* is flagged. Texts that stand alone have McNemar's exact test
    and Newcombe's paired interval, texts that share clusters the bootstrap over clusters and a
    test of the signs of their changes.

    - **Unit**: the text, or what texts share.
    - **Undefined**: when both decided too few texts of a group; matching, when the new moderator
      gives no scores.
    - **Does not capture**: that the threshold itself is chosen on these texts (intervals take it
      as given), or how either moderator will do on other texts.
    """

    old: str = SuppressionOptions.field("old", required=True)
    new: str = SuppressionOptions.field("new", required=True)
    match: Match = SuppressionOptions.field("match")

    @property
    def chooses_thresholds(self) -> tuple[str, ...]:
        """The new moderator, unless it decides as it is."""
        return () if self.match == "none" else (self.new,)

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the changes, the threshold, and which texts change sides."""
        data, settings = context.data, context.settings
        old, new, lost = self.pair(context)
        # Types of label are a dimension of suppression; here each text has one label.
        texts: Texts = replace(data.need("texts", "migration"), types={})
        data = replace(data, texts=texts)
        truth = texts.truth[Vocabulary(texts.ids).codes(old.ids)]
        threshold = self.threshold(old, new, truth)
        new = at_threshold(new, threshold)
        table = pl.DataFrame({**self.rates(old, new, truth), "threshold": [threshold]})
        estimates = self.changes(old, new, data, settings)
        exclusions = (self.undecided(lost, len(texts)),) if lost else ()
        return AnalysisResult(tuple(estimates), {"migration": table}, exclusions)

    def undecided(self, lost: int, texts: int) -> Exclusion:
        """Return how many texts were not decided by both."""
        reason = f"{self.old} and {self.new} did not both decide them"
        return Exclusion("migration", "texts", lost, reason, texts)

    def pair(self, context: Context) -> tuple[Decisions, Decisions, int]:
        """Return what both decided, on the same texts in one order, and how many texts are lost."""
        result = decisions_in(context.outputs, "migration")
        for name in (self.old, self.new):
            if name not in result:
                known = ", ".join(result)
                raise PlanError(f"migration: no moderator is called {name!r}; known: {known}")
        if self.old == self.new:
            raise PlanError(f"migration: old and new are both {self.old!r}; name two moderators")
        texts: Texts = context.data.need("texts", "migration")
        old, new = (first_answers(result[name]) for name in (self.old, self.new))
        for name, one in ((self.old, old), (self.new, new)):
            if one.lacks_decisions and name not in self.chooses_thresholds:
                raise PlanError(f"migration: {name}: {NO_DECISIONS}")
        return _decided_by_both(old, new, texts, bool(self.chooses_thresholds))

    def changes(
        self, old: Decisions, new: Decisions, data: Dataset, settings: Settings
    ) -> list[Estimate]:
        """Return the changes of both rates, for everyone and each group, where there are labels."""
        metric = FalsePositiveRate(families=True)
        estimates: list[Estimate] = []
        for key, title, some in (
            (WRONG, "change of the false-positive rate", data),
            (RIGHT, "change of the true-positive rate", _harmful_first(data)),
        ):
            assert some.texts is not None
            if not np.any(some.texts.truth == 0):
                continue
            rows = [metric.measure(one, some) for one in (old, new)]
            changes = estimate_changes(
                metric, rows[0], rows[1], data.text_groups, settings, exact=True
            )
            estimates += [
                e.replace(key=key, metric=title, system=self.new, against=self.old) for e in changes
            ]
        return estimates

    def threshold(self, old: Decisions, new: Decisions, truth: NDArray[np.int8]) -> float | None:
        """Return the threshold that makes both flag alike; None where it is left as it is."""
        if self.match == "none":
            return None
        counted = truth == 0 if self.match == "false-positive-rate" else np.ones(len(truth), bool)
        if not counted.any():
            raise PlanError(
                "migration: no text is known not to deserve a flag; match = 'flag-rate' needs none"
            )
        self.need_scores(
            new, "its threshold cannot be matched; match = 'none' compares its own flags"
        )
        flagged = int(np.count_nonzero((old.outcomes == Outcome.FLAGGED) & counted))
        return matched_threshold(new.scores[counted], flagged)[0]

    def need_scores(self, new: Decisions, so: str) -> None:
        """Refuse a threshold on decisions that lack scores."""
        if count := int(np.count_nonzero(np.isnan(new.scores))):
            some = f"{count:,} of {len(new):,} texts"
            raise PlanError(f"migration: {self.new} gives no score for {some}, so {so}")

    def rates(
        self, old: Decisions, new: Decisions, truth: NDArray[np.int8]
    ) -> dict[str, list[Any]]:
        """Return how much both flag, and how many texts change sides."""
        a, b = (one.outcomes == Outcome.FLAGGED for one in (old, new))
        fine = truth == 0
        count = max(int(fine.sum()), 1)
        return {
            "old": [self.old],
            "new": [self.new],
            "match": [self.match],
            "texts": [len(a)],
            "acceptable": [int(fine.sum())],
            "old_flag_rate": [float(a.mean()) if len(a) else 0.0],
            "new_flag_rate": [float(b.mean()) if len(b) else 0.0],
            "old_false_positive_rate": [float((a & fine).sum() / count)],
            "new_false_positive_rate": [float((b & fine).sum() / count)],
            "newly_flagged": [int((b & ~a & fine).sum())],
            "no_longer_flagged": [int((a & ~b & fine).sum())],
        }


def at_threshold(decisions: Decisions, threshold: float | None) -> Decisions:
    """Return decisions as a threshold makes them; as they are where it is None."""
    if threshold is None:
        return decisions
    return replace(decisions, outcomes=(decisions.scores >= threshold).astype(np.int8))


def _decided_by_both(
    old: Decisions, new: Decisions, texts: Texts, matched: bool
) -> tuple[Decisions, Decisions, int]:
    """Return the decisions on the texts that both decided, in one order, and how many are lost.

    Scores of the new moderator suffice where they get a matched threshold.
    """
    ids = [old.ids[old.decided], new.ids[new.answered if matched else new.decided]]
    shared = np.intersect1d(np.intersect1d(ids[0], ids[1]), texts.ids)
    if not len(shared):
        raise PlanError("migration: the two moderators decided no text in common")

    def cut(one: Decisions) -> Decisions:
        place = Vocabulary(one.ids).codes(shared)
        return Decisions(one.ids[place], one.outcomes[place], one.scores[place])

    return cut(old), cut(new), len(texts) - len(shared)


def _harmful_first(data: Dataset) -> Dataset:
    """Return the data with labels the other way round, so that flags on harmful texts count."""
    assert data.texts is not None
    truth = np.where(data.texts.truth < 0, -1, 1 - data.texts.truth).astype(np.int8)
    return replace(data, texts=replace(data.texts, truth=truth))
