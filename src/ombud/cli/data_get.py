"""Fetch published data sets, and ask Does the Dog Die."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.console import JsonOption, print_json, progress_bar, reports_errors, say
from ombud.errors import DataError


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
    from ombud.data.downloads import download_names, get_download
    from ombud.http.download import fetch

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
