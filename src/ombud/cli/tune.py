"""Search for a model's parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.audits import load_plan
from ombud.cli.console import JsonOption, console, print_json, progress_bar, reports_errors, say
from ombud.errors import PlanError

__all__ = ["tune"]


@reports_errors
def tune(
    plan: Annotated[Path, typer.Argument(help="A plan; its data is used.", metavar="PLAN")],
    system: Annotated[str, typer.Option(help="The system of the plan to tune.")],
    folder: Annotated[
        Path,
        typer.Option("--folder", "-o", help="Where trials are kept; it goes on from there."),
    ],
    metric: Annotated[str, typer.Option(help="rmse, mrr, recall@50 and the like.")] = "rmse",
    trials: Annotated[int, typer.Option(help="At most this many trials.")] = 100,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no trial after this much time in trials.")
    ] = None,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Search for the best parameters of a model; keep the plan's final test data out of it.

    Only the interactions that the plan trains on are used. The search stops when the best five
    trials no longer improve by 1%, or when the budget is spent. The folder then holds plan.toml,
    the plan with the parameters that were found, ready for ombud run.

    \b
    Example:
      ombud tune plan.toml --system svd --metric rmse --trials 50 --folder tuned
    """
    from rich.table import Table

    from ombud.audits.load import load_data
    from ombud.audits.presets import complete
    from ombud.files import write_text
    from ombud.tuning.tuning import tune as search

    asked = load_plan(plan)
    systems = asked.systems if system in asked.systems else complete(asked).systems
    if system not in systems:
        known = ", ".join(systems) or "none"
        raise PlanError(f"the plan has no system {system!r}; it has: {known}")
    kept = {k: v for k, v in systems[system].items() if k in {"type", "name"}}
    # Those that a preset chose may be searched; those that the plan states stand.
    stated = asked.systems.get(system, {"seed": asked.seed})
    fixed = {k: v for k, v in systems[system].items() if k in stated and k not in kept}
    data = load_data(asked)
    if data.interactions is None:
        raise PlanError("tuning needs interactions; the plan's data has none")
    with progress_bar() as progress:
        result = search(
            systems[system]["type"],
            data.interactions,
            metric=metric,
            fixed=fixed,
            trials=trials,
            seconds=seconds,
            folder=folder,
            seed=asked.seed,
            progress=progress,
        )
    changed = asked.model_copy(update={"systems": {**systems, system: {**kept, **result.best}}})
    written = folder / "plan.toml"
    write_text(written, changed.portable(folder).to_toml())
    if as_json:
        told = {"best": result.best, "value": result.value, "stopped": result.stopped_because}
        print_json({**told, "plan": str(written)})
        return
    table = Table("parameter", "best", title=f"{metric} = {result.value:.4g}", title_justify="left")
    for name, value in result.best.items():
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    console.print(table)
    say(f"{len(result.trials)} trials; stopped: {result.stopped_because}")
    say(f"plan: {written}")
