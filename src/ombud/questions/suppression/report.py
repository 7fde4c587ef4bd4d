"""Suppression: whose acceptable speech is flagged more than everyone's, declared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ombud.audits.result import Result
from ombud.metrics.engine.signs import weight
from ombud.questions.suppression.tables import TABLES, figure_1, refused
from ombud.questions.suppression.texts import KEY, POOR, measured_quality
from ombud.questions.tautologies import tagged, tautologies
from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.display import joined, shorten
from ombud.report.model import Block, Cell, Column, Strong, Table, Text, status_of
from ombud.report.numbers import COUNT, POINTS, RATIO, SCORE, SHARE, Scale, percent
from ombud.report.question import Phrase, Question, unlabeled_texts
from ombud.report.show import (
    MARKS,
    Alert,
    Custom,
    Detail,
    Listing,
    Matrix,
    Say,
    Spread,
    Stored,
    estimate_table,
    part,
    stored_cell,
)
from ombud.stats.estimate import Estimate
from ombud.text.identity import default_terms
from ombud.text.tagging import STATED

NO_DECISIONS = "no-decisions"
"""The reason code of flags of a system that only states scores."""

_LARGE = 0.1
_MOST_PAGES = 8
_VERBS = {
    "flagged": {"flags": "flags", "flag": "flag", "done": "flagged"},
    "refused": {"flags": "refuses", "flag": "refuse", "done": "refused"},
    "either": {"flags": "flags or refuses", "flag": "flag or refuse", "done": "flagged or refused"},
}

# -- What was measured, by name.

RATIOS = Select("suppression", ("contrast",), {"by": "flags", "against": "all"}, label="")
FAMILIES = Select("suppression", ("contrast",), {"by": "flags", "against": "all"})
SCORED = Select("suppression", ("contrast",), {"by": "scores", "against": "all"}, label="")
OUTSIDE = Select("suppression", ("contrast",), {"by": "flags", "against": "outside"})
SCORES = Select("suppression", ("contrast",), {"by": "scores", "against": "all"})
POOLED = Select("pooled-suppression", ("contrast",))
WORST = Select("worst-suppression", ("overall",), {"by": "flags"})
RATES = Select("false-positive-rate", ("overall", "group"))
RATE_GAPS = Select("false-positive-rate", ("contrast",))
RATES_OF_SYSTEMS = Select("false-positive-rate", ("systems",))
MEDIANS = Select("median-score", ("overall", "group"))
MEDIAN_GAPS = Select("median-score", ("contrast", "systems"))
WORST_SCORES = Select("worst-suppression", ("overall",), {"by": "scores"})
MISSING = Select("undecided-share", ("overall", "group"))
MISSING_GAPS = Select("undecided-share", ("contrast",))
MISSING_OF_SYSTEMS = Select("undecided-share", ("systems",))
INSTABILITY = Select("decision-instability", ("overall", "group"))
FLAGS_REGRESSED = Select("flag-regression", ("contrast",))
SCORES_REGRESSED = Select("score-regression", ("contrast",))
DRIFT = Select("drift/false-positive-rate")
MOVED = Select("migration/false-positive-rate")
MOVED_HARMFUL = Select("migration/true-positive-rate")
AGREEMENT = tuple(
    Select(f"{KEY}/{name}") for name in ("recall", "precision", "accuracy", "false-positive rate")
)
ABOUT = (RATIOS, SCORES, MOVED, DRIFT, FLAGS_REGRESSED, SCORES_REGRESSED)
EVERYTHING = (FAMILIES, OUTSIDE, SCORES, POOLED, RATES, RATE_GAPS, MEDIANS, MISSING, MISSING_GAPS)


def _words(context: Context) -> Mapping[str, str]:
    info = context.info(RATIOS)
    words = _VERBS["flagged" if info is None else str(info.spec.get("outcome", "flagged"))]
    scored = _score_only(context.result)
    if not scored:
        return words
    every = scored >= {e.system for e in context.find(RATIOS, SCORED)}
    return words | {"done": "scored high" if every else f"{words['done']} or scored high"}


HIGH = replace(RATIO, name="times as high")
"""Ratios of median scores."""


def _score_only(result: Result) -> frozenset[str]:
    """Return the systems that state scores and no decisions."""
    return frozenset(e.system for e in result.estimates if e.reason_code == NO_DECISIONS)


def _is_of_decisions(e: Estimate) -> bool:
    return e.reason_code != NO_DECISIONS


def _uncounted(result: Result) -> Callable[[Estimate], bool]:
    """Return what tells tautologies, and the measure that is not the headline of its system.

    Systems that decide are compared by their flags, and systems that only state scores by median
    scores, where those were measured.
    """
    context, known = Context.of(result), tautologies(result)
    scored = {e.system for e in context.find(SCORED)} & _score_only(result)
    flags = {id(e) for e in context.find(RATIOS) if e.system in scored}
    scores = {id(e) for e in context.find(SCORED) if e.system not in scored}
    other = flags | scores
    return lambda e: id(e) in other or known(e)


def _both_rates(e: Estimate) -> tuple[float | None, float | None]:
    events, texts = e.details.get("events"), e.details.get("texts")
    whole, every = e.details.get("other_events"), e.details.get("other_texts")
    return (events / texts, whole / every) if texts and every else (None, None)


# -- Sentences. Each says one thing, or returns None where there is nothing to say.


def _undecided(context: Context) -> Text | None:
    shares = [e for e in context.find(MISSING) if not e.group and (e.value or 0.0) >= _LARGE]
    if not shares:
        return None
    most = max(shares, key=lambda e: e.value or 0.0)
    name = context.names.system(most.system)
    return (name, f" left {percent(most.value or 0.0)} of texts undecided.")


def _terms(context: Context) -> Text:
    return (
        "Other term lists or other judgments of what is acceptable could change it. A text counts "
        "for the groups that it mentions, whoever wrote it.",
    )


def _outside(e: Estimate, context: Context) -> str:
    """Return the rate of the texts outside the group, which the whole contains."""
    found = e.details
    if not {"events", "texts", "other_events", "other_texts"} <= found.keys():
        return ""
    texts = found["other_texts"] - found["texts"]
    rate = (found["other_events"] - found["events"]) / texts if texts > 0 else None
    return "" if rate is None or rate < 0 else f" (others: {SHARE.prose(rate)})"


def _no_decisions(context: Context) -> Text | None:
    """Say which systems are compared by their scores, and why."""
    systems = sorted(_score_only(context.result))
    if not systems:
        return None
    names = joined([str(context.names.system(one)) for one in systems])
    many = len(systems) > 1
    return (
        f"{names} state{'' if many else 's'} scores and no decisions, and the plan sets no "
        f"threshold for {'them' if many else 'it'}. So nothing can be said about flags; "
        f"{'they are' if many else 'it is'} compared by the median score of acceptable texts, and "
        "regressions of flags skip "
        f"{'them' if many else 'it'}.",
    )


def _scored_ratios(context: Context) -> Iterable[Block]:
    """Show the ratios of median scores of systems that state scores and no decisions."""
    systems = _score_only(context.result)
    if found := [e for e in context.find(SCORES) if e.system in systems]:
        yield estimate_table(
            found,
            context,
            name="suppression-scored",
            caption="How many times as high the median score of each group\u2019s acceptable texts "
            f"is as that of all acceptable texts, for systems without decisions. {MARKS}",
            rows=("label", "group"),
            scale=HIGH,
        )


def _below_the_minimum(e: Estimate) -> bool:
    return bool(e.details.get("few_events"))


def _no_ratio(context: Context) -> Text | None:
    """Name groups whose rates differ clearly, though few flags make no ratio, or a rough one."""
    lost = {
        (e.system, e.group)
        for e in context.find(RATIOS)
        if e.value is None or (e.details.get("selected") and not e.excludes_null)
    }
    gaps = [
        e
        for e in context.find(RATE_GAPS)
        if (e.system, e.group) in lost and not e.label and status_of(e) in {"increase", "decrease"}
    ]
    if not gaps:
        return None
    names = context.names
    said = [
        f"{names.group(e.group)} ({names.system(e.system)}, {POINTS.evidence(e)})" for e in gaps
    ]
    lead = (
        "These groups have too few flags for a precise ratio, but their rates differ "
        "significantly from those of other texts: "
    )
    return (f"{lead}{joined(said)}.",)


def _decided(context: Context) -> Text | None:
    shares = context.find(MISSING)
    every = shares and all(not e.value for e in shares)
    return ("Every text that was submitted has a decision.",) if every else None


def _uneven(context: Context) -> Sequence[Text]:
    gaps = [e for e in context.find(MISSING_GAPS) if status_of(e) in {"increase", "decrease"}]
    if not gaps:
        return ()
    lead = (
        "Refusals and errors affect some groups more than others, so their rates are based on "
        "different texts. Difference from texts outside the group:",
    )
    names = context.names
    return (
        lead,
        *(
            (names.system(e.system), ", ", names.members(e.group), f": {POINTS.evidence(e)}.")
            for e in gaps
        ),
    )


def _in_no_group(context: Context) -> Text | None:
    whole = next(iter(context.rows("set-sizes", kind="all")), None)
    if whole is None:
        return None
    return (
        f"{whole['no_group']:,} of {whole['texts']:,} texts mention no group. They count as part "
        "of all texts.",
    )


def _stated(context: Context) -> tuple[str, ...]:
    return tuple(filter(None, str(context.result.card.facts.get(STATED, "")).split("\n")))


def _tagging(context: Context) -> Text | None:
    if context.table("identity-tag-counts") is None:
        return None
    stated, by_terms = _stated(context), tagged(context.result)
    parts = []
    if stated:
        where = f" of {joined([shorten(name, 40) for name in stated])}" if by_terms else ""
        parts.append(f"The data itself states the groups{where}.")
    if by_terms:
        published = context.result.plan.options.get("mode") == "published"
        mode = "as published" if published else "as whole words"
        which = "The other texts are" if stated else "Texts are"
        parts.append(
            f"{which} assigned to groups by term lists, matched {mode}. Term lists find explicit "
            "mentions, not who writes or who is meant. The published code misses terms at the ends "
            "of texts, next to most punctuation and with hyphens."
        )
    else:
        parts.append(
            "The table shows what term lists would find; no result of this audit uses them."
        )
    return (" ".join(parts),)


def _poor(context: Context) -> Sequence[Text]:
    """Warn of groups whose term list misses most mentions."""
    if context.table("identity-tag-counts") is None or not tagged(context.result):
        return ()
    recalls = [e for e in context.find(AGREEMENT[0]) if e.value is not None]
    where = "the texts whose groups are stated"
    found = [(e.group, e.value or 0.0) for e in recalls if (e.value or 0.0) < POOR]
    options = context.result.plan.options
    mode = str(options.get("mode", "whole-word"))
    # Measured on templates of five words, where the published code misses the last one, a recall
    # says nothing about its recall on real texts.
    if not recalls and mode != "published":
        terms = "" if options.get("path") else str(options.get("terms") or default_terms(mode))
        low = measured_quality(terms, mode)
        low = low.filter(low["recall"] < POOR)
        where = "Jigsaw\u2019s sentence templates"
        found = list(zip(low["group"].to_list(), low["recall"].to_list(), strict=True))
    if not found:
        return ()
    said = joined([f"{context.names.group(g)} ({percent(v)})" for g, v in found])
    return (
        (
            f"Measured on {where}, the term list finds few of the mentions of {said}. Texts that "
            "mention these groups in other words count as outside them.",
        ),
    )


def _migrated(context: Context) -> Text | None:
    fact = next(iter(context.rows("migration")), None)
    if fact is None:
        return None
    old, new = context.names.system(fact["old"]), context.names.system(fact["new"])
    at = "" if fact["threshold"] is None else f"At a threshold of {fact['threshold']:.4g}, "
    matched = {
        "none": "Both decide at their own settings. ",
        "flag-rate": f"{at}the new moderator flags as many texts as the old. ",
        "false-positive-rate": f"{at}the new moderator flags as many acceptable texts as the old. ",
    }[fact["match"]]
    rates = {name: percent(fact[name]) for name in fact if name.endswith("_rate")}
    return (
        matched,
        old,
        f" flags {rates['old_flag_rate']} of all texts and {rates['old_false_positive_rate']} of "
        "acceptable ones; ",
        new,
        f" flags {rates['new_flag_rate']} and {rates['new_false_positive_rate']}. Of "
        f"{fact['acceptable']:,} acceptable texts, ",
        Strong(f"{fact['newly_flagged']:,} would be newly flagged"),
        f" and {fact['no_longer_flagged']:,} no longer flagged.",
    )


def _moved(context: Context) -> Text | None:
    found = [e for e in context.find(MOVED) if e.group and not e.label]
    if not found or context.table("migration") is None:
        return None
    more, less = (
        [str(context.names.group(e.group)) for e in found if status_of(e) == status]
        for status in ("increase", "decrease")
    )
    said = [
        f"{how} often: {joined(some)}" for how, some in (("more", more), ("less", less)) if some
    ]
    if not said:
        return ("No group\u2019s acceptable texts are clearly treated differently.",)
    return (f"The new moderator flags acceptable texts about these groups {'; '.join(said)}.",)


# -- Tables whose columns depend on the data.


def _sizes(context: Context) -> Iterable[Block]:
    """Show the texts of each part, and how many mention each group."""
    parts = context.rows("set-sizes")
    if not parts:
        return
    titles = {
        "texts": "Texts",
        "mean_words": "Mean words",
        "acceptable": "Acceptable",
        "to_be_flagged": "To be flagged",
        "label_unknown": "Label unknown",
        "no_group": "In no group",
    }
    group = "group: "
    for key in (c.removeprefix(group) for c in parts[0] if c.startswith(group)):
        titles[group + key] = f"Mentioning {shorten(str(context.names.group(key)), 60)}"
    rows = tuple(
        (
            Cell(title),
            *(
                stored_cell(row[c], c, Scale(places=int(c == "mean_words")), context)
                for row in parts
            ),
        )
        for c, title in titles.items()
    )
    named = (shorten(str(context.names.label(row["name"])), 40) for row in parts)
    columns = (Column("Texts"), *(Column(name, True) for name in named))
    caption = "Texts, their length, and how many mention each group."
    yield Table("set-sizes-table", caption, columns, rows)


def _quantiles(columns: Sequence[str]) -> Mapping[str, tuple[str, Scale | None]]:
    fixed = {"system": ("System", None), "group": ("Group", None), "texts": ("Texts", COUNT)}
    return fixed | {c: (f"{int(c[1:])}%", SCORE) for c in columns if c.startswith("q")}


_FIT: dict[str, tuple[str, Scale | None]] = {
    "system": ("System", None),
    "observations": ("Observations", COUNT),
    "columns": ("Terms", COUNT),
    "intercept": ("Intercept", SCORE),
    "intercept_low": ("Low", SCORE),
    "intercept_high": ("High", SCORE),
    "log_likelihood": ("Log-likelihood", Scale(places=1)),
}
_TEST: dict[str, tuple[str, Scale | None]] = {
    "test": ("Test of all terms", None),
    "statistic": ("Statistic", Scale(places=1)),
    "degrees_of_freedom": ("Degrees of freedom", COUNT),
    "p": ("p", Scale(places=4)),
}
LOGISTIC_FIT = _FIT | {"r2": ("McFadden\u2019s R\u00b2", SCORE)} | _TEST
LINEAR_FIT = _FIT | {"r2": ("R\u00b2", SCORE), "adjusted_r2": ("Adjusted R\u00b2", SCORE)} | _TEST
TAGS: dict[str, tuple[str, Scale | None]] = {
    "group": ("Group", None),
    "whole_word": ("Whole words", COUNT),
    "published": ("As published", COUNT),
    "both": ("Both", COUNT),
    "whole_word_only": ("Whole words only", COUNT),
    "published_only": ("As published only", COUNT),
}


def _is_of(group: str, e: Estimate) -> bool:
    return e.group == group


def _group_pages(context: Context) -> Iterable[Block]:
    """Show all of each group, where the plan asks for pages; the largest differences first."""
    if not context.result.plan.options.get("pages"):
        return
    ordered = sorted(context.find(RATIOS), key=weight, reverse=True)
    groups = list(dict.fromkeys(e.group for e in ordered))[:_MOST_PAGES]
    for place, group in enumerate(groups, 1):
        members = str(context.names.members(group))
        yield from Listing(
            EVERYTHING,
            f"All estimates for {members}.",
            SCORE,
            ("system", "metric", "label", "against", "value", "n"),
            keep=partial(_is_of, group),
            name=f"group-{place}",
            folded=True,
        ).blocks(context)


BEFORE, AFTER = Detail("Before", "before", SHARE), Detail("After", "after", SHARE)
MOVES = (BEFORE, AFTER, Detail("Newly flagged", "up"), Detail("No longer flagged", "down"))
LARGEST = (
    Detail("Group", "group", None),
    Detail("Groups ranked", "ranked"),
    Detail("Not ranked", "not_ranked"),
)
NUMBER = ("value", "p", "n")

PHRASE = Phrase(
    sentence="{system} {flags} {level} of acceptable {who}{counts}, compared with {other} of all "
    "acceptable texts, these included{note}.",
    fallback="{system} {flags} acceptable {who} {size} as often as all acceptable texts.",
    summary="{system} {flags} acceptable texts about {objects} more often",
    object="{group}",
    than=" than acceptable texts overall",
    what="acceptable texts",
    who="{group}",
    compared=("about {group}", "all acceptable texts"),
    yes="{flags} acceptable texts about some groups more often than acceptable texts overall",
    evidence=" as often",
    levels=_both_rates,
    scale=RATIO,
    note=_outside,
    story=lambda e, _: e.group.partition("/")[0],  # "women/female" is a part of "women"
)

SCORE_PHRASE = Phrase(
    sentence="{system} gives acceptable {who} a median score of {level}, compared with {other} of "
    "all acceptable texts, these included.",
    summary="{system} give{s} acceptable texts about {objects} higher scores",
    object="{group}",
    than=" than acceptable texts overall",
    what="acceptable texts",
    who="{group}",
    compared=("about {group}", "all acceptable texts"),
    yes="give{s} acceptable texts about some groups higher scores than acceptable texts overall",
    possible="The median score of texts about a group could still be up to {bound} as high as that "
    "of all.",
    evidence=" as high",
    scale=HIGH,
    levels_in=SCORE,
    story=lambda e, _: e.group.partition("/")[0],
)

SECTIONS = (
    part(
        "All groups",
        Say((_no_decisions,)),
        Matrix(
            FAMILIES,
            "How many times as often each group\u2019s acceptable texts are flagged as all "
            f"acceptable texts. {MARKS}",
            RATIO,
            keep=_is_of_decisions,
        ),
        Custom(_scored_ratios),
        Say((_no_ratio,)),
        Listing(
            FAMILIES,
            "Groups with too few flags for a ratio, with their counts.",
            RATIO,
            (
                "label",
                "system",
                "group",
                Detail("Flagged", "events"),
                Detail("Acceptable texts", "texts"),
                Detail("Flagged of all", "other_events"),
                Detail("All acceptable texts", "other_texts"),
            ),
            keep=_below_the_minimum,
            name="suppression-few",
            folded=True,
        ),
        Listing(
            WORST,
            "The group flagged most, among all texts and in each part; its confidence interval "
            "allows for having chosen the largest.",
            RATIO,
            ("system", "label", *LARGEST, "value", "n"),
            keep=_is_of_decisions,
        ),
        Matrix(
            OUTSIDE,
            "The same ratio against texts outside the group.",
            RATIO,
            folded=True,
            keep=_is_of_decisions,
        ),
        Matrix(
            POOLED,
            "Partially pooled: imprecise ratios are shrunk toward those of other groups.",
            RATIO,
            folded=True,
            keep=_is_of_decisions,
        ),
    ),
    part(
        "False-positive rates",
        Matrix(RATES, "Share of acceptable texts that are flagged.", SHARE, keep=_is_of_decisions),
        Matrix(
            RATE_GAPS,
            "Difference from texts outside the group.",
            POINTS,
            folded=True,
            keep=_is_of_decisions,
        ),
        Listing(
            RATES_OF_SYSTEMS,
            "Two systems on the same texts.",
            POINTS,
            ("label", "system", "against", *NUMBER),
            "Difference",
            keep=_is_of_decisions,
        ),
        Matrix(INSTABILITY, "Probability that two decisions on the same text differ.", SHARE),
    ),
    part(
        "What changes with the new moderator",
        Say((_migrated, _moved)),
        Listing(
            MOVED,
            "Acceptable texts that are flagged, by both moderators on the same texts.",
            POINTS,
            ("label", "group", *MOVES, *NUMBER),
            "Change",
        ),
        Listing(
            MOVED_HARMFUL,
            "Texts that should be flagged and are, by both moderators on the same texts.",
            POINTS,
            ("label", "group", *MOVES, *NUMBER),
            "Change",
            folded=True,
        ),
    ),
    part(
        "Change between versions",
        Listing(
            DRIFT,
            lambda found: f"From {found[0].against} to {found[0].system}, on the same texts.",
            POINTS,
            ("group", BEFORE, AFTER, *NUMBER),
            "Change",
        ),
    ),
    part(
        "Scores",
        Spread(
            "score-spread",
            "Scores of acceptable texts",
            "Dots are medians, thick lines the middle half, thin lines the middle 90%. They "
            "describe these texts; scales differ between systems.",
            "score",
            SCORE,
        ),
        Stored("score-spread", "Quantiles of scores of acceptable texts.", _quantiles, folded=True),
        Matrix(SCORES, "Median score relative to all acceptable texts.", HIGH, folded=True),
        Matrix(MEDIANS, "Median scores of acceptable texts.", SCORE, folded=True),
        Listing(
            MEDIAN_GAPS,
            "Median scores compared with texts outside the group, and between systems.",
            SCORE,
            ("label", "system", "group", "against", *NUMBER),
            folded=True,
        ),
        Listing(
            WORST_SCORES,
            "The group with the highest median score relative to all acceptable texts.",
            HIGH,
            ("system", "label", *LARGEST, "value", "n"),
            folded=True,
        ),
    ),
    part(
        "Regressions",
        Listing(
            FLAGS_REGRESSED,
            "Odds ratio of a correct flag, given the other columns. Below 1, flags on such texts "
            "are less often correct.",
            RATIO,
            ("system", "group", *NUMBER),
            "Odds ratio",
        ),
        Stored("flag-regression-fit", "Fit; intercept in log odds.", LOGISTIC_FIT, folded=True),
        Listing(
            SCORES_REGRESSED,
            "Change of score, given the other columns. Above 0, such texts score higher.",
            SCORE,
            ("system", "group", *NUMBER),
            "Change of score",
        ),
        Stored("score-regression-fit", "Fit of the model of scores.", LINEAR_FIT, folded=True),
    ),
    part(
        "Texts without a decision",
        Say((_decided,)),
        Alert("Missing decisions are uneven", _uneven),
        Matrix(MISSING, "Share of acceptable texts without a decision.", SHARE, folded=True),
        Matrix(MISSING_GAPS, "Difference from texts outside the group.", POINTS, folded=True),
        Listing(
            MISSING_OF_SYSTEMS,
            "Two systems on the same texts.",
            POINTS,
            ("system", "against", *NUMBER),
            folded=True,
        ),
    ),
    part("The texts", Say((_in_no_group,)), Custom(_sizes)),
    part(
        "How texts are assigned to groups",
        Say((_tagging,)),
        Alert("Term lists that miss many mentions", _poor),
        Stored("identity-tag-counts", "Texts by two ways of matching terms.", TAGS, folded=True),
        Listing(
            AGREEMENT,
            "How well the term list finds the groups that the data states (Wilson intervals).",
            SCORE,
            ("group", "metric", "value", "n"),
        ),
    ),
    part(
        "Tables of the published study", Say((refused,)), *TABLES, Custom(figure_1), appendix=True
    ),
    part("Group by group", Custom(_group_pages), appendix=True),
)


@question(
    "suppression", "suppression", "migration/", "drift/", "flag-regression", "score-regression"
)
def suppression() -> Question:
    """Declare whose acceptable speech is flagged more."""
    return Question(
        name="suppression",
        asks="Whose acceptable speech is flagged more?",
        family={RATIOS: PHRASE, SCORED: SCORE_PHRASE},
        systems="moderator",
        yes="treat{s} acceptable texts about some groups more strictly than acceptable texts "
        "overall",
        possible="Texts about a group could still be {done} up to {bound} as often as all.",
        changes=(unlabeled_texts, _undecided, _terms),
        inspect="Read the acceptable texts that {systems} {done}, change what causes it, and "
        "run the audit again.",
        words=_words,
        tautologies=_uncounted,
        # What changes with a new moderator has a question of its own where nothing else is asked.
        applies=lambda context: (
            context.result.plan.preset != "migration" and bool(context.find(*ABOUT))
        ),
        sections=SECTIONS,
    )
