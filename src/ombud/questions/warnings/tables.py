"""Tables 1 and 2 of Kovacs et al. in their own form, over one data set or several."""

from __future__ import annotations

import re
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
_RATE = Scale(places=5)
_MEASURES = {"precision": "Precision", "recall": "Recall", "f1": "F1", "rmse": "RMSE"}


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


_KEY = re.compile(rf"({EVERYONE}/)?(precision|recall|f1|rmse)(?:\((.*)\))?")


def accuracy_keys(context: Context) -> dict[tuple[str, int], str]:
    """Return the key of each measure at each list length: of everyone where that was measured."""
    found: dict[tuple[str, int], str] = {}
    for key, role in context.by_key:
        matched = _KEY.fullmatch(key)
        if matched is None or role != "overall":
            continue
        every, name, options = matched.groups()
        length = re.search(r"\bk=(\d+)", options or "")
        # A key has the options that are not the default, which is 10 recommendations.
        place = (name, 0 if name == "rmse" else int(length[1]) if length else 10)
        if every or place not in found:
            found[place] = key
    return found


def _accuracy(context: Context, notes: Notes) -> Iterable[Entry]:
    """Return precision, recall, F1 and RMSE by list length, of everyone where measured."""
    keys = accuracy_keys(context)
    for name, title in _MEASURES.items():
        for place in sorted(one for one in keys if one[0] == name):
            found = context.find(Select(keys[place], ("overall",), exact=True))
            for e in sorted(found, key=lambda e: not context.is_reference(e.system)):
                at = {"system": str(context.names.system(e.system))}
                at |= {"measure": title, "k": f"@k={place[1]}"} if place[1] else {"k": title}
                yield Entry(at, value_cell(e, _RATE, notes))


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
    "of the mean precision and the mean recall. Of all users with something held out where the "
    "plan says accuracy_users = \u201call\u201d, as in the paper; otherwise of the sample. "
    "The paper measures AO3 on 10% of the works (item_share).",
    rows=("set", "system"),
    columns=("measure", "k"),
    entries=_accuracy,
    titles={"set": "Data set", "system": "Algorithm"},
)
