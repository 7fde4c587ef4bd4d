"""A whole audit on a simulated world, in files as a user would have them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.audits import Audit, Plan
from ombud.cli.audits import show_result
from ombud.cli.console import JsonOption, console, progress_bar, speaks_plainly
from ombud.data.store import write_text

__all__ = ["demo", "write_demo"]

_LENGTH = 10


def write_demo(folder: Path, seed: int) -> Path:
    """Write the files of the demo and return the path of its plan."""
    from ombud.worlds import demo_world

    files = demo_world(seed=seed).write(folder, _LENGTH)
    paths = {name: str(path.relative_to(folder)) for name, path in files.items()}
    plan = Plan.from_dict(
        {
            "title": "Do these film recommenders show more of what people may want to avoid?",
            "seed": seed,
            "data": {name: paths[name] for name in ("interactions", "labels", "users")},
            "systems": {
                name.removeprefix("recommendations/"): {"type": "recorded", "path": path}
                for name, path in paths.items()
                if name.startswith("recommendations/")
            },
            "metrics": [{"name": "share-gap", "k": _LENGTH}],
        }
    )
    write_text(folder / "plan.toml", plan.to_toml())
    return folder / "plan.toml"


@speaks_plainly
def demo(
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where to write the demo's files.")
    ] = Path("ombud-demo"),
    seed: Annotated[int, typer.Option(help="The seed of the simulated world.")] = 7,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Audit two simulated recommenders, one of which shows too much of one label.

    Needs no network and no data: a world with known truth is simulated, written as Parquet
    files, and audited with a plan that you can change and run again.

    \b
    Examples:
      ombud demo
      ombud run ombud-demo/plan.toml
    """
    plan = write_demo(folder, seed)
    if not as_json:
        console.print(f"wrote data and plan to {folder}", markup=False, highlight=False)
    target = folder / "result"
    with progress_bar() as progress:
        result = Audit.from_plan(Plan.load(plan)).run(target, progress)
    show_result(result, as_json)
