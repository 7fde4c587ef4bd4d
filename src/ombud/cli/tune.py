"""Search for a model's parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.audits import load_plan
from ombud.cli.console import JsonOption, console, print_json, progress_bar, reports_errors, say
from ombud.errors import PlanError

# With fewer users than this a search would follow chance.
_FEWEST = 50


@reports_errors
def tune(
    plan: Annotated[Path, typer.Argument(help="A plan; its data is used.", metavar="PLAN")],
    system: Annotated[str, typer.Option(help="The system of the plan to tune.")],
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where trials are kept; a second run resumes.")
    ],
    metric: Annotated[str, typer.Option(help="rmse, mrr, recall@50 and the like.")] = "rmse",
    trials: Annotated[int, typer.Option(help="At most this many trials.")] = 100,
    seconds: Annotated[
        float | None, typer.Option(help="Begin no trial after this much time in trials.")
    ] = None,
    users: Annotated[
        int | None, typer.Option(help="Measure on a random sample of this many users.")
    ] = None,
    holdout: Annotated[
        str, typer.Option(help="How to split: per-user, leave-one-out and the like.")
    ] = "per-user",
    space: Annotated[
        str, typer.Option(help="default, or published: the ranges of the study of authors.")
    ] = "default",
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Search for the best parameters of a model; keep the plan's final test data out of it.

    Only the interactions that the plan trains on are used, and where it audits a sample of users,
    as preset authors does, the search measures on others. The search stops when the best five
    trials no longer improve by 1%, or when the budget is spent. The folder then holds plan.toml,
    the plan with the parameters that were found, ready for ombud run.

    \b
    Examples:
      ombud tune plan.toml --system svd --metric rmse --trials 50 --folder tuned
      ombud tune authors.toml --system ALS --metric mrr --users 5000 \\
        --holdout leave-one-out --space published --folder tuned/als
    """
    from rich.table import Table

    from ombud.audits.load import load_data
    from ombud.audits.presets import complete
    from ombud.files import write_text
    from ombud.tuning.spaces import PUBLISHED
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
    model = systems[system]["type"]
    if space not in {"default", "published"}:
        raise PlanError(f"--space {space}: default or published was expected")
    if space == "published" and model not in PUBLISHED:
        raise PlanError(f"--space published has {', '.join(PUBLISHED)}, not {model}")
    data = load_data(asked)
    if data.interactions is None:
        raise PlanError("tuning needs interactions; the plan's data has none")
    apart = data.audited
    if apart is not None and data.interactions.n_users - len(apart) < _FEWEST:
        say(f"fewer than {_FEWEST} users are not audited, so the search measures on the same users")
        apart = None
    with progress_bar() as progress:
        result = search(
            model,
            data.interactions,
            metric=metric,
            space=PUBLISHED[model] if space == "published" else None,
            fixed=fixed,
            trials=trials,
            seconds=seconds,
            holdout={"method": holdout},
            users=users,
            apart=apart,
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
