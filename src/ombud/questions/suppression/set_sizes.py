"""How many texts each data set has, how long they are, and how many name each group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.registry import analysis
from ombud.text.tagging import texts_of

if TYPE_CHECKING:
    pass


@analysis("set-sizes")
@dataclass(frozen=True)
class SetSizes(Analysis):
    """Texts, mean words and groups of each data set, each family, and all together.

    The paper's Tables 1 and 2, for the data at hand. Counts, not estimates. Words are what stands
    between blanks. Texts in no group are counted; they count among all texts.
    """

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each data set and family, and one for all texts."""
        data = context.data
        texts = texts_of(data, "set-sizes")
        words = np.array([len(str(text).split()) for text in texts.texts.tolist()], dtype=float)
        parts: list[tuple[str, str, Any]] = []
        for kind, column in (("set", texts.sets), ("family", texts.families)):
            names = [] if column is None else sorted({str(name) for name in column})
            if column is not None and (kind == "set" or len(names) > 1):
                parts += [(kind, name, column.astype(str) == name) for name in names]
        parts.append(("all", "all texts", np.ones(len(texts), dtype=bool)))
        groups: tuple[str, ...] = ()
        members = np.zeros((len(texts), 0), dtype=bool)
        if data.text_groups is not None:
            plain = [g for g, name in enumerate(data.text_groups.names) if " & " not in name]
            groups = tuple(data.text_groups.names[g] for g in plain)
            members = data.text_groups.aligned(texts.ids)[:, plain]
        rows = []
        for kind, name, here in parts:
            row: dict[str, Any] = {
                "kind": kind,
                "name": name,
                "texts": int(here.sum()),
                "mean_words": float(words[here].mean()) if here.any() else None,
                "acceptable": int((texts.truth[here] == 0).sum()),
                "to_be_flagged": int((texts.truth[here] == 1).sum()),
                "label_unknown": int((texts.truth[here] < 0).sum()),
                "no_group": int((~members[here].any(axis=1)).sum()),
            }
            row |= {f"group: {g}": int(members[here, k].sum()) for k, g in enumerate(groups)}
            rows.append(row)
        return AnalysisResult(tables={"set-sizes": pl.DataFrame(rows, infer_schema_length=None)})
