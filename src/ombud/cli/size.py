"""How much data a plan needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ombud.cli.audits import load_plan
from ombud.cli.console import JsonOption, print_json, reports_errors, say
from ombud.report.display import count, visible

if TYPE_CHECKING:
    from ombud.worlds.size import Needed


@reports_errors
def size(
    plan: Annotated[Path, typer.Argument(help="The plan, a TOML file.", metavar="PLAN")],
    half_width: Annotated[
        float | None,
        typer.Option("--half-width", help="Half of the width of the intervals that are wanted."),
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option("--effect", help="Or: the difference (of a ratio, the factor) to be found,"),
    ] = None,
    power: Annotated[float, typer.Option("--power", help="with this chance.")] = 0.8,
    comparisons: Annotated[
        int,
        typer.Option(
            "--comparisons", help="How many comparisons are corrected for; default, --groups."
        ),
    ] = 1,
    groups: Annotated[
        int | None,
        typer.Option("--groups", help="How many groups of equal size; default, --comparisons."),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            "--rate",
            help="The simulated false-positive rate: of a difference, of the other groups; of a "
            "ratio, of all texts.",
        ),
    ] = 0.1,
    cluster_size: Annotated[
        int, typer.Option("--cluster-size", help="Texts that share a cluster, such as a template.")
    ] = 1,
    icc: Annotated[
        float, typer.Option("--icc", help="The correlation of flags within a cluster.")
    ] = 0.1,
    audits: Annotated[
        int,
        typer.Option(
            "--audits", help="Audits simulated at the size that comes out; 0 for the formula alone."
        ),
    ] = 400,
    pilot: Annotated[
        Path | None,
        typer.Option("--from", help="Take the spread from this result, not from a small world."),
    ] = None,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Say how many users or texts a plan needs for a wanted precision, by simulation.

    A small world is audited with the metrics, lengths of lists and statistics of the plan, and
    scaled: the width of an interval falls with the root of the units. The plan's data is not read,
    and need not be there. Where your data is spread otherwise, so is the answer: a first result of
    your own, given with --from, says it better.

    For an effect, the size is computed for the contrast, test and correction of the plan; audits of
    that size are then simulated, and the share in which the effect is found is printed beside it.
    An effect that no group can have is refused.

    Half-widths and effects are in the unit of the metric; those of a ratio are on its logarithm
    (half-width) or factors (effect). Behind a false-positive rate, only acceptable texts count.

    \b
    Examples:
      ombud size plan.toml --half-width 0.02
      ombud size plan.toml --effect 0.05 --power 0.9 --comparisons 40
      ombud size plan.toml --effect 1.5 --groups 9 --cluster-size 8 --icc 0.2
      ombud size plan.toml --half-width 0.02 --from first.result
    """
    from ombud.audits import Result
    from ombud.worlds.size import size as needed_of

    needed = needed_of(
        load_plan(plan),
        half_width=half_width,
        effect=effect,
        power=power,
        comparisons=comparisons,
        rate=rate,
        pilot=None if pilot is None else Result.load(pilot),
        groups=groups,
        cluster_size=cluster_size,
        icc=icc,
        audits=audits,
    )
    if as_json:
        print_json([asdict(one) for one in needed])
        return
    for metric in dict.fromkeys(one.metric for one in needed):
        say(visible(metric))
        for one in (one for one in needed if one.metric == metric):
            say(f"  {_line(one)}")


def _line(one: Needed) -> str:
    if one.n is None:
        return visible(f"{one.about}: {one.reason}")
    most = "" if one.n_most in {None, one.n} else f" ({one.n_most:,} where they are spread most)"
    each = " in each group" if "group" in one.about else ""
    text = f"{one.about}: {count(one.n, one.unit)}{each}{most}"
    if one.power is None:
        return text
    return f"{text}; found in {one.power:.0%} of simulated audits of that size ({one.assumption})"
