"""Migration: who is flagged more or less when one moderator replaces another."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import stdtr, stdtrit

from ombud.audits.analysis import AnalysisResult, Context, decisions_in
from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.errors import PlanError
from ombud.metrics.engine.changes import estimate_changes
from ombud.metrics.engine.estimate import correct
from ombud.metrics.rates import FalsePositiveRate
from ombud.questions.suppression.changes import RIGHT, WRONG, Migration, at_threshold
from ombud.questions.suppression.options import Match
from ombud.questions.suppression.report import MOVES, NUMBER
from ombud.registry import analysis, preset, question
from ombud.report.context import Context as Shown
from ombud.report.context import Select
from ombud.report.model import Block, Cell, Column, Prose, Strong, Table, Text
from ombud.report.numbers import COUNT, POINTS, Scale, percent
from ombud.report.question import Phrase, Question
from ombud.report.redaction import masked_texts
from ombud.report.show import Custom, Listing, Say, Stored, part
from ombud.rng import generator
from ombud.stats.estimate import Estimate
from ombud.systems.moderators.service import Service
from ombud.systems.recorded import RecordedDecisions
from ombud.taxonomy.dictionary import load_dictionary
from ombud.taxonomy.model import load_taxonomy
from ombud.text.identity import TagMode
from ombud.text.matching import TermMatcher
from ombud.text.tagging import identity_groups, terms_of

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.texts import Texts
    from ombud.metrics.engine.estimator import Settings

FLAGS = "migration/flag-rate"
"""The key of changes of the flag rate over all texts, where no label says which are acceptable."""
ALL_FLAGS = "migration/flag-rate-of-all"
"""The same beside labels, which answer the question then."""
APART = "migration/apart"
"""The key of changes of a group beside those of other texts."""
NO_COUNTERPART = 0.3
"""Categories whose scores have a lower rank correlation than this have no counterpart."""
_EXAMPLES, _GROUPS, _LONGEST = 3, 4, 140
_FEWEST = 5.0


class MigrationOptions(Options):
    """The options of preset *migration*."""

    registered_name: ClassVar[str] = "preset 'migration'"

    old: str
    """The moderator that is replaced, as named under ``[systems]``."""
    new: str
    """The moderator that replaces it."""
    match: Match = "flag-rate"
    """What the new threshold makes equal: ``flag-rate``, ``false-positive-rate`` (needs labels), or
    ``none``, where the new moderator decides as its maker recommends."""
    share: float = Field(default=0.5, ge=0, lt=1)
    """The share of texts on which the threshold is chosen; it is tested on the others. With 0, it
    is chosen and tested on the same texts."""
    new_threshold: float | None = None
    """The score from which on the new moderator flags, whatever it decides itself; with ``match =
    "none"``."""
    mode: TagMode = "whole-word"
    """How terms of identities are matched."""
    terms: str = ""
    """The term list; by default that of preset *suppression*."""
    topics: bool = True
    """Whether texts are also grouped by topic, by the terms of the dictionary ``delicate@1``."""


@preset("migration")
class MigrationPreset(Preset):
    """Choose a threshold for a new moderator on one half of the texts, and test it on the other.

    Groups are those of the data, else identities that texts name; and topics, by terms. Filled in
    where the plan leaves it open:

    - **analyses**: ``migration-test``, with the systems `old` and `new`.
    """

    options: ClassVar[type[Options]] = MigrationOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with its analysis filled in."""
        options = MigrationOptions(**dict(plan.options))
        for name in (options.old, options.new):
            if name not in plan.systems:
                raise PlanError(f"preset 'migration': no system is called {name!r}")
        filled: dict[str, Any] = {}
        if not plan.analyses:
            chosen: dict[str, Any] = {
                "old": options.old,
                "new": options.new,
                "match": options.match,
            }
            if options.new_threshold is not None:
                chosen["new_threshold"] = options.new_threshold
            filled["analyses"] = ({"name": "migration-test", **chosen, "share": options.share},)
        if plan.title == type(plan).model_fields["title"].default:
            filled["title"] = f"From {options.old} to {options.new}: who is flagged more or less?"
        return plan.model_copy(update=filled)

    def prepare(self, plan: Plan, data: Dataset) -> Dataset:
        """Return the data with groups: the source's or identities that texts name, and topics."""
        options = MigrationOptions(**dict(plan.options))
        texts: Texts = data.need("texts", "preset 'migration'")
        listed = terms_of(options.terms, "", options.mode)
        groups = identity_groups(data, listed, options.mode)
        if options.topics:
            groups = _with_topics(groups, texts, plan.statistics.minimum)
        return replace(data, text_groups=groups)


