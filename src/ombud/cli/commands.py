"""All commands of ``ombud``."""

from __future__ import annotations

from typing import Annotated

import typer

import ombud
from ombud.cli import annotation, audits, data, demo, doctor, link, text, tune

__all__ = ["app"]

app = typer.Typer(
    name="ombud",
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


for _command in (
    demo.demo,
    audits.run,
    audits.report,
    audits.rescore,
    audits.compare,
    audits.check,
    tune.tune,
    doctor.plugins,
    doctor.doctor,
):
    app.command()(_command)
app.command("app")(annotation.serve_app)
app.add_typer(data.app, name="data")
app.add_typer(link.app, name="link")
app.add_typer(annotation.annotation, name="annotation")
app.add_typer(text.app, name="text")
