"""Which words stand out among a detector's errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from ombud.audits.analyses import Analysed, decisions_in
from ombud.questions.delicate.errors import standout_terms
from ombud.questions.delicate.groups import dictionary_of
from ombud.questions.delicate.judged import judged, labelled_texts
from ombud.registry import analysis
from ombud.text.masking import mask
from ombud.text.matching import TermMatcher, as_texts

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine import Settings

__all__ = ["ErrorTerms"]

_COLUMNS = {
    "system": pl.String, "error": pl.String, "term": pl.String, "topics": pl.String,
    "errors_with": pl.Int64, "errors": pl.Int64, "right_with": pl.Int64, "right": pl.Int64,
    "log_odds": pl.Float64, "z": pl.Float64, "p_adjusted": pl.Float64,
}  # fmt: skip


@analysis("error-terms")
@dataclass(frozen=True)
class ErrorTerms:
    """Words and topics that stand out among wrongly flagged and among missed texts.

    Wrongly flagged texts are set against those rightly let through, missed ones against those
    rightly flagged, so a word stands out when it goes with the *error*, not with the label. Log
    odds ratio with a z score (`standout_terms`), p-values corrected over all words of a comparison.
    Terms of the dictionary that are offensive are masked unless `show`.

    - **Unit**: the text; texts that share something are counted as if they stood alone, so with
      clusters the table is a hint, not a test (its column ``p_adjusted`` is then empty).
    - **Undefined**: a comparison with fewer than `least` errors is left out.
    - **Does not capture**: word order, tone, or which of several words is the cause.

    Parameters
    ----------
    least
        In how many texts a word must stand.
    most
        How many words of each comparison are kept, those with the largest z.
    show
        Whether offensive terms are shown in full.
    dictionary, path
        The dictionary that comes with ombud, and a file of one's own that adds to it.
    """

    least: int = 5
    most: int = 15
    show: bool = False
    dictionary: str = "delicate@1"
    path: Path | str = ""

    registered_name: ClassVar[str]

    def analyse(
        self, data: Dataset, outputs: Mapping[str, Outputs], settings: Settings
    ) -> Analysed:
        """Return the table of stand-out terms."""
        texts = labelled_texts(data, "error-terms")
        words = as_texts(texts.texts)
        rows: list[dict[str, Any]] = []
        for name, some in decisions_in(outputs, "error-terms").items():
            here = judged(some, data, "error-terms")
            flags = here.flagged > 0.5
            for error, wrong, right in (
                ("false positive", flags & ~here.truth, ~flags & ~here.truth),
                ("false negative", ~flags & here.truth, flags & here.truth),
            ):
                if min(wrong.sum(), right.sum()) < self.least:
                    continue
                both = wrong | right
                found = standout_terms(
                    [words[i] for i in here.index[both]], wrong[both], smallest=self.least
                ).filter(pl.col("z") > 0)
                sizes = {"errors": int(wrong.sum()), "right": int(right.sum())}
                rows += [
                    {"system": name, "error": error, **sizes, "term": row["term"],
                     "errors_with": row["inside"], "right_with": row["outside"],
                     "log_odds": row["log_odds"], "z": row["z"],
                     "p_adjusted": row["p_adjusted"] if texts.clusters is None else None}
                    for row in found.head(self.most).to_dicts()
                ]  # fmt: skip
        frame = pl.DataFrame(rows, schema={k: v for k, v in _COLUMNS.items() if k != "topics"})
        return Analysed(tables={"error-terms": self._described(frame)})

    def _described(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the table with the topics of each word, and offensive words masked."""
        terms = dictionary_of(self.dictionary, self.path)
        words = frame["term"].to_list()
        topics: list[set[str]] = [set() for _ in words]
        shown = list(words)
        if words:
            matcher = TermMatcher([term.text for term in terms.terms], suffixes=("", "s", "es"))
            found = matcher.match(words)
            harsh = set(terms.scale[:3])
            for row, term in zip(found.text_index.tolist(), found.term_index.tolist(), strict=True):
                topics[row].add(terms.terms[term].topic)
                if terms.terms[term].severity in harsh and not self.show:
                    shown[row] = mask(words[row], [(0, len(words[row]))])
        described = [", ".join(sorted(some)) for some in topics]
        columns = {"term": pl.Series(shown, dtype=pl.String)}
        columns["topics"] = pl.Series(described, dtype=pl.String)
        return frame.with_columns(**columns).select(list(_COLUMNS))
