"""The answer of a delicate-text audit: which texts are missed, and by whom."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.questions.delicate.figures import group_figure, group_words
from ombud.questions.delicate.section import clear_gaps, flips_of, levels
from ombud.registry import answer
from ombud.report.answer import Answer, Finding
from ombud.report.blocks import Name, Paragraph, Part, Strong, paragraph
from ombud.report.findings import estimates_of, infos_of, reading
from ombud.report.natural import between, counted, out_of
from ombud.stats.estimate import Estimate

_LARGE = 0.1


@answer("delicate")
def delicate_answer(result: Result) -> Answer | None:
    """Say which delicate texts are found less than others, in counts."""
    recall = levels(result, "detection-recall")
    if not recall:
        return None
    # Whether a term is there and what risk raters gave are no topics: they stand in the section.
    tested = tuple(
        e for e in clear_gaps(result, "detection-recall") if not e.group.startswith("explicit=")
    )
    below = [e for e in tested if reading(e) == "below"]
    found = estimates_of(result, *infos_of(result, "detection-recall"))
    at = {(e.system, e.group): e for e in found if e.kind == "level"}
    # Texts without a term stand under topics and under coarse topics, and are the same texts.
    once = {(_kind(e.group), e.system): e for e in reversed(below)}
    below = [e for e in below if once[_kind(e.group), e.system] is e]
    findings = tuple(Finding(_said(e, at), e, f"{_kind(e.group)} ({e.system})") for e in below)
    groups = [e for e in found if e.kind == "level" and e.group and not e.group.startswith("exp")]
    return Answer(
        question="Which delicate texts are missed?",
        findings=findings,
        tested=tested,
        nothing=_nothing(recall),
        change=paragraph(
            "Other raters or another line between delicate and not; topics are told by terms in "
            "the text."
        ),
        also=_flips(result),
        unknown=_unknown(result),
        figure=group_figure(
            groups, recall, name="answer-figure", table="detection-groups-1",
            title="Share of delicate texts found", most=6,
        ),
        section="delicate-groups",
    )  # fmt: skip


def _kind(group: str) -> str:
    """Return the texts of a group in words."""
    attribute, _, value = group.partition("=")
    words = group_words(group)
    if attribute in {"topic", "coarse-topic"}:
        return f"texts on {words}" if value != "no term" else "texts without a known term"
    return f"texts of {words}"


def _said(e: Estimate, at: dict[tuple[str, str], Estimate]) -> Paragraph:
    """Return how many delicate texts of a group are found, and how many of all."""
    parts: list[Part] = [Name(e.system), " finds "]
    here, whole = at.get((e.system, e.group)), at.get((e.system, ""))
    if here is not None and here.value is not None:
        share = out_of(here.value)
        parts += [Strong("none of the" if share == "none" else share)]
        parts.append(between(here.interval, here.value))
    else:
        parts.append(Strong("fewer"))
    parts += [" delicate ", Name(_kind(e.group))]
    if whole is not None and whole.value is not None:
        parts.append(f"; of all delicate texts, {out_of(whole.value)}")
    return paragraph(*parts, ".")


def _nothing(recall: list[Estimate]) -> Paragraph | None:
    """Say how much is found, where no group stands out."""
    known = [e for e in recall if e.value is not None]
    if not known:
        return None
    parts: list[Part] = [Strong("No kind of delicate text is clearly missed more than others"), "."]
    for e in known[:2]:
        parts += [" ", Name(e.system), f" finds {out_of(e.value or 0.0)}."]
    return paragraph(*parts)


def _flips(result: Result) -> Paragraph | None:
    """Say where a swap flips most decisions, where it clearly flips some."""
    some = [e for e in flips_of(result) if e.interval is not None and e.interval[0] > 0]
    worst = max(some, key=lambda e: (e.interval or (0.0, 0.0))[0], default=None)
    if worst is None:
        return None
    flips = worst.details.get("flips", worst.details.get("fails", 0))
    triplets = worst.unit == "triplet"
    name, what = ("Winogender", "triplets") if triplets else (worst.label, "changed texts")
    # Beside a count of fewer the ends would be of another base.
    ends = between(worst.interval, flips / worst.n) if worst.n > 1000 else ""
    return paragraph(
        Name(name), " flips ", Strong(counted(int(flips), worst.n)), f"{ends} {what} for ",
        Name(worst.system), ".",
    )  # fmt: skip


def _unknown(result: Result) -> Paragraph | None:
    facts = result.card.facts
    texts, unknown = facts.get("texts"), facts.get("label_unknown")
    if isinstance(texts, int) and isinstance(unknown, int) and texts and unknown / texts >= _LARGE:
        return paragraph(Strong(out_of(unknown / texts)), " texts have no label.")
    return None