def _with_topics(groups: Grouping, texts: Texts, fewest: int) -> Grouping:
    """Return the groups, and the topics of a dictionary that at least so many texts touch on."""
    words = load_dictionary("delicate@1")
    titles = {label.id: label.title for label in load_taxonomy(words.taxonomy).labels}
    rows = [str(text) for text in texts.texts]
    found = TermMatcher([term.text for term in words.terms], suffixes=("", "s", "es")).match(rows)
    topics = list(words.topics)
    members = np.zeros((len(rows), len(topics)), dtype=bool)
    of = np.array([topics.index(term.topic) for term in words.terms], dtype=np.int64)
    members[found.text_index, of[found.term_index]] = True
    enough = np.flatnonzero(members.sum(axis=0) >= fewest)
    names = [f"{titles.get(topics[i], topics[i]).lower()} (topic)" for i in enough]
    return Grouping(
        Vocabulary(np.asarray(texts.ids)),
        (*groups.names, *names),
        np.concatenate([groups.aligned(texts.ids), members[:, enough]], axis=1),
        (*groups.attributes, *("topic" for _ in names)),
    )


@analysis("migration-test")
class MigrationTest(Migration):
    r"""Choose a threshold on a share of the texts, and test on the others whose decisions change.

    .. math:: F_{new} - F_{old}

    the change of the flag rate over all texts of the other share, and of the rates of ``migration``
    where there are labels, for everyone and each group, given the threshold. The question is
    answered by how far a group's change lies from that of all other texts,

    .. math:: (F_{new} - F_{old} \mid g) - (F_{new} - F_{old} \mid \text{not } g),

    over acceptable texts where there are labels: a threshold that happens to flag a little more or
    less moves all texts, and cancels. Its p-value is that of a score test with the variance of all
    changes together, its interval takes the larger of that and Welch's; both by cluster where texts
    share clusters. Texts that share a cluster stay in one share.

    Beside them, as tables: which scores of categories go together, by Spearman's rank correlation;
    what 1,000 texts cost and how long replies took, where the outputs come from a service whose
    price the plan states; masked examples; and what cannot be matched.

    - **Unit**: the text, or what texts share.
    - **Undefined**: when both decided too few texts of a group, or fewer than five of it would
      change sides if it were as any other; a threshold, when the new moderator gives no scores.
    - **Does not capture**: which of the two is right about a text without a label, or texts unlike
      these.
    """

    match: Match = MigrationOptions.field("match")
    share: float = MigrationOptions.field("share")
    new_threshold: float | None = MigrationOptions.field("new_threshold")

    @property
    def chooses_thresholds(self) -> tuple[str, ...]:
        """The new moderator, unless it decides as it is."""
        return super().chooses_thresholds if self.new_threshold is None else (self.new,)

    def threshold(self, old: Decisions, new: Decisions, truth: NDArray[np.int8]) -> float | None:
        """Return the threshold that the plan states, or else the one that makes both flag alike."""
        if self.new_threshold is None:
            return super().threshold(old, new, truth)
        if self.match != "none":
            raise PlanError("migration-test: new_threshold needs match = 'none'")
        self.need_scores(new, "new_threshold cannot decide")
        return self.new_threshold

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the changes on texts that did not choose the threshold, and the tables."""
        data, settings = context.data, context.settings
        # Types of label are a dimension of suppression; here each text has one label.
        texts: Texts = replace(data.need("texts", "migration-test"), types={})
        data = replace(data, texts=texts)
        old, new, lost = self.pair(context)
        places = Vocabulary(texts.ids).codes(old.ids)
        truth = texts.truth[places]
        clusters = None if texts.clusters is None else texts.clusters[places]
        chosen = self._chosen(len(old), clusters, settings)
        select = chosen if chosen.any() else ~chosen
        threshold = self.threshold(_rows(old, select), _rows(new, select), truth[select])
        decided = at_threshold(new, threshold)
        if decided.lacks_decisions:
            raise PlanError(f"migration-test: {self.new} has scores and no decisions")
        before, after = _rows(old, ~chosen), _rows(decided, ~chosen)
        rates = pl.DataFrame({**self.rates(before, after, truth[~chosen]), "threshold": threshold})
        tables = {
            "migration": rates.with_columns(
                chosen_on=pl.lit(int(chosen.sum())),
                chosen_old_flag_rate=pl.lit(_share(old, select)),
                chosen_new_flag_rate=pl.lit(_share(decided, select)),
            ),
            "migration-unmatched": self._unmatched(context, new, threshold, lost),
            "migration-costs": self._costs(context),
        }
        labeled = bool(np.any(truth[~chosen] == 0))
        estimates = self._flags(before, after, data, settings, labeled)
        if labeled:
            estimates += self.changes(before, after, data, settings)
        estimates += self._apart(before, after, data, settings, labeled)
        tables["migration-categories"] = self._categories(context)
        tables["migration-examples"] = self._examples(before, after, data, estimates)
        exclusions = (self.undecided(lost, len(texts)),) if lost else ()
        return AnalysisResult(
            tuple(estimates), {k: t for k, t in tables.items() if t.height}, exclusions
        )

    def _chosen(
        self, count: int, clusters: NDArray[Any] | None, settings: Settings
    ) -> NDArray[np.bool_]:
        """Return which texts choose the threshold."""
        if self.match == "none" or not self.share:
            return np.zeros(count, dtype=bool)
        _, unit = np.unique(np.arange(count) if clusters is None else clusters, return_inverse=True)
        units = int(unit.max()) + 1
        order = generator(settings.seed, "migration", "half").permutation(units)
        first = np.zeros(units, dtype=bool)
        first[order[: max(1, round(self.share * units))]] = True
        chosen = np.asarray(first[unit])
        if chosen.all() or not chosen.any():
            raise PlanError("migration-test: too few texts, or too few clusters, to split")
        return chosen

    def _flags(
        self, old: Decisions, new: Decisions, data: Dataset, settings: Settings, labeled: bool
    ) -> list[Estimate]:
        """Return changes of the flag rate over all texts."""
        assert data.texts is not None
        every = replace(data.texts, truth=np.zeros(len(data.texts), dtype=np.int8))
        whole = replace(data, texts=every)
        metric = FalsePositiveRate()
        rows = [metric.measure(one, whole) for one in (old, new)]
        found = estimate_changes(metric, rows[0], rows[1], data.text_groups, settings, exact=True)
        about = {"metric": "change of the flag rate", "key": ALL_FLAGS if labeled else FLAGS}
        return [e.replace(**about, system=self.new, against=self.old) for e in found]

    def _apart(
        self, old: Decisions, new: Decisions, data: Dataset, settings: Settings, labeled: bool
    ) -> list[Estimate]:
        """Return how far the change of each group lies from that of all other texts."""
        assert data.texts is not None
        if data.text_groups is None:
            return []
        places = Vocabulary(data.texts.ids).codes(old.ids)
        counted = (data.texts.truth[places] == 0) | (not labeled)
        a, b = (one.outcomes[counted] == Outcome.FLAGGED for one in (old, new))
        inside = data.text_groups.aligned(old.ids[counted])
        shared = data.texts.clusters
        clusters = None if shared is None else shared[places][counted]
        what = "false-positive rate" if labeled else "flag rate"
        about: dict[str, Any] = {
            "metric": f"change of the {what} relative to other texts",
            "key": APART,
            "unit": "text" if clusters is None else "cluster",
            "level": settings.level,
            "system": self.new,
            "against": self.old,
            "kind": "gap",
            "null": 0.0,
        }
        return correct(
            [
                _beside(a, b, inside[:, g], clusters, settings.minimum, {**about, "group": name})
                for g, name in enumerate(data.text_groups.names)
            ],
            settings.correction,
        )

    def _unmatched(
        self, context: Context, new: Decisions, threshold: float | None, lost: int
    ) -> pl.DataFrame:
        """Return what cannot be matched, each with a count."""
        rows: list[tuple[str, int]] = []
        for name in (self.old, self.new):
            one = decisions_in(context.outputs, "migration")[name]
            for outcome in (Outcome.ERROR, Outcome.REFUSED, Outcome.UNPARSEABLE):
                if count := int(np.count_nonzero(one.outcomes == outcome)):
                    rows.append((f"answers of {name} that are {outcome.name.lower()}", count))
        if lost:
            rows.append(("texts that only one of both decided, which count nowhere", lost))
        if threshold is not None:
            ties = int(np.count_nonzero(new.scores == np.float32(threshold)))
            if ties > 1:
                rows.append((f"texts with the same score as the threshold of {self.new}", ties))
        missing = int(np.count_nonzero(np.isnan(new.scores)))
        if missing:
            rows.append((f"texts without a score of {self.new}: its threshold is fixed", missing))
        return pl.DataFrame(rows, schema={"what": pl.String, "count": pl.Int64}, orient="row")

    def _costs(self, context: Context) -> pl.DataFrame:
        """Return the cost and time of 1,000 texts of each system, or why they are unknown."""
        texts: Texts = context.data.need("texts", "migration-test")
        lengths = [len(str(text)) for text in texts.texts]
        rows = []
        for name in (self.old, self.new):
            system = context.systems.get(name)
            cost = seconds = None
            note = "these texts; unbilled"
            if isinstance(system, Service):
                price = system.price
                total = price.of(lengths, system.prompt_characters, system.answer_tokens)
                cost = None if total is None else 1000 * total / max(len(texts), 1)
                note = "no price in the plan" if cost is None else price.currency
                times = system.runner().seconds()
                seconds = float(np.median(times)) if times else None
            elif system is None or isinstance(system, RecordedDecisions):
                note = "recorded outputs state neither"
            else:
                note = "runs on your machine; time not measured"
            each = None if seconds is None else 1000 * seconds
            rows.append((name, cost, seconds, each, note))
        columns = {"system": pl.String, "cost_per_1000": pl.Float64, "seconds_a_reply": pl.Float64}
        more = {"seconds_per_1000": pl.Float64, "note": pl.String}
        return pl.DataFrame(rows, schema=columns | more, orient="row")

    def _categories(self, context: Context) -> pl.DataFrame:
        """Return, for each category of either moderator, the other's that goes with it best."""
        result = decisions_in(context.outputs, "migration")
        old, new = result[self.old], result[self.new]
        schema = {
            "from": pl.String,
            "category": pl.String,
            "counterpart": pl.String,
            "correlation": pl.Float64,
            "texts": pl.Int64,
        }
        if old.category_scores is None or new.category_scores is None:
            return pl.DataFrame(schema=schema)
        shared = np.intersect1d(old.ids, new.ids)
        sides = []
        for one in (old, new):
            assert one.category_scores is not None
            scores = one.category_scores[Vocabulary(one.ids).codes(shared)].astype(np.float64)
            sides.append((one.categories, scores))
        rows = []
        for (ours, a), (theirs, b), name in (
            (sides[0], sides[1], self.old),
            (sides[1], sides[0], self.new),
        ):
            for i, category in enumerate(ours):
                best = max(_ranked(a[:, i], b[:, j]) + (j,) for j in range(len(theirs)))
                found = best[0] >= NO_COUNTERPART
                counterpart = theirs[best[2]] if found else ""
                rho = float(best[0]) if best[1] and best[0] > -np.inf else None
                rows.append((name, category, counterpart, rho, best[1]))
        return pl.DataFrame(rows, schema=schema, orient="row")

    def _examples(
        self, old: Decisions, new: Decisions, data: Dataset, estimates: Sequence[Estimate]
    ) -> pl.DataFrame:
        """Return masked texts that change sides, of the groups that change most."""
        assert data.texts is not None
        ranked = sorted(
            (e for e in estimates if e.key == APART and e.p_value is not None),
            key=lambda e: (e.p_value, -abs(e.value or 0.0)),
        )
        names = list(dict.fromkeys(e.group for e in ranked))[:_GROUPS] or [""]
        places = Vocabulary(data.texts.ids).codes(old.ids)
        written = data.texts.texts[places]
        inside = None if data.text_groups is None else data.text_groups.aligned(old.ids)
        a, b = (one.outcomes == Outcome.FLAGGED for one in (old, new))
        rows: list[tuple[str, str, str]] = []
        for name in names:
            member = np.ones(len(old), dtype=bool)
            if name and inside is not None and data.text_groups is not None:
                member = inside[:, data.text_groups.names.index(name)]
            for change, moved in (("newly flagged", b & ~a), ("no longer flagged", a & ~b)):
                some = np.flatnonzero(member & moved)[:_EXAMPLES]
                shown = masked_texts([_bare(str(written[i])) for i in some])
                rows += [(name, change, text) for text in shown]
        schema = {"group": pl.String, "change": pl.String, "text": pl.String}
        return pl.DataFrame(rows, schema=schema, orient="row")


