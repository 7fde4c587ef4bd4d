"""A moderator whose effect is known: rates of some groups are multiplied.

A text that should not be flagged is flagged with probability

    p = min(cap, base_fpr * product of r over the groups it names)

and one that should be, with probability `base_tpr` times the factors on misses. So FPR_g is the
mean of p over the texts of g that should not be flagged, FPR_all the mean over all of them, and
suppression is their quotient: overlaps are in the sums, exactly. Texts of one template share a
normal effect (a Gaussian copula with correlation `cluster_correlation`), which changes no text's
own probability. Errors and refusals strike at random, so rates among decided texts stay the same.

The score is at least 0.5 exactly when the text is flagged. With u uniform, a text is flagged when
``u >= 1 - p``; its score is ``0.5 u / (1 - p)`` below, ``0.5 + 0.5 (u - (1 - p)) / p`` above.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from ombud.data.decisions import Decisions, Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.rng import generator
from ombud.systems.base import Moderator, Progress
from ombud.worlds.truth import SuppressionTruth, find_group

if TYPE_CHECKING:
    from ombud.worlds.world import World


class PlantedModerator(Moderator):
    """A moderator that flags texts of some groups more often (or less) than others.

    It knows the texts of its world only; any other text gets the outcome ERROR.

    Parameters
    ----------
    world
        The world; it must have texts.
    base_fpr, base_tpr
        The probability to flag a text that should not, and one that should be flagged.
    suppress
        For each group, the factor r on the false-positive rate of texts that name it.
    miss
        For each group, a factor on the true-positive rate of texts that name it, at most 1.
    cap
        No text is flagged with a higher probability than this, or `base_tpr` if it is harmful.
    cluster_correlation
        Correlation of the latent normals of two texts of one template.
    error_rate, refusal_rate
        Shares of texts without a decision.
    name
        The system's name, and its random stream.
    """

    def __init__(
        self,
        world: World,
        base_fpr: float = 0.1,
        base_tpr: float = 0.85,
        suppress: Mapping[str, float] | None = None,
        *,
        miss: Mapping[str, float] | None = None,
        cap: float = 0.95,
        cluster_correlation: float = 0.0,
        error_rate: float = 0.0,
        refusal_rate: float = 0.0,
        name: str = "planted",
    ) -> None:
        if world.truth.texts is None:
            raise PlanError(f"world {world.spec.name!r} has no texts")
        rates = {
            "base_fpr": base_fpr,
            "base_tpr": base_tpr,
            "cap": cap,
            "cluster_correlation": cluster_correlation,
            "error_rate": error_rate,
            "refusal_rate": refusal_rate,
            "error_rate + refusal_rate": error_rate + refusal_rate,
        }
        faults = [f"{k} is {v}; 0 to 1 is expected" for k, v in rates.items() if not 0 <= v <= 1]
        faults += [f"{g}: {r} is below 0" for g, r in (suppress or {}).items() if not r >= 0]
        faults += [
            f"miss {g}: {r} is not 0 to 1" for g, r in (miss or {}).items() if not 0 <= r <= 1
        ]
        if faults:
            raise PlanError("; ".join(faults))
        self.world = world
        self.name = name
        self.truth_of_texts = world.truth.texts
        self.cluster_correlation = cluster_correlation
        self.error_rate, self.refusal_rate = error_rate, refusal_rate
        chance = np.full(len(self.truth_of_texts.harmful), base_fpr)
        found = np.full(len(chance), base_tpr)
        for rates_of, factors in ((chance, suppress), (found, miss)):
            for group, factor in (factors or {}).items():
                rates_of[find_group(self.truth_of_texts.groups, group)] *= factor
        self.probability: NDArray[np.float64] = np.where(
            self.truth_of_texts.harmful, found, np.minimum(chance, cap)
        )
        """The probability that each text of the world is flagged, if it is decided."""

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return one outcome per text, in the order of the texts."""
        past = self._decide()
        rows = self.truth_of_texts.groups.units.codes(texts.ids)
        outcomes = np.where(rows >= 0, past.outcomes[rows], np.int8(Outcome.ERROR))
        scores = np.where(rows >= 0, past.scores[rows], np.float32("nan"))
        return Decisions(texts.ids, outcomes, scores, version=past.version)

    def truth(self) -> SuppressionTruth:
        """Return the expected rates, given the texts; unknown true labels are left out."""
        known, groups = self.truth_of_texts.texts.truth, self.truth_of_texts.groups
        negative = known == 0
        inside = groups.members & negative[:, None]
        support = inside.sum(axis=0)
        sums = self.probability @ inside
        rates = np.divide(sums, support, out=np.full(len(support), np.nan), where=support > 0)
        overall = float(self.probability[negative].mean()) if negative.any() else float("nan")
        positive = self.probability[known == 1]
        return SuppressionTruth(
            groups=groups.names,
            support=support.astype(np.int64),
            false_positive_rate=rates,
            overall=overall,
            true_positive_rate=float(positive.mean()) if len(positive) else float("nan"),
            median_score=np.array(
                [_median_score(self.probability[column]) for column in inside.T], dtype=np.float64
            ),
            overall_median_score=_median_score(self.probability[negative]),
        )

    def _decide(self) -> Decisions:
        texts = self.truth_of_texts.texts
        rng = generator(self.world.seed, self.world.spec.name, "moderator", self.name)
        own = rng.standard_normal(len(texts))
        assert texts.clusters is not None
        shared = rng.standard_normal(int(texts.clusters.max()) + 1)[texts.clusters]
        weight = self.cluster_correlation
        u = ndtr(np.sqrt(weight) * shared + np.sqrt(1 - weight) * own)
        p = self.probability
        flagged = u >= 1 - p
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = np.where(flagged, 0.5 + 0.5 * (u - (1 - p)) / p, 0.5 * u / (1 - p))
        # In 32 bits a score just below one half would round up to it.
        below = np.nextafter(np.float32(0.5), np.float32(0))
        scores = np.where(flagged, scores, np.minimum(scores, below)).astype(np.float32)
        outcomes = flagged.astype(np.int8)
        luck = rng.random(len(texts))
        outcomes[luck < self.error_rate + self.refusal_rate] = Outcome.REFUSED
        outcomes[luck < self.error_rate] = Outcome.ERROR
        scores[outcomes > Outcome.FLAGGED] = np.nan
        return Decisions(texts.ids, outcomes, scores, version="planted-1")


def _median_score(probability: NDArray[np.float64]) -> float:
    """Return the median of the mixture of the texts' score distributions.

    Below one half the mixture's distribution function is ``2 s mean(1 - p)``, above it is
    ``mean(1 - p) + (2 s - 1) mean(p)``.
    """
    if not len(probability):
        return float("nan")
    mean = float(probability.mean())
    return 0.25 / (1 - mean) if mean <= 0.5 else 0.5 + 0.25 * (2 * mean - 1) / mean
