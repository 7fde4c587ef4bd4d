"""Labels that a system gave: how often it is right, as a validation set showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ombud.errors import DataError

Transport = Literal["calibration", "error-rates"]
"""What is taken to be the same wherever an item stands, in a list or in a history.

``error-rates``: of items that have the label (or not), the system finds the same share everywhere.
So it is when its errors have nothing to do with who is shown what: a recommender follows what
people like, not what a text happens to say. Shares are then corrected for both error rates.
``calibration`` is withdrawn (`WITHDRAWN`): stored labels that have it are read as the system gave
them, without correction."""

WITHDRAWN = (
    "the correction by calibration is withdrawn: where a recommender follows what items really "
    "hold, a yes is not right as often in lists as in histories, and differences were pulled "
    "towards none; leave it out, and errors are corrected by error rates"
)
"""Why no new labels are corrected by calibration."""

_PRIOR = 0.5
_LEAST_APART = 0.05


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """What a system said about each item, and how often that was right on validation texts.

    Examples
    --------
    >>> said = np.array([[1], [0], [0], [-1]], dtype=np.int8)
    >>> errors = LabelErrors(said, np.array([[5], [39]]), np.array([[194], [10]]))
    >>> errors.chances().round(3).ravel().tolist()
    [0.899, 0.063, 0.063, nan]
    """

    # Items x labels: the class of what was said (0 no, 1 yes; more for bands of scores), -1 where
    # nothing was said.
    said: NDArray[np.int8]
    # Classes x labels: how many validation texts of the class have the label, and how many not.
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    transport: Transport = "error-rates"  # What is taken to be the same everywhere
    # Items x labels: what people said of items that are validation texts too; -1 of others.
    truth: NDArray[np.int8] | None = None

    def __post_init__(self) -> None:
        faults = []
        empty = (self.yes + self.no) == 0
        used = np.stack([(self.said == k).any(axis=0) for k in range(len(self.yes))])
        if (empty & used).any():
            faults.append(
                "the system says something about items that it says about no validation text, so "
                "nobody knows how often it is right; add validation texts"
            )
        if self.transport == "error-rates" and len(self.yes) != 2:
            faults.append("error rates are of yes and no, not of bands of scores")
        elif self.transport == "error-rates":
            faults += self._useless()
        if faults:
            raise DataError("labels", faults)

    def _useless(self) -> list[str]:
        """Say so where a system cannot be told from one that says yes at random."""
        sizes = [counts.sum(axis=0) for counts in (self.yes, self.no)]
        if (np.minimum(*sizes) == 0).any():
            return ["validation texts of a label all have it, or all lack it; both are needed"]
        found, false = self._rate(self.yes), self._rate(self.no)
        error = np.sqrt(found * (1 - found) / sizes[0] + false * (1 - false) / sizes[1])
        if np.all(found - false > np.maximum(2 * error, _LEAST_APART)):
            return []
        return ["the system hardly says yes more often to validation texts with the label than to "
                "those without; its answers say nothing"]  # fmt: skip

    def _rate(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of yes among validation texts with (or without) the label."""
        return np.asarray((counts[1] + _PRIOR) / (counts.sum(axis=0) + 2 * _PRIOR))

    def chances(self) -> NDArray[np.float64]:
        """Return items x labels: the probability of having the label; NaN where nothing is said."""
        if self.transport == "calibration":
            return np.where(self.said >= 0, (self.said > 0).astype(np.float64), np.nan)
        table = _posterior(self._said_yes(), self._rate(self.yes), self._rate(self.no))
        return self._of_items(table)

    def _said_yes(self) -> NDArray[np.float64]:
        asked = np.maximum((self.said >= 0).sum(axis=0), 1)
        return np.asarray((self.said == 1).sum(axis=0) / asked)

    def draw(self, rng: np.random.Generator) -> NDArray[np.float32]:
        r"""Return one draw of how far each item carries each label; NaN where nothing is said.

        How often the system is right is drawn once for all items (Beta, with Jeffreys' prior), so
        averages over many items keep the doubt about the system.

        - ``calibration``: what the system said, without correction.
        - ``error-rates``: with S what was said, :math:`(S - FPR) / (TPR - FPR)`, whose expectation
          is 1 for an item with the label and 0 for one without, whatever the lists do; and on top
          the error of another reading of the same items, so that single items keep their doubt.
          The numbers are no probabilities: only sums and means of them mean something.
        """
        if self.transport == "calibration":
            return self.chances().astype(np.float32)
        found = rng.beta(self.yes[1] + _PRIOR, self.yes[0] + _PRIOR)
        false = rng.beta(self.no[1] + _PRIOR, self.no[0] + _PRIOR)
        apart = np.maximum(found - false, _LEAST_APART)
        chance = self._of_items(_posterior(self._said_yes(), false + apart, false))
        rate = np.where(rng.random(chance.shape) < chance, found, false)
        again = (rng.random(chance.shape) < rate) - rate
        degree = ((self.said - false) + again) / apart
        return np.where(self.said >= 0, degree, np.nan).astype(np.float32)

    def _of_items(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        chosen = np.take_along_axis(table, np.maximum(self.said, 0).astype(np.int64), axis=0)
        return np.where(self.said >= 0, chosen, np.nan)

    def select(self, columns: list[int]) -> Self:
        """Return only some labels."""
        truth = None if self.truth is None else self.truth[:, columns]
        return type(self)(
            self.said[:, columns], self.yes[:, columns], self.no[:, columns], self.transport, truth
        )

    def columns(self, rows: NDArray[Any], places: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Return what is stored beside some pairs of an item and a label."""
        said = self.said[rows, places]
        at = np.maximum(said, 0)
        return {
            "said": said,
            "validated_yes": self.yes[at, places],
            "validated_no": self.no[at, places],
        } | ({} if self.truth is None else {"checked": self.truth[rows, places]})

    @classmethod
    def from_columns(
        cls,
        shape: tuple[int, int],
        rows: NDArray[Any],
        places: NDArray[Any],
        stored: dict[str, NDArray[Any]],
        transport: Transport,
    ) -> Self:
        """Rebuild from `columns`."""
        said = np.full(shape, -1, dtype=np.int8)
        said[rows, places] = stored["said"]
        classes = max(2, int(said.max(initial=0)) + 1)
        counts = {name: np.zeros((classes, shape[1]), dtype=np.int64) for name in ("yes", "no")}
        for name, table in counts.items():
            table[stored["said"].astype(np.int64), places] = stored[f"validated_{name}"]
        truth = None
        if "checked" in stored:
            truth = np.full(shape, -1, dtype=np.int8)
            truth[rows, places] = np.clip(stored["checked"], -1, 1)
        return cls(said, counts["yes"], counts["no"], transport, truth)


def _posterior(q: Any, found: Any, false: Any) -> NDArray[np.float64]:
    """Return, for no and for yes, the share with the label, by Rogan and Gladen and by Bayes."""
    share = np.clip((q - false) / (found - false), 0.0, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        yes = share * found / (share * found + (1 - share) * false)
        no = share * (1 - found) / (share * (1 - found) + (1 - share) * (1 - false))
    return np.asarray(np.nan_to_num(np.stack([no, yes]), nan=0.0), dtype=np.float64)