def _beside(
    a: NDArray[np.bool_],
    b: NDArray[np.bool_],
    member: NDArray[np.bool_],
    clusters: NDArray[Any] | None,
    minimum: int,
    about: Mapping[str, Any],
) -> Estimate:
    """Return the change from a to b of members less that of the others."""
    moved = b.astype(float) - a.astype(float)
    n, others = int(member.sum()), int((~member).sum())
    units = n if clusters is None else len(np.unique(clusters[member]))
    if units < minimum or others < minimum:
        reason = f"not enough data: {units} {about['unit']}s, at least {minimum} wanted"
        return Estimate.undefined(reason_code="too-few-units", reason=reason, n=units, **about)
    if n * np.mean(moved != 0) < _FEWEST:
        reason = "too few texts change sides to tell a group from others"
        return Estimate.undefined(reason_code="too-few-events", reason=reason, n=units, **about)
    weight = np.where(member, 1 / n, -1 / others)
    value = float(np.sum(weight * moved))
    own = np.where(member, moved[member].mean(), moved[~member].mean())
    parts = [weight * (moved - moved.mean()), weight * (moved - own)]
    count = len(moved)
    if clusters is not None:
        _, at = np.unique(clusters, return_inverse=True)
        parts = [np.bincount(at, part) for part in parts]
        count = len(parts[0])
    score, welch = (float(np.sqrt(np.sum(p**2) * count / (count - 1))) for p in parts)
    degrees = n + others - 2
    if clusters is not None:
        degrees = max(min(units, len(np.unique(clusters[~member]))) - 1, 1)
    spread = float(stdtrit(degrees, (1 + about["level"]) / 2)) * max(score, welch)
    details = {
        "before": float(a[member].mean()),
        "after": float(b[member].mean()),
        "others_before": float(a[~member].mean()),
        "others_after": float(b[~member].mean()),
        "up": int((b & ~a & member).sum()),
        "down": int((a & ~b & member).sum()),
    }
    return Estimate(
        value=value,
        interval=(max(value - spread, -2.0), min(value + spread, 2.0)),
        method="score test of changes",
        p_value=float(2 * stdtr(degrees, -abs(value) / score)) if score else 1.0,
        n=units,
        details=details,
        **about,
    )


