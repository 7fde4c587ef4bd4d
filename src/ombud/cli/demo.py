"""A whole audit on a simulated world, in files as a user would have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.audits import show_result
from ombud.cli.console import (
    JsonOption,
    QuietOption,
    VerboseOption,
    progress_bar,
    reports_errors,
    say,
)
from ombud.errors import PlanError

__all__ = ["demo", "write_demo"]

_LENGTH = 10


def write_demo(folder: Path, seed: int) -> Path:
    """Write the files of the demo and return the path of its plan.

    Raises
    ------
    PlanError
        If the folder holds anything but this demo; nothing is written then.
    """
    from ombud.audits import Plan
    from ombud.files import write_text
    from ombud.worlds import demo_world

    world = demo_world(seed=seed)
    plan = Plan.from_dict(
        {
            "title": "Do these film recommenders show more of what people may want to avoid?",
            "seed": seed,
            "data": {name: f"{name}.parquet" for name in ("interactions", "labels", "users")},
            "systems": {
                system.name: {"type": "recorded", "path": f"recommendations/{system.name}.parquet"}
                for system in world.recommenders()
            },
            "metrics": [{"name": "share-gap", "k": _LENGTH}],
        }
    )
    path, text = folder / "plan.toml", plan.to_toml()
    _check_room(folder, path, text)
    # The plan comes first: it marks the folder as this demo's, should the rest be stopped.
    write_text(path, text)
    world.write(folder, _LENGTH)
    return path


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
    """Audit three simulated recommenders; two of them show too much of some label.

    Needs no network and no data: a world with known truth is simulated, written as Parquet
    files, and audited with a plan that you can change and run again.

    \b
    Examples:
      ombud demo
      ombud run ombud-demo/plan.toml
    """
    from ombud.audits import Audit, Plan

    plan = write_demo(folder, seed)
    if not as_json and not quiet:
        say(f"wrote data and plan to {folder}")
    target = folder / "result"
    with progress_bar(quiet=quiet) as progress:
        result = Audit.from_plan(Plan.load(plan)).run(target, progress)
    show_result(result, as_json, quiet=quiet, verbose=verbose)
