"""One simulated platform, audited on five questions, in files as a user would have them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ombud.cli.audits import save_report, show_result, told
from ombud.cli.console import (
    JsonOption,
    QuietOption,
    VerboseOption,
    console,
    print_json,
    progress_bar,
    reports_errors,
    say,
)
from ombud.errors import PlanError

if TYPE_CHECKING:
    from ombud.audits import Plan, Result
    from ombud.worlds import World


_LENGTH = 10
_ABOUT = {
    "auditor": "ombud demo",
    "audited": "A simulated platform",
    "data": "simulated data",
    "period": "none",
}
_QUESTIONS: dict[str, dict[str, Any]] = {
    "warnings": {
        "title": "Do these recommenders show more of what people may want to avoid?",
        "data": ("interactions", "labels", "users"),
        "metrics": [{"name": "share-gap", "k": _LENGTH}],
    },
    "suppression": {
        "title": "Do these moderators flag acceptable texts about some people more?",
        "data": ("texts", "text_groups"),
        "preset": "suppression",
    },
    "authors": {
        "title": "Do these recommenders change whose stories people get to read?",
        "data": ("interactions", "items"),
        "preset": "authors",
        # Recorded lists cannot be made again without what would be held out.
        "options": {"k": _LENGTH, "accuracy_users": 0, "strategies": []},
    },
    "delicate": {
        "title": "Do these moderators miss delicate texts about some people more?",
        "data": ("texts", "text_groups"),
        "preset": "delicate",
    },
    "counterfactual": {
        "title": "What could people be shown if they acted differently?",
        "data": ("interactions", "labels"),
        "preset": "counterfactual",
        "sample": 200,
        # Recorded lists cannot be asked about edits: a model is trained on the same histories.
        "systems": {"EASE": {"type": "ease", "regularization": 100.0}},
        "options": {
            "k": _LENGTH, "parts": ["reach", "escape"], "most_labels": 1, "users": 30,
            "targets": 30, "at_risk": 12, "looked_at": 30, "random": 0, "people": 1,
        },
        "statistics": {"replicates": 300},
    },
}  # fmt: skip


def write_demo(folder: Path, seed: int) -> tuple[Path, ...]:
    """Write the files of the demo; return one plan for each question.

    Raises
    ------
    PlanError
        If the folder holds anything but this demo; nothing is written then.
    """
    from ombud.files import write_text
    from ombud.worlds import demo_world

    world = demo_world(seed=seed)
    plans = {folder / f"{name}.toml": _plan(name, world).to_toml() for name in _QUESTIONS}
    for path, text in plans.items():
        _check_room(folder, path, text)
    # The plans come first: they mark the folder as this demo's, should the rest be stopped.
    for path, text in plans.items():
        write_text(path, text)
    world.write(folder, _LENGTH, ".csv")
    return tuple(plans)


def _plan(name: str, world: World) -> Plan:
    from ombud.audits import Plan

    asked = dict(_QUESTIONS[name])
    tables = asked.pop("data")
    moderates = "texts" in tables
    systems = [s.name for s in (world.moderators() if moderates else world.recommenders())]
    outputs = "decisions" if moderates else "recommendations"
    recorded = {s: {"type": "recorded", "path": f"{outputs}/{s}.csv"} for s in systems}
    # Names that do not give away what a simulated system does.
    kind = "Moderator" if moderates else "Recommender"
    shown = {system: f"{kind} {chr(65 + place)}" for place, system in enumerate(systems)}
    if "systems" in asked:
        recorded, shown = asked.pop("systems"), {}
    return Plan.from_dict(
        asked
        | {
            "about": _ABOUT,
            "seed": world.seed,
            "data": {table: f"{table}.csv" for table in tables},
            "systems": recorded,
            "display": {"systems": shown},
        }
    )


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


def _in_brief(result: Result, width: int) -> Iterator[str]:
    """Yield the question, its verdict and the finding that leads."""
    from ombud.report.display import visible
    from ombud.report.model import plain
    from ombud.report.verdict import verdicts_of

    verdict = verdicts_of(result)[0]
    yield visible(verdict.question)
    said = [plain(verdict.headline)]
    said += [f"{f.symbol} {plain(f.sentence)} {plain(f.evidence)}" for f in verdict.findings[:1]]
    for line in said:
        yield from textwrap.wrap(
            visible(line), max(60, width), initial_indent="  ", subsequent_indent="    "
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
    """Audit a simulated platform on five questions.

    They are those of the presets warnings, suppression, authors, delicate and counterfactual. Needs
    no network and no data: a platform with known effects is simulated, written as CSV
    files, and audited with five plans that you can change and run again. One recommender shows
    everyone too much violence, one shows the young too many animal deaths, one shows fewer stories
    by women; one moderator flags acceptable texts about islanders too often, one misses delicate
    texts about night workers. The others have no effect. The fifth question, what people could be
    shown if they acted differently, is about a model that ombud trains on the same histories.

    \b
    Examples:
      ombud demo
      ombud run ombud-demo/suppression.toml
    """
    from ombud.audits import Audit, Plan
    from ombud.files import write_text
    from ombud.report import Report
    from ombud.report.card import SystemCard

    plans = write_demo(folder, seed)
    if not as_json and not quiet:
        say(f"A simulated platform: data and {len(plans)} plans are in {folder}.\n")
    said: dict[str, Any] = {}
    results = []
    for plan in plans:
        with progress_bar(quiet=quiet) as progress:
            result = Audit.from_plan(Plan.load(plan)).run(folder / plan.stem, progress)
        results.append(result)
        if verbose and not as_json:
            show_result(result, as_json, quiet=quiet, verbose=verbose)
            continue
        report = save_report(Report(result))
        if as_json:
            said[plan.stem] = told(result, report)
        elif not quiet:
            for line in (*_in_brief(result, console.width), f"  report: {report}", ""):
                say(line)
    page = folder / "index.html"
    card = SystemCard.of(results, title="A simulated platform, audited").linked(folder)
    write_text(page, card.html())
    if as_json:
        print_json(said | {"card": str(page)})
    else:
        say(f"card: {page}")
