"""Counterfactual: what could people be shown if they, or other people's data, were different?"""

from __future__ import annotations

from ombud.questions.counterfactual.lookup import OVERLAP, parts_of
from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.legacy import Legacy
from ombud.report.model import Text
from ombud.report.numbers import POINTS, SHARE
from ombud.report.question import Phrase, Question
from ombud.stats.estimate import Estimate

REACH = Select("reach/popularity-gap", exact=True)
MOVED = Select("stability/above-noise", exact=True)


def _halves(e: Estimate) -> tuple[float | None, float | None]:
    return e.details.get("less_popular"), e.details.get("more_popular")


def _edits(e: Estimate, context: Context) -> str:
    budget = int(e.details.get("budget", 0))
    return f"{budget} edit{'' if budget == 1 else 's'}"


def _others(e: Estimate, context: Context) -> str:
    budget = int(e.details.get("budget", 0))
    users = f"{budget} other user{'' if budget == 1 else 's'}"
    return f"{users} {e.details.get('treatment', 'changed')}"


def _search(context: Context) -> Text:
    return (
        "More edits, a better search (not found is not proved absent), other labels, or "
        "retraining.",
    )


@question("counterfactual")
def counterfactual_question() -> Question:
    """Declare what people cannot reach, and whose data move lists."""
    return Question(
        name="counterfactual",
        asks="What could people be shown if they acted differently?",
        family={
            REACH: Phrase(
                sentence="{system}: {note} can bring {level} of less popular items into a list, "
                "compared with {other} of popular ones.",
                fallback="{system}: {note} reach less popular items less often ({size}).",
                summary="{system} puts {objects} out of reach",
                object="less popular items",
                what="less popular items",
                compared=("less popular items", "popular items"),
                levels=_halves,
                scale=POINTS,
                harm="less",
                note=_edits,
            ),
            MOVED: Phrase(
                sentence="{system}: {note} change a list by {level} beyond retraining noise.",
                fallback="{system}: {note} change a list by {size} beyond retraining noise.",
                summary="{system} lets {objects} change a list",
                object="other users\u2019 data",
                what="other users\u2019 data",
                levels=lambda e: (None, None),
                scale=SHARE,
                harm="more",
                keep=lambda e: e.details.get("distance") == OVERLAP,
                note=_others,
            ),
        },
        systems="recommender",
        yes=("limits what people can reach", "limit what people can reach"),
        no="No clear evidence that items are out of reach, or that others\u2019 data move lists.",
        possible="Could still be {bound}.",
        changes=(_search,),
        inspect="Inspect {systems} for {what}, and run the audit again after changes.",
        sections=(
            Legacy(
                (
                    "counterfactual",
                    "counterfactual-reach",
                    "counterfactual-escape",
                    "counterfactual-stability",
                    "counterfactual-person",
                    "counterfactual-people",
                    "counterfactual-cost",
                )
            ),
        ),
        applies=lambda context: bool(parts_of(context.result)),
    )
