"""The audited texts: sizes of sets, how texts are assigned to groups, spread of scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.decisions import Decisions
from ombud.data.texts import Texts
from ombud.metrics.engine.text_rows import (
    HAPPENINGS,
    Happening,
    acceptable_parts,
    max_score,
    measure_texts,
)
from ombud.questions.suppression.options import SuppressionOptions
from ombud.registry import analysis
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.text.identity import TagMode
from ombud.text.tagging import stated_texts, tags_of, terms_of


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
        texts: Texts = data.need("texts", "set-sizes")
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


@analysis("suppression-counts")
class SuppressionCounts(Options, Analysis):
    """Flags, scores and suppression of every group as the paper defines them, with their counts.

    For each system and for each set, family and type of label: how many acceptable texts of a group
    there are, how many are flagged, their median score, and the ratio to all of them. No group is
    too small here and there are no intervals: these are the numbers of the paper's Tables 4 and 11
    to 14. What can be said of other texts is in the metrics. A text that was queried repeatedly
    counts with its share of flags and its mean score.
    """

    outcome: Happening = "flagged"
    """What counts as a flag, as in the metric *suppression*."""
    categories: tuple[str, ...] = ()
    """The score categories whose largest score is taken."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each system, measure, part of the texts and group."""
        data = context.data
        texts: Texts = data.need("texts", "suppression-counts")
        parts = {part.label: part for part in acceptable_parts(texts)}
        rows: list[dict[str, Any]] = []
        for name, decisions in decisions_in(context.outputs, "suppression-counts").items():
            measures: dict[str, Callable[[Decisions], Any]] = {"flags": HAPPENINGS[self.outcome]}
            if not self.categories or decisions.category_scores is not None:
                measures["scores"] = partial(
                    max_score, categories=self.categories, name="suppression-counts"
                )
            for by, value in measures.items():
                measured = measure_texts(decisions, data, value, families=True)
                inside = np.ones((len(measured.ids), 1), dtype=bool)
                groups: tuple[str, ...] = ("",)
                if data.text_groups is not None:
                    groups = ("", *data.text_groups.names)
                    inside = np.hstack([inside, data.text_groups.aligned(measured.ids)])
                for column, label in enumerate(measured.labels):
                    values = measured.columns["value"][:, column].astype(np.float64)
                    known = ~np.isnan(values)
                    if not known.any():
                        continue
                    part = parts[label]
                    about = {"system": name, "by": by, "label": label, "part": part.kind}
                    about |= {"name": part.name, "type": part.type}
                    rows += self._groups(about, values, known, inside, groups)
        table = pl.DataFrame(rows, infer_schema_length=None)
        return AnalysisResult(tables={"suppression-counts": table} if rows else {})

    def _groups(
        self,
        about: dict[str, Any],
        values: NDArray[np.float64],
        known: NDArray[np.bool_],
        inside: NDArray[np.bool_],
        groups: tuple[str, ...],
    ) -> list[dict[str, Any]]:
        flags = about["by"] == "flags"
        rows = []
        whole = 0.0
        for place, group in enumerate(groups):
            some = values[known & inside[:, place]]
            level = float((some.mean() if flags else np.median(some)) if len(some) else np.nan)
            whole = whole if group else level
            rows.append(
                about
                | {
                    "group": group,
                    "texts": len(some),
                    "flagged": float(some.sum()) if flags else None,
                    "level": level if len(some) else None,
                    "ratio": level / whole if len(some) and whole > 0 else None,
                }
            )
        return rows


_MODES: tuple[TagMode, TagMode] = ("whole-word", "published")


@analysis("identity-tag-counts")
class TagCounts(Options, Analysis):
    """Texts that name each identity group, by whole words and as the published code matches.

    The published code misses terms at the start or end of a text, beside most punctuation, and
    with hyphens; a term of several groups counts for one. Counts, not estimates: how good the tags
    are is measured against manual labels with `ombud.text.tag_quality`.
    """

    terms: str = SuppressionOptions.field("terms")
    path: Path | str = SuppressionOptions.field("path")
    punctuation: dict[str, str] = SuppressionOptions.field("punctuation")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each group."""
        data = context.data
        # Without a list of the plan's, each way of matching has its own: compare what both name.
        whole, published = (
            tags_of(data, terms_of(self.terms, self.path, m), m, self.punctuation) for m in _MODES
        )
        differences = whole.compare(published.with_groups(whole.groups))
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
class TagValidation(Options, Analysis):
    """Recall, precision, accuracy and false-positive rate of tags, where a source states groups.

    Texts of data sets that state groups (people's labels, or identity terms of templates) are
    tagged by a term list as well, and both are compared. Wilson intervals; they take texts as
    independent, so where texts share templates they are too short.

    - **Unit**: the text.
    - **Undefined**: recall where no text is stated to name the group, precision where none is
      tagged. Without stated groups there is nothing to compare, and no number.
    - **Does not capture**: how good the stated groups are.
    """

    terms: str = SuppressionOptions.field("terms")
    path: Path | str = SuppressionOptions.field("path")
    mode: TagMode = SuppressionOptions.field("mode")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the quality of the tags of each group."""
        data, settings = context.data, context.settings
        texts: Texts = data.need("texts", "tag-validation")
        stated = stated_texts(data)
        if data.text_groups is None or not stated.any():
            return AnalysisResult()
        listed = terms_of(self.terms, self.path, self.mode)
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


QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The points of a distribution that are kept."""


@analysis("score-spread")
class ScoreSpread(Options, Analysis):
    """Quantiles of the scores of texts that should not be flagged, by system and group.

    They describe these texts; they are not estimates of other texts. Groups with fewer texts than
    the plan's minimum are excluded.
    """

    categories: tuple[str, ...] = ()
    """The score categories whose largest score is taken; each system's own score where none is
    named."""

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one row for each system and group."""
        data, outputs, settings = context.data, context.outputs, context.settings
        rows = []
        for name, decisions in decisions_in(outputs, "score-spread").items():
            if self.categories and decisions.category_scores is None:
                continue
            measured = measure_texts(
                decisions, data, lambda d: max_score(d, self.categories, "score-spread")
            )
            values = measured.columns["value"][:, 0]
            groups = {"": np.ones(len(values), dtype=bool)}
            if data.text_groups is not None:
                inside = data.text_groups.aligned(measured.ids)
                groups |= dict(zip(data.text_groups.names, inside.T, strict=True))
            for group, member in groups.items():
                some = values[member]
                if len(some) >= settings.minimum:
                    points = np.quantile(some, QUANTILES).tolist()
                    rows.append((name, group, len(some), *points))
        schema = {"system": pl.String, "group": pl.String, "texts": pl.Int64}
        named = {f"q{round(100 * q):02d}": pl.Float64 for q in QUANTILES}
        table = pl.DataFrame(rows, schema={**schema, **named}, orient="row")
        return AnalysisResult(tables={"score-spread": table} if table.height else {})
