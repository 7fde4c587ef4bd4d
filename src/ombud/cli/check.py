"""The gate: limits of a plan or a file, and conditions, judged by a result."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ombud.cli.audits import GateOption, ResultArgument
from ombud.cli.console import FAILED_GATE, JsonOption, print_json, reports_errors, say
from ombud.errors import EditedResultError, PlanError
from ombud.report.display import count, shorten, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ombud.audits import Expectation, Result
    from ombud.audits.condition import ConditionResult
    from ombud.stats.estimate import Estimate


@reports_errors
def check(
    result: Annotated[Path, ResultArgument],
    fail_if: Annotated[
        list[str] | None, typer.Option("--fail-if", help="A condition; may be given several times.")
    ] = None,
    gate: Annotated[Path | None, GateOption] = None,
    fail_if_undefined: Annotated[
        bool,
        typer.Option(
            "--fail-if-undefined",
            "--fail-if-undecided",
            help="Exit with 1 too if an estimate could not be judged, or a limit is undecided.",
        ),
    ] = False,
    fail_if_nothing_judged: Annotated[
        bool,
        typer.Option(
            "--fail-if-nothing-judged",
            help="Exit with 1 too if a condition or a limit found no number to judge.",
        ),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write a JUnit XML file for build servers too.")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", help="Write the report too, with what was judged on its first screen."
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary", help="Write the answer and what was judged as Markdown, for a build page."
        ),
    ] = None,
    allow_edited: Annotated[
        bool,
        typer.Option(
            "--allow-edited", help="Judge a result that was edited after the audit; say so first."
        ),
    ] = False,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            "--fingerprint", help="Judge only the result with this fingerprint (of ombud verify)."
        ),
    ] = None,
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Exit with 1 if a limit is broken: a gate for continuous integration.

    Without a condition or a gate file, what the plan of the result declares under [expect] is
    judged. A limit is met when the whole interval of every estimate it is about lies within it,
    not met when that of one lies beyond it, and else undecided.

    A condition on the verdict names nothing else: verdict is yes, no clear evidence, mixed or
    cannot tell. Cannot tell is undecided: it closes the gate with --fail-if-undecided only.

    A condition of --fail-if closes the gate when any estimate meets it. It may name metric, system,
    label, group, against, kind, value, low, high, n, p_value and p_adjusted; low and high are the
    ends of the interval. One that names neither kind nor against is about levels only, not about
    gaps and ratios. A name that no estimate has is an error, so that a gate cannot stay open by a
    spelling mistake.

    An estimate without a number that the condition asks for is not judged: it neither meets the
    condition nor meets its opposite. How many there are is printed.

    A result that ombud verify would refuse is not judged: the exit code is 4, and the changed files
    are named. Someone who can write the whole folder can make it agree with itself; against that,
    --fingerprint names the one result that may pass. --allow-edited judges an edited result.

    Exit codes: 0 open, 1 closed, 2 an error in use or data, 3 an unexpected error, 4 a result that
    was edited after the audit or does not have the given fingerprint.

    \b
    Examples:
      ombud check plan.result
      ombud check plan.result --fail-if 'verdict == "yes"'
      ombud check plan.result --gate gate.toml --junit gate.xml
      ombud check plan.result --fingerprint 9f2c...
      ombud check plan.result --fail-if 'metric == "share gap@10" and low > 0.02'
      ombud check plan.result --fail-if 'kind == "gap" and p_adjusted < 0.01 and value > 0'
      ombud check plan.result --fail-if 'label in ("blood", "gore") and low > 0'
    """
    from ombud.audits import Condition, Result
    from ombud.files import write_text
    from ombud.report import Report, to_junit

    _require_unedited(result, fingerprint, allow_edited, as_json)
    loaded = Result.load(result)
    if not allow_edited and loaded.integrity is not None and loaded.integrity.said:
        raise EditedResultError(f"{result}: {loaded.integrity.said}")
    conditions = fail_if or []
    expected = _expected(loaded, gate, plan_too=not conditions)
    about_verdict = [text for text in conditions if Condition(text).is_about_verdict]
    verdicts = {
        text: Condition(text).check(loaded.estimates)
        for text in conditions
        if text not in about_verdict
    }
    answers = loaded.answers if about_verdict or not as_json else ()
    on_verdict = tuple(_on_verdict(text, answers) for text in about_verdict)
    failing = {"not met", "undecided"} if fail_if_undefined else {"not met"}
    failed = any(
        v.met or (fail_if_undefined and v.undefined) or (fail_if_nothing_judged and not v.judged)
        for v in verdicts.values()
    )
    failed = failed or any(
        one.state in failing or (fail_if_nothing_judged and not (one.kept or one.broken))
        for one in expected
    )
    failed = failed or any(
        one.state in failing or (fail_if_nothing_judged and one.state == "undecided")
        for one in on_verdict
    )
    everything = (*expected, *on_verdict, *(_as_limit(text, v) for text, v in verdicts.items()))
    if junit is not None:
        name = loaded.plan.title
        write_text(junit, to_junit(everything, name=name, fail_undecided=fail_if_undefined))
    if report is not None:
        Report(loaded, everything).save(report)
    if summary is not None:
        write_text(summary, Report(loaded, everything).summary())
    if as_json:
        content = {
            part: {text: [e.to_dict() for e in getattr(v, part)] for text, v in verdicts.items()}
            for part in ("met", "undefined")
        }
        judged = {text: verdict.judged for text, verdict in verdicts.items()}
        told = [one.to_dict() for one in (*expected, *on_verdict)]
        edits = {} if loaded.integrity is None else {"integrity": loaded.integrity.to_dict()}
        print_json({"failed": failed, **content, "judged": judged, "expected": told, **edits})
    else:
        if loaded.integrity is not None and loaded.integrity.said:
            say(loaded.integrity.said)
        for found in loaded.verdicts:
            say(visible(f"Verdict: {found['answer']}. {found.get('headline', '')}"))
        for one in (*expected, *on_verdict):
            _show_limit(one)
        for text, verdict in verdicts.items():
            levels = not Condition(text).names("kind", "against")
            total = sum(e.kind == "level" or not levels for e in loaded.estimates)
            _show_verdict(text, verdict, total, closes=fail_if_nothing_judged)
    raise typer.Exit(FAILED_GATE if failed else 0)


