"""Prose is not data: a report holds the same whatever its titles and notes are called."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from ombud.audits import Result
from ombud.audits.result import MetricInfo
from ombud.data.exclusions import Exclusion
from ombud.report import Report

# Letters that the renaming swaps are the same for the comparison.
FOLD = {ord(a): min(a, codecs.encode(a, "rot13")) for a in "abcdefghijklmnopqrstuvwxyz"}


def turned(text: str) -> str:
    """Other words of the same length: each letter is another, digits and signs stay."""
    return codecs.encode(text, "rot13")


def _elsewhere(e: Exclusion) -> str:
    """Other words for where something was excluded; the system's name in front is no prose."""
    system = f"{e.system}: " if e.where.startswith(f"{e.system}: ") else ""
    return system + turned(e.where.removeprefix(system))


def renamed(result: Result) -> Result:
    words = [
        f.name for f in fields(MetricInfo) if f.type == "str" and f.name not in {"key", "unit"}
    ]
    assert {"title", "summary", "reading", "limits"} <= set(words)
    infos = tuple(
        replace(info, **{name: turned(getattr(info, name)) for name in words})
        for info in result.metrics
    )
    estimates = tuple(
        e.replace(metric=turned(e.metric), note=turned(e.note), reason=turned(e.reason))
        for e in result.estimates
    )
    exclusions = tuple(
        replace(e, where=_elsewhere(e), reason=turned(e.reason)) for e in result.exclusions
    )
    return replace(result, metrics=infos, estimates=estimates, exclusions=exclusions)


def content(result: Result) -> str:
    report = Report(result)
    # Pictures hold titles in an encoded form, which folding letters does not reach.
    whole = [report.markdown(), re.sub(r"base64,[^\"]*", "", report.html())]
    whole += [json.dumps(verdict.to_dict()) for verdict in report.verdicts]
    return "\n".join(whole).lower().translate(FOLD)


@pytest.mark.parametrize("world", ["warnings", "suppression", "plain"])
def test_renaming_titles_and_notes_changes_nothing_else(
    world: str, preset_result: Callable[[str], Result]
) -> None:
    result = preset_result(world)
    other = renamed(result)
    one, two = content(result), content(other)
    if one != two:
        lines = zip(one.splitlines(), two.splitlines(), strict=False)
        place = next(pair for pair in lines if pair[0] != pair[1])
        pytest.fail(f"\n{place[0][:600]}\nbecame\n{place[1][:600]}")
    assert other.metrics[0].title != result.metrics[0].title
    assert other.metrics[0].title in Report(other).markdown().replace("\\", "")


def test_the_comparison_would_see_what_is_dropped(preset_result: Callable[[str], Result]) -> None:
    result = preset_result("plain")
    assert content(result) != content(replace(result, estimates=result.estimates[1:]))