def decided_at(outputs: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Return outputs whose scores decide, where there is an answer at all."""
    flagged = pl.when(pl.col("score") >= threshold).then(pl.lit("flagged"))
    answered = pl.col("outcome").is_in(["allowed", "flagged", "scored"])
    scored = answered & pl.col("score").is_not_null()
    decided = flagged.otherwise(pl.lit("allowed"))
    return outputs.with_columns(outcome=pl.when(scored).then(decided).otherwise(pl.col("outcome")))


def _rows(decisions: Decisions, rows: NDArray[np.bool_]) -> Decisions:
    return Decisions(decisions.ids[rows], decisions.outcomes[rows], decisions.scores[rows])


def _share(decisions: Decisions, rows: NDArray[np.bool_]) -> float:
    return float(np.mean(decisions.outcomes[rows] == Outcome.FLAGGED))


def _ranked(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, int]:
    """Return Spearman's rank correlation over the texts that have both, and how many they are."""
    both = ~np.isnan(a) & ~np.isnan(b)
    count = int(both.sum())
    if count < 3 or np.ptp(a[both]) == 0 or np.ptp(b[both]) == 0:
        return -np.inf, count
    ranks = [pl.Series(side[both]).rank("average").to_numpy() for side in (a, b)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1]), count


_NAMES = re.compile(r"(?<!\w)@\w+")
_LINKS = re.compile(r"https?://\S+|www\.\S+")


