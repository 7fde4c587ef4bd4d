"""Link records: who made the items, and how that is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ombud.cli.console import JsonOption, console, print_json, progress_bar, reports_errors, say
from ombud.errors import DataError
from ombud.report.display import visible

app = typer.Typer(
    help="Link library records, author lists and ratings: who made the items, and how it is known.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_FolderArgument = typer.Argument(help="A folder that 'ombud link build' wrote.")


class Creators(StrEnum):
    """Whose identity counts."""

    FIRST = "first"
    ALL = "all"
    ANY = "any"


class SetIsbns(StrEnum):
    """What to do with ISBNs of sets."""

    USE = "use"
    IGNORE = "ignore"


@app.command()
@reports_errors
def formats(as_json: Annotated[bool, JsonOption] = False) -> None:
    """List the formats that can be read.

    \b
    Example:
      ombud link formats
    """
    from ombud.link.readers import READERS

    if as_json:
        print_json({name: reader.about for name, reader in READERS.items()})
        return
    _print_rows(["format", "what it is"], [(r.name, r.about) for r in READERS.values()])


@app.command()
@reports_errors
def build(
    read: Annotated[
        list[str],
        typer.Option(
            "--read",
            help="FORMAT=PATH (file, folder, pattern); repeat it. See 'ombud link formats'.",
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", help="The folder to write; it appears when it is complete.")
    ],
    attribute: Annotated[str, typer.Option(help="The attribute of creators.")] = "gender",
    platform_authors: Annotated[
        bool,
        typer.Option("--platform-authors", help="Use the author names of rating platforms too."),
    ] = False,
    inferred: Annotated[
        bool, typer.Option("--inferred", help="Also read lists inferred from first names.")
    ] = False,
    creators: Annotated[
        Creators,
        typer.Option(help="first; all (each counts 1/m) or any; these add a table for RQ1."),
    ] = Creators.FIRST,
    marc_field: Annotated[
        str, typer.Option(help="Where MARC authority records assert it, such as 375a, 374a, 370c.")
    ] = "375a",
    wikidata_property: Annotated[str, typer.Option(help="The Wikidata property.")] = "P21",
    column: Annotated[str, typer.Option(help="The column of lists of people.")] = "",
    exclude: Annotated[
        Path | None, typer.Option(help="A file of ISBNs that tie nothing together.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option(help="A CSV file of terms and codes, on top of the shipped one.")
    ] = None,
    placeholders: Annotated[
        Path | None, typer.Option(help="A file of further names that name nobody.")
    ] = None,
    set_isbns: Annotated[
        SetIsbns, typer.Option(help="Whether ISBNs of sets tie records together.")
    ] = SetIsbns.USE,
    cancelled_isbns: Annotated[
        bool, typer.Option("--cancelled-isbns", help="Let cancelled ISBNs tie records together.")
    ] = False,
    flag_authors: Annotated[
        int, typer.Option(min=1, help="Flag clusters with more first authors than this.")
    ] = 5,
    fold_marks: Annotated[
        bool, typer.Option("--fold-marks", help="Compare names without accents.")
    ] = False,
    fuzzy: Annotated[
        float | None,
        typer.Option(help="Also match similar names (splink), from this probability on."),
    ] = None,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="As the paper: dated assertions contradict, names count beside ids."
        ),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of an existing link folder.")
    ] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Read records, cluster them into books, resolve their creators, write the table of items.

    \b
    Example:
      ombud link build --read openlibrary=ol_dump_editions.txt.gz \\
        --read openlibrary=ol_dump_authors.txt.gz --read viaf=viaf.xml.gz \\
        --read bookcrossing=BX-CSV-Dump --to linked
    """
    from ombud.link import LinkOptions, build_links
    from ombud.link.readers.base import ReaderOptions

    inputs = [_pair(text) for text in read]
    if len(marc_field) != 4 or not marc_field[:3].isdigit():
        raise DataError("--marc-field", [f"{marc_field!r} is no field and subfield such as 375a"])
    options = LinkOptions(
        attribute=attribute,
        reader=ReaderOptions(
            marc_field=marc_field[:3],
            marc_subfield=marc_field[3],
            wikidata_property=wikidata_property,
            column=column,
            platform_authors=platform_authors,
            inferred=inferred,
        ),
        set_isbns=set_isbns.value,
        cancelled_isbns=cancelled_isbns,
        exclude=None if exclude is None else str(exclude),
        mapping=None if mapping is None else str(mapping),
        placeholders=None if placeholders is None else str(placeholders),
        creators=creators.value,
        flag_authors=flag_authors,
        fold_marks=fold_marks,
        fuzzy=fuzzy,
        published=published,
    )
    with progress_bar() as progress:
        folder = build_links(inputs, to, options, overwrite=replace, progress=progress)
    _report(folder, as_json)
    if not as_json:
        say(f"wrote {folder}")


