"""The answer on requests: is it still shown after people asked not to see it?"""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.questions.requests.analysis import AFTER, BEFORE, CHANGE, USERS
from ombud.registry import answer
from ombud.report.answer import Answer, Finding
from ombud.report.blocks import Paragraph, Strong, paragraph
from ombud.report.findings import estimates_of, reading
from ombud.report.natural import in_hundred
from ombud.stats.estimate import Estimate

_LARGE = 0.1


@answer("requests")
def requests_answer(result: Result) -> Answer | None:
    """Say how much still gets through, and whether that is less than before."""
    after = _whole(result, AFTER)
    if after is None:
        return None
    change, users = _whole(result, CHANGE), _whole(result, USERS)
    tested = () if change is None else (change,)
    leaks = int(after.details.get("leaks", 0))
    findings = (
        (Finding(_said(result, after), change or after, "people who asked"),) if leaks else ()
    )
    return Answer(
        question="Is it still shown after people asked not to see it?",
        findings=findings,
        tested=tested,
        nothing=_nothing(after, users),
        sure=_sure(change),
        change=paragraph("Labels that nobody applied: such places could carry it too."),
        unknown=_unknown(after),
        section="requests",
        directions=("more", "less"),
    )


def _whole(result: Result, key: str) -> Estimate | None:
    return next((e for e in estimates_of(result, key) if not e.label and not e.group), None)


def _said(result: Result, after: Estimate) -> Paragraph:
    told = after.details
    size = f"{told['leaks']:,} of {told['places']:,} places"
    before = _whole(result, BEFORE)
    past = ""
    if before is not None and before.value is not None:
        past = f"; before, {in_hundred(before.value)} of every 100"
    return paragraph(
        Strong(size),
        f" shown after a request carry what was asked not to be shown{past}. "
        f"{told['users_with_leak']:,} of {told['users']:,} people were shown some.",
    )


def _nothing(after: Estimate, users: Estimate | None) -> Paragraph:
    if after.value is None:
        return paragraph(Strong("It cannot be said"), f": {after.reason}.")
    told = after.details
    text = f": none of {told['places']:,} places shown after a request is known to carry it"
    if users is not None and users.interval is not None:
        most = users.interval[1]
        text += f"; up to {in_hundred(most)} of every 100 such people are not ruled out"
    return paragraph(Strong("Nothing known got through"), f"{text}.")


def _sure(change: Estimate | None) -> Paragraph:
    if change is None or change.value is None:
        return paragraph("There is nothing before the requests to compare with.")
    sign = reading(change)
    if sign in {"above", "below"}:
        word = "more" if sign == "above" else "less"
        return paragraph(f"It is clearly {word} than before the request ({change.level:.0%}).")
    return paragraph("It is not clearly more or less than before the request.")


def _unknown(after: Estimate) -> Paragraph | None:
    places, unknown = after.details.get("places"), after.details.get("unknown")
    if not places or unknown is None or unknown / places < _LARGE:
        return None
    return paragraph(Strong(f"{in_hundred(unknown / places)} of every 100"), " such places.")
