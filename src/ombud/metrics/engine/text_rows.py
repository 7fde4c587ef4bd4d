"""What was decided about texts that should not be flagged."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.decisions import NO_DECISIONS, Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.metrics.base import Metric, Notes, Outputs, Rows
from ombud.metrics.engine.comparisons import Comparisons
from ombud.metrics.engine.few_events import GapPolicy
from ombud.stats.statistics import Mean, Median

Scope = str
"""Which texts make up the whole: ``"all"``, or ``"identity"`` for those in some group."""


NOTHING_ACCEPTABLE = (
    "no text is known not to deserve a flag; give the texts a column 'label' "
    "(0 = should not be flagged)"
)
"""What is said when there is no text to measure false flags on."""


def needs_texts(outputs: Outputs, data: Dataset) -> tuple[Decisions, Texts]:
    """Return decisions and texts, or say what is missing."""
    if not isinstance(outputs, Decisions):
        raise PlanError("suppression is measured on a moderator's decisions, not on lists of items")
    texts: Texts = data.need("texts", "suppression")
    if not texts.is_part and not np.any(texts.truth == 0):
        raise PlanError(NOTHING_ACCEPTABLE)
    return outputs, texts


def was_flagged(decisions: Decisions) -> NDArray[np.float64]:
    """Return 1 for flagged, 0 for allowed; NaN where there is no decision."""
    return np.where(decisions.decided, decisions.outcomes == Outcome.FLAGGED.value, np.nan)


def was_refused(decisions: Decisions) -> NDArray[np.float64]:
    """Return 1 for refused, 0 for flagged, allowed or scored; NaN where there is no answer."""
    answered = decisions.answered | (decisions.outcomes == Outcome.REFUSED.value)
    return np.where(answered, decisions.outcomes == Outcome.REFUSED.value, np.nan)


def was_stopped(decisions: Decisions) -> NDArray[np.float64]:
    """Return 1 for flagged or refused, 0 for allowed; NaN where there is no answer."""
    refused = decisions.outcomes == Outcome.REFUSED.value
    flagged = decisions.outcomes == Outcome.FLAGGED.value
    return np.where(decisions.decided | refused, flagged | refused, np.nan)


Happening = Literal["flagged", "refused", "either"]
"""What may happen to an acceptable text: a flag, a refusal to answer, or either of them."""

HAPPENINGS: dict[Happening, Callable[[Decisions], NDArray[np.float64]]] = {
    "flagged": was_flagged,
    "refused": was_refused,
    "either": was_stopped,
}
"""How each of them is read off decisions."""

EVENTS: dict[Happening, str] = {
    "flagged": "flagged",
    "refused": "refused",
    "either": "flagged or refused",
}
"""What happened to a text, in a participle."""


def was_undecided(decisions: Decisions) -> NDArray[np.float64]:
    """Return 1 where a moderator refused, failed or answered what nobody can read; else 0."""
    return (~decisions.answered).astype(np.float64)


def max_score(decisions: Decisions, categories: tuple[str, ...], name: str) -> NDArray[np.float64]:
    """Return the score of each row: the system's own, or the largest of some categories."""
    if not categories:
        scores = decisions.scores.astype(np.float64)
    else:
        unknown = sorted(set(categories) - set(decisions.categories) - {"all"})
        if unknown or decisions.category_scores is None:
            known = ", ".join(decisions.categories) or "none"
            raise PlanError(f"{name}: no scores of {unknown or list(categories)}; known: {known}")
        chosen = [
            index
            for index, category in enumerate(decisions.categories)
            if "all" in categories or category in categories
        ]
        some = decisions.category_scores[:, chosen].astype(np.float64)
        lowest = np.where(np.isnan(some), -np.inf, some).max(axis=1)
        scores = np.where(np.isfinite(lowest), lowest, np.nan)
    return np.where(decisions.answered, scores, np.nan)


def measure_scores(metric: Any, outputs: Outputs, data: Dataset) -> Rows:
    """Return the score of each text that should not be flagged, as a metric's options say."""
    value = partial(max_score, categories=metric.categories, name=metric.title)
    scope = {"among": metric.among, "families": metric.families}
    return measure_texts(outputs, data, value, needed="score", **scope)


