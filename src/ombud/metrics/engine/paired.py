"""Two systems on the units that both measured, where they did not measure the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ombud.data.exclusions import Exclusion
from ombud.metrics.engine.layout import Layout
from ombud.stats.bootstrap.replicates import Replicates, Sample
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

Place = tuple[int, int, int]
"""One system, another system, a label."""


@dataclass(frozen=True)
class SharedUnits:
    """Samples cut to the units that both systems of a pair measured."""

    # Two samples for each pair and label that needed the cut; None when none did.
    replicates: Replicates | None = None
    places: dict[Place, tuple[int, int]] = field(default_factory=dict)  # where those samples stand
    # How many units only one of the two measured.
    dropped: dict[Place, int] = field(default_factory=dict)


def on_shared_units(
    samples: Sequence[Sample],
    layout: Layout,
    draw: Callable[[list[Sample]], Replicates],
    common: Floats,
) -> SharedUnits:
    """Cut samples to shared units for each pair of systems that measured different units.

    Parameters
    ----------
    samples
        One for each system and label, labels fastest, over the same units.
    layout
        Where each system and label stands.
    draw
        Resamples the units as they were resampled for `samples`.
    common
        Replicates x samples: what was added to the replicates of `samples` for errors that all
        units have in common; the cut samples get the same.
    """
    known = [np.asarray(~np.isnan(sample.values).any(axis=1)) for sample in samples]
    cut: list[Sample] = []
    origin: list[int] = []
    result = SharedUnits()
    for one, other, label in layout.pairs():
        a, b = layout.sample(one, label), layout.sample(other, label)
        both = np.logical_and(known[a], known[b])[:, None]
        dropped = int(np.count_nonzero(known[a] ^ known[b]))
        if not dropped:
            continue
        result.places[one, other, label] = (len(cut), len(cut) + 1)
        result.dropped[one, other, label] = dropped
        for s in (a, b):
            values = np.where(both, samples[s].values, np.nan)
            cut.append(Sample(values, samples[s].statistic))
            origin.append(s)
    if not cut:
        return result
    replicates = draw(cut)
    replicates.draws[:, :, 0] += common[:, origin]
    return SharedUnits(replicates, result.places, result.dropped)


def different_units(estimates: Sequence[Estimate]) -> tuple[Exclusion, ...]:
    """Return that systems were measured on different units, where the estimates of a metric say so.

    Differences between systems are always of the units they share; their levels are not.
    """
    by_label: dict[str, dict[str, Estimate]] = {}
    for e in estimates:
        if e.kind == "level" and not e.group and e.system and e.n:
            by_label.setdefault(e.label, {})[e.system] = e
    spread = {
        label: max(e.n for e in some.values()) - min(e.n for e in some.values())
        for label, some in by_label.items()
    }
    label = max(spread, key=lambda label: spread[label], default=None)
    if label is None or not spread[label]:
        return ()
    some = by_label[label]
    first = next(iter(some.values()))
    told = ", ".join(f"{name} {e.n:,}" for name, e in some.items())
    which = f" (for {label!r})" if label else ""
    reason = (
        f"systems were measured on different {first.unit}s{which}: {told}; differences between "
        f"systems use only the {first.unit}s they share"
    )
    most = max(e.n for e in some.values())
    return (
        Exclusion(
            first.metric, f"{first.unit}s", spread[label], reason, most, "systems/different-units"
        ),
    )