def _pair(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if not sign or not path:
        raise DataError("--read", [f"{text!r:.80} is not FORMAT=PATH; see 'ombud link formats'"])
    return name, path


@app.command()
@reports_errors
def report(
    folder: Annotated[Path, _FolderArgument], as_json: Annotated[bool, JsonOption] = False
) -> None:
    """Show what came out: outcomes by data set, the largest clusters, the mapping, faults.

    \b
    Example:
      ombud link report linked
    """
    _report(folder, as_json)


def _report(folder: Path, as_json: bool) -> None:
    from ombud.link import LinkFolder

    opened = LinkFolder(folder)
    outcomes = opened.tables.scan("outcomes").collect()
    largest = opened.tables.scan("largest").drop("cluster").collect()
    if as_json:
        content = {"outcomes": outcomes.to_dicts(), "largest": largest.to_dicts(), **opened.facts}
        print_json(content)
        return
    facts = opened.facts
    if facts["inferred"]:
        say(f"{opened.attribute} INFERRED from names, not asserted by people, is among the values.")
    rows: list[tuple[str, ...]] = []
    totals = outcomes.drop("outcome").group_by("set").sum()
    sums = {row["set"]: row for row in totals.to_dicts()}
    for row in outcomes.to_dicts():
        total = sums[row["set"]]
        share = _share(row["interactions"], total["interactions"])
        shown = _share(row["items"], total["items"])
        cells = (row["set"], row["outcome"], f"{row['items']:,}", shown, share)
        rows.append((*cells, f"{row['flagged']:,}"))
    headings = ["data set", "outcome", "items", "% of items", "% of interactions", "flagged"]
    _print_rows(headings, rows)
    flagged = facts["flagged_items"]
    if flagged:
        most = facts["options"]["flag_authors"]
        say(
            f"{flagged:,} items have more than {most} first authors: they may be several works "
            "(flagged)."
        )
    mixed = facts.get("mixed_creators", 0)
    if mixed:
        say(f"{mixed:,} ambiguous items have creators of different identities, each known.")
    _print_facts("clusters", facts["clusters"])
    sizes = facts["clusters"]["clusters_of_size"]
    whole = sizes["any"]
    # "up to 10" and so on; "any" has no number and comes last.
    steps = sorted(sizes, key=lambda name: (name == "any", len(name), name))
    rows = [(name, f"{sizes[name]:,}", _share(sizes[name], whole)) for name in steps]
    _print_rows(["ISBNs and records of a cluster", "clusters", "% of clusters"], rows)
    _print_ratings(facts["ratings"])
    all_items = facts["homonyms"]["any"]["items"]
    rows = [
        (
            name.replace("_", " "),
            f"{n['items']:,}",
            _share(n["items"], all_items),
            f"{n['ambiguous']:,}",
            _share(n["ambiguous"], n["items"]),
        )
        for name, n in facts["homonyms"].items()
    ]
    headings = ["items with", "items", "% of items", "of them ambiguous", "% of them"]
    _print_rows(headings, rows)
    platform = facts.get("platform_names", {})
    rows = [(name.replace("_", " "), f"{n:,}") for name, n in platform.items()]
    if any(platform.values()):
        _print_rows(["author names of platforms", ""], rows)
    known = facts.get("ways_known", {})
    rows = [(way, f"{n:,}", f"{known.get(way, 0):,}") for way, n in facts["ways"].items()]
    _print_rows(["items matched by", "items", "of them known"], rows)
    rows = [
        (
            r["item"],
            *(f"{r[c] or 0:,}" for c in ("n_isbns", "n_records", "n_works", "n_first_authors")),
            "flagged" if r["flagged"] else "",
        )
        for r in largest.to_dicts()
    ]
    _print_rows(["largest clusters", "ISBNs", "records", "works", "first authors", ""], rows)
    if rows:
        say("exclude.txt in the folder lists the ISBNs that split them.")
    mapping = facts["mapping"]
    rows = []
    for t in mapping["terms"]:
        note = "" if t["known"] else "not in the file: stays itself"
        rows.append((t["term"], t["code"] or "(no assertion)", f"{t['assertions']:,}", note))
    _print_rows([f"term (mapping {mapping['version']})", "counted as", "assertions", ""], rows)
    rows = [(p["source"], p["reason"], f"{p['count']:,}") for p in facts["problems"]]
    _print_rows(["read from", "what was met", "times"], rows)


def _print_ratings(ratings: dict[str, dict[str, Any]]) -> None:
    """Show what became of the ids that were rated."""
    counts = ["rows", "ids", "ids_in_no_record", "ids_in_several_clusters"]
    seldom = ("ids_in_the_exclusion_file", "ids_only_of_sets_or_cancelled")
    counts += [c for c in seldom if any(known.get(c) for known in ratings.values())]
    rows = [(name, *(f"{known.get(c, 0):,}" for c in counts)) for name, known in ratings.items()]
    _print_rows(["ratings of", *(c.replace("_", " ") for c in counts)], rows)


def _share(part: int | None, whole: int | None) -> str:
    return "" if part is None or not whole else f"{100 * part / whole:.1f}"


def _print_facts(title: str, facts: dict[str, Any]) -> None:
    rows = [(k.replace("_", " "), f"{v:,}") for k, v in facts.items() if isinstance(v, int)]
    _print_rows([title, ""], rows)


def _print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Show a table, unless it is empty."""
    if not rows:
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(*(visible(h) for h in headings), box=None)
    for row in rows:
        table.add_row(*(Text(visible(str(cell))) for cell in row))
    console.print(table)
    console.print()


@app.command()
@reports_errors
def explain(
    folder: Annotated[Path, _FolderArgument],
    item: Annotated[str, typer.Argument(help="An ISBN, an item, or SOURCE:ID of a record.")],
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Show for one item which records, names and assertions led to its outcome.

    \b
    Example:
      ombud link explain linked 0-439-02348-3
    """
    from ombud.link import LinkFolder

    found = LinkFolder(folder).explain(item)
    if as_json:
        print_json(asdict(found))
        return
    shown = found.identity if found.outcome == "known" else found.outcome.replace("_", " ")
    say(f"{found.asked}: item {found.item}, {shown}: {found.reason}")
    if found.other_items:
        others = ", ".join(found.other_items[:20])
        say(
            f"records of that id lie in {len(found.other_items) + 1:,} clusters; this is that of "
            f"the first record, the others are {others}"
        )
    if found.facts["flagged"]:
        say(f"flagged: {found.facts['n_first_authors']:,} first authors, perhaps several works")
    rows: list[tuple[str, ...]] = [
        (r["source"], r["key"] or "", r["work"] or "", ", ".join(r["isbns"] or []))
        for r in found.records
    ]
    _print_rows(["record of", "id", "work", "ISBNs"], rows)
    rows = [
        (n["name"] or n["author"] or "", ", ".join(n["key"] or []),
         "placeholder, names nobody" if n["placeholder"] or not n["key"] else "")
        for n in found.names
    ]  # fmt: skip
    _print_rows(["first author", "compared as", ""], rows)
    rows = [(m["source"], m["record_key"] or "", m["via"], m["key"],
             "inferred" if m["inferred"] else "") for m in found.matches]  # fmt: skip
    _print_rows(["authority record of", "id", "found by", "which is", ""], rows)
    rows = [
        (a["source"], a["key"] or "", a["value"], a["code"] or "(no assertion)",
         a["start"] or "", a["end"] or "")
        for a in found.assertions
    ]  # fmt: skip
    _print_rows(["asserted by", "id", "term", "counted as", "from", "to"], rows)
    cut = [f"{n:,} {name}" for name, n in found.counts.items() if n > 200]
    if cut:
        say(f"the first 200 rows are shown of: {', '.join(cut)}")
