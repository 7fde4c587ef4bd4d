"""What changes decisions: swapped words, and terms that stand out among errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from pydantic import Field, model_validator
from scipy.special import ndtr

from ombud.audits.analysis import Analysis, AnalysisResult, Context, decisions_in
from ombud.audits.presets import Options
from ombud.data.exclusions import Exclusion
from ombud.metrics.engine.estimate import correct
from ombud.probes.swaps import (
    COUNTRY_TEMPLATES,
    ProbeResult,
    country_probe,
    swap_probe,
    template_probe,
)
from ombud.probes.winogender import read_winogender, winogender_probe
from ombud.questions.delicate.metrics import Judged, judged, labelled_texts
from ombud.questions.delicate.options import DelicateOptions, dictionary_of
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats import benjamini_hochberg
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import clustered_proportion, proportion
from ombud.systems.base import Moderator
from ombud.text.folding import fold, mask
from ombud.text.matching import TermMatcher, as_texts
from ombud.text.swaps import GenderSwap, read_swap

if TYPE_CHECKING:
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings


@analysis("bias-tests")
class BiasTests(Options, Analysis):
    """Does a moderator decide otherwise when a text changes in one respect alone?

    Gender swap of the audited texts, sentences with every country, Winogender's triplets, and
    custom swaps and templates. Flips have exact intervals, over texts that the swap changed
    and over all; shifts of scores have paired intervals. Intervals of Winogender count
    occupations, and those of countries count sentences. A text in which a gendered word has two
    readings is not swapped, and such texts are counted.

    - **Unit**: the text, the triplet or the template.
    - **Undefined**: when a swap changes no text; shifts when the moderator gives no scores.
    - **Does not capture**: which of the two decisions is right. Texts that share something are
      counted as if they stood alone.
    """

    ask: Literal["all", "local"] = DelicateOptions.field("bias")
    gender: bool = True
    """Whether the gender swap is tested."""
    country: bool = True
    """Whether countries are tested."""
    sentence: str = DelicateOptions.field("sentence")
    winogender: Path | str = DelicateOptions.field("winogender")
    swap: Path | str = DelicateOptions.field("swap")
    templates: tuple[str, ...] = DelicateOptions.field("templates")
    values: tuple[str, ...] = DelicateOptions.field("values")
    most: int = DelicateOptions.field("swapped_texts")

    asks_systems: ClassVar[bool] = True

    @model_validator(mode="after")
    def _fit_together(self) -> BiasTests:
        if bool(self.templates) != bool(self.values):
            raise ValueError("templates need values, and values need templates")
        return self

    def analyze(self, context: Context) -> AnalysisResult:
        """Return flips, shifts and spreads of each moderator that can be asked."""
        data, settings = context.data, context.settings
        estimates: list[Estimate] = []
        tables: dict[str, list[pl.DataFrame]] = {}
        exclusions: list[Exclusion] = []
        texts = as_texts(data.need("texts", "bias-tests").texts)
        chosen = self._sample(len(texts), settings)
        if len(chosen) < len(texts) and (self.gender or self.swap):
            reason = f"a random sample of {self.most:,} texts is swapped"
            exclusions.append(
                Exclusion("bias tests", "texts", len(texts) - len(chosen), reason, len(texts))
            )
        for name, system in context.systems.items():
            if not isinstance(system, Moderator):
                continue
            reason = self._refused(system)
            if reason:
                exclusions.append(Exclusion("bias tests", "systems", 1, reason, system=name))
                continue
            for number, (kind, found) in enumerate(
                self._probes(system, [texts[i] for i in chosen], settings.level)
            ):
                context.progress(number, 4, f"{kind}: {name}")
                estimates += [e.replace(system=name) for e in found.estimates]
                exclusions += [replace(e, system=name) for e in found.exclusions]
                rows = found.rows.insert_column(0, pl.Series("system", [name] * len(found.rows)))
                tables.setdefault(kind, []).append(rows)
        frames = {f"bias-{kind}": pl.concat(parts) for kind, parts in tables.items()}
        return AnalysisResult(_corrected(estimates, settings), frames, tuple(exclusions))

    def _sample(self, n: int, settings: Settings) -> list[int]:
        if n <= self.most:
            return list(range(n))
        rng = generator(settings.seed, "bias-tests")
        return sorted(int(i) for i in rng.choice(n, self.most, replace=False))

    def _refused(self, system: Moderator) -> str:
        if system.record is not None:
            return "recorded decisions cannot be asked about changed texts"
        if system.is_service and self.ask == "local":
            return "a service is not asked about changed texts unless bias = 'all'"
        return ""

    def _probes(
        self, system: Moderator, texts: list[str], level: float
    ) -> Iterator[tuple[str, ProbeResult]]:
        if self.gender:
            yield "gender", swap_probe(system, texts, GenderSwap(), level=level)
        if self.swap:
            yield "swap", swap_probe(system, texts, read_swap(self.swap), level=level)
        if self.country:
            sentences = self.sentence or COUNTRY_TEMPLATES
            yield "country", country_probe(system, sentences, level=level)
        if self.winogender:
            triplets = read_winogender(self.winogender)
            yield "winogender", winogender_probe(system, triplets, level=level)
        if self.templates:
            yield (
                "templates",
                template_probe(system, self.templates, "value", self.values, level=level),
            )


def _corrected(estimates: list[Estimate], settings: Settings) -> tuple[Estimate, ...]:
    """Return the estimates with p-values corrected within each quantity, over the systems."""
    result: list[Estimate] = []
    for key in dict.fromkeys(e.key for e in estimates):
        result += correct([e for e in estimates if e.key == key], settings.correction)
    by = {(e.system, e.key, e.label, e.group, e.against): e for e in result}
    return tuple(by[e.system, e.key, e.label, e.group, e.against] for e in estimates)


@analysis("function-pass-rates")
class FunctionPassRates(Options, Analysis):
    """How often a moderator decides as labeled, for each function that the texts test.

    For texts with a column ``function``, as suites of functional tests have (HateCheck: *slur*,
    *negated hate*, *counter speech*). A text passes when the decision is its label.

    - **Unit**: the text; where texts share a template (column ``cluster``), intervals count
      templates (`clustered_proportion`), otherwise they are exact.
    - **Undefined**: for a function without labeled and decided texts.
    - **Does not capture**: how common each function is in real texts.
    """

    def analyze(self, context: Context) -> AnalysisResult:
        """Return one pass rate for each function and moderator."""
        data, settings = context.data, context.settings
        texts = data.texts
        if texts is None or texts.functions is None:
            return AnalysisResult()
        names = sorted({str(name) for name in texts.functions if name is not None})
        estimates = []
        for system, some in decisions_in(context.outputs, "function-pass-rates").items():
            here = judged(some, data, "function-pass-rates")
            passed = (here.flagged > 0.5) == here.truth
            functions = texts.functions[here.index]
            shared = texts.clusters
            units = np.arange(len(texts)) if shared is None else shared
            for name in names:
                inside = functions == name
                places = np.unique(units[here.index[inside]], return_inverse=True)[1]
                about: dict[str, Any] = {
                    "system": system,
                    "group": name,
                    "level": settings.level,
                    "unit": "text",
                }
                about |= {"metric": "decided as labeled", "key": "functions/pass"}
                if shared is None:
                    right, n = int(passed[inside].sum()), int(inside.sum())
                    estimates.append(proportion(right, n, method="exact", **about))
                else:
                    right_c = np.bincount(places, passed[inside])
                    found = clustered_proportion(right_c, np.bincount(places), **about)
                    estimates.append(found)
        return AnalysisResult(tuple(estimates))


_WORD = re.compile(r"\w{2,}")
_LONGEST = 400
_COLUMNS = {
    "system": pl.String, "error": pl.String, "term": pl.String, "topics": pl.String,
    "errors_with": pl.Int64, "errors": pl.Int64, "right_with": pl.Int64, "right": pl.Int64,
    "log_odds": pl.Float64, "z": pl.Float64, "p_adjusted": pl.Float64,
}  # fmt: skip


def standout_terms(
    texts: Sequence[str],
    inside: ArrayLike,
    *,
    smallest: int = 5,
    prior: float = 1000.0,
    level: float = 0.05,
) -> pl.DataFrame:
    r"""Return the words that are commoner in some texts (errors) than in the others.

    Log-odds ratio with an informative Dirichlet prior: with counts :math:`y` of a word in the two
    parts, sizes :math:`n`, and prior counts :math:`a` (the word's share of both parts times
    `prior`),

    .. math:: \delta = \log\frac{y_1 + a}{n_1 + a_0 - y_1 - a} -
              \log\frac{y_2 + a}{n_2 + a_0 - y_2 - a},
              \quad \sigma^2 = \frac{1}{y_1 + a} + \frac{1}{y_2 + a}

    A word is counted once a text. p-values are two-sided normal, corrected by Benjamini and
    Hochberg over all words tried. Words stand for what the texts are about, not for causes; texts
    by one author inflate them.

    `inside` says which texts to look at, such as those missed. A word must stand in `smallest`
    texts. `level` is the false discovery rate of those marked in `stands_out`.

    Returns
    -------
    polars.DataFrame
        `term`, `inside`, `outside` (texts), `log_odds`, `z`, `p_adjusted`, `stands_out`; strongest
        first. Terms may offend: mask them before showing.

    References
    ----------
    Monroe, Colaresi and Quinn (2008), Fightin' words, Political Analysis 16, 372-403.
    """
    member = np.asarray(inside, dtype=bool)
    if len(member) != len(texts):
        raise ValueError(f"{len(texts)} texts and {len(member)} marks; expected as many")
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for text, mark in zip(texts, member.tolist(), strict=True):
        counts[0 if mark else 1].update(set(_WORD.findall(fold(text))))
    terms = [t for t, n in (counts[0] + counts[1]).items() if n >= smallest]
    schema = {
        "term": pl.String,
        "inside": pl.Int64,
        "outside": pl.Int64,
        "log_odds": pl.Float64,
        "z": pl.Float64,
        "p_adjusted": pl.Float64,
        "stands_out": pl.Boolean,
    }
    if not terms or not member.any() or member.all():
        return pl.DataFrame(schema=schema)
    y1 = np.array([counts[0][term] for term in terms], dtype=np.float64)
    y2 = np.array([counts[1][term] for term in terms], dtype=np.float64)
    n1, n2 = float(sum(counts[0].values())), float(sum(counts[1].values()))
    a: NDArray[np.float64] = prior * (y1 + y2) / (n1 + n2)
    odds = np.log((y1 + a) / (n1 + prior - y1 - a)) - np.log((y2 + a) / (n2 + prior - y2 - a))
    z = odds / np.sqrt(1 / (y1 + a) + 1 / (y2 + a))
    adjusted = benjamini_hochberg(2 * ndtr(-np.abs(z)))
    frame = pl.DataFrame(
        {
            "term": terms,
            "inside": y1.astype(np.int64),
            "outside": y2.astype(np.int64),
            "log_odds": odds,
            "z": z,
            "p_adjusted": adjusted,
            "stands_out": (adjusted < level) & (z > 0),
        },
        schema=schema,
    )
    return frame.sort("z", "term", descending=[True, False])


@analysis("error-terms")
class ErrorTerms(Options, Analysis):
    """Words and topics that stand out among wrongly flagged and among missed texts.

    Wrongly flagged texts are set against those rightly let through, missed ones against those
    rightly flagged, so a word stands out when it goes with the *error*, not with the label. Log
    odds ratio with a z score (`standout_terms`), p-values corrected over all words of a comparison.
    Terms of the dictionary that are offensive are masked unless `show`.

    - **Unit**: the text; texts that share something are counted as if they stood alone, so with
      clusters the table is a hint, not a test (its column ``p_adjusted`` is then empty).
    - **Undefined**: a comparison with fewer than `least` errors is excluded.
    - **Does not capture**: word order, tone, or which of several words is the cause.
    """

    least: int = Field(default=5, ge=1)
    """The smallest number of texts that a word must occur in, and of errors in a comparison."""
    most: int = Field(default=15, ge=0)
    """How many words of each comparison are stored: those with the largest z."""
    show: bool = DelicateOptions.field("show_terms")
    examples: int = DelicateOptions.field("examples")
    dictionary: str = DelicateOptions.field("dictionary")
    path: Path | str = DelicateOptions.field("path")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the table of stand-out terms."""
        data, outputs = context.data, context.outputs
        texts = labelled_texts(data, "error-terms")
        words = as_texts(texts.texts)
        rows: list[dict[str, Any]] = []
        examples: list[dict[str, Any]] = []
        for name, some in decisions_in(outputs, "error-terms").items():
            here = judged(some, data, "error-terms")
            flags = here.flagged > 0.5
            for error, wrong, right in (
                ("false positive", flags & ~here.truth, ~flags & ~here.truth),
                ("false negative", ~flags & here.truth, flags & here.truth),
            ):
                examples += [
                    {"system": name, "error": error, **example}
                    for example in _surest(here, wrong, texts, self.examples)
                ]
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
        tables = {"error-terms": self._described(frame)}
        if examples:
            columns = {"score": pl.Float64}
            tables["error-examples"] = self._masked(
                pl.DataFrame(examples, schema_overrides=columns)
            )
        return AnalysisResult(tables=tables)

    def _masked(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the examples with all terms of the three worse severities masked."""
        if self.show:
            return frame
        terms = dictionary_of(self.dictionary, self.path)
        harsh = [t.text for t in terms.terms if t.severity in set(terms.scale[:3])]
        texts = frame["text"].to_list()
        found = TermMatcher(harsh, suffixes=("", "s", "es")).match(texts, spans=True)
        assert found.start is not None and found.end is not None  # spans were asked for
        spans: list[list[tuple[int, int]]] = [[] for _ in texts]
        for row, start, end in zip(
            found.text_index.tolist(), found.start.tolist(), found.end.tolist(), strict=True
        ):
            spans[row].append((start, end))
        shown = [mask(text, some) for text, some in zip(texts, spans, strict=True)]
        return frame.with_columns(text=pl.Series(shown, dtype=pl.String))

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


def _surest(
    here: Judged, wrong: NDArray[np.bool_], texts: Texts, most: int
) -> Iterator[dict[str, Any]]:
    """Yield the errors that a system is surest of: high scores flagged, low ones let through."""
    which = np.flatnonzero(wrong)
    sure = np.where(here.flagged[which] > 0.5, -1, 1) * np.nan_to_num(here.score[which])
    for i in which[np.argsort(sure, kind="stable")][:most].tolist():
        place, score = here.index[i], float(here.score[i])
        text = str(texts.texts[place])[:_LONGEST]
        known = None if np.isnan(score) else score
        yield {"id": str(texts.ids[place]), "score": known, "text": text}