def _bare(text: str) -> str:
    """Return the beginning of a text, without names of accounts and links."""
    text = _LINKS.sub("[link]", _NAMES.sub("@user", " ".join(text.split())))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "\u2026"


# -- The report.


def _fact(context: Shown) -> Mapping[str, Any] | None:
    return next(iter(context.rows("migration")), None)


def _threshold(context: Shown) -> Text | None:
    fact = _fact(context)
    if fact is None:
        return None
    old, new = context.names.system(fact["old"]), context.names.system(fact["new"])
    rates = {name: percent(fact[name]) for name in fact if name.endswith("_rate")}
    tested = f"on {fact['texts']:,} texts"
    if fact["threshold"] is None:
        lead: Text = (new, " decides as its maker recommends. ")
    elif fact["match"] == "none":
        lead = (new, " flags from the score ", Strong(f"{fact['threshold']:.4g}"), " on. ")
    else:
        same = {"flag-rate": "texts", "false-positive-rate": "acceptable texts"}[fact["match"]]
        where = f"chosen on {fact['chosen_on']:,} texts" if fact["chosen_on"] else "chosen on them"
        lead = (
            "At a threshold of ",
            Strong(f"{fact['threshold']:.4g}"),
            f", {where}, ",
            new,
            f" flags as many {same} there as ",
            old,
            f" ({rates['chosen_new_flag_rate']} and {rates['chosen_old_flag_rate']} of all). ",
        )
        tested = f"on {fact['texts']:,} other texts" if fact["chosen_on"] else tested
    result: Text = (f" flags {rates['new_flag_rate']} and ", old, f" {rates['old_flag_rate']}.")
    return (*lead, f"Tested {tested}, ", new, *result)


