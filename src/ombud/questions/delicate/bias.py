"""Bias tests of every moderator of a plan: swaps, Winogender, countries, templates of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.exclusions import Exclusion
from ombud.errors import PlanError
from ombud.metrics.engine.estimate import correct
from ombud.probes.swaps import (
    COUNTRY_TEMPLATE,
    ProbeResult,
    country_probe,
    swap_probe,
    template_probe,
)
from ombud.probes.winogender import read_winogender, winogender_probe
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.systems.base import Moderator
from ombud.text.matching import as_texts
from ombud.text.swaps import GenderSwap, read_swap
from ombud.text.tagging import texts_of

if TYPE_CHECKING:
    from ombud.metrics.engine.estimator import Settings


@analysis("bias-tests")
@dataclass(frozen=True)
class BiasTests(Analysis):
    """Does a moderator decide otherwise when a text changes in one respect alone?

    Gender swap of the audited texts, one sentence for every country, Winogender's triplets, and
    swaps and templates of one's own. Flips have exact intervals, over texts that the swap changed
    and over all; shifts of scores have paired intervals.

    - **Unit**: the text, the triplet or the template.
    - **Undefined**: when a swap changes no text; shifts when the moderator gives no scores.
    - **Does not capture**: which of the two decisions is right. Texts that share something are
      counted as if they stood alone.

    Parameters
    ----------
    ask
        ``local``: services are not asked about swapped texts, which would be sent and paid for;
        ``all``: they are.
    gender, country
        Whether the gender swap and the country sentence are tried.
    sentence
        The sentence with the slot ``{country}``.
    winogender
        The published folder with ``all_sentences.tsv``; empty for none.
    swap
        A file with a swap of one's own (columns `from` and `to`); empty for none.
    templates, values
        Sentences with the slot ``{value}``, and what to put there.
    most
        How many texts are swapped at most, a random sample.
    """

    ask: Literal["all", "local"] = "local"
    gender: bool = True
    country: bool = True
    sentence: str = COUNTRY_TEMPLATE
    winogender: Path | str = ""
    swap: Path | str = ""
    templates: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    most: int = 5000

    asks_systems = True

    def __post_init__(self) -> None:
        if bool(self.templates) != bool(self.values):
            raise PlanError("bias-tests: templates need values, and values need templates")

    def analyze(self, context: Context) -> AnalysisResult:
        """Return flips, shifts and spreads of each moderator that can be asked."""
        data, settings = context.data, context.settings
        estimates: list[Estimate] = []
        tables: dict[str, list[pl.DataFrame]] = {}
        exclusions: list[Exclusion] = []
        texts = as_texts(texts_of(data, "bias-tests").texts)
        chosen = self._sample(len(texts), settings)
        if len(chosen) < len(texts) and (self.gender or self.swap):
            reason = f"a random sample of {self.most:,} texts is swapped"
            exclusions.append(
                Exclusion("bias-tests", "texts", len(texts) - len(chosen), reason, len(texts))
            )
        for name, system in context.systems.items():
            if not isinstance(system, Moderator):
                continue
            reason = self._refused(system)
            if reason:
                exclusions.append(Exclusion("bias-tests", "systems", 1, reason, system=name))
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
            yield "country", country_probe(system, self.sentence, level=level)
        if self.winogender:
            sentences = read_winogender(self.winogender)
            yield "winogender", winogender_probe(system, sentences, level=level)
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
