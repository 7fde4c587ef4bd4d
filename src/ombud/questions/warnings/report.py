"""Warnings: do recommendations hold more content with warnings than users' own histories?"""

from __future__ import annotations

from ombud.questions.warnings.lookup import disagreeing
from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.display import joined
from ombud.report.legacy import Legacy
from ombud.report.model import Text, status_of
from ombud.report.numbers import RELATIVE, SHARE, Scale, percent
from ombud.report.question import Phrase, Question
from ombud.stats.estimate import Estimate

_LARGE = 0.1
USERS = Select("amplification-user", ("overall",), {"form": "ratio-of-means"})
LABELS = Select("amplification", ("overall",), {"form": "ratio-of-means"})


def _per_hundred(e: Estimate) -> tuple[float | None, float | None]:
    """Return warnings per recommended item, and per item of histories."""
    shares, labels = (e.details.get("list"), e.details.get("history")), e.details.get("labels")
    if labels is None or shares[0] is None or shares[1] is None:
        return None, None
    return labels * shares[0], labels * shares[1]


def _shares(e: Estimate) -> tuple[float | None, float | None]:
    return e.details.get("list"), e.details.get("history")


def _paper(e: Estimate, context: Context) -> str:
    """Return the paper's statistic where it has the opposite sign."""
    other = disagreeing(context.result, e.system)
    if other is None or other.value is None:
        return ""
    return f" By the paper\u2019s mean of ratios it is {RELATIVE.number(other.value)}."


def _papers(context: Context) -> Text | None:
    """Say where the paper's mean of ratios disagrees with a system that has no finding."""
    quiet = [e.system for e in context.find(USERS) if status_of(e) != "increase"]
    found = [e for s in quiet if (e := disagreeing(context.result, s)) is not None]
    said = [
        f"{context.names.system(e.system).shown} is at {RELATIVE.number(e.value)}"
        for e in found
        if e.value is not None
    ]
    return (f"By the paper\u2019s mean of ratios, {joined(said)}.",) if said else None


def _unknown(context: Context) -> Text | None:
    for e in context.find(Select("distribution/label-density")):
        share = e.details.get("unknown_share")
        if isinstance(share, float) and share >= _LARGE:
            return (f"{percent(share)} of item-label pairs are unlabeled.",)
    return None


def _labels(context: Context) -> Text:
    return ("Wrong labels, and people who are not in the data.",)


@question("warnings")
def warnings() -> Question:
    """Declare whether lists hold more warnings than histories, for each system and label."""
    return Question(
        name="warnings",
        asks="Do recommendations carry more content warnings than users\u2019 own histories?",
        family={
            USERS: Phrase(
                sentence="{system} recommends items with {level} warnings per 100; items in the "
                "same users\u2019 histories have {other}.{note}",
                fallback="{system} recommends items with {size} warnings, relative to histories.",
                summary="{system} shows {objects}",
                object="more warnings",
                what="all warnings",
                compared=("per 100 recommendations", "per 100 history items"),
                levels=_per_hundred,
                note=_paper,
                levels_in=Scale(factor=100, places=1),
                scale=RELATIVE,
            ),
            LABELS: Phrase(
                sentence="{system} recommends items with {what} in {level} of recommendations; "
                "the same users\u2019 histories contain {other}.",
                fallback="{system} recommends {what} {size} relative to histories.",
                summary="{system} shows {objects}",
                object="more {what}",
                compared=("recommendations", "own history"),
                levels=_shares,
                levels_in=SHARE,
                scale=RELATIVE,
            ),
        },
        systems="recommender",
        yes=("recommends more warnings", "recommend more warnings"),
        no="No clear evidence of more warnings than in users\u2019 histories.",
        possible="Could still be up to {bound}.",
        than=" than users\u2019 histories contain",
        changes=(_unknown, _papers, _labels),
        sections=(
            Legacy(
                (
                    "warnings-amplification",
                    "warnings-labels",
                    "warnings-accuracy",
                    "warnings-remedies",
                    "warnings-label-counts",
                )
            ),
        ),
    )