def _sides(context: Shown) -> Text | None:
    fact = _fact(context)
    if fact is None or not fact["acceptable"]:
        return None
    return (
        f"Of {fact['acceptable']:,} acceptable texts, ",
        Strong(f"{fact['newly_flagged']:,} would be newly flagged"),
        f" and {fact['no_longer_flagged']:,} no longer flagged.",
    )


def _examples(context: Shown) -> Iterable[Block]:
    """Show masked texts that change sides."""
    rows = tuple(
        (
            Cell(str(context.names.group(row["group"])) if row["group"] else "all texts"),
            Cell(row["change"]),
            Cell(row["text"]),
        )
        for row in context.rows("migration-examples")
    )
    if rows:
        caption = (
            "Texts that change sides, in the groups with the clearest changes. Slurs, names of "
            "accounts and links are masked; the first of each kind, not the worst."
        )
        yield Table("migration-examples", caption, _columns("Group", "Change", "Text"), rows)


def _columns(*titles: str) -> tuple[Column, ...]:
    return tuple(Column(title) for title in titles)


def _mapped(context: Shown) -> Iterable[Block]:
    """Show which categories go together, and which have no counterpart."""
    found = context.rows("migration-categories")
    if not found:
        text = "Categories cannot be mapped: at least one of both states no scores of categories."
        yield Prose(((text,),))
        return
    rows = tuple(
        (
            Cell(str(context.names.system(row["from"]))),
            Cell(row["category"]),
            Cell(row["counterpart"] or "none"),
            Cell("" if row["correlation"] is None else f"{row['correlation']:.2f}"),
        )
        for row in found
    )
    caption = (
        "Each category with the other moderator\u2019s whose scores rank texts most alike "
        f"(Spearman). Below {NO_COUNTERPART} it has no counterpart. Alike in rank does not mean "
        "alike in meaning: read both definitions."
    )
    titles = _columns("Moderator", "Category", "Counterpart", "Rank correlation")
    yield Table("migration-categories", caption, titles, rows)


def _unmatched(context: Shown) -> Iterable[Block]:
    """List what cannot be matched."""
    rows = context.rows("migration-unmatched")
    lone = [r for r in context.rows("migration-categories") if not r["counterpart"]]
    lines: list[Text] = [(f"{row['count']:,} {row['what']}.",) for row in rows]
    for name in dict.fromkeys(row["from"] for row in lone):
        some = ", ".join(row["category"] for row in lone if row["from"] == name)
        lines.append((f"No counterpart of these categories of {name}: {some}.",))
    lines.append(("Scores of two moderators are on different scales and cannot be compared.",))
    yield Prose(tuple(lines), bullets=True)