def measure_texts(
    outputs: Outputs,
    data: Dataset,
    value: Callable[[Decisions], NDArray[np.float64]],
    *,
    among: Scope = "all",
    needed: str = "decision",
    families: bool = False,
) -> Rows:
    """Return one value for each text that should not be flagged; repeats are averaged.

    Parameters
    ----------
    outputs, data
        Decisions and texts.
    value
        One number for each decision, NaN where it says nothing.
    among
        ``"identity"`` keeps only texts of some group.
    needed
        What a text without a value lacks, in words.
    families
        Whether each of `acceptable_parts` is a label of its own, beside all texts.
    """
    decisions, texts = needs_texts(outputs, data)
    index = Vocabulary(texts.ids).codes(decisions.ids)
    known = index >= 0
    result = value(decisions)
    counted = known & ~np.isnan(result)
    total = np.bincount(index[counted], weights=result[counted], minlength=len(texts))
    count = np.bincount(index[counted], minlength=len(texts))
    parts = acceptable_parts(texts) if families else acceptable_parts(texts)[:1]
    negative = texts.truth == 0
    exclusions = _scope(texts, int(np.count_nonzero(~known)), len(decisions))
    if among == "identity":
        if data.text_groups is None:
            raise PlanError("among='identity' needs groups of texts; the data has none")
        tagged = data.text_groups.aligned(texts.ids).any(axis=1)
        out = int(np.count_nonzero(negative & ~tagged))
        exclusions.append(
            Exclusion("texts", "texts", out, "they name no group, and only texts that do count")
        )
        negative &= tagged
        parts = [replace(part, rows=part.rows & tagged) for part in parts]
    kept = np.any([part.rows for part in parts], axis=0) & (count > 0)
    tallies = {
        LACKING: np.array(
            [
                np.count_nonzero(negative),
                np.count_nonzero(negative & (count == 0)),
                *_outcomes(decisions, index, negative & (count == 0)),
            ],
            dtype=np.float64,
        )
    }
    if needed == "decision":
        scored = known & (decisions.outcomes == Outcome.SCORED) & np.isnan(result)
        tallies[SCORED] = np.array([np.count_nonzero(scored)], dtype=np.float64)
    if among == "all" and needed == "decision":
        tallies[AGREEMENT] = agreement(decisions, texts)
    exclusions += [*left_out(tallies, needed), *contradictions(tallies)]
    clusters = None if texts.clusters is None else texts.clusters[kept]
    value_of = (total[kept] / count[kept])[:, None]
    labels = tuple(part.label for part in parts)
    measured = np.where(np.column_stack([part.rows[kept] for part in parts]), value_of, np.nan)
    if clusters is not None:
        tallies["texts"] = np.count_nonzero(~np.isnan(measured), axis=0).astype(np.float64)
    return Rows(
        unit="text" if clusters is None else "cluster",
        ids=_ids(texts, kept),
        columns={"value": measured},
        labels=labels,
        clusters=clusters,
        exclusions=tuple(exclusions),
        notes=sizes_told(tallies, labels),
        details=cannot_tell(tallies, labels),
        tallies=tallies,
        events=None if needed == "score" else measured,
    )


LACKING = "lacking"
"""The key of what is said of texts without a value, and of the tally that it is made of."""


def left_out(tallies: Mapping[str, NDArray[np.float64]], needed: str) -> list[Exclusion]:
    """Return how many texts have no value, and what came in its place."""
    of, lacking, *counts = (int(count) for count in tallies[LACKING])
    if not lacking:
        return []
    parts = zip(counts, _WORDS.values(), strict=True)
    words = ", ".join(f"{count:,} {word}" for count, word in parts if count)
    words = words or ("only comparisons of scores need one" if needed == "score" else "")
    reason = f"no {needed} ({words})" if words else f"no {needed}"
    return [Exclusion("texts", "texts", lacking, reason, of, LACKING)]


AGREEMENT = "agreement"
"""The tally of decisions by label: acceptable, to be flagged, unlabeled; each allowed, flagged."""

SCORED = "scored"
"""The tally of answers that are scores without a decision, where a decision was needed."""

_MOST_FLAGGED = 0.95
_WORSE = -3.0
_FEWEST = 10


def agreement(decisions: Decisions, texts: Texts) -> NDArray[np.float64]:
    """Return how many texts of each label were allowed and flagged, by most of their decisions."""
    index = Vocabulary(texts.ids).codes(decisions.ids)
    flags = was_flagged(decisions)
    counted = (index >= 0) & ~np.isnan(flags)
    total = np.bincount(index[counted], weights=flags[counted], minlength=len(texts))
    count = np.bincount(index[counted], minlength=len(texts))
    there = count > 0
    flagged = total[there] > count[there] / 2
    kind = np.where(texts.truth[there] < 0, 2, texts.truth[there]).astype(np.int64)
    return np.bincount(2 * kind + flagged, minlength=6).astype(np.float64)


