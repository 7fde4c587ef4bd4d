"""The app in the browser, and annotation projects."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud.cli.console import JsonOption, console, print_json, reports_errors, say
from ombud.errors import PlanError, require

if TYPE_CHECKING:
    from ombud.app.project import Project
    from ombud.stats.estimate import Estimate


annotation = typer.Typer(
    help="Annotation projects: texts in, people invited, ratings and agreement out.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_ProjectArgument = typer.Argument(help="The project's folder.", metavar="PROJECT")
_EVERYWHERE = {"0.0.0.0", "::"}


def _need_app() -> None:
    for module in ("starlette", "uvicorn", "markdown_it"):
        require(module, "app")


@reports_errors
def serve_app(
    folder: Annotated[
        Path,
        typer.Argument(help="An annotation project, or a folder of results.", metavar="FOLDER"),
    ] = Path("."),
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            help="After backup: PROJECT FILE. After restore: FILE PROJECT.", metavar="[PATHS]"
        ),
    ] = None,
    results: Annotated[
        Path | None, typer.Option(help="A folder of results to show beside a project.")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0 takes any that is free.")] = 8765,
    name: Annotated[
        list[str] | None,
        typer.Option(help="A name under which browsers reach it, such as ombud.example.org."),
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers reach it over HTTPS, through a proxy.")
    ] = False,
    lead: Annotated[str, typer.Option(help="Your name.")] = "lead",
    show: Annotated[bool, typer.Option("--open", help="Open the browser.")] = False,
) -> None:
    """Rate texts, follow a project, and read reports in the browser.

    Prints a link that signs you in as the lead; raters and reviewers are invited from there. It
    listens on this machine alone unless told otherwise, and asks nothing of the network.

    \b
    Examples:
      ombud app project
      ombud app results/
      ombud app project --results results/ --open
      ombud app backup project monday.sqlite     (also while people rate)
      ombud app restore monday.sqlite project-2  (a folder without a project)
    """
    _need_app()
    if more:
        return _copy(str(folder), more)
    from ombud.app.web.server import create_app, open_site, open_socket, serve

    names = tuple(name or ())
    if host in _EVERYWHERE and not names:
        raise PlanError(f"listening on {host} needs the name that browsers use: give it by --name")
    site = open_site(folder, results=results, https=https)
    try:
        listening = open_socket(host, port)
        token = site.people.invite(lead, "lead", hours=12)
        bound = listening.getsockname()[1]
        shown = names[0] if names else (f"[{host}]" if ":" in host else host)
        address = f"https://{shown}" if https else f"http://{shown}:{bound}"
        link = f"{address}/invite/{token}"
        if site.project is not None:
            site.project.set_address(address)
        say(f"Open this link, and keep it to yourself (12 hours):\n\n  {link}\n")
        say("Stop with Ctrl-C; everything confirmed is stored.")
        if show:
            webbrowser.open(link)
        serve(create_app(site, ("127.0.0.1", "localhost", "::1", host, *names)), listening)
    finally:
        if site.project is not None:
            site.project.set_address("")
        site.close()


def _copy(action: str, paths: list[Path]) -> None:
    """Back a project up, or make one of a backup."""
    from ombud.app.project import Project

    if action not in {"backup", "restore"} or len(paths) != 2:
        raise PlanError(
            "ombud app takes one folder; or: ombud app backup PROJECT FILE; or: "
            "ombud app restore FILE PROJECT"
        )
    source, target = paths
    if action == "backup":
        with Project(source) as opened:
            say(f"wrote {opened.backup(target)}")
        return
    Project.restore(source, target).close()
    say(
        f"made a project in {target}; its sessions and invitations ended, so invite people again: "
        f"ombud annotation invite {target} NAME"
    )


def _open(folder: Path) -> Project:
    from ombud.app.project import Project

    return Project(folder)


@annotation.command("new")
@reports_errors
def new(
    project: Annotated[Path, _ProjectArgument],
    title: Annotated[str, typer.Option(help="What people see at the top.")] = "Delicate text",
    raters: Annotated[int, typer.Option(help="Raters for each text.")] = 3,
    topics: Annotated[bool, typer.Option("--topics", help="Ask for topics.")] = False,
    target: Annotated[bool, typer.Option("--target", help="Ask whom a text is about.")] = False,
    mask: Annotated[
        str, typer.Option(help="What is covered until shown: terms, text or nothing.")
    ] = "terms",
    hours: Annotated[
        float | None, typer.Option(help="Hours a day that a rater may spend with texts.")
    ] = None,
    repeats: Annotated[float, typer.Option(help="Share of texts shown twice.")] = 0.05,
    seed: Annotated[int, typer.Option(help="Of the order of texts and of all samples.")] = 0,
    taxonomy: Annotated[
        str, typer.Option(help="Topics: a taxonomy's name, or a file.")
    ] = "delicate@1",
    support: Annotated[
        list[str] | None, typer.Option(help="Where raters find help: 'name|address'. Repeatable.")
    ] = None,
    guidelines: Annotated[
        Path | None, typer.Option(help="Guidelines of your own, a Markdown file.")
    ] = None,
    version: Annotated[
        str, typer.Option(help="The version of your own guidelines, such as mine@1.")
    ] = "",
) -> None:
    """Make a project in a folder.

    \b
    Example:
      ombud annotation new project --title "Forum posts" --topics --support "Helpline|116 123"
    """
    from pydantic import ValidationError

    from ombud.app.project import Project
    from ombud.app.settings import ProjectSettings, Support, Topic
    from ombud.files import read_utf8
    from ombud.taxonomy import load_taxonomy
    from ombud.taxonomy.model import read_taxonomy

    found = read_taxonomy(taxonomy) if Path(taxonomy).suffix == ".toml" else load_taxonomy(taxonomy)
    given: tuple[str, str] | None = None
    if (guidelines is None) != (not version):
        raise PlanError("guidelines of your own need both --guidelines and --version")
    if guidelines is not None:
        given = (version, read_utf8(guidelines))
    try:
        settings = ProjectSettings(
            title=title,
            raters_per_text=raters,
            ask_topics=topics,
            ask_target=target,
            mask=mask,  # type: ignore[arg-type]  # checked by the settings
            hours_per_day=hours,
            repeat_share=repeats,
            seed=seed,
            topics=tuple(
                Topic(id=label.id, title=label.title, description=label.description)
                for label in found.labels
            ),
            support=tuple(
                Support(name=a.strip(), address=b.strip())
                for a, _, b in (one.partition("|") for one in support or ())
            ),
        )
    except ValidationError as error:
        faults = "; ".join(f"{e['loc'][0]}: {e['msg']}" for e in error.errors())
        raise PlanError(f"the project's settings: {faults}") from None
    Project.create(project, settings, guidelines=given).close()
    say(f"made a project in {project}; add texts with: ombud annotation add {project} texts.csv")


@annotation.command("add")
@reports_errors
def add(
    project: Annotated[Path, _ProjectArgument],
    texts: Annotated[Path, typer.Argument(help="Parquet, CSV or JSONL with text, id, topics.")],
    pilot: Annotated[bool, typer.Option("--pilot", help="For the pilot round.")] = False,
) -> None:
    """Add texts to the main round, or to the pilot; all of them, or none.

    \b
    Example:
      ombud annotation add project candidates.parquet
    """
    with _open(project) as opened:
        n = opened.add_texts(texts, round_="pilot" if pilot else "main")
    say(f"added {n:,} texts to the {'pilot' if pilot else 'main'} round")


@annotation.command("open")
@reports_errors
def open_(
    project: Annotated[Path, _ProjectArgument],
    round_: Annotated[str, typer.Argument(help="pilot, main or closed.", metavar="ROUND")],
) -> None:
    """Open a round, or close both."""
    from ombud.app.judging import open_round

    with _open(project) as opened:
        opened.store.write(lambda db: open_round(db, round_))
    say(f"open round: {round_}")


@annotation.command("invite")
@reports_errors
def invite(
    project: Annotated[Path, _ProjectArgument],
    name: Annotated[str, typer.Argument(help="Whom you invite.")],
    role: Annotated[str, typer.Option(help="rater, reviewer or lead.")] = "rater",
    days: Annotated[float, typer.Option(help="How long the link works.")] = 14,
    address: Annotated[
        str, typer.Option(help="Where the app is reached; default, where it runs now.")
    ] = "",
) -> None:
    """Print a link for one person; it is shown once, and earlier links of theirs end.

    \b
    Example:
      ombud annotation invite project Anna --role reviewer
    """
    with _open(project) as opened:
        token = opened.invite(name, role, hours=24 * days)  # type: ignore[arg-type]  # checked there
        running = opened.address()
    if not (address or running):
        address = "http://127.0.0.1:8765"
        say(f"The app is not running; start it with: ombud app {project}")
    address = address or running
    say(f"{address.rstrip('/')}/invite/{token}")


@annotation.command("export")
@reports_errors
def export(
    project: Annotated[Path, _ProjectArgument],
    path: Annotated[
        Path,
        typer.Argument(
            help="The file. Its name chooses what is written where it is one of ratings.parquet, "
            "ratings.csv, labels.parquet, labels.csv, label-studio-config.xml, "
            "label-studio-tasks.json and label-studio-export.json."
        ),
    ],
    what: Annotated[
        str,
        typer.Option(
            "--what",
            help="What to write to a file of any name: ratings, labels, label-studio-config, "
            "label-studio-tasks or label-studio-export.",
        ),
    ] = "",
) -> None:
    """Write ratings, labels, or files for Label Studio.

    \b
    Examples:
      ombud annotation export project ratings.parquet
      ombud annotation export project out/label-studio-tasks.json
      ombud annotation export project pilot-2026.csv --what labels
    """
    from ombud.app.exchange import EXPORTS
    from ombud.app.exchange import export as write

    name = path.name
    if what:
        matching = [known for known in EXPORTS if known.partition(".")[0] == what]
        ending = [known for known in matching if Path(known).suffix == path.suffix]
        if not matching or not ending:
            forms = " or ".join(Path(known).suffix for known in matching) or "one of the help"
            fault = f"--what {what} with the file {path.name}"
            raise PlanError(f"{fault}: give --what from the help, and a file that ends in {forms}")
        name = ending[0]
    elif name not in EXPORTS:
        raise PlanError(f"the name {name} does not say what to write; add --what, such as labels")
    with _open(project) as opened:
        say(f"wrote {write(opened, name, path)}")


@annotation.command("import")
@reports_errors
def import_(
    project: Annotated[Path, _ProjectArgument],
    path: Annotated[
        Path, typer.Argument(help="A JSON export of Label Studio, or a table of ratings.")
    ],
    rater: Annotated[
        list[str] | None,
        typer.Option(help="A rater of the export and their name here: '10=Anna'. Repeatable."),
    ] = None,
    new_raters: Annotated[
        bool, typer.Option("--new-raters", help="Add raters that the project does not know.")
    ] = False,
) -> None:
    """Read ratings made elsewhere; all of them, or none.

    \b
    Examples:
      ombud annotation import project export.json --rater 10=Anna --rater 11=Ben
      ombud annotation import project ratings.parquet --new-raters
    """
    from ombud.app.exchange import add_ratings, read_ratings
    from ombud.app.label_studio import read_export

    pairs = [one.partition("=") for one in rater or ()]
    if any(not (key and name) for key, _, name in pairs):
        raise PlanError("--rater takes what the export calls them and their name: 10=Anna")
    names = {key: name for key, _, name in pairs}
    with _open(project) as opened:
        if path.suffix == ".json":
            found = read_export(path, opened.settings, raters=names)
        else:
            if names:
                raise PlanError("--rater is for exports of Label Studio; a table has names")
            found = read_ratings(path, opened.settings)
        n = add_ratings(opened, found, new_raters=new_raters, source=path.name)
    say(f"added {n:,} ratings")


@annotation.command("agreement")
@reports_errors
def agreement(
    project: Annotated[Path, _ProjectArgument],
    replicates: Annotated[int, typer.Option(help="Of the bootstrap.")] = 2000,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Print the alphas of the main round, overall, by topic and by rater.

    \b
    Example:
      ombud annotation agreement project --json
    """
    from rich.table import Table

    from ombud.app.agreement import measure_agreement

    with _open(project) as opened:
        settings = opened.settings
        found = opened.store.read(lambda db: measure_agreement(db, settings, replicates=replicates))
    by_rater = [e for one in found.raters for e in one.against_others]
    by_topic = [e for some in found.by_topic.values() for e in some]
    if as_json:
        parts = {"overall": found.overall, "by_topic": by_topic, "by_rater": by_rater}
        shown: dict[str, Any] = {k: [e.to_dict() for e in some] for k, some in parts.items()}
        shown["repeats"] = [e.to_dict() for e in found.repeats]
        print_json(shown | {"texts": found.texts, "ratings": found.ratings})
        return
    table = Table("", "alpha", "value", "95% CI", "texts", title_justify="left")
    rows = [("all", e) for e in found.overall]
    rows += [(e.group, e) for e in (*by_topic, *by_rater)]
    for group, e in rows:
        table.add_row(group, e.metric, *_cells(e), str(e.n))
    console.print(table)
    say(f"{found.ratings:,} ratings of {found.texts:,} texts")


def _cells(e: Estimate) -> tuple[str, str]:
    if e.value is None:
        return "undefined", e.reason
    return f"{e.value:.3f}", f"{e.interval[0]:.3f} to {e.interval[1]:.3f}" if e.interval else ""
