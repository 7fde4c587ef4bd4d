"""Did a moderator change between two versions or dates, and for whom?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.metrics.engine.estimate import correct
from ombud.metrics.engine.text_rows import measure_texts, was_flagged
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap.replicates import Sample
from ombud.stats.bootstrap.resample import resample
from ombud.stats.estimate import Estimate
from ombud.stats.paired import paired_proportion_estimate

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


@analysis("drift")
@dataclass(frozen=True)
class Drift(Analysis):
    r"""Change of the false-positive rate from one version or date to another, on the same texts.

    .. math:: FPR_{after} - FPR_{before}

    over texts that both decided and that should not be flagged, for everyone and for each group.
    Independent texts: McNemar's mid-p and Newcombe's paired interval; texts that share something:
    the bootstrap of the paired differences over clusters.

    - **Unit**: the text, or what texts share.
    - **Undefined**: when both decided too few texts of a group.
    - **Does not capture**: why it changed, or whether texts that only one of both decided differ.

    Parameters
    ----------
    before, after
        Two systems of the audit: two versions, or recorded outcomes of two dates.
    """

    before: str
    after: str

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the change for everyone and for each group."""
        data, outputs, settings = context.data, context.outputs, context.settings
        result = decisions_in(outputs, "drift")
        unknown = [name for name in (self.before, self.after) if name not in result]
        if unknown:
            known = ", ".join(result)
            raise PlanError(f"drift: no moderator is called {unknown[0]!r}; known: {known}")
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
            self._change(flags[m], None if clusters is None else clusters[m], group, settings)
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
