"""Data sets: which there are, what they hold, and whether a file is in the standard form."""

from __future__ import annotations

from enum import StrEnum
from inspect import getdoc
from pathlib import Path
from typing import Annotated, Any

import typer

from ombud import registry
from ombud.cli import data_build, data_get
from ombud.cli.console import JsonOption, console, print_json, reports_errors, say
from ombud.report.display import visible

app = typer.Typer(
    help="Fetch, build, list and describe data sets, and check files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


app.command()(data_get.get)
app.command("ask-ddd")(data_get.ask_ddd)
app.add_typer(data_build.build_app, name="build")


class Form(StrEnum):
    """The standard forms of a file."""

    INTERACTIONS = "interactions"
    LABELS = "labels"
    RECOMMENDATIONS = "recommendations"
    TEXTS = "texts"
    DECISIONS = "decisions"
    USERS = "users"
    ITEMS = "items"
    TEXT_GROUPS = "text-groups"


def _read(form: Form, path: Path) -> Any:
    from ombud.data import Decisions, Recommendations
    from ombud.data.tables import TableOptions, read_table_file

    if form is Form.RECOMMENDATIONS:
        return Recommendations.from_frame(path)
    if form is Form.DECISIONS:
        return Decisions.from_frame(path, threshold=0.5)
    return read_table_file(form.value.replace("-", "_"), path, TableOptions(unlabeled="unknown"))


@app.command("list")
@reports_errors
def list_(as_json: Annotated[bool, JsonOption] = False) -> None:
    """List the data sources and simulated worlds that a plan can name.

    \b
    Example:
      ombud data list
    """
    from rich.table import Table
    from rich.text import Text

    things = {
        kind: {name: registry.describe(kind, name) for name in registry.names(kind)}
        for kind in ("source", "world")
    }
    if as_json:
        print_json(things)
        return
    table = Table("name", "kind", "what it is", box=None)
    for kind, names in things.items():
        for name, text in names.items():
            table.add_row(*(Text(visible(cell)) for cell in (name, kind, text)))
    console.print(table)


@app.command()
@reports_errors
def describe(
    name: Annotated[str, typer.Argument(help="A source or world of 'ombud data list'.")],
) -> None:
    """Show the documentation of a source: what it holds, its licence, its known harms.

    \b
    Example:
      ombud data describe small
    """
    kind = "source" if name in registry.names("source") else "world"
    text = getdoc(registry.get(kind, name)) or ""
    say(text)


@app.command()
@reports_errors
def check(
    path: Annotated[Path, typer.Argument(help="A Parquet, CSV, TSV or JSONL file.")],
    form: Annotated[Form, typer.Option("--as", help="What the file should hold.")],
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Check a file against the standard form; all faults in one message, with row numbers.

    \b
    Example:
      ombud data check ratings.parquet --as interactions
    """
    table = _read(form, path)
    left_out = [str(e) for e in getattr(table, "exclusions", ())]
    if as_json:
        print_json({"path": str(path), "form": form, "found": repr(table), "left_out": left_out})
        return
    say(visible(f"{path.name}: {table!r}"))
    for text in left_out:
        say(f"  {visible(text)}")
