"""What a regression on texts explains a decision by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ombud.text.tagging import tags_of, terms_of, texts_of

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.text.identity import TagMode


_SAME = 1e-8

REFERENCE = "traditional"
"""The family that others are compared with, as in the paper."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns of a regression, without those that say nothing new.

    Parameters
    ----------
    names, values
        The columns, texts x columns; the first is the constant.
    dropped
        Columns that were left out, and why.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    dropped: tuple[tuple[str, str], ...] = ()


def columns_of(data: Dataset, terms: str, path: Path | str, mode: TagMode) -> Columns:
    """Return groups, `has_slur`, family and word count of every text.

    Word count is in hundreds, so that its effect is readable. Families are compared with
    *traditional*, or else with the first in alphabetical order.

    Parameters
    ----------
    data
        Has texts; its groups are used where it has some, and tagged otherwise.
    terms, path, mode
        How texts are tagged.
    """
    texts = texts_of(data, "a regression")
    tags = tags_of(data, terms_of(terms, path), mode)
    names, columns = ["constant"], [np.ones(len(texts))]
    if data.text_groups is None:
        groups, members = tags.groups, tags.membership
    else:
        plain = [g for g, name in enumerate(data.text_groups.names) if " & " not in name]
        groups = tuple(data.text_groups.names[g] for g in plain)
        members = data.text_groups.aligned(texts.ids)[:, plain]
    names += groups
    columns += [column.astype(np.float64) for column in members.T]
    names.append("has slur")
    columns.append(tags.has_slur.astype(np.float64))
    if texts.families is not None:
        kinds = sorted({str(kind) for kind in texts.families}, key=lambda k: (k != REFERENCE, k))
        for kind in kinds[1:]:
            names.append(f"family: {kind}")
            columns.append((texts.families == kind).astype(np.float64))
    names.append("words (hundreds)")
    columns.append(np.array([len(str(text).split()) for text in texts.texts]) / 100)
    return Columns(tuple(names), np.column_stack(columns))


def independent(columns: Columns, rows: NDArray[np.bool_], least: int = 1) -> Columns:
    """Return the columns of some texts, without those that are constant or follow from others.

    Parameters
    ----------
    columns
        All columns.
    rows
        The texts that count.
    least
        A yes-no column with fewer texts on a side is left out.
    """
    values = columns.values[rows]
    kept: list[int] = []
    dropped: list[tuple[str, str]] = list(columns.dropped)
    # Orthogonal parts of the columns kept so far; what is left of a new one must not vanish.
    basis: list[NDArray[np.float64]] = []
    for index, name in enumerate(columns.names):
        column = values[:, index]
        fault = _thin(column, least) if index else ""
        rest = column - sum((part * (part @ column) for part in basis), np.zeros(len(column)))
        if not fault and np.linalg.norm(rest) <= _SAME * max(1.0, float(np.linalg.norm(column))):
            fault = "it follows from the other columns (collinear)"
        if fault:
            dropped.append((name, fault))
            continue
        kept.append(index)
        basis.append(rest / np.linalg.norm(rest))
    return Columns(_chosen(columns.names, kept), values[:, kept], tuple(dropped))


def _chosen(names: Sequence[str], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(names[index] for index in places)


def _thin(column: NDArray[np.float64], least: int) -> str:
    if not np.isin(column, (0.0, 1.0)).all():
        return ""
    count = int(min(column.sum(), len(column) - column.sum()))
    return f"not enough data: {count} texts on one side" if count < least else ""
