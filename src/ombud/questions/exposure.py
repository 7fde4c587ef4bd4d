"""Exposure: do recommendations hold more of a label than users' own histories, and for whom?"""

from __future__ import annotations

from dataclasses import replace

from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.model import Text
from ombud.report.numbers import POINTS, SHARE
from ombud.report.question import Phrase, Question
from ombud.report.show import MARKS, Detail, Listing, Matrix, part
from ombud.stats.estimate import Estimate

OVERALL = Select("share-gap", ("overall",))
GROUPS = Select("share-gap", ("group",))
CONTRASTS = Select("share-gap", ("contrast",))


def _own_history(e: Estimate) -> tuple[float | None, float | None]:
    history = e.details.get("history")
    return (None, None) if history is None or e.value is None else (history + e.value, history)


def _others(e: Estimate, context: Context) -> str:
    """Return what other users get and have, where the contrast with them stores it."""
    found = (o for o in context.find(CONTRASTS) if (o.system, o.label) == (e.system, e.label))
    other = next((o.details for o in found if o.group == e.group), {})
    gap, history = other.get("other_level"), other.get("other_history")
    if gap is None or history is None:
        return ""
    return f" Other users: {SHARE.prose(history + gap)} and {SHARE.prose(history)}."


def _labels(context: Context) -> Text:
    return ("Wrong or missing labels could change it, and so could people not in the data.",)


BY_CHANCE = Detail("By chance", "by_chance", POINTS)
SUMMARY = "{system} show{s} more {objects}"

SENTENCE = (
    "{system} shows {who} {what} in {level} of recommended items; their own histories contain "
    "{other}.{note}"
)
FALLBACK = "{system} shows {who} {what} {more} often than their own histories contain it."


@question("exposure", "share-gap")
def exposure() -> Question:
    """Declare what a share gap answers: more of a label than in users' own histories?"""
    shows = Phrase(
        sentence=SENTENCE,
        fallback=FALLBACK,
        summary=SUMMARY,
        object="{what} to {who}",
        than=" than their own histories contain",
        compared=("recommendations", "own history"),
        levels=_own_history,
        scale=POINTS,
    )
    return Question(
        name="exposure",
        asks="Do these recommenders show more content that people may want to avoid?",
        family={OVERALL: shows, GROUPS: replace(shows, note=_others)},
        systems="recommender",
        yes="show{s} more of some content than users\u2019 histories contain",
        possible="Compared with histories, shares could still be up to {bound}.",
        changes=(_labels,),
        sections=(
            part(
                "All content",
                Matrix(
                    OVERALL,
                    "Percentage-point difference between recommendations and the same users\u2019 "
                    f"histories. {MARKS}",
                    POINTS,
                    rows=("label",),
                    reference=("In histories", lambda e: e.details.get("history")),
                ),
            ),
            part(
                "By group",
                Matrix(
                    GROUPS,
                    "Percentage-point difference between each group\u2019s recommendations and its "
                    f"own histories. {MARKS}",
                    POINTS,
                ),
                Matrix(
                    CONTRASTS,
                    "Percentage-point difference between each group and other users, each relative "
                    "to their own histories. One high group makes the other groups look low, so "
                    "these are not counted as findings.",
                    POINTS,
                    folded=True,
                ),
                Listing(
                    Select("share-gap", ("spread",)),
                    "Largest difference between any two groups of an attribute.",
                    POINTS,
                    ("label", "system", "group", BY_CHANCE, "value", "p", "n"),
                    value="Largest minus smallest",
                    folded=True,
                ),
            ),
            part(
                "Systems compared",
                Listing(
                    Select("share-gap", ("systems",)),
                    "Difference between two systems on the same users.",
                    POINTS,
                    ("label", "system", "against", "value", "p", "n"),
                    value="Difference",
                    folded=True,
                ),
            ),
        ),
    )