def _levels(e: Estimate) -> tuple[float | None, float | None]:
    return e.details.get("after"), e.details.get("before")


def _words(context: Shown) -> Mapping[str, str]:
    """Return what is compared: the acceptable texts, where there are labels."""
    labeled = any("false-positive" in e.metric for e in context.find(_APART))
    return {"texts": "acceptable texts" if labeled else "texts"}


def _rates(e: Estimate, _: Shown) -> str:
    """Return the four rates that a change relative to other texts is made of."""
    try:
        rates = [e.details[key] for key in ("after", "before", "others_after", "others_before")]
    except KeyError:  # of a result that another release stored
        return ""
    a, b, c, d = (round(100 * rate, 1) for rate in rates)
    # One more place where the difference of the printed rates would not be the one printed.
    at = 1 if round((a - b) - (c - d), 1) == round(100 * (e.value or 0.0), 1) else 2
    after, before, others_after, others_before = (f"{rate:.{at}%}" for rate in rates)
    return (
        f": {after}, where the old one flags {before}; of other texts, "
        f"{others_after} and {others_before}"
    )


def _phrase() -> Phrase:
    return Phrase(
        sentence="{system} flags {texts} about {group} {more} often than the old moderator, "
        "relative to other texts{note}.",
        summary="{system} flag{s} {objects}",
        object="{fewer} {texts} about {group}",
        than=" than the old moderator, relative to other texts",
        note=_rates,
        evidence=" relative to other texts",
        compared=("with the new moderator", "with the old"),
        levels=_levels,
        harm="both",
    )


_WRONG, _RIGHT = Select(WRONG), Select(RIGHT)
_APART = Select(APART, exact=True)
_FLAGS, _ALL = Select(FLAGS, exact=True), Select(ALL_FLAGS, exact=True)
_COSTS: dict[str, tuple[str, Scale | None]] = {
    "system": ("System", None),
    "cost_per_1000": ("Cost", Scale(places=2)),
    "seconds_a_reply": ("Median seconds a reply", Scale(places=2)),
    "seconds_per_1000": ("Seconds, one at a time", COUNT),
    "note": ("Note", None),
}


@question("migration", "migration/")
def migration() -> Question:
    """Declare who is flagged more or less by the new moderator."""
    listed = ("label", "group", *MOVES, *NUMBER)
    return Question(
        name="migration",
        asks="Who is flagged more or less when one moderator replaces another?",
        family={_APART: _phrase()},
        systems="moderator",
        words=_words,
        yes="flag{s} texts about some groups or topics more or less often than the old moderator",
        possible="Texts about a group could still be flagged up to {bound} more or less often.",
        inspect="Read the texts that change sides, choose another threshold or "
        "moderator where the change is not wanted, and run the migration again.",
        applies=lambda context: context.result.plan.preset == "migration",
        sections=(
            part("The threshold, and its test", Say((_threshold, _sides))),
            part(
                "Who is flagged more or less",
                Listing(
                    _APART,
                    "Each group\u2019s change, less the change of all other texts.",
                    POINTS,
                    ("group", *MOVES, *NUMBER),
                    "Change relative to others",
                ),
                Listing(
                    _WRONG,
                    "Acceptable texts that are flagged, given the threshold.",
                    POINTS,
                    listed,
                    "Change",
                    folded=True,
                ),
                Listing(
                    _FLAGS,
                    "Texts that are flagged, given the threshold.",
                    POINTS,
                    listed,
                    "Change",
                    folded=True,
                ),
                Listing(_RIGHT, "Texts that should be flagged and are.", POINTS, listed, "Change"),
                Listing(_ALL, "All texts that are flagged.", POINTS, listed, "Change", folded=True),
            ),
            part("Texts that change sides", Custom(_examples)),
            part("Categories", Custom(_mapped)),
            part("Cost and time of 1,000 texts", Stored("migration-costs", "", lambda _: _COSTS)),
            part("What cannot be matched", Custom(_unmatched)),
        ),
    )
