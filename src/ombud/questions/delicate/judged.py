"""Texts whose label is known and that a system decided: what every number here is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.metrics.engine.text_rows import was_flagged
from ombud.questions.delicate.detection import Confusion, confusion

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.base import Outputs


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judged:
    """Texts with a known label and a decision, in the order of the data.

    Parameters
    ----------
    index
        Their places among the texts of the data.
    truth
        Whether each should be flagged.
    flagged
        Whether each was; the share of flags where it was asked about several times.
    score
        The mean score; NaN where there is none.
    clusters
        What texts share, or None.
    exclusions
        What was left out.
    """

    index: NDArray[np.int64]
    truth: NDArray[np.bool_]
    flagged: Floats
    score: Floats
    clusters: NDArray[np.int32] | None
    exclusions: tuple[Exclusion, ...]

    def __len__(self) -> int:
        return len(self.index)

    @property
    def unit(self) -> str:
        """What is resampled."""
        return "text" if self.clusters is None else "cluster"

    @property
    def independent(self) -> bool:
        """Whether texts stand alone and have one decision each."""
        return self.clusters is None and bool(np.isin(self.flagged, (0.0, 1.0)).all())

    @property
    def counts(self) -> Confusion:
        """The confusion matrix, of whole texts: a text counts as most of its decisions say."""
        return confusion(self.flagged > 0.5, self.truth)


def labelled_texts(data: Dataset, what: str) -> Texts:
    """Return the texts, or say that there are none, or none with a label."""
    if data.texts is None:
        raise PlanError(f"{what} needs texts; the data has none")
    if not np.any(data.texts.truth >= 0):
        raise PlanError(
            f"{what} needs texts whose label is known; give them a column 'label' "
            "(1 = should be flagged), or the preset option 'ratings'"
        )
    return data.texts


def of_texts(decisions: Decisions, texts: Texts, values: Floats) -> Floats:
    """Return the mean of the values of each text's decisions; NaN where there is none."""
    index = Vocabulary(np.asarray(texts.ids)).codes(decisions.ids)
    counted = (index >= 0) & ~np.isnan(values)
    total = np.bincount(index[counted], weights=values[counted], minlength=len(texts))
    count = np.bincount(index[counted], minlength=len(texts))
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.where(count, count, np.nan), dtype=np.float64)


def judged(outputs: Outputs, data: Dataset, what: str = "detection") -> Judged:
    """Return the texts that are labelled and decided; what is left out is counted."""
    if not isinstance(outputs, Decisions):
        raise PlanError(f"{what} is measured on a moderator's decisions, not on lists of items")
    texts = labelled_texts(data, what)
    flagged = of_texts(outputs, texts, was_flagged(outputs))
    scores = np.where(outputs.decided, outputs.scores.astype(np.float64), np.nan)
    known = texts.truth >= 0
    kept = known & ~np.isnan(flagged)
    exclusions = []
    if (~known).any():
        reason = "whether they should be flagged is not known"
        exclusions.append(Exclusion("texts", "texts", int((~known).sum()), reason, len(texts)))
    lacking = int((known & np.isnan(flagged)).sum())
    if lacking:
        exclusions.append(Exclusion("texts", "texts", lacking, "no decision", int(known.sum())))
    strange = int((Vocabulary(np.asarray(texts.ids)).codes(outputs.ids) < 0).sum())
    if strange:
        reason = "they are about texts that are not in the data"
        exclusions.append(Exclusion("decisions", "decisions", strange, reason, len(outputs)))
    index: NDArray[Any] = np.flatnonzero(kept)
    return Judged(
        index,
        texts.truth[kept] == 1,
        flagged[kept],
        of_texts(outputs, texts, scores)[kept],
        None if texts.clusters is None else texts.clusters[kept],
        tuple(exclusions),
    )
