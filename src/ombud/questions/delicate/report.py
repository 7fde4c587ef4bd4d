"""Delicate text: which of it is missed, and what sways the decision?"""

from __future__ import annotations

from ombud.questions.tautologies import tautologies
from ombud.registry import question
from ombud.report.context import Context, Select
from ombud.report.legacy import Legacy
from ombud.report.model import Text
from ombud.report.numbers import POINTS, SHARE, percent
from ombud.report.question import Phrase, Question
from ombud.stats.estimate import Estimate

_LARGE = 0.1
RECALL = Select("detection-recall", ("contrast",))
SWAPS = Select("swap/flips-changed", ("overall",), exact=True)


def _is_topic(e: Estimate) -> bool:
    """Return whether a group is a topic: a term list would find its own terms by definition."""
    return not e.group.startswith("explicit=") and not e.group.endswith("=no term")


def _swapped(e: Estimate) -> tuple[float | None, float | None]:
    return e.value, 0.0


def _unlabeled(context: Context) -> Text | None:
    facts = context.result.card.facts
    texts, unknown = facts.get("texts"), facts.get("label_unknown")
    if not (isinstance(texts, int) and isinstance(unknown, int) and texts):
        return None
    return (
        (f"{percent(unknown / texts)} of texts have no label.",)
        if unknown / texts >= _LARGE
        else None
    )


def _raters(context: Context) -> Text:
    return ("Other raters, or another line between delicate and not. Terms define the topics.",)


@question("delicate")
def delicate() -> Question:
    """Declare which delicate texts are found less than others, and which swaps flip decisions."""
    return Question(
        name="delicate",
        asks="Which delicate texts are missed?",
        family={
            RECALL: Phrase(
                sentence="{system} finds {level} of delicate {who}, compared with {other} of "
                "other delicate texts.",
                fallback="{system} finds fewer of the delicate {who} than of others: {size}.",
                summary="{system} finds fewer delicate texts about {objects}",
                object="{group}",
                what="delicate texts",
                who="{group}",
                compared=("{who}", "other delicate texts"),
                scale=POINTS,
                harm="less",
                keep=_is_topic,
            ),
            SWAPS: Phrase(
                sentence="{system} decides {level} of texts differently when only {what} is "
                "swapped.",
                fallback="{system} decides {size} of texts differently when only {what} is "
                "swapped.",
                summary="{system} changes decisions when only {objects} is swapped",
                object="{what}",
                what="{what} swapped",
                who="texts",
                compared=("decisions changed", "none"),
                levels=_swapped,
                scale=SHARE,
                null=0.0,
            ),
        },
        systems="detector",
        yes=(
            "misses some delicate texts more than others",
            "miss some delicate texts more than others",
        ),
        no="No clear evidence that some delicate texts are missed more than others.",
        possible="Could still be {bound}.",
        changes=(_unlabeled, _raters),
        inspect="Read the delicate texts that {systems} miss, retrain, and run the audit again.",
        tautologies=tautologies,
        sections=(
            Legacy(
                (
                    "delicate",
                    "delicate-groups",
                    "delicate-errors",
                    "delicate-base-rates",
                    "delicate-bias",
                    "delicate-ratings",
                    "delicate-stability",
                    "delicate-published",
                    "delicate-transfer",
                    "delicate-labels",
                    "delicate-long-texts",
                    "delicate-heads",
                )
            ),
        ),
    )
