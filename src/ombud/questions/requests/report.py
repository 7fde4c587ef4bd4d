"""Requests: after people asked not to see something, is it still shown to them?"""

from __future__ import annotations

from ombud.questions.requests.analysis import AFTER, BEFORE
from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.legacy import Legacy
from ombud.report.model import Text
from ombud.report.numbers import SHARE, percent
from ombud.report.question import Phrase, Question
from ombud.stats.estimate import Estimate

_LARGE = 0.1
LEAKS = Select(AFTER, ("overall",), label="", exact=True)


def _before(e: Estimate, context: Context) -> str:
    found = context.find(Select(BEFORE, ("overall",), label="", exact=True))
    rate = next((b.value for b in found if b.value is not None), None)
    return "" if rate is None else f" Before the request it was {percent(rate)}."


def _unknown(context: Context) -> Text | None:
    for e in context.find(LEAKS):
        shown, unknown = e.details.get("places"), e.details.get("unknown")
        if shown and unknown is not None and unknown / shown >= _LARGE:
            return (f"{percent(unknown / shown)} of the recommendations are unlabeled.",)
    return None


@question("requests")
def requests_question() -> Question:
    """Declare how much of what people asked not to see is still shown."""
    return Question(
        name="requests",
        asks="Is it still shown after people asked not to see it?",
        family={
            LEAKS: Phrase(
                sentence="{size} of the recommendations shown after a hide request carry the "
                "hidden label.{note}",
                fallback="{size} of the recommendations shown after a hide request carry the "
                "hidden label.{note}",
                summary="Recommendations still carry {objects} after a request",
                object="hidden labels",
                what="hidden labels",
                who="users with a request",
                levels=lambda e: (None, None),
                scale=SHARE,
                null=0.0,
                note=_before,
            ),
        },
        systems="system",
        yes=("still shows what people asked to hide", "still show what people asked to hide"),
        no="No clear evidence that hidden content is still shown.",
        possible="Could still be up to {bound}.",
        changes=(_unknown,),
        inspect="Inspect why hide requests fail, and run the audit again.",
        sections=(Legacy(("requests",)),),
    )