def contradictions(tallies: Mapping[str, NDArray[np.float64]]) -> list[Exclusion]:
    """Return that decisions agree with labels less often than chance, and what turns them round.

    Reported where texts to be flagged are flagged less often than acceptable ones by more than
    three standard errors.
    """
    if AGREEMENT not in tallies:
        return []
    (good_allowed, good_flagged, bad_allowed, bad_flagged) = tallies[AGREEMENT][:4]
    good, bad = good_allowed + good_flagged, bad_allowed + bad_flagged
    if min(good, bad) < _FEWEST:
        return []
    rate = (good_flagged + bad_flagged) / (good + bad)
    error = math.sqrt(rate * (1 - rate) * (1 / good + 1 / bad))
    if not error or (bad_flagged / bad - good_flagged / good) / error > _WORSE:
        return []
    wrong, every = int(good_flagged + bad_allowed), int(good + bad)
    chance = (rate * bad + (1 - rate) * good) / (good + bad)
    reason = (
        f"they contradict the labels: {1 - wrong / every:.0%} agree, {chance:.0%} would by chance. "
        "If labels or decisions are the other way round, state which values mean yes: "
        "--read decisions.yes=VALUE or --read texts.yes=VALUE of ombud audit; in a plan, yes = "
        '["VALUE"] under [systems.NAME.reading] or [data.reading.texts]'
    )
    key = "warning/worse-than-chance"
    return [Exclusion("decisions", "decisions", wrong, reason, every, key)]


def cannot_tell(
    tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """Return why rates are undefined: there are no decisions, or hardly any label of other texts.

    A label that was given because a text was flagged says nothing about the texts that were not.
    """
    if SCORED in tallies and tallies[SCORED][0]:
        return {label: dict(WITHOUT_DECISIONS) for label in labels}
    if AGREEMENT not in tallies:
        return {}
    allowed, flagged = tallies[AGREEMENT][:4].reshape(2, 2).sum(axis=0)
    others, others_flagged = tallies[AGREEMENT][4:]
    labeled, rest = allowed + flagged, others + others_flagged
    if min(labeled, rest) < _FEWEST or flagged / labeled < _MOST_FLAGGED:
        return {}
    if others_flagged / rest >= _MOST_FLAGGED:
        return {}  # nearly everything is flagged, labeled or not
    reason = (
        f"almost only flagged texts are labeled ({int(flagged):,} of {int(labeled):,} labeled "
        f"texts were flagged, {int(others_flagged):,} of {int(rest):,} others): label a random "
        "sample"
    )
    return {label: {"undefined": reason} for label in labels}


WITHOUT_DECISIONS: Mapping[str, Any] = {"undefined": NO_DECISIONS, "lacks_decisions": True}
"""Details of a metric of flags whose system states scores and no decisions."""


def sizes_told(
    tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]
) -> dict[str, str]:
    """Return how many texts there are beside the clusters, in words."""
    if "texts" not in tallies:
        return {}
    counts = (int(count) for count in tallies["texts"])
    return {label: f"{count:,} texts in all" for label, count in zip(labels, counts, strict=True)}


