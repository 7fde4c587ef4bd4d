"""How many texts name each identity group, by two ways of matching."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.registry import analysis
from ombud.text.identity import TagMode
from ombud.text.tagging import tags_of, terms_of

if TYPE_CHECKING:
    pass


_MODES: tuple[TagMode, TagMode] = ("whole-word", "published")


@analysis("identity-tag-counts")
@dataclass(frozen=True)
class TagCounts(Analysis):
    """Texts that name each identity group, by whole words and as the published code matches.

    The published code misses terms at the start or end of a text, beside most punctuation, and
    with hyphens; a term of several groups counts for one. Counts, not estimates: how good the tags
    are is measured against manual labels with `ombud.text.tag_quality`.

    Parameters
    ----------
    terms
        The term list of ombud.
    path
        A file with a term list of your own instead.
    punctuation
        For some data sets, the characters that become spaces in the published way.
    """

    terms: str = "terms-identity@1"
    path: Path | str = ""
    punctuation: dict[str, str] = field(default_factory=dict)

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each group."""
        data = context.data
        listed = terms_of(self.terms, self.path)
        whole, published = (tags_of(data, listed, m, self.punctuation) for m in _MODES)
        differences = whole.compare(published)
        table = pl.DataFrame(
            {
                "group": [d.group for d in differences],
                "whole_word": [d.both + d.only_first for d in differences],
                "published": [d.both + d.only_second for d in differences],
                "both": [d.both for d in differences],
                "whole_word_only": [d.only_first for d in differences],
                "published_only": [d.only_second for d in differences],
            }
        )
        return AnalysisResult(tables={"identity-tag-counts": table})
