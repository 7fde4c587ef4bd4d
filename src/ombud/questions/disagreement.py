"""Disagreement: which labels people dispute, and what becomes of audits where raters agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ombud.audits import analysis as audits
from ombud.audits.presets import Options
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.metrics.base import Metric, Rows
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.signs import weight
from ombud.metrics.rates import FalsePositiveRate
from ombud.metrics.shares import ShareGap
from ombud.registry import analysis, section
from ombud.report.context import Context, Role, Select
from ombud.report.model import Block, Prose, Text, status_of
from ombud.report.numbers import POINTS, SHARE, Scale, percent
from ombud.report.show import Custom, Detail, Grid, Listing, Matrix, Measure, Part, Say, part
from ombud.rng import generator
from ombud.stats.bootstrap.resample import estimate
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion
from ombud.stats.statistics import Floats, RatioOfSums

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.decisions import Decisions
    from ombud.metrics.base import Outputs
    from ombud.metrics.engine.estimator import Settings

DISPUTED = "label-disagreement/disputed-share"
PAIRWISE = "label-disagreement/pairwise"
RECOMMENDED = "label-disagreement/recommended-more"
ANY = "any label"


def pairwise(yes: Floats, no: Floats) -> Floats:
    """Return how often two voters, drawn without putting back, disagree; NaN below two votes.

    Examples
    --------
    >>> pairwise(np.array([1.0, 3.0, 1.0]), np.array([1.0, 1.0, 0.0])).tolist()
    [1.0, 0.5, nan]
    """
    n = yes + no
    pairs = n * (n - 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(n >= 2, yes * no / pairs, np.nan))


def disputed(labels: Labels) -> Labels:
    """Return *disputed* as a label: yes where a pair is disputed, no where it is clear.

    The last label, `ANY`, is disputed where any is, and not where none is and at least one is
    clear. Pairs without votes stay unknown.
    """
    voted = labels.as_stated[:-1]  # what is declared without a vote is not clear by votes
    states = np.select(
        [voted == LabelState.DISPUTED, voted >= 0],
        [np.int8(LabelState.YES), np.int8(LabelState.NO)],
        np.int8(LabelState.UNKNOWN),
    )
    whole = np.select(
        [(states == LabelState.YES).any(axis=1), (states == LabelState.NO).any(axis=1)],
        [np.int8(LabelState.YES), np.int8(LabelState.NO)],
        np.int8(LabelState.UNKNOWN),
    )
    both = np.concatenate([states, whole[:, None]], axis=1).astype(np.int8)
    return Labels(labels.items, (*labels.names, ANY), both, rule="disputed or clear, by votes")


@analysis("label-disagreement")
class LabelDisagreement(Options, audits.Analysis):
    r"""Which labels people dispute, and whether disputed items are recommended more.

    For each label with votes, over its items with at least two votes:

    - the share of items that are disputed, neither side reaching the threshold;
    - how often two of an item's voters disagree, :math:`2 y n / ((y + n)(y + n - 1))`, averaged
      over items: it hangs on no threshold.

    For each system, the share of disputed items among those of a user's list that were voted on,
    minus the same share in the user's own history.

    - **Unit**: the item for the first two (Wilson's interval, bootstrap), the user for the third.
    - **Undefined**: for labels without an item that has two votes; for systems as in ``share-gap``.
    - **Does not capture**: why people disagree; few votes make a dispute likelier than many, so
      labels with few votes an item look more disputed by the first measure, not by the second.
      Without votes nothing is computed, and that is said.
    """

    k: int = Field(default=100, ge=1)
    """The number of recommendations per user that count."""

    @property
    def depth(self) -> int:
        """How many places of a list it looks at."""
        return self.k

    def analyze(self, context: audits.Context) -> audits.AnalysisResult:
        """Return disputes by label, and the share of disputed items in lists and histories."""
        data, outputs, settings = context.data, context.outputs, context.settings
        labels: Labels = data.need("labels", "label-disagreement")
        if labels.yes is None or labels.no is None:
            reason = "they were applied, not voted on: nobody can be seen to disagree"
            count = len(labels.names)
            return audits.AnalysisResult(
                exclusions=(Exclusion("label disagreement", "labels", count, reason, count),)
            )
        yes, no = labels.yes.astype(np.float64), labels.no.astype(np.float64)
        found: list[Estimate] = []
        for place, label in enumerate(labels.names):
            found += _of_label(
                label, yes[:, place], no[:, place], labels.as_stated[:-1, place], settings
            )
        return audits.AnalysisResult(
            tuple(found + self._recommended(data, labels, outputs, settings))
        )

    def _recommended(
        self, data: Dataset, labels: Labels, outputs: Mapping[str, Outputs], settings: Settings
    ) -> list[Estimate]:
        lists = {name: one for name, one in outputs.items() if isinstance(one, Recommendations)}
        if not lists or data.interactions is None:
            return []
        metric = ShareGap(k=self.k)
        about = replace(data, labels=disputed(labels))
        rows: dict[str, Rows] = {name: metric.measure(one, about) for name, one in lists.items()}
        title = f"disputed items in lists minus in histories@{self.k}"
        return [
            e.replace(metric=title, key=RECOMMENDED)
            for e in estimate_metric(metric, rows, data.users, settings)
            if not e.key.endswith("/attribute-gap")
        ]


def _of_label(
    label: str, yes: Floats, no: Floats, states: NDArray[np.int8], settings: Settings
) -> list[Estimate]:
    voted = yes + no >= 2
    count = int(np.count_nonzero(voted))
    about: dict[str, Any] = {"label": label, "unit": "item", "level": settings.level}
    if not count:
        reason = "no item has two votes"
        return [
            Estimate.undefined(
                reason_code="no-labels", metric=metric, key=key, reason=reason, n=0, **about
            )
            for metric, key in (("disputed share", DISPUTED), ("two voters disagree", PAIRWISE))
        ]
    details = {"votes_per_item": float((yes + no)[voted].mean()), "items": count}
    open_ = int(np.count_nonzero((states == LabelState.DISPUTED) & voted))
    share = proportion(
        open_, count, metric="disputed share", key=DISPUTED, details=details, **about
    )
    if count < settings.minimum:
        reason = (
            f"not enough data: {count} items with two votes, at least {settings.minimum} wanted"
        )
        undefined = Estimate.undefined(
            reason_code="too-few-units",
            metric="two voters disagree",
            key=PAIRWISE,
            reason=reason,
            n=count,
            **about,
        )
        return [share, undefined]
    apart = estimate(
        pairwise(yes, no)[voted],
        metric="two voters disagree",
        key=PAIRWISE,
        rng=generator(settings.seed, "label-disagreement", label),
        replicates=settings.replicates,
        details=details,
        **about,
    )
    return [share, apart]


# -- Texts whose raters agree, and those whose raters do not.

KEY = "rater-agreement"
RATES = {"false-positive-rate": "false-positive rate", "recall": "share flagged of what should be"}
AGREE, DISPUTE = "raters=agree", "raters=disagree"


def agreed(texts: Texts, share: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which texts their raters agree about, and which have the two votes that takes.

    Examples
    --------
    >>> texts = Texts.from_frame({"text": ["a", "b", "c"], "yes": [4, 2, 1], "no": [1, 2, 0]})
    >>> [found.tolist() for found in agreed(texts, 0.8)]
    [[True, False, False], [True, True, False]]
    """
    assert texts.yes is not None and texts.no is not None  # the analysis has checked
    votes = texts.yes + texts.no
    voted = votes >= 2
    return voted & (np.maximum(texts.yes, texts.no) >= share * votes), voted


@dataclass(frozen=True)
class _Soft(Metric):
    """A rate in which a text counts by the share of its raters."""

    name: str
    registered_name: ClassVar[str] = "soft-rate"
    of: ClassVar[Literal["moderator"]] = "moderator"
    statistic: ClassVar[RatioOfSums] = RatioOfSums()

    @property
    def title(self) -> str:
        """The name as printed."""
        return self.name

    def measure(self, outputs: Outputs, data: Dataset) -> Rows:
        """Rows are made by the analysis."""
        raise NotImplementedError


@analysis("rater-agreement")
class RaterAgreement(Options, audits.Analysis):
    r"""A text audit where raters agree, where they disagree, and against soft labels.

    With `yes` and `no` votes beside the texts, for every moderator: how often it flags texts that
    should not be flagged (and texts that should), on all texts, on those whose raters agree, and on
    those whose raters do not; on texts whose raters agree also by group; and against soft labels,
    where a text with p of its raters for flagging counts 1 - p as one that should not be flagged:

    .. math:: \frac{\sum_t (1 - p_t) [\text{flagged}]}{\sum_t (1 - p_t)}, \quad
              \frac{\sum_t p_t [\text{flagged}]}{\sum_t p_t}.

    - **Unit of resampling**: the text, or what texts share.
    - **Undefined**: where no such text was decided.
    - **Does not capture**: who the raters are; a minority that is always outvoted disappears where
      only agreement counts. Without votes nothing is computed, and that is said.
    """

    share: float = Field(default=1.0, gt=0.5, le=1)
    """The share of at least two raters from which on they agree; by default, all of them."""

    def analyze(self, context: audits.Context) -> audits.AnalysisResult:
        """Return the rates of every moderator, by agreement and against soft labels."""
        data, outputs, settings = context.data, context.outputs, context.settings
        texts: Texts = data.need("texts", "rater-agreement")
        if texts.yes is None or texts.no is None:
            reason = "there are no votes of raters (columns yes and no) to see who disagrees"
            gone = Exclusion(KEY, "texts", len(texts), reason, len(texts))
            return audits.AnalysisResult(exclusions=(gone,))
        alike, voted = agreed(texts, self.share)
        n = int(np.count_nonzero(voted))
        apart = proportion(
            int(np.count_nonzero(voted & ~alike)), n,
            metric="texts whose raters disagree", key=f"{KEY}/disputed-share", unit="text",
            level=settings.level,
        )  # fmt: skip
        found = [apart]
        decisions = audits.decisions_in(outputs, KEY)
        raters = Grouping.from_values(
            texts.ids[voted], {"raters": np.where(alike, "agree", "disagree")[voted]}
        )
        for name, wanted in (("false-positive-rate", 0), ("recall", 1)):
            truth = np.where(texts.truth == wanted, 0, -1).astype(np.int8)
            found += self._by_raters(name, truth, raters, data, decisions, settings)
            sure = np.where(alike, truth, -1).astype(np.int8)
            if data.text_groups is not None:
                found += self._by_group(name, sure, data, decisions, settings)
        found += self._soft(data, decisions, settings)
        lost = len(texts) - n
        reason = "they have fewer than two votes, so nobody can be seen to disagree"
        return audits.AnalysisResult(
            tuple(found),
            exclusions=(Exclusion(KEY, "texts", lost, reason, len(texts)),) if lost else (),
        )

    def _by_raters(
        self,
        name: str,
        truth: NDArray[np.int8],
        raters: Grouping,
        data: Dataset,
        decisions: Mapping[str, Decisions],
        settings: Settings,
    ) -> list[Estimate]:
        rows = _rows(truth, data, decisions)
        if not rows:
            return [_none(name, system) for system in decisions]
        made = estimate_metric(FalsePositiveRate(), rows, raters, settings)
        # The gap of those who disagree is that of those who agree with the other sign.
        return [
            e.replace(metric=RATES[name], key=f"{KEY}/{name}")
            for e in made
            if e.kind == "level" or e.group != DISPUTE
        ]

    def _by_group(
        self,
        name: str,
        truth: NDArray[np.int8],
        data: Dataset,
        decisions: Mapping[str, Decisions],
        settings: Settings,
    ) -> list[Estimate]:
        rows = _rows(truth, data, decisions)
        made = (
            estimate_metric(FalsePositiveRate(), rows, data.text_groups, settings) if rows else []
        )
        return [
            e.replace(metric=f"{RATES[name]} where raters agree", key=f"{KEY}/{name}/agreed")
            for e in made
            if e.group
        ]

    def _soft(
        self, data: Dataset, decisions: Mapping[str, Decisions], settings: Settings
    ) -> list[Estimate]:
        texts = data.texts
        assert texts is not None and texts.yes is not None and texts.no is not None
        votes = texts.yes + texts.no
        share = texts.yes / np.maximum(votes, 1)
        flagged = _rows(np.where(votes > 0, 0, -1).astype(np.int8), data, decisions)
        found: list[Estimate] = []
        for name, counted in (("false-positive-rate", 1 - share), ("recall", share)):
            rows = {}
            for system, one in flagged.items():
                at = counted[Vocabulary(texts.ids).codes(one.ids)][:, None]
                columns = {"numerator": one.columns["value"] * at, "denominator": at}
                rows[system] = replace(one, columns=columns)
            if rows:
                title = f"{RATES[name]}, soft labels"
                made = estimate_metric(_Soft(title), rows, None, settings)
                found += [e.replace(key=f"{KEY}/{name}/soft") for e in made]
        return found


def _rows(
    truth: NDArray[np.int8], data: Dataset, decisions: Mapping[str, Decisions]
) -> dict[str, Rows]:
    """Return whether each text of a kind was flagged; nothing where there is no such text."""
    assert data.texts is not None  # the analysis has checked
    if not np.any(truth == 0):
        return {}
    about = replace(data, texts=replace(data.texts, truth=truth))
    metric = FalsePositiveRate()
    return {name: metric.measure(one, about) for name, one in decisions.items()}


def _none(name: str, system: str) -> Estimate:
    return Estimate.undefined(
        metric=RATES[name],
        key=f"{KEY}/{name}",
        reason_code="no-units",
        reason="no such text",
        n=0,
        unit="text",
        system=system,
    )


# -- The report: two sections of any result that holds these numbers.


def _often(e: Estimate) -> str:
    return f"{percent(e.value or 0.0)} of pairs"


def _most_disputed(context: Context) -> Text | None:
    found = [e for e in context.find(Select(PAIRWISE, exact=True)) if e.value is not None]
    if not found:
        return None
    ordered = sorted(found, key=lambda e: -(e.value or 0.0))
    most, least = ordered[0], ordered[-1]
    name = context.names.label
    said: Text = ("Most disputed: ", name(most.label), f" (two voters disagree in {_often(most)})")
    if len(ordered) > 1:
        said = (*said, "; least disputed: ", name(least.label), f" ({_often(least)})")
    return (*said, ".")


def _recommended(context: Context) -> Iterable[Block]:
    """Say whether lists hold more disputed items than histories, by system."""
    levels = context.find(Select(RECOMMENDED, ("overall",), exact=True))
    lines: list[Text] = []
    for e in (e for e in levels if e.label == ANY and e.value is not None):
        words = {"increase": "more", "decrease": "fewer"}.get(status_of(e))
        how = f"{words} disputed items than" if words else "about as many disputed items as"
        labels = [x for x in levels if x.system == e.system and x.label != ANY]
        clear = [x for x in labels if status_of(x) == "increase"]
        more = f"; more for {len(clear)} of {len(labels)} labels" if labels else ""
        text = f" recommends {how} histories contain ({POINTS.evidence(e)}){more}"
        line: Text = (context.names.system(e.system), text)
        if clear:
            line = (*line, ", most for ", context.names.label(max(clear, key=weight).label))
        lines.append((*line, "."))
    yield Prose(tuple(lines), bullets=True)


@section("label-disagreement")
def label_disagreement_section() -> Part:
    """Declare which labels people dispute, and whether disputed items are recommended more."""
    return part(
        "Which labels people dispute",
        Say((_most_disputed,)),
        # By group and between systems it is in the table of all numbers alone: pages stay small.
        Custom(_recommended, (Select(RECOMMENDED, exact=True),)),
        Grid(
            (
                Measure("Two voters disagree", Select(PAIRWISE, exact=True)),
                Measure("Items disputed", Select(DISPUTED, exact=True)),
            ),
            "Share of pairs of voters who disagree, and of items that are disputed, over items "
            "with at least two votes.",
            SHARE,
            rows=("label",),
            name="disagreement-table",
        ),
        Listing(
            Select(PAIRWISE, exact=True),
            "Votes behind these numbers.",
            SHARE,
            ("label", Detail("Votes per item", "votes_per_item", Scale(places=1)), "n"),
            name="disagreement-votes",
            folded=True,
        ),
        Matrix(
            Select(RECOMMENDED, ("overall",), exact=True),
            "Share of disputed items in recommendations minus their share in histories.",
            POINTS,
            rows=("label",),
            folded=True,
        ),
    )


def _raters(context: Context) -> Text | None:
    found = context.find(Select(f"{KEY}/disputed-share", exact=True))
    value = next((e.value for e in found), None)
    return None if value is None else (f"Raters disagree about {percent(value)} of texts.",)


def _in_group(group: str) -> Callable[[Estimate], bool]:
    return lambda e: e.group == group


def _rate(name: str, title: str) -> Grid:
    key = f"{KEY}/{name}"
    levels = Select(key, ("group",), exact=True)
    return Grid(
        (
            Measure("All texts", Select(key, ("overall",), exact=True)),
            Measure("Raters agree", levels, keep=_in_group(AGREE)),
            Measure("Raters disagree", levels, keep=_in_group(DISPUTE)),
            Measure("Difference", Select(key, ("contrast",), exact=True), POINTS),
            Measure("Soft labels", Select(f"{key}/soft", ("overall",), exact=True)),
        ),
        f"{title[0].upper()}{title[1:]}: on all texts, by whether raters agree, and with soft "
        "labels, where a text counts by the share of its raters.",
        SHARE,
        name=f"rater-agreement-{name}",
    )


_ROLES: tuple[tuple[Role, Scale, str], ...] = (
    ("group", SHARE, ""),
    ("contrast", POINTS, ", compared with other texts"),
)


@section("rater-agreement")
def rater_agreement_section() -> Part:
    """Declare rates on texts whose raters agree, beside those on all texts and on soft labels."""
    return part(
        "Where raters agree",
        Say((_raters,)),
        Grid(
            (Measure("Texts whose raters disagree", Select(f"{KEY}/disputed-share", exact=True)),),
            "Share of texts with at least two votes.",
            SHARE,
            name="rater-agreement-disputed",
            folded=True,
        ),
        *(_rate(name, title) for name, title in RATES.items()),
        *(
            Matrix(
                Select(f"{KEY}/{name}/agreed", (role,), exact=True),
                f"{title[0].upper()}{title[1:]} where raters agree, by group{how}.",
                scale,
                folded=True,
            )
            for name, title in RATES.items()
            for role, scale, how in _ROLES
        ),
        *(
            Listing(
                tuple(
                    Select(f"{KEY}/{name}{end}", ("systems",), exact=True) for end in ("", "/soft")
                ),
                f"{title[0].upper()}{title[1:]}: systems compared on the same texts.",
                POINTS,
                ("metric", "system", "against", "value", "p", "n"),
                "Difference",
                name=f"rater-agreement-{name}-systems",
                folded=True,
            )
            for name, title in RATES.items()
        ),
    )