def _ids(texts: Texts, kept: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the ids of some texts; without any, still of a type that can be stored."""
    ids = np.asarray(texts.ids)[kept]
    return ids.astype(str) if ids.dtype == object and not len(ids) else ids


@dataclass(frozen=True, eq=False)
class TextPart:
    """Texts that should not be flagged: all, a family or a data set, by a type of label."""

    label: str  # the label of their estimates
    kind: str  # ``all``, ``family`` or ``set``
    name: str  # of the family or the data set
    type: str  # by which type of label they are acceptable; empty for texts without types
    rows: NDArray[np.bool_]


def acceptable_parts(texts: Texts) -> list[TextPart]:
    """Return the acceptable texts: all, then each family and each data set, then by other labels.

    Families and sets are told apart where there are several. A further type of label that says the
    same as the label of its texts is that label, and has its name.
    """
    whole = [("", "all", "", np.ones(len(texts), dtype=bool))]
    for column, kind, label in ((texts.families, "family", "{}"), (texts.sets, "set", "set={}")):
        names = [] if column is None else sorted({str(name) for name in column})
        if column is not None and len(names) > 1:
            of = column.astype(str)
            whole += [(label.format(name), kind, name, of == name) for name in names]
    first, further = [], []
    for label, kind, name, here in whole:
        same = [
            t for t, truth in texts.types.items() if np.array_equal(truth[here], texts.truth[here])
        ]
        first.append(TextPart(label, kind, name, "".join(same[:1]), here & (texts.truth == 0)))
    for type_name, truth in texts.types.items():
        seen: list[NDArray[np.bool_]] = []
        # Where one set alone has a type, it stands for its family and for all.
        for (label, kind, name, here), plain in reversed(list(zip(whole, first, strict=True))):
            known = here & (truth >= 0)
            if not known.any() or any(np.array_equal(known, other) for other in seen):
                continue
            seen.append(known)
            if plain.type == type_name:
                continue
            typed = f"{label}, labeled {type_name}" if label else f"labeled {type_name}"
            further.append(TextPart(typed, kind, name, type_name, here & (truth == 0)))
    return [*first, *sorted(further, key=lambda part: part.label)]


def by_part(
    texts: Texts, kept: NDArray[np.bool_], values: NDArray[np.float64]
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Return all texts, then each family, then each set, as labels; NaN where a text is outside."""
    labels, columns = [""], [values]
    for column, label in ((texts.families, "{}"), (texts.sets, "set={}")):
        # Of all texts, so that every system has the same labels, whatever it decided.
        names = [] if column is None else sorted({str(name) for name in column})
        if column is None or len(names) < 2:
            continue
        of = column[kept]
        labels += [label.format(name) for name in names]
        columns += [np.where(of[:, None] == name, values, np.nan) for name in names]
    return tuple(labels), np.concatenate(columns, axis=1)


def _scope(texts: Texts, strangers: int, rows: int) -> list[Exclusion]:
    result = []
    unknown = int(np.count_nonzero(texts.truth < 0))
    if unknown:
        reason = "whether they should be flagged is not known"
        result.append(Exclusion("texts", "texts", unknown, reason, len(texts)))
    if strangers:
        reason = "they are about texts that are not in the data"
        result.append(Exclusion("decisions", "decisions", strangers, reason, rows))
    return result


_WORDS = {
    Outcome.REFUSED.value: "refused",
    Outcome.ERROR: "error",
    Outcome.UNPARSEABLE: "unparseable",
    Outcome.SCORED: "with a score only",
}


def _outcomes(
    decisions: Decisions, place: NDArray[np.int32], lacking: NDArray[np.bool_]
) -> list[int]:
    """Return how often each of what may come instead of a decision came."""
    here = np.zeros(len(decisions), dtype=bool)
    here[place >= 0] = lacking[place[place >= 0]]
    return [int(np.count_nonzero(decisions.outcomes[here] == outcome)) for outcome in _WORDS]


# What the metrics of texts share: which texts are compared, and how few events are handled.


@dataclass(frozen=True)
class TextMetric(Metric):
    """A level on texts, everyone's and each group's, and gaps to the texts outside a group."""

    families: bool = False

    registered_name: ClassVar[str]
    of: ClassVar[Literal["moderator"]] = "moderator"
    compares_systems: ClassVar[bool] = True
    event: ClassVar[str] = "flagged"

    @property
    def statistic(self) -> Mean | Median:
        """How one number is made of many texts."""
        return Mean()

    @property
    def needed(self) -> str:
        """What a text without a value lacks, in a word."""
        return "decision"

    def block_fault(self, tables: Collection[str]) -> str:
        """Return why texts cannot be measured in blocks; empty when they can."""
        del tables
        if self.families:
            return "families=true makes labels of what all texts together have; leave it out"
        return ""

    def notes(self, tallies: Mapping[str, NDArray[np.float64]], labels: tuple[str, ...]) -> Notes:
        """Return how many texts there are beside the clusters, and how many have no value."""
        lost = left_out(tallies, self.needed) if LACKING in tallies else []
        return Notes(
            sizes_told(tallies, labels),
            cannot_tell(tallies, labels),
            (*lost, *contradictions(tallies)),
        )

    @property
    def happened(self) -> str:
        """What happened to a text that counts, in a participle."""
        return self.event

    @property
    def comparisons(self) -> Comparisons:
        """Levels, gaps to the texts outside each group, gaps between systems."""
        return Comparisons(
            groups="outside",
            systems=self.compares_systems,
            events=GapPolicy(self.happened, is_rate=isinstance(self.statistic, Mean)),
            by_pattern=True,
        )
