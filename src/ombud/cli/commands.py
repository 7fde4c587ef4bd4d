"""All commands of ``ombud``: a table of names, so that asking for help loads none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

import ombud


class CommandLine(NamedTuple):
    """Where a command is, and the line that ``ombud --help`` shows for it."""

    where: str
    """``module:attribute`` under ``ombud.cli``: a function, or a Typer with commands of its own."""
    help: str
    """The first line of its docstring, or the whole help of a Typer; a test compares them."""


COMMANDS = {
    "demo": CommandLine("demo:demo", "Audit a simulated platform on five questions."),
    "size": CommandLine(
        "size:size",
        "Say how many users or texts a plan needs for a wanted precision, by simulation.",
    ),
    "run": CommandLine(
        "audits:run", "Run the audit that a plan describes; a stopped run goes on where it was."
    ),
    "audit": CommandLine(
        "audit:audit",
        "Audit your files: recognize them, write a plan, run it, and print the result.",
    ),
    "init": CommandLine(
        "init:init",
        "Write a first plan and gate for your files, from their headers; nothing is overwritten.",
    ),
    "report": CommandLine(
        "audits:report", "Write the report of a result again: .html, .pdf, .md, .tex or .json."
    ),
    "card": CommandLine(
        "card:card", "Write one page for one system over all questions asked about it."
    ),
    "rescore": CommandLine(
        "audits:rescore",
        "Compute metrics again from stored outputs, without asking the systems again.",
    ),
    "compare": CommandLine(
        "watch:compare",
        "Show what changed from result A to result B, on the users or texts that both measured.",
    ),
    "migrate": CommandLine(
        "migrate:migrate",
        "Compare an old moderator with a new one: who is flagged more or less, and at which "
        "threshold.",
    ),
    "watch": CommandLine(
        "watch:watch", "Follow a series of results, and exit with 1 while an alarm stands."
    ),
    "check": CommandLine(
        "check:check", "Exit with 1 if a limit is broken: a gate for continuous integration."
    ),
    "pack": CommandLine(
        "pack:pack",
        "Write a result as one archive for an auditor: plan, card, numbers, methods, hashes.",
    ),
    "export": CommandLine(
        "export:export",
        "Write every estimate as one row of a plain table: Parquet, CSV or JSON lines.",
    ),
    "verify": CommandLine(
        "verify:verify", "Hash everything in a result again: is it still what the audit wrote?"
    ),
    "tune": CommandLine(
        "tune:tune",
        "Search for the best parameters of a model; keep the plan's final test data out of it.",
    ),
    "plugins": CommandLine("doctor:plugins", "List plugins and everything that is registered."),
    "describe": CommandLine(
        "describe:describe",
        "Show what a name in a plan stands for: every argument, and an example plan.",
    ),
    "doctor": CommandLine(
        "doctor:doctor",
        "Show versions and which extras are installed, and how to install the others.",
    ),
    "app": CommandLine(
        "annotation:serve_app", "Rate texts, follow a project, and read reports in the browser."
    ),
    "data": CommandLine("data:app", "Fetch, build, list and describe data sets, and check files."),
    "link": CommandLine(
        "link:app",
        "Link library records, author lists and ratings: who made the items, and how it is known.",
    ),
    "annotation": CommandLine(
        "annotation:annotation",
        "Annotation projects: texts in, people invited, ratings and agreement out.",
    ),
    "thresholds": CommandLine(
        "thresholds:thresholds",
        "Find the flagging threshold of each category in stored replies of OpenAI's moderation.",
    ),
    "text": CommandLine(
        "text:app",
        "Find delicate texts in a corpus, train detectors, score texts, and label items by them.",
    ),
}


class CommandGroup(TyperGroup):
    """A group that lists its commands from the table and imports the one that is called."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        # A name and a line suffice for the help, for completion and for suggestions.
        for name, line in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=line.help, rich_markup_mode=None)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the words name, imported now."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else self.load(name), rest

    def load(self, name: str) -> Any:
        """Import a command of the table."""
        module, _, attribute = COMMANDS[name].where.partition(":")
        try:
            result = getattr(import_module(f"ombud.cli.{module}"), attribute)
        except KeyboardInterrupt:  # typer would say "Aborted!" and leave with the gate's exit code
            raise typer.Exit(130) from None
        if isinstance(result, typer.Typer):
            group = typer.main.get_group(result)
            group.name = name
            return group
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(result)
        return typer.main.get_command(alone)


app = typer.Typer(
    name="ombud",
    cls=CommandGroup,
    help="Audit recommenders and content moderators: what people are shown, what they may say.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: ombud demo",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ombud {ombud.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    """Audit recommenders and content moderators: what people are shown, what they may say."""
