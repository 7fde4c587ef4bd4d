"""Build data sets from the files in which they were published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ombud.cli.console import JsonOption, print_json, reports_errors, say
from ombud.errors import DataError
from ombud.report.display import visible

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset


build_app = typer.Typer(
    help="Build a data set: interactions.parquet, labels.parquet and card.json.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_ToOption = typer.Option("--to", help="The folder to write; it appears when it is complete.")
_MinimumOption = typer.Option(
    min=0, help="Keep users and items with at least so many interactions."
)
_PassesOption = typer.Option(
    min=0, help="Filter passes; 0 goes to the fixed point, 3 is what the published code makes."
)
_ReplaceOption = typer.Option("--replace", help="Put it in the place of an existing folder.")


def _write(data: Dataset, to: Path, replace: bool, as_json: bool) -> None:
    from ombud.data.sources._build import write_dataset

    folder = write_dataset(data, to, replace=replace)
    if as_json:
        print_json(data.card.model_dump() | {"folder": str(folder)})
        return
    say(visible(data.card.title))
    for name, value in data.card.facts.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        shown = f"{value:,.6g}" if isinstance(value, float) else shown
        say(visible(f"  {name}: {shown}"))
    for text in data.card.dropped:
        say(f"  {visible(text)}")
    say(f"wrote {folder}")


@build_app.command("ml-ddd")
@reports_errors
def build_ml_ddd_folder(
    movielens: Annotated[
        Path, typer.Option("--movielens", help="MovieLens 25M: ml-25m.zip or its folder.")
    ],
    votes: Annotated[
        Path,
        typer.Option(
            "--votes", help="ddd_dict.pkl, or replies of the web API (.sqlite, .jsonl, .csv)."
        ),
    ],
    to: Annotated[Path, _ToOption],
    threshold: Annotated[float, typer.Option(help="The share of votes that must agree.")] = 0.75,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="More than the threshold, as in the published code."),
    ] = False,
    minimum: Annotated[int, _MinimumOption] = 3,
    passes: Annotated[int, _PassesOption] = 0,
    replace: Annotated[bool, _ReplaceOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Build ML-DDD: MovieLens ratings joined to the votes of Does the Dog Die.

    \b
    Example:
      ombud data build ml-ddd --movielens ml-25m.zip --votes ddd_dict.pkl --to ml-ddd
    """
    from ombud.data.sources._build import Filter
    from ombud.data.sources.ml_ddd import build_ml_ddd

    data = build_ml_ddd(
        movielens,
        votes,
        threshold=threshold,
        strict=strict,
        keep=Filter(minimum, passes or None),
        scratch=_scratch(to, replace),
    )
    _write(data, to, replace, as_json)


@build_app.command("ao3")
@reports_errors
def build_ao3_folder(
    sensitivity: Annotated[Path, typer.Option("--sensitivity", help="ao3_sensitivity_table.csv")],
    interactions: Annotated[Path, typer.Option("--interactions", help="ao3_interaction_table.csv")],
    to: Annotated[Path, _ToOption],
    minimum: Annotated[int, _MinimumOption] = 3,
    passes: Annotated[int, _PassesOption] = 0,
    replace: Annotated[bool, _ReplaceOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Build AO3: kudos on works, with 36 warnings; users get random pseudonyms.

    \b
    Example:
      ombud data build ao3 --sensitivity ao3_sensitivity_table.csv \\
        --interactions ao3_interaction_table.csv --to ao3
    """
    from ombud.data.sources._build import Filter
    from ombud.data.sources.ao3 import build_ao3

    keep = Filter(minimum, passes or None)
    data = build_ao3(sensitivity, interactions, keep=keep, scratch=_scratch(to, replace))
    _write(data, to, replace, as_json)


def _scratch(to: Path, replace: bool) -> Path:
    """Put temporary files beside the target, where there is room; refuse an existing target now."""
    if to.exists() and not replace:
        raise DataError(str(to), ["it exists; choose another folder, or give --replace"])
    to.parent.mkdir(parents=True, exist_ok=True)
    return to.parent
