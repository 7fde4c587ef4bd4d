"""How well term lists find the groups that people, or a data set itself, say a text names."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.text.tagging import stated_texts, tags_of, terms_of, texts_of

if TYPE_CHECKING:
    pass


POOR = 0.75
"""A list that finds less than this share of a group's texts is said to find few of them."""

KEY = "tag-validation"


def measured_quality(terms: str, mode: str) -> pl.DataFrame:
    """Return how well a term list of ombud did where it was measured: a row for each group.

    On the sentence templates of Jigsaw, whose identity terms are known; nothing for other lists.

    Examples
    --------
    >>> found = measured_quality("terms-identity@1", "whole-word")
    >>> found.filter(pl.col("group") == "straight")["recall"].to_list()
    [0.5]
    """
    file = files("ombud.questions.suppression") / "files" / "tag-quality.csv"
    table = pl.read_csv(file.read_bytes(), comment_prefix="#")
    chosen = table.filter((pl.col("terms") == terms) & (pl.col("mode") == mode))
    return chosen.with_columns(
        recall=pl.col("both") / pl.col("stated"), precision=pl.col("both") / pl.col("tagged")
    )


@analysis("tag-validation")
@dataclass(frozen=True)
class TagValidation(Analysis):
    """Recall, precision, accuracy and false-positive rate of tags, where a source states groups.

    Texts of data sets that state groups (people's labels, or identity terms of templates) are
    tagged by a term list as well, and both are compared. Wilson intervals; they take texts as
    independent, so where texts share templates they are too short.

    - **Unit**: the text.
    - **Undefined**: recall where no text is stated to name the group, precision where none is
      tagged. Without stated groups there is nothing to compare, and no number.
    - **Does not capture**: how good the stated groups are.

    Parameters
    ----------
    terms, path, mode
        How texts are tagged: a term list of ombud, or a file, and how terms match.
    """

    terms: str = "terms-identity@1"
    path: Path | str = ""
    mode: Literal["whole-word", "published"] = "whole-word"

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the quality of the tags of each group."""
        data, settings = context.data, context.settings
        texts = texts_of(data, "tag-validation")
        stated = stated_texts(data)
        if data.text_groups is None or not stated.any():
            return AnalysisResult()
        listed = terms_of(self.terms, self.path)
        tags = tags_of(data, listed, self.mode)
        given = data.text_groups.aligned(texts.ids)
        same = [g for g in tags.groups if g in data.text_groups.names]
        estimates: list[Estimate] = []
        rows = []
        for group in same:
            truth = given[stated, data.text_groups.names.index(group)]
            tagged = tags.of(group)[stated]
            hit = int((truth & tagged).sum())
            wrong, missed = int((~truth & tagged).sum()), int((truth & ~tagged).sum())
            rest = len(truth) - hit - wrong - missed
            about: dict[str, Any] = {"group": group, "unit": "text", "level": settings.level}
            for name, count, of in (
                ("recall", hit, hit + missed),
                ("precision", hit, hit + wrong),
                ("accuracy", hit + rest, len(truth)),
                ("false-positive rate", wrong, wrong + rest),
            ):
                e = proportion(count, of, metric=f"{name} of tags", key=f"{KEY}/{name}", **about)
                estimates.append(e)
            rows.append((group, hit, wrong, missed, rest))
        schema = ["group", "true_positive", "false_positive", "false_negative", "true_negative"]
        table = pl.DataFrame(rows, schema=schema, orient="row")
        return AnalysisResult(tuple(estimates), {"tag-validation": table})
