"""Two whole audits on a simulated world, in files as a user would have them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud.cli.audits import save_report, show_result, told
from ombud.cli.console import (
    JsonOption,
    QuietOption,
    VerboseOption,
    print_json,
    progress_bar,
    reports_errors,
    say,
)
from ombud.errors import PlanError

if TYPE_CHECKING:
    from ombud.audits import Plan
    from ombud.worlds import World


_LENGTH = 10
_ABOUT = {"auditor": "ombud demo", "data": "simulated data", "period": "none, simulated"}


def write_demo(folder: Path, seed: int) -> tuple[Path, Path]:
    """Write the files of the demo; return the plans for its recommenders and its moderators.

    Raises
    ------
    PlanError
        If the folder holds anything but this demo; nothing is written then.
    """
    from ombud.files import write_text
    from ombud.worlds import demo_world

    world = demo_world(seed=seed)
    plans = {
        folder / "recommenders.toml": _of_recommenders(world).to_toml(),
        folder / "moderators.toml": _of_moderators(world).to_toml(),
    }
    for path, text in plans.items():
        _check_room(folder, path, text)
    # The plans come first: they mark the folder as this demo's, should the rest be stopped.
    for path, text in plans.items():
        write_text(path, text)
    world.write(folder, _LENGTH)
    first, second = plans
    return first, second


def _of_recommenders(world: World) -> Plan:
    from ombud.audits import Plan

    return Plan.from_dict(
        {
            "title": "Do these film recommenders show more of what people may want to avoid?",
            "about": _ABOUT,
            "seed": world.seed,
            "data": {name: f"{name}.parquet" for name in ("interactions", "labels", "users")},
            "systems": {
                system.name: {"type": "recorded", "path": f"recommendations/{system.name}.parquet"}
                for system in world.recommenders()
            },
            "metrics": [{"name": "share-gap", "k": _LENGTH}],
            "display": {"systems": _lettered("System", [s.name for s in world.recommenders()])},
        }
    )


def _of_moderators(world: World) -> Plan:
    from ombud.audits import Plan

    return Plan.from_dict(
        {
            "title": "Do these moderators flag acceptable texts about some people more?",
            "about": _ABOUT,
            "seed": world.seed,
            "data": {name: f"{name}.parquet" for name in ("texts", "text_groups")},
            "systems": {
                system.name: {"type": "recorded", "path": f"decisions/{system.name}.parquet"}
                for system in world.moderators()
            },
            "metrics": [{"name": "suppression"}, {"name": "false-positive-rate"}],
            "display": {"systems": _lettered("Moderator", [s.name for s in world.moderators()])},
        }
    )


def _lettered(word: str, names: list[str]) -> dict[str, str]:
    """Return display names that do not give away what a simulated system does."""
    return {name: f"{word} {chr(65 + place)}" for place, name in enumerate(names)}


def _check_room(folder: Path, path: Path, text: str) -> None:
    if path.is_file():
        if path.read_bytes() == text.encode():
            return
        result = "the demo of another seed, or a plan that was changed"
    elif folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        result = "files that are not the demo's" if folder.is_dir() else "no demo: it is a file"
    else:
        return
    raise PlanError(
        f"{folder} holds {result}; nothing was written. "
        "Choose another folder with --folder, or delete this one."
    )


@reports_errors
def demo(
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where to write the demo's files.")
    ] = Path("ombud-demo"),
    seed: Annotated[int, typer.Option(help="The seed of the simulated world.")] = 7,
    quiet: Annotated[bool, QuietOption] = False,
    verbose: Annotated[bool, VerboseOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Audit simulated recommenders and moderators, some of which treat people unlike others.

    Needs no network and no data: a world with known truth is simulated, written as Parquet
    files, and audited with two plans that you can change and run again. One recommender shows
    everyone too much violence, one shows the young too many animal deaths; one moderator flags
    acceptable texts about islanders too often. The others have no effect.

    \b
    Examples:
      ombud demo
      ombud run ombud-demo/moderators.toml
    """
    from ombud.audits import Audit, Plan
    from ombud.files import write_text
    from ombud.report.card import SystemCard

    plans = write_demo(folder, seed)
    if not as_json and not quiet:
        say(f"wrote data and two plans to {folder}")
    said: dict[str, Any] = {}
    results = []
    for plan in plans:
        with progress_bar(quiet=quiet) as progress:
            result = Audit.from_plan(Plan.load(plan)).run(folder / plan.stem, progress)
        results.append(result)
        if as_json:
            said[plan.stem] = told(result, save_report(result))
            continue
        if not quiet:
            say("")
        show_result(result, as_json, quiet=quiet, verbose=verbose)
    page = folder / "index.html"
    card = SystemCard.of(results, title="A simulated platform, audited").linked(folder)
    write_text(page, card.html())
    if as_json:
        print_json(said | {"card": str(page)})
    else:
        say(f"\ncard: {page}")
