"""Sections on the texts of a suppression audit: their sizes, and how groups were found in them."""

from __future__ import annotations

from ombud.audits.result import Result
from ombud.questions.suppression.tag_validation import KEY, POOR, measured_quality
from ombud.registry import section
from ombud.report.blocks import Block, Cell, Column, Name, Note, Part, Section, Table, paragraph
from ombud.report.display import joined, shorten
from ombud.report.findings import estimates_of
from ombud.report.format import estimate_text
from ombud.stats.estimate import Estimate
from ombud.text.tagging import STATED


@section("suppression-texts")
def suppression_texts(result: Result) -> Section | None:
    """Give the size of each data set, the length of its texts and the groups they name."""
    table = result.tables.get("set-sizes")
    if table is None:
        return None
    groups = [c for c in table.columns if c.startswith("group: ")]
    titles = {
        "texts": "Texts",
        "mean_words": "Mean words",
        "acceptable": "Acceptable",
        "to_be_flagged": "To be flagged",
        "label_unknown": "Unknown",
        "no_group": "In no group",
    } | {c: shorten(c.removeprefix("group: "), 40) for c in groups}
    columns = (Column("Texts of", header=True), *(Column(t, "right") for t in titles.values()))
    rows = tuple(
        (
            Cell(shorten(row["name"], 60)),
            *(
                Cell(f"{row[c]:.1f}", value=row[c]) if c == "mean_words" else Cell.number(row[c])
                for c in titles
            ),
        )
        for row in table.to_dicts()
        if row["texts"]
    )
    caption = "Texts, their length, what is known of them, and how many name each group."
    made = Table("set-sizes-table", columns, rows, caption)
    whole = table.filter(table["kind"] == "all").row(0, named=True)
    text = paragraph(
        f"{whole['no_group']:,} of {whole['texts']:,} texts are in no group: they count among all "
        "texts, and in no group's number."
    )
    return Section("The texts", (text, made), order=278, place="report")


@section("suppression-tags")
def suppression_tags(result: Result) -> Section | None:
    """Give the number of texts that name each group, by both ways of matching."""
    table = result.tables.get("identity-tag-counts")
    if table is None:
        return None
    titles = {
        "whole_word": "Whole words",
        "published": "As published",
        "both": "By both",
        "whole_word_only": "Whole words only",
        "published_only": "As published only",
    }
    columns = (Column("Group", header=True), *(Column(t, "right") for t in titles.values()))
    rows = tuple(
        (Cell(shorten(row["group"])), *(Cell.number(row[c]) for c in titles))
        for row in table.to_dicts()
    )
    caption = "Texts that name each group, by two ways of matching the same terms."
    made = Table("identity-tags-table", columns, rows, caption, folded=not _tagged(result))
    blocks: list[Block] = [paragraph(*_how(result))]
    poor = _poor(result)
    if poor:
        blocks.append(Note((paragraph(*poor),), "Lists that miss many mentions"))
    blocks.append(made)
    validation = _validation(result)
    if validation is not None:
        blocks.append(validation)
    title = "How texts were tagged" if _tagged(result) else "Where the groups come from"
    return Section(title, tuple(blocks), order=280)


def _stated(result: Result) -> tuple[str, ...]:
    """Return the data sets that state groups themselves; nothing is known of older results."""
    told = result.card.facts.get(STATED, "")
    return tuple(name for name in str(told).split("\n") if name)


def _tagged(result: Result) -> bool:
    """Whether any group of the audit was made by tagging."""
    sizes = result.tables.get("set-sizes")
    if sizes is None or not _stated(result):
        return not _stated(result)
    sets = set(sizes.filter(sizes["kind"] == "set")["name"].to_list())
    return bool(sets - set(_stated(result)))


def _how(result: Result) -> list[Part]:
    """Say where the groups of this run come from."""
    stated, tagged = _stated(result), _tagged(result)
    parts: list[Part] = []
    if stated:
        # A single data set needs no name: it is the data of the audit.
        where = f" of {joined([shorten(name, 40) for name in stated])}" if tagged else ""
        parts.append(f"Groups{where} are those that the data states itself; they are no tags. ")
    if tagged:
        used = (
            "as published" if result.plan.options.get("mode") == "published" else "by whole words"
        )
        which = "Groups of the other texts" if stated else "Groups"
        parts.append(
            f"{which} are tagged {used}, by lists of terms: they find explicit mentions, not who "
            "speaks or who is meant. The published code misses terms at the ends of texts, beside "
            "most punctuation and with hyphens."
        )
    else:
        parts.append(
            "For comparison, the table shows how many texts term lists would tag; no number of "
            "this audit rests on them."
        )
    return parts


def _poor(result: Result) -> list[Part]:
    """Say for which groups the list finds few of the texts that name them."""
    if not _tagged(result):
        return []
    recalls = [e for e in estimates_of(result, f"{KEY}/recall") if e.value is not None]
    where = "the texts whose groups are stated"
    found = [(e.group, e.value) for e in recalls if e.value is not None and e.value < POOR]
    if not recalls:
        options = result.plan.options
        terms = "" if options.get("path") else str(options.get("terms", "terms-identity@1"))
        measured = measured_quality(terms, str(options.get("mode", "whole-word")))
        where = "Jigsaw's sentence templates, where it was measured"
        low = measured.filter(measured["recall"] < POOR)
        found = list(zip(low["group"].to_list(), low["recall"].to_list(), strict=True))
    if not found:
        return []
    parts: list[Part] = [f"The term list finds few of the mentions on {where}: "]
    for index, (group, value) in enumerate(found):
        parts += ["; " if index else "", Name(group), f" {value:.0%}"]
    parts.append(". Texts that name these groups otherwise count as outside them.")
    return parts


def _validation(result: Result) -> Table | None:
    """Return how well tags agree with the groups that the data states."""
    names = ("recall", "precision", "accuracy", "false-positive rate")
    found: dict[str, dict[str, Estimate]] = {}
    for name in names:
        for e in estimates_of(result, f"{KEY}/{name}"):
            found.setdefault(e.group, {})[name] = e
    if not found:
        return None
    columns = (
        Column("Group", header=True),
        *(Column(name.capitalize(), "right") for name in names),
        Column("Stated", "right"),
    )
    rows = tuple(
        (
            Cell(shorten(group)),
            *(Cell(estimate_text(e), value=e.value) for e in by.values()),
            Cell.number(by["recall"].n),
        )
        for group, by in found.items()
    )
    caption = (
        "How well the term list finds the groups that the data states (Wilson intervals, which "
        "take texts as independent)."
    )
    return Table("tag-validation-table", columns, rows, caption)
