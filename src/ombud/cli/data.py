"""Data sets: which there are, what they hold, and whether a file is in the standard form."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud import registry
from ombud.cli.console import JsonOption, console, print_json, progress_bar, reports_errors, say
from ombud.errors import DataError, PlanError
from ombud.report.display import visible

if TYPE_CHECKING:
    from ombud.data.card import Card
    from ombud.data.dataset import Dataset
    from ombud.data.sources._build import Filter


app = typer.Typer(
    help="Fetch, build, list and describe data sets, and check files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


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
        return Decisions.from_frame(path)
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


# Fetch published data sets, and ask Does the Dog Die.


@reports_errors
def get(
    name: Annotated[str, typer.Argument(help="What to fetch; 'ombud data get list' names all.")],
    to: Annotated[Path, typer.Option("--to", help="The folder to fetch into.")] = Path("data"),
    accept_licence: Annotated[
        bool, typer.Option("--accept-licence", help="You have read the terms and accept them.")
    ] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Fetch a published data set: checked, and going on where it was stopped.

    \b
    Examples:
      ombud data get list
      ombud data get movielens-25m --to downloads --accept-licence
    """
    from ombud.http.download import download_names, fetch, get_download

    if name == "list":
        known = [get_download(one) for one in download_names()]
        if as_json:
            print_json({one.name: asdict(one) for one in known})
        for one in known if not as_json else []:
            say(f"{one.name}: {one.title}")
        return
    wanted = get_download(name)
    if not accept_licence:
        raise DataError(
            name,
            [
                f"licence: {wanted.licence}",
                f"read it at {wanted.terms}, and give --accept-licence if you accept it",
            ],
        )
    with progress_bar() as progress:
        fetched = [fetch(remote, to, progress=progress) for remote in wanted.files]
    if as_json:
        print_json([asdict(one) for one in fetched])
        return
    for file in fetched:
        say(f"{file.path}: {file.size:,} bytes")
        say(f"  sha256 {file.sha256}")
        say(f"  checked: {file.check}")
    say(f"next: {wanted.use}")


