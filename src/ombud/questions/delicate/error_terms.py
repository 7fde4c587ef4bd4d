"""Which words stand out among a detector's errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr

from ombud.audits.analyses import Analysed, decisions_in
from ombud.questions.delicate.groups import dictionary_of
from ombud.questions.delicate.judged import judged, labelled_texts
from ombud.registry import analysis
from ombud.stats.multiplicity import adjust
from ombud.text.folding import fold
from ombud.text.masking import mask
from ombud.text.matching import TermMatcher, as_texts

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine import Settings

__all__ = ["ErrorTerms", "log_odds", "word_table"]

_COLUMNS = {
    "system": pl.String, "error": pl.String, "term": pl.String, "topics": pl.String,
    "errors_with": pl.Int64, "errors": pl.Int64, "right_with": pl.Int64, "right": pl.Int64,
    "log_odds": pl.Float64, "z": pl.Float64, "p_adjusted": pl.Float64,
}  # fmt: skip


def word_table(texts: Sequence[str], least: int) -> tuple[sparse.csr_array, list[str]]:
    """Return texts x words: which words stand in which text; words of fewer texts are left out.

    A word is a run of two or more letters, with apostrophes inside, in any case.

    Examples
    --------
    >>> table, words = word_table(["A cat's cat", "the Cat", "the dog"], 2)
    >>> words, table.toarray().tolist()
    (['cat', 'the'], [[True, False], [True, True], [False, True]])
    """
    frame = pl.DataFrame({"text": [fold(text) for text in texts]}).with_row_index("row")
    found = (
        frame.with_columns(word=pl.col("text").str.extract_all(r"\p{L}\p{L}+(?:'\p{L}{2,})*"))
        .select("row", "word")
        .explode("word", empty_as_null=True, keep_nulls=True)
        .drop_nulls()
        .unique()
    )
    kept = found.group_by("word").len().filter(pl.col("len") >= least)["word"].sort()
    found = found.filter(pl.col("word").is_in(kept.implode()))
    column = np.searchsorted(kept.to_numpy().astype(str), found["word"].to_numpy().astype(str))
    ones = np.ones(found.height, dtype=np.int64)
    table = sparse.csr_array((ones, (found["row"].to_numpy(), column)), (len(texts), len(kept)))
    return table.astype(np.bool_), kept.to_list()


def log_odds(
    with_here: NDArray[Any], here: int, with_there: NDArray[Any], there: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return the log odds ratio of standing in a text of one side, and its z score.

    Half a text is added to each of the four cells (Haldane and Anscombe), so a word that one side
    never has gets a finite number: :math:`\log \frac{(a + .5)(d + .5)}{(b + .5)(c + .5)}`, with
    standard error :math:`\sqrt{\sum 1 / (n + .5)}`.

    Examples
    --------
    >>> ratio, z = log_odds(np.array([9]), 10, np.array([10]), 100)
    >>> float(ratio[0].round(2)), float(z[0].round(1))
    (4.0, 4.3)
    """
    a, c = with_here + 0.5, with_there + 0.5
    b, d = here - with_here + 0.5, there - with_there + 0.5
    ratio = np.log(a * d / (b * c))
    return ratio, ratio / np.sqrt(1 / a + 1 / b + 1 / c + 1 / d)


@analysis("error-terms")
@dataclass(frozen=True)
class ErrorTerms:
    """Words and topics that stand out among wrongly flagged and among missed texts.

    Wrongly flagged texts are set against those rightly let through, missed ones against those
    rightly flagged, so a word stands out when it goes with the *error*, not with the label. Log
    odds ratio with a z score, p-values corrected over all words of a comparison. Terms of the
    dictionary that are offensive are masked unless `show`.

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
        table, words = word_table(as_texts(texts.texts), self.least)
        rows: list[dict[str, Any]] = []
        for name, some in decisions_in(outputs, "error-terms").items():
            here = judged(some, data, "error-terms")
            flags = here.flagged > 0.5
            for error, wrong, right in (
                ("false positive", flags & ~here.truth, ~flags & ~here.truth),
                ("false negative", ~flags & here.truth, flags & here.truth),
            ):
                one, two = here.index[wrong], here.index[right]
                if len(one) >= self.least and len(two) >= self.least and words:
                    sides = [np.asarray(table[at].sum(axis=0)).ravel() for at in (one, two)]
                    rows += self._outstanding(
                        {"system": name, "error": error}, words, sides, (len(one), len(two)),
                        texts.clusters is None,
                    )  # fmt: skip
        frame = pl.DataFrame(rows, schema={k: v for k, v in _COLUMNS.items() if k != "topics"})
        return Analysed(tables={"error-terms": self._described(frame)})

    def _outstanding(
        self, about: dict[str, Any], words: list[str], sides: list[NDArray[Any]],
        sizes: tuple[int, int], tested: bool,
    ) -> list[dict[str, Any]]:  # fmt: skip
        ratio, z = log_odds(sides[0], sizes[0], sides[1], sizes[1])
        adjusted = adjust(2 * ndtr(-np.abs(z)), "benjamini-hochberg")
        chosen = [int(k) for k in np.argsort(-z, kind="stable")[: self.most] if z[k] > 0]
        return [
            about
            | {
                "term": words[k], "errors_with": int(sides[0][k]), "errors": sizes[0],
                "right_with": int(sides[1][k]), "right": sizes[1],
                "log_odds": float(ratio[k]), "z": float(z[k]),
                "p_adjusted": float(adjusted[k]) if tested else None,
            }
            for k in chosen
        ]  # fmt: skip

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
