"""From an old moderator to a new one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tomli_w
import typer

from ombud.cli.audits import show_result
from ombud.cli.console import (
    JsonOption,
    QuietOption,
    VerboseOption,
    progress_bar,
    reports_errors,
    say,
    say_aside,
)
from ombud.errors import PlanError

if TYPE_CHECKING:
    from ombud.audits import Plan, Result

_MATCHES = {
    "flag-rate": "flag-rate",
    "false-positive-rate": "false-positive-rate",
    "recommended": "none",
}
_WIDEST = 0.05


@reports_errors
def migrate(
    old: Annotated[
        str, typer.Argument(help="The old moderator: a file of its outputs, or its name.")
    ],
    new: Annotated[
        str | None, typer.Argument(help="The new moderator; without it, --store is needed.")
    ] = None,
    texts: Annotated[
        str,
        typer.Option("--texts", help="The texts: a file, or SOURCE:PATH, as in hatecheck:x.csv."),
    ] = "",
    plan: Annotated[
        Path | None, typer.Option("--plan", help="A plan whose [systems] OLD and NEW name.")
    ] = None,
    match: Annotated[
        str,
        typer.Option(
            "--match",
            help="The new threshold: flag-rate, false-positive-rate (needs labels), recommended.",
        ),
    ] = "flag-rate",
    old_threshold: Annotated[
        float | None, typer.Option(help="From which score on the old moderator flags.")
    ] = None,
    new_threshold: Annotated[
        float | None, typer.Option(help="The maker's threshold, with --match recommended.")
    ] = None,
    share: Annotated[
        float, typer.Option(help="The share of texts that choose the threshold; others test it.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Fixes which texts choose.")] = 0,
    store: Annotated[
        Path | None,
        typer.Option(help="Only query OLD, and store its outputs in this file (.csv, .parquet)."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "--folder", "-o", help="Where to write everything.")
    ] = Path("migration"),
    quiet: Annotated[bool, QuietOption] = False,
    verbose: Annotated[bool, VerboseOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Compare an old moderator with a new one: who is flagged more or less, and at which threshold.

    Both are queried, or read from files of their outputs. The new threshold is chosen on one half
    of the texts and tested on the other. The folder gets the plan, the result with its report,
    the new moderator's outputs, and a plan and a gate for afterwards.

    \b
    Examples:
      ombud migrate perspective.csv other.csv --texts comments.csv --old-threshold 0.7
      ombud migrate perspective guard --plan plan.toml --texts comments.csv
      ombud migrate perspective --texts comments.csv --store perspective.parquet
    """
    from ombud.audits import Audit
    from ombud.audits.plan import Plan

    if match not in _MATCHES:
        raise PlanError(f"--match {match}: expected {', '.join(_MATCHES)}")
    if not texts:
        raise PlanError("--texts is needed: the texts that both moderators decide")
    if new is None and store is None:
        raise PlanError("name the new moderator, or a file with --store for the outputs of the old")
    if new is not None and store is not None:
        raise PlanError("--store takes one moderator; leave the new one out")
    if new_threshold is not None and match != "recommended":
        raise PlanError("--new-threshold is the maker's: it needs --match recommended")
    systems = Plan.load(plan).relative_to(plan.parent).systems if plan is not None else {}
    names = {"old": _name(old, systems), "new": _name(new or "", systems)}
    if names["old"] == names["new"]:
        names = {"old": f"old {names['old']}", "new": f"new {names['new']}"}
    content: dict[str, Any] = {"data": _data(texts), "systems": {}, "seed": seed}
    for which, given, limit in (("old", old, old_threshold), ("new", new, None)):
        if given is not None:
            content["systems"][names[which]] = _system(given, systems, limit)
    if store is not None:
        _store(Plan.from_dict(content), names["old"], store, quiet)
        return
    options: dict[str, Any] = {**names, "match": _MATCHES[match], "share": share}
    if new_threshold is not None:
        options["new_threshold"] = new_threshold
    whole = Plan.from_dict({"preset": "migration", "options": options, **content})
    output.mkdir(parents=True, exist_ok=True)
    path = output / "plan.toml"
    text = whole.to_toml()
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise PlanError(f"{path} is of another migration; choose another --folder")
    path.write_text(text, encoding="utf-8")
    with progress_bar(quiet=quiet) as progress:
        result = Audit.from_plan(whole).run(output / "migration.result", progress, notice=say_aside)
    show_result(result, as_json, quiet=quiet, verbose=verbose)
    _afterwards(whole, result, names["new"], output)
    if not (quiet or as_json):
        say(f"plan and gate for afterwards: {output / 'after.toml'}, {output / 'gate.toml'}")


