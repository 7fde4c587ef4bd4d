"""Is a stored result still what the audit wrote?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ombud.cli.console import (
    FAILED_GATE,
    JsonOption,
    QuietOption,
    print_json,
    progress_bar,
    reports_errors,
    say,
)
from ombud.errors import PlanError
from ombud.report.display import count, visible

if TYPE_CHECKING:
    from ombud.audits.verify import Check, Verification


_SHOWN = 5


@reports_errors
def verify(
    result: Annotated[
        Path, typer.Argument(help="A result folder, or an archive of one.", metavar="RESULT")
    ],
    expect: Annotated[
        str | None,
        typer.Option("--expect", help="The fingerprint that was noted when the result was made."),
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Compute the estimates again from the stored outputs, too."),
    ] = False,
    quiet: Annotated[bool, QuietOption] = False,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Hash everything in a result again: is it still what the audit wrote?

    Plan, inputs, outputs, rows, tables, estimates and reports are compared with the hashes that
    were recorded when the result was finished. Inputs that are not on this machine are said to be
    out of reach, which is no fault.

    Of an archive (ombud pack), every file is compared with its manifest; nothing is unpacked.

    Someone who can write the whole folder can make it agree with itself. Against that, note the
    fingerprint that this command prints where others can read it, and give it with --expect; or
    compute the numbers again with --again.

    Exit codes: 0 intact, 1 something changed or is missing, 2 an error in use or data, 3 an
    unexpected error.

    \b
    Examples:
      ombud verify plan.result
      ombud verify plan.result --again
      ombud verify plan.result.zip
      ombud verify plan.result --expect 9f2c... --json
    """
    from ombud.audits.audit import recompute
    from ombud.audits.verify import verify as verify_result

    if again and result.is_file():
        raise PlanError("--again computes from a result folder; an archive is only hashed")
    found = verify_result(result, expect=expect)
    differing: tuple[str, ...] = ()
    if again:
        with progress_bar(quiet=quiet or as_json) as progress:
            differing = recompute(result, progress)
    if as_json:
        more = {"recomputed": {"differing": list(differing)}} if again else {}
        print_json(found.to_dict() | more)
    else:
        _show(found, quiet)
        if again:
            _show_again(differing)
    raise typer.Exit(0 if found.is_intact and not differing else FAILED_GATE)


def _show(found: Verification, quiet: bool) -> None:
    for kind in dict.fromkeys(check.kind for check in found.checks):
        some = [check for check in found.checks if check.kind == kind]
        for state in dict.fromkeys(check.state for check in some):
            if not quiet or state in {"changed", "missing"}:
                say(_line(kind, state, [check for check in some if check.state == state]))
    bad = found.select("changed", "missing")
    if bad:
        say(f"NOT AS IT WAS WRITTEN: {count(len(bad), 'file')} changed or missing")
    else:
        away = len(found.select("not reachable"))
        rest = f"; {count(away, 'input')} could not be reached" if away else ""
        say(f"as it was written{rest}")
    say(f"fingerprint: {found.fingerprint}")


def _line(kind: str, state: str, some: list[Check]) -> str:
    if state == "intact":
        return f"{kind:12} {len(some)} intact"
    names = ", ".join(visible(check.name) for check in some[:_SHOWN])
    more = f" and {len(some) - _SHOWN} more" if len(some) > _SHOWN else ""
    told = state.upper() if state in {"changed", "missing"} else state
    return f"{kind:12} {len(some)} {told}: {names}{more}"


def _show_again(differing: tuple[str, ...]) -> None:
    if not differing:
        say("computed again from the stored outputs: the same estimates")
        return
    say(
        f"COMPUTED AGAIN: {count(len(differing), 'estimate')} came out otherwise; the first stored:"
    )
    for line in differing[:_SHOWN]:
        say(f"  {line}")
