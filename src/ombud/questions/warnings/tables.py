"""Tables 1 and 2 of Kovacs et al. in their own form, over one data set or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from ombud.questions.warnings.reruns import EVERYONE
from ombud.report.context import Context, Select
from ombud.report.display import count, shorten
from ombud.report.model import Cell, Text
from ombud.report.numbers import DIFFERENCE, Scale, p_text, percent
from ombud.report.show import BlockTable, Entry, Notes, value_cell

SHIFT = Select("popularity-shift/difference", exact=True)
_TOP = 10
_SMALL_P = 0.005
_RATE = Scale(places=4)
_MEASURES = {"precision": "Precision", "recall": "Recall", "f1": "F1"}


def common_labels(context: Context, most: int) -> list[str]:
    """Return the labels that the most items are known to carry, most common first."""
    for name, column in (("label-status", "yes"), ("popularity-shift", "with")):
        table = context.table(name)
        if table is not None and {"label", column} <= set(table.columns):
            ordered = table.sort(column, descending=True, maintain_order=True)
            return cast("list[str]", ordered["label"][:most].to_list())
    return []


def _shifts(context: Context, notes: Notes) -> Iterable[Entry]:
    """Return the tests of the most common labels, a row for each rank."""
    found = {e.label: e for e in context.find(SHIFT)}
    labels = [label for label in common_labels(context, len(found)) if label in found]
    for rank, label in enumerate(labels[:_TOP], 1):
        e = found[label]
        cells = {
            "Harm Label": Cell(shorten(str(context.names.label(label)), 60)),
            "Diff": value_cell(e, DIFFERENCE, notes),
            "P-Val": Cell(p_text(e.p_value), value=e.p_value),
            "P-Val, corrected": Cell(p_text(e.p_adjusted), value=e.p_adjusted),
        }
        for column, cell in cells.items():
            yield Entry({"rank": f"{rank}", "column": column}, cell)


def small_p_values(context: Context) -> Text | None:
    """Say which share of labels has a p-value below .005, and which a negative difference."""
    tested = [e for e in context.find(SHIFT) if e.p_value is not None and e.value is not None]
    if not tested:
        return None
    small = sum((e.p_value or 0.0) < _SMALL_P for e in tested)
    negative = sum((e.value or 0.0) < 0 for e in tested)
    return (
        f"Of {count(len(tested), 'label')}, {percent(small / len(tested))} ({small:,}) have a "
        f"p-value below {_SMALL_P} before correction, and {percent(negative / len(tested))} "
        f"({negative:,}) have a negative difference.",
    )


def _accuracy(context: Context, notes: Notes) -> Iterable[Entry]:
    """Return precision, recall and F1, of everyone where they were measured, by list length."""
    rmse = {e.system: e for e in context.find(*_rmse(context))}
    infos = [i for i in context.result.metrics if i.spec.get("name") in _MEASURES]
    for name, title in _MEASURES.items():
        for info in sorted(
            (i for i in infos if i.spec["name"] == name), key=lambda i: int(i.spec.get("k", 0))
        ):
            key = info.key or info.title
            every = Select(f"{EVERYONE}/{key}", ("overall",), exact=True)
            own = Select(key, ("overall",), exact=True)
            found = context.find(every) or context.find(own)
            for e in sorted(found, key=lambda e: not context.is_reference(e.system)):
                at = {"system": str(context.names.system(e.system)), "measure": title}
                yield Entry(at | {"k": f"@k={info.spec.get('k')}"}, value_cell(e, _RATE, notes))
    for system, e in rmse.items():
        at = {"system": str(context.names.system(system)), "measure": "", "k": "RMSE"}
        yield Entry(at, value_cell(e, _RATE, notes))


def _rmse(context: Context) -> tuple[Select, ...]:
    every = Select(f"{EVERYONE}/rmse", ("overall",), exact=True)
    return (every,) if context.find(every) else (Select("rmse", ("overall",)),)


TABLE_1 = BlockTable(
    "warnings-table-1",
    "Table 1 of Kovacs et al.: permutation tests of the ten most common labels. Differences are "
    "means with the label minus means without it: of ratings, or of interactions where there are "
    "no ratings. The paper prints p to two digits, without correction.",
    rows=("rank",),
    columns=("set", "column"),
    entries=_shifts,
    titles={"rank": "Rank"},
)
TABLE_2 = BlockTable(
    "warnings-table-2",
    "Table 2 of Kovacs et al.: precision, recall and F1 at several list lengths, and RMSE where a "
    "system predicts ratings, with confidence intervals, which the paper does not have. F1 is that "
    "of the mean precision and the mean recall. Of all users with held-out interactions where the "
    "plan says accuracy_users = \u201call\u201d, as in the paper; otherwise of the sample.",
    rows=("set", "system"),
    columns=("measure", "k"),
    entries=_accuracy,
    titles={"set": "Data set", "system": "Algorithm"},
)
