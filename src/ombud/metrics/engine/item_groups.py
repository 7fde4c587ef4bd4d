"""Any recommender metric by groups of items: the same measure, with only their items counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.metrics.engine.layout import EVENTS


def measure_by_item(metric: Metric, outputs: Outputs, data: Dataset, groups: Grouping) -> Rows:
    """Return what a metric without labels measures for everything, and for each group of items.

    Held-out interactions, predictions and, for metrics of exposure, catalogue and lists are cut to
    the items of the group; users who have nothing left say nothing about it. Metrics of labels
    measure groups of items among their labels (`ombud.data.items.Items.as_labels`).
    """
    whole = metric.measure(outputs, data)
    if whole.labels != ("",) or metric.by_item == "labels":
        return whole
    parts = {"": whole}
    exclusions = list(whole.exclusions)
    for name, members in zip(groups.names, groups.members.T, strict=True):
        items = Vocabulary(groups.units.arrow.filter(members))
        part = metric.measure(*_cut(metric, outputs, data, items))
        parts[name] = part
        exclusions += [replace(e, where=f"{name}: {e.where}") for e in part.exclusions]
    return _joined(parts, exclusions)


def _cut(
    metric: Metric, outputs: Outputs, data: Dataset, items: Vocabulary
) -> tuple[Outputs, Dataset]:
    if isinstance(outputs, Predictions):
        kept = items.codes(outputs.items) >= 0
        cut = Predictions(
            outputs.users[kept], outputs.items[kept], outputs.predicted[kept], outputs.actual[kept]
        )
        return cut, data
    if metric.by_item == "catalogue":
        assert data.interactions is not None and isinstance(outputs, Recommendations)
        return _only_lists(outputs, items), replace(
            data, interactions=_catalogue(data.interactions, items)
        )
    test = data.test
    if test is not None:
        inside = items.codes(test.items.arrow) >= 0
        test = test.select(inside[test.matrix.indices])
    return outputs, replace(data, test=test)


def _only_lists(lists: Recommendations, items: Vocabulary) -> Recommendations:
    """Return the lists without other items, closed up."""
    inside = np.append(items.codes(lists.catalogue.arrow) >= 0, False)[lists.items]
    order = np.argsort(~inside, axis=1, kind="stable")
    kept = np.take_along_axis(np.where(inside, lists.items, np.int32(-1)), order, axis=1)
    return Recommendations(lists.users, kept, lists.catalogue)


def _catalogue(interactions: Interactions, items: Vocabulary) -> Interactions:
    """Return the interactions with only some items in their catalogue."""
    inside: NDArray[np.bool_] = items.codes(interactions.items.arrow) >= 0
    return replace(
        interactions,
        items=Vocabulary(interactions.items.arrow.filter(inside)),
        matrix=interactions.matrix[:, np.flatnonzero(inside)],
        times=None,
    )


def _joined(parts: dict[str, Rows], exclusions: list[Exclusion]) -> Rows:
    """Return rows of the same units with one label for each part; NaN where a part lacks a unit."""
    whole = parts[""]
    units = Vocabulary.union({name: Vocabulary(rows.ids) for name, rows in parts.items()})
    each = {name: [rows.columns[name] for rows in parts.values()] for name in whole.columns}
    counted = [rows.events for rows in parts.values() if rows.events is not None]
    if counted:
        each[EVENTS] = counted
    columns = {}
    for column, measured in each.items():
        values = np.full((len(units), len(parts)), np.nan)
        for index, (rows, own) in enumerate(zip(parts.values(), measured, strict=True)):
            values[units.codes(rows.ids), index] = own[:, 0]
        columns[column] = values
    events = columns.pop(EVENTS, None)
    return Rows(
        unit=whole.unit,
        ids=units.ids,
        columns=columns,
        labels=tuple(parts),
        exclusions=tuple(exclusions),
        notes=dict.fromkeys(parts, whole.notes.get("", "")),
        events=events,
    )