def _require_unedited(
    result: Path, fingerprint: str | None, allow_edited: bool, as_json: bool
) -> None:
    from ombud.audits.verify import require_unedited

    if fingerprint is not None and allow_edited:
        raise PlanError("--fingerprint names one unedited result; remove it, or --allow-edited")
    if fingerprint is not None and not re.fullmatch(r"\s*[0-9a-fA-F]{64}\s*", fingerprint):
        raise PlanError(
            f"--fingerprint {shorten(fingerprint, 80)}: 64 hexadecimal digits are expected, as "
            "ombud verify prints them"
        )
    if allow_edited or not (result / "provenance.json").exists():
        return  # a folder without a result is refused when it is read
    try:
        require_unedited(result, expect=fingerprint)
    except EditedResultError as error:
        if as_json:
            print_json({"failed": True, "edited": str(error)})
        raise


def _expected(result: Result, file: Path | None, *, plan_too: bool) -> tuple[Expectation, ...]:
    """Return the limits of a file, else of the plan, judged; refuse those about nothing."""
    from ombud.audits import Gate

    if file is None and not plan_too:
        return ()
    gate = Gate.of(result.plan) if file is None else Gate.load(file)
    if not gate.expect:
        raise PlanError(
            "no condition was given, and the plan of the result expects nothing; use --fail-if "
            "EXPR or --gate FILE, or declare limits under [expect] in the plan before a run"
        )
    expected = gate.judge(result.estimates, result.answers if gate.is_about_verdict else ())
    faults = [f"  - {one.said}: {one.fault}" for one in expected if one.fault]
    if faults:
        raise PlanError("\n".join(["limits that are about nothing:", *faults]))
    return expected


def _on_verdict(text: str, answers: Sequence[str]) -> Expectation:
    """Return a condition on the verdict as the limit that its opposite holds.

    *Cannot tell* is undecided, unless the condition names it.
    """
    from ombud.audits import Condition, Expectation

    condition = Condition(text)
    condition.check_answers()
    truths = [condition.judge_answer(answer) for answer in answers]
    state = "not met" if True in truths else "met" if False in truths else "undecided"
    if state == "met" and None in truths:
        state = "undecided"
    return Expectation(
        state,  # type: ignore[arg-type]
        f"not ({text})",
        limit=f"not ({text})",
        reason="given on the command line",
        source="the command line",
        answers=tuple(answers),
    )


def _as_limit(text: str, verdict: ConditionResult) -> Expectation:
    """Return a condition that closes the gate as the limit that its opposite holds."""
    from ombud.audits import Expectation

    state = "not met" if verdict.met else "met" if verdict.judged else "undecided"
    return Expectation(
        state,  # type: ignore[arg-type]
        f"nothing with {text}",
        limit=f"not ({text})",
        reason="given on the command line",
        broken=verdict.met,
        undecided=verdict.undefined,
        source="the command line",
    )


def _show_limit(one: Expectation) -> None:
    say(visible(f"{one.state}: {one.said} ({one.why})"))
    some = one.broken or one.undecided
    for estimate in some[:_MOST]:
        say(f"  {_on_one_line(estimate)}")
    if len(some) > _MOST:
        say(f"  and {len(some) - _MOST:,} more")


_MOST = 10


def _show_verdict(text: str, verdict: ConditionResult, total: int, *, closes: bool = False) -> None:
    say(f"{len(verdict.met)} of {total} estimates meet: {visible(text)}")
    for estimate in verdict.met:
        say(f"  {_on_one_line(estimate)}")
    if not verdict.undefined:
        return
    verb = "is" if len(verdict.undefined) == 1 else "are"
    judged = f"{verb} undefined and {'was' if verb == 'is' else 'were'} not judged"
    say(f"  {count(len(verdict.undefined), 'estimate')} {judged}; the first:")
    say(f"  {_on_one_line(verdict.undefined[0])}")
    if not verdict.judged:
        open_or_not = "closed because" if closes else "open only because"
        say(f"  NOTHING WAS JUDGED: this gate is {open_or_not} there is no number to judge.")


def _on_one_line(estimate: Estimate) -> str:
    about = ("metric", "system", "label", "group", "against")
    return visible(str(estimate.replace(**{f: shorten(getattr(estimate, f), 80) for f in about})))
