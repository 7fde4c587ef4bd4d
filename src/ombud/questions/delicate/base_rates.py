"""What precision becomes where fewer texts should be flagged than in the test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ombud.audits.analyses import Analysed, decisions_in
from ombud.errors import PlanError
from ombud.questions.delicate.detection import precision_at_base_rate
from ombud.questions.delicate.judged import judged
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.bootstrap import resample
from ombud.stats.estimate import Estimate
from ombud.stats.replicates import Sample
from ombud.stats.statistics import Floats, OfSums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine import Settings

__all__ = ["BaseRates"]


def _at(base: float) -> OfSums:
    def combine(tp: Floats, positive: Floats, fp: Floats, weight: Floats) -> Floats:
        hit, false = base * tp / positive, (1 - base) * fp / (weight - positive)
        return hit / (hit + false)

    def terms(values: Floats) -> Floats:
        flagged, truth = values[:, 0], values[:, 1]
        return np.column_stack([flagged * truth, truth, flagged * (1 - truth)])

    return OfSums(("flagged", "truth"), combine, terms)


@analysis("base-rates")
@dataclass(frozen=True)
class BaseRates:
    r"""Precision at other base rates than that of the test.

    .. math:: \frac{\pi\, TPR}{\pi\, TPR + (1 - \pi)\, FPR}

    A benchmark that is one third positive flatters precision: where one text in a thousand should
    be flagged, the same detector may be wrong nearly always.

    - **Unit**: the text (Wilson's intervals, joined), or what texts share (bootstrap).
    - **Undefined**: without positives, without negatives, or when nothing is flagged.
    - **Does not capture**: that texts elsewhere may be harder or easier than these.

    Parameters
    ----------
    rates
        The shares of texts that should be flagged.
    """

    rates: tuple[float, ...] = (0.1, 0.01, 0.001)

    registered_name: ClassVar[str]

    def __post_init__(self) -> None:
        bad = [rate for rate in self.rates if not 0 < rate < 1]
        if bad or not self.rates:
            raise PlanError(f"base-rates: {bad or 'no rates'}; shares between 0 and 1 are expected")

    def analyse(
        self, data: Dataset, outputs: Mapping[str, Outputs], settings: Settings
    ) -> Analysed:
        """Return the precision of each system at each base rate, and at that of the test."""
        estimates: list[Estimate] = []
        for name, some in decisions_in(outputs, "base-rates").items():
            texts = judged(some, data, "base-rates")
            here = float(texts.truth.mean()) if len(texts) else 0.0
            for rate in self.rates:
                about: dict[str, Any] = {
                    "metric": f"precision at a base rate of {rate:g}",
                    "key": "base-rates/precision",
                    "system": name,
                    "label": f"{rate:g}",
                    "unit": texts.unit,
                    "level": settings.level,
                    "details": {"base rate": rate, "base rate of the test": here},
                }
                rng = generator(settings.seed, "base rates", name, str(rate))
                if texts.independent or not texts.truth.any() or texts.truth.all():
                    estimates += precision_at_base_rate(
                        texts.flagged, texts.truth, (rate,), **about
                    )
                    continue
                drawn = resample(
                    [Sample(np.column_stack([texts.flagged, texts.truth]), _at(rate))],
                    clusters=texts.clusters,
                    replicates=settings.replicates,
                    rng=rng,
                )
                estimates.append(drawn.at(0).estimate(method=settings.interval, **about))
        return Analysed(tuple(estimates))