@reports_errors
def ask_ddd(
    movielens: Annotated[
        Path, typer.Option("--movielens", help="A MovieLens folder or archive with links.csv.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The file of replies, .sqlite.")],
    per_second: Annotated[float, typer.Option(help="Requests a second at most.")] = 1.0,
    first: Annotated[int | None, typer.Option(help="Only the first so many movies.")] = None,
    address: Annotated[str | None, typer.Option(help="Another address of the service.")] = None,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Ask Does the Dog Die for the votes on each movie; stopped, it goes on where it was.

    The key is read from the environment variable OMBUD_DDD_KEY. Ask the site for permission
    before asking about many movies.

    \b
    Example:
      ombud data ask-ddd --movielens ml-latest-small --to ddd.sqlite --first 100
    """
    from ombud.data.sources.ddd_api import ADDRESS, collect
    from ombud.data.sources.movielens import locate, read_links

    with locate(movielens) as files:
        links = read_links(files)
    with progress_bar() as progress:
        done = collect(
            links.head(first) if first is not None else links,
            to,
            address=address or ADDRESS,
            per_second=per_second,
            progress=progress,
        )
    if as_json:
        print_json(asdict(done))
        return
    text = f"{done.found:,} of {done.movies:,} movies found, {done.absent:,} absent there, "
    text += f"{done.unlinked:,} without an IMDb id; {done.requests:,} requests made"
    say(text)


# Build data sets from the files in which they were published.


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
_ItemsOption = typer.Option(
    "--minimum-items", min=0, help="The minimum for items, where it is another than for users."
)
_PublishedOption = typer.Option(
    "--published", help="As the published code does: 3 passes, and for votes more than 75%."
)
_ReplaceOption = typer.Option("--replace", help="Put it in the place of an existing folder.")


def _write(data: Dataset, to: Path, replace: bool, as_json: bool) -> None:
    from ombud.data.sources._build import write_dataset

    _tell(data.card, write_dataset(data, to, replace=replace), as_json)


def _tell(card: Card, folder: Path, as_json: bool) -> None:
    if as_json:
        print_json(card.model_dump() | {"folder": str(folder)})
        return
    say(visible(card.title))
    for name, value in card.facts.items():
        shown = f"{value:,}" if isinstance(value, int) else value
        shown = f"{value:,.6g}" if isinstance(value, float) else shown
        say(visible(f"  {name}: {shown}"))
    for text in card.dropped:
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
        bool, typer.Option("--strict", help="More than the threshold, as in the published code.")
    ] = False,
    minimum: Annotated[int, _MinimumOption] = 3,
    minimum_items: Annotated[int | None, _ItemsOption] = None,
    passes: Annotated[int, _PassesOption] = 0,
    published: Annotated[bool, _PublishedOption] = False,
    replace: Annotated[bool, _ReplaceOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Build ML-DDD: MovieLens ratings joined to the votes of Does the Dog Die.

    \b
    Example:
      ombud data build ml-ddd --movielens ml-25m.zip --votes ddd_dict.pkl --to ml-ddd
    """
    from ombud.data.sources.ml_ddd import build_ml_ddd

    if published and threshold != 0.75:
        raise PlanError("--published has a threshold of 0.75; give one or the other")
    data = build_ml_ddd(
        movielens,
        votes,
        threshold=threshold,
        strict=strict or published,
        keep=_filter(minimum, minimum_items, passes, published),
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
    minimum_items: Annotated[int | None, _ItemsOption] = None,
    passes: Annotated[int, _PassesOption] = 0,
    published: Annotated[bool, _PublishedOption] = False,
    replace: Annotated[bool, _ReplaceOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Build AO3: kudos on works, with 36 warnings; users get random pseudonyms.

    \b
    Example:
      ombud data build ao3 --sensitivity ao3_sensitivity_table.csv \\
        --interactions ao3_interaction_table.csv --to ao3
    """
    from ombud.data.sources.ao3 import build_ao3

    keep = _filter(minimum, minimum_items, passes, published)
    data = build_ao3(sensitivity, interactions, keep=keep, scratch=_scratch(to, replace))
    _write(data, to, replace, as_json)


_TmdbOption = typer.Option("--tmdb", help="Replies of TMDB's API: a folder or file of JSON.")
_WikipediaOption = typer.Option(
    "--wikipedia", help="A dump or export (.xml, .bz2, .gz), or JSON lines with title and text."
)
_IdsOption = typer.Option("--ids", help="TMDB's daily file of ids, for their popularity.")
_TopOption = typer.Option("--top", min=0, help="Take the most popular titles only; 0 for all.")


@build_app.command("movie-plots")
@reports_errors
def build_movie_plots_folder(
    tmdb: Annotated[Path, _TmdbOption],
    wikipedia: Annotated[Path, _WikipediaOption],
    to: Annotated[Path, _ToOption],
    ids: Annotated[Path | None, _IdsOption] = None,
    top: Annotated[int, _TopOption] = 0,
    replace: Annotated[bool, _ReplaceOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Build a table of film plots with US age ratings, which the source synopses reads.

    \b
    Example:
      ombud data build movie-plots --tmdb movies.jsonl.gz --wikipedia films.xml.bz2 \\
        --to movie-plots
    """
    from ombud.data.sources.stories import build_movie_plots, write_built

    _scratch(to, replace)
    with progress_bar() as progress:
        table, card = build_movie_plots(tmdb, wikipedia, ids=ids, top=top, progress=progress)
    _tell(card, write_built(table, card, to, replace=replace), as_json)


@build_app.command("tv-synopses")
@reports_errors
def build_tv_synopses_folder(
    tmdb: Annotated[Path, _TmdbOption],
    to: Annotated[Path, _ToOption],
    wikipedia: Annotated[Path | None, _WikipediaOption] = None,
    imdb: Annotated[
        Path | None,
        typer.Option("--imdb", help="A table with show, episode, synopsis, and perhaps rating."),
    ] = None,
    ids: Annotated[Path | None, _IdsOption] = None,
    top: Annotated[int, _TopOption] = 0,
    replace: Annotated[bool, _ReplaceOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Build a table of short, medium and long episode synopses with US age ratings.

    \b
    Example:
      ombud data build tv-synopses --tmdb series.jsonl.gz --wikipedia lists.xml.bz2 \\
        --imdb synopses.csv --to tv-synopses
    """
    from ombud.data.sources.stories import build_tv_synopses, write_built

    _scratch(to, replace)
    with progress_bar() as progress:
        table, card = build_tv_synopses(tmdb, wikipedia, imdb, ids=ids, top=top, progress=progress)
    _tell(card, write_built(table, card, to, replace=replace), as_json)


def _filter(minimum: int, items: int | None, passes: int, published: bool) -> Filter:
    from ombud.data.sources._build import Filter

    if published and passes not in {0, 3}:
        raise PlanError("--published makes 3 passes; give it or --passes")
    return Filter(minimum, 3 if published else passes or None, items)


def export_folder(
    folder: Annotated[Path, typer.Argument(help="A folder of ombud data build.", metavar="FOLDER")],
    to: Annotated[Path, typer.Option("--to", help="The folder for the two tables.")],
) -> None:
    """Write a built data set in the form its authors released: two wide CSV tables.

    \b
    Example:
      ombud data export ml-ddd --to released
    """
    from ombud.data.dataset import read_folder
    from ombud.data.sources._build import released_tables
    from ombud.files import write_atomically

    names = ("ml-ddd", "ao3")
    name = next((n for n in names if f'"name":"{n}"' in _card_of(folder)), names[0])
    data = read_folder(folder, name)
    for file, table in released_tables(data).items():
        write_atomically(to / file, table.write_csv)
        say(f"wrote {to / file}")


def _card_of(folder: Path) -> str:
    card = folder / "card.json"
    return "".join(card.read_text(encoding="utf-8").split()) if card.is_file() else ""


def _scratch(to: Path, replace: bool) -> Path:
    """Put temporary files beside the target, where there is room; refuse an existing target now."""
    if to.exists() and not replace:
        raise DataError(str(to), ["it exists; choose another folder, or give --replace"])
    to.parent.mkdir(parents=True, exist_ok=True)
    return to.parent


app.command()(get)
app.command("ask-ddd")(ask_ddd)
app.command("export")(reports_errors(export_folder))
app.add_typer(build_app, name="build")