def _name(given: str, systems: Any) -> str:
    return given if given in systems or not Path(given).is_file() else Path(given).stem


def _data(texts: str) -> dict[str, Any]:
    """Return the data section for a file, or for a source and its path."""
    from ombud import registry

    name, colon, path = texts.partition(":")
    if colon and not Path(texts).exists():
        if name in registry.names("source"):
            return {"source": name, "options": {"path": str(Path(path).absolute())}}
        raise PlanError(f"--texts {texts}: {registry.hint(name, registry.names('source'))}")
    if not Path(texts).is_file():
        raise PlanError(f"--texts {texts}: there is no such file")
    return {"texts": str(Path(texts).absolute())}


def _system(given: str, systems: Any, threshold: float | None) -> dict[str, Any]:
    """Return the section of a system: a plan's, a file of outputs, or a registered moderator."""
    from ombud import registry

    limit = {} if threshold is None else {"threshold": threshold}
    if given in systems:
        return {**systems[given], **limit}
    if Path(given).is_file():
        return {"type": "recorded", "path": str(Path(given).absolute()), **limit}
    known = registry.names("moderator")
    if given in known:
        return {"type": given, **limit}
    near = registry.hint(given, [*systems, *known])
    raise PlanError(f"{given}: no file, no system of the plan and no moderator; {near}")


def _store(plan: Plan, name: str, file: Path, quiet: bool) -> None:
    """Query one moderator, and store its outputs."""
    from ombud import registry
    from ombud.audits.load import load_data

    if file.suffix not in {".csv", ".parquet"}:
        raise PlanError(f"--store {file}: expected a name that ends with .csv or .parquet")
    texts = load_data(plan).need("texts", "--store")
    arguments = {key: value for key, value in plan.systems[name].items() if key != "type"}
    system = registry.create("moderator", plan.systems[name]["type"], arguments)
    with progress_bar(quiet=quiet) as progress:
        decisions = system.moderate(texts, progress=progress)
    frame = decisions.to_frame()
    frame.write_csv(file) if file.suffix == ".csv" else frame.write_parquet(file)
    say(f"{file}: {decisions}")


def _afterwards(plan: Plan, result: Result, name: str, folder: Path) -> None:
    """Write a plan that compares the new moderator with itself as it is now, and a gate."""
    from ombud.audits.plan import Plan as AnyPlan
    from ombud.files import read_parquet
    from ombud.questions.migration import decided_at

    threshold = result.tables["migration"]["threshold"][0]
    assert result.folder is not None  # every command stores its result
    outputs = read_parquet(result.folder / "outputs" / f"{name}.parquet")
    options: dict[str, Any] = {"old": "at the migration", "new": name, "match": "none"}
    if threshold is not None:
        # Not every moderator has a threshold of its own: the audit applies it to the scores.
        options["new_threshold"] = threshold
        outputs = decided_at(outputs, threshold)
    file = folder / "new-outputs.parquet"
    outputs.write_parquet(file)
    then = {"type": "recorded", "path": str(file.absolute())}
    content = plan.model_dump(mode="json", exclude_none=True, exclude_defaults=True) | {
        "title": f"Does {name} decide as it did at the migration?",
        "options": options,
        "systems": {"at the migration": then, name: plan.systems[name]},
    }
    (folder / "after.toml").write_text(AnyPlan.from_dict(content).to_toml(), encoding="utf-8")
    where = 'metric == "change of the flag rate" and kind == "gap" and n >= 100'
    reason = "Set by ombud migrate; change it to what you agreed on."
    limits = {
        "no group is flagged far more than at the migration": f"value <= {_WIDEST}",
        "no group is flagged far less than at the migration": f"value >= -{_WIDEST}",
    }
    gate = {
        one: {"limit": limit, "where": where, "reason": reason} for one, limit in limits.items()
    }
    (folder / "gate.toml").write_text(tomli_w.dumps({"expect": gate}), encoding="utf-8")
