"""Authors: whose work do recommendations show, compared with what users read?"""

from __future__ import annotations

from ombud.questions.authors.lookup import inferred
from ombud.questions.authors.stages import PIPELINE, STAGE
from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.legacy import Legacy
from ombud.report.model import Text
from ombud.report.numbers import POINTS, percent
from ombud.report.question import Phrase, Question
from ombud.stats.estimate import Estimate

_LARGE = 0.1
GAPS = Select("balance-gap", ("overall",), {"exposure": False})


def _own_profile(e: Estimate) -> tuple[float | None, float | None]:
    profile = e.details.get("profile")
    return (None, None) if profile is None or e.value is None else (profile + e.value, profile)


def _unknown(context: Context) -> Text | None:
    """Say how many recommendations are by creators whose identity is not known."""
    lists = [
        e for e in context.find(Select(PIPELINE, exact=True)) if e.details.get(STAGE) == "lists"
    ]
    known = sum(int(e.details.get("known_places") or 0) for e in lists)
    whole = sum(int(e.details.get("places") or 0) for e in lists)
    if not whole or 1 - known / whole < _LARGE:
        return None
    return (f"{percent(1 - known / whole)} of recommendations are by authors of unknown identity.",)


def _genre(context: Context) -> Text:
    how = " Identities were inferred, not asserted." if inferred(context.result) else ""
    return (f"Unknown identities, and genre, which may explain part of a difference.{how}",)


@question("authors")
def authors_question() -> Question:
    """Declare whose work lists show more or less than users' own profiles."""
    return Question(
        name="authors",
        asks="Whose work is recommended more or less than users read it?",
        family={
            GAPS: Phrase(
                sentence="{system} recommends works by {what} authors {more} often than users "
                "read them: {level} of recommendations with a known author, compared with "
                "{other} of users\u2019 profiles.",
                fallback="{system} recommends works by {what} authors {more} often than users "
                "read them.",
                summary="{system} recommends {objects}",
                object="{more} by {what} authors",
                what="{what} authors",
                compared=("recommendations", "users\u2019 profiles"),
                levels=_own_profile,
                scale=POINTS,
                harm="both",
            ),
        },
        systems="recommender",
        yes=("differs from what users read", "differ from what users read"),
        no="No clear difference between what is recommended and what users read.",
        possible="Could still differ by up to {bound}.",
        than=" than users read",
        changes=(_unknown, _genre),
        inspect="Compare what {systems} recommend by {what} with the catalog, and run the audit "
        "again after changes.",
        sections=(
            Legacy(
                (
                    "authors",
                    "authors-lists",
                    "authors-reranking",
                    "authors-propagation",
                    "authors-further",
                )
            ),
        ),
    )
