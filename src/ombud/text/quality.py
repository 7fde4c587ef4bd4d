"""How good tags are, against manual labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ombud.errors import DataError
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import wilson
from ombud.text.identity import IdentityTags


@dataclass(frozen=True, slots=True, kw_only=True)
class TagQuality:
    """Tags of one group against manual labels."""

    group: str
    # Counts of texts.
    true_positive: int
    false_positive: int
    false_negative: int
    true_negative: int
    unlabelled: int = 0  # texts whose manual label is missing; they are in no other count
    level: float = 0.95  # coverage that intervals aim at

    @property
    def n(self) -> int:
        """Texts with a manual label."""
        return self.true_positive + self.false_positive + self.false_negative + self.true_negative

    @property
    def accuracy(self) -> Estimate:
        """Share of labelled texts whose tag agrees with the label: (TP + TN) / n."""
        right = self.true_positive + self.true_negative
        return self._share("tag accuracy", right, self.n, "no text has a manual label")

    @property
    def false_positive_rate(self) -> Estimate:
        """Share of texts labelled *not in the group* that are tagged: FP / (FP + TN)."""
        outside = self.false_positive + self.true_negative
        reason = "no text is labelled as outside the group"
        return self._share("tag false-positive rate", self.false_positive, outside, reason)

    @property
    def false_negative_rate(self) -> Estimate:
        """Share of texts labelled *in the group* that are not tagged: FN / (FN + TP)."""
        inside = self.false_negative + self.true_positive
        reason = "no text is labelled as in the group"
        return self._share("tag false-negative rate", self.false_negative, inside, reason)

    @property
    def estimates(self) -> tuple[Estimate, Estimate, Estimate]:
        """Accuracy, false-positive rate and false-negative rate."""
        return self.accuracy, self.false_positive_rate, self.false_negative_rate

    def _share(self, metric: str, count: int, n: int, reason: str) -> Estimate:
        note = f"{count} of {n} texts"
        if self.unlabelled:
            note += f"; {self.unlabelled} without a manual label left out"
        about: dict[str, Any] = {"unit": "text", "group": self.group, "level": self.level}
        if not n:
            return Estimate.undefined(
                reason_code="no-units", metric=metric, reason=reason, n=0, note=note, **about
            )
        low, high = wilson(count, n, self.level)
        return Estimate(
            metric=metric,
            value=count / n,
            interval=(float(low), float(high)),
            method="Wilson",
            n=n,
            note=note,
            **about,
        )


def tag_quality(
    tags: IdentityTags,
    manual: Mapping[str, Iterable[bool | None]] | IdentityTags | Any,
    *,
    level: float = 0.95,
) -> tuple[TagQuality, ...]:
    """Measure tags against manual labels: accuracy, false-positive and false-negative rate.

    Unit: the text. Wilson intervals take texts as independent; where many share a template or an
    author they are too narrow. A rate is undefined when no text is labelled in (or outside) the
    group. The rates say nothing about texts that nobody labelled.

    Parameters
    ----------
    tags
        The tags.
    manual
        Labels of the same texts: a mapping or data frame with one Boolean column per group (None
        where nobody labelled), or other `IdentityTags`. Groups it lacks are left out.
    level
        Coverage that intervals aim at.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference, JASA.

    Examples
    --------
    >>> from ombud.text import tag_identities
    >>> tags = tag_identities(["my sister", "women first", "her", "the sea"])
    >>> quality = tag_quality(tags, {"women": [True, False, True, None]})[0]
    >>> quality.true_positive, quality.false_positive, quality.unlabelled
    (2, 1, 1)
    """
    columns = _columns(tags, manual)
    results = []
    for group, values in columns.items():
        known = values >= 0
        tagged, labelled = tags.of(group)[known], values[known] == 1
        results.append(
            TagQuality(
                group=group,
                true_positive=int((tagged & labelled).sum()),
                false_positive=int((tagged & ~labelled).sum()),
                false_negative=int((~tagged & labelled).sum()),
                true_negative=int((~tagged & ~labelled).sum()),
                unlabelled=int((~known).sum()),
                level=level,
            )
        )
    return tuple(results)


def _columns(tags: IdentityTags, manual: Any) -> dict[str, NDArray[np.int8]]:
    """Return the labels per group as 1, 0, and -1 for none, with all faults in one error."""
    if isinstance(manual, IdentityTags):
        manual = {group: manual.of(group) for group in manual.groups}
    elif not isinstance(manual, Mapping):
        frame = nw.from_native(manual, eager_only=True)
        manual = {name: frame[name].to_list() for name in frame.columns}
    shared = [group for group in tags.groups if group in manual]
    faults = []
    if not shared:
        faults.append(f"no column is named as a group; expected some of {', '.join(tags.groups)}")
    columns = {}
    for group in shared:
        labels = manual[group]
        if isinstance(labels, np.ndarray) and labels.dtype == np.bool_:
            labels = labels.tolist()
        values = [value if type(value) is bool else _label(value) for value in labels]
        if len(values) != len(tags):
            faults.append(
                f"{group}: found {len(values)} labels; expected {len(tags)}, one per text"
            )
        bad = [row for row, value in enumerate(values) if value is None]
        if bad:
            faults.append(
                f"{group}: {len(bad)} labels are neither true, false nor missing, "
                f"first in row {bad[0]}"
            )
        columns[group] = np.asarray([-1 if value is None else value for value in values], np.int8)
    if faults:
        raise DataError("manual labels", faults)
    return columns


def _label(value: Any) -> int | None:
    if value is None or value != value:
        return -1
    if isinstance(value, bool | np.bool_ | int | np.integer | float) and value in (0, 1):
        return int(value)
    return None
