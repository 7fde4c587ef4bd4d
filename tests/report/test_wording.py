"""The wording of answers, line by line."""

from __future__ import annotations

import itertools
import re

import pytest

from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.report import Report
from ombud.report.blocks import Block, Bullets, Paragraph, Section
from ombud.report.findings import EstimateSet, Kind, families
from ombud.report.sections.comparisons import comparisons
from ombud.report.wording import headline, reasons, sentences_of, support
from ombud.stats.estimate import Estimate

INFO = MetricInfo({}, "gap", unit="user", null=0.0)


def one(value: float, half: float = 0.05, p: float | None = None, **about: object) -> Estimate:
    fields: dict[str, object] = {"metric": "gap", "unit": "user", "n": 400, "null": 0.0} | about
    if p is not None:
        fields |= {"p_value": p / 3, "p_adjusted": p, "correction": "holm over 3"}
    return Estimate(value=value, interval=(value - half, value + half), method="x", **fields)  # type: ignore[arg-type]


def said(kind: Kind, *estimates: Estimate) -> list[str]:
    return sentences_of(EstimateSet(INFO, kind, estimates))


def undefined(reason: str = "no list", **about: object) -> Estimate:
    return Estimate.undefined(metric="gap", reason=reason, n=0, unit="user", **about)  # type: ignore[arg-type]


def test_both_directions_are_always_said() -> None:
    lines = said(
        "overall",
        one(0.2, system="als", label="blood", p=0.001),
        one(-0.1, system="als", label="gore", p=0.01),
        one(0.06, system="als", label="spiders", p=0.12),
        one(0.01, system="als", label="needles", p=0.9),
        undefined(system="als", label="fire"),
    )
    assert lines == [
        "als: above 0 for 1 of 4 labels (blood +0.20 [0.15, 0.25]); below 0 for 1 "
        "(gore −0.10 [−0.15, −0.05]). Only before correction: spiders. No clear sign in either "
        "direction for 1 (there, differences as large as 0.06 are not ruled out). Not defined "
        "for 1 (no list)."
    ]


def test_nothing_found_is_not_nothing_there() -> None:
    (line,) = said("overall", one(0.01, system="a", label="x"), one(0.0, system="a", label="y"))
    assert line == (
        "a: above 0 for none of 2 labels, below 0 for none. No clear sign in either direction "
        "for 2 (there, differences as large as 0.06 are not ruled out)."
    )


def test_values_that_could_not_be_tested_are_said_with_why() -> None:
    alone = one(0.0).replace(interval=None, method="none: one unit shows no spread", system="a")
    (line,) = said("overall", alone.replace(label="x", value=0.2), alone.replace(label="y"))
    assert line == (
        "a: highest for x +0.200 (no interval: one unit shows no spread), lowest for y 0.00 "
        "(no interval: one unit shows no spread). Tested for none of 2 labels."
    )


def test_many_names_are_counted() -> None:
    many = [one(0.2 + i / 100, system="a", label=f"w{i}") for i in range(9)]
    (line,) = said("overall", *many)
    assert line.startswith("a: above 0 for 9 of 9 labels (w8 ")
    assert "; and 6 more); below 0 for none." in line


@pytest.mark.parametrize(
    ("estimate", "line"),
    [
        (one(0.2, system="s"), "s: +0.20 [0.15, 0.25] (400 users), above 0."),
        (one(-0.2, system="s"), "s: −0.20 [−0.25, −0.15] (400 users), below 0."),
        (
            one(0.0, system="s"),
            "s: 0.00 [−0.05, 0.05] (400 users), no clear sign of a difference from 0 in either "
            "direction.",
        ),
        (one(0.2, system="s", null=None), "s: 0.20 [0.15, 0.25] (400 users)."),
        (
            one(0.2, system="s", p=0.1),
            "s: +0.20 [0.15, 0.25] (400 users), above 0 only before correction.",
        ),
        (undefined(system="s"), "s: not defined: no list."),
        (
            one(1.2, system="s", null=1.0, n=1),
            "s: 1.20 [1.15, 1.25] (1 user), above 1.",
        ),
    ],
)
def test_one_number(estimate: Estimate, line: str) -> None:
    assert said("overall", estimate) == [line]


def test_without_null_value_the_extremes_are_told() -> None:
    (line,) = said(
        "overall",
        one(0.2, system="a", label="x", null=None),
        one(0.4, system="a", label="y", null=None),
        undefined(system="a", label="z"),
    )
    assert line == (
        "a: highest for y 0.40 [0.35, 0.45], lowest for x 0.20 [0.15, 0.25]. "
        "Not defined for 1 (no list)."
    )


def test_all_undefined() -> None:
    (line,) = said(
        "overall", undefined(system="a", label="x"), undefined("few", system="a", label="y")
    )
    assert line == "a: not defined for any of 2 labels (no list; few)."


def test_groups_against_the_rest() -> None:
    about = {"kind": "gap", "against": "everyone else", "system": "als", "label": "blood"}
    lines = said(
        "group contrast",
        one(0.2, group="age=18", p=0.001, **about),
        one(0.0, group="age=30", p=0.9, **about),
        undefined("4 users", group="age=70", **about),
    )
    assert lines == [
        "Between groups, each against everyone else: 3 comparisons. Higher in 1, lower in none; "
        "no clear sign in either direction in 1 (there, differences as large as 0.05 are not "
        "ruled out); not defined in 1 (4 users).",
        "age=18, als, blood: +0.20 [0.15, 0.25]",
    ]


def test_comparisons_without_an_interval_are_counted_in_both_places() -> None:
    about = {"kind": "gap", "system": "a", "against": "b"}
    bare = one(0.3, label="z", **about).replace(interval=None, method="none: no spread")
    some = (one(0.2, **about), one(0.0, label="x", p=0.9, **about), bare)
    lines = said("system contrast", *some)
    assert lines[0].startswith("Between systems: 3 comparisons. Higher in 1, lower in none; ")
    assert lines[0].endswith("; not tested, for want of an interval, in 1.")
    family = EstimateSet(MetricInfo({}, "m"), "system contrast", some)
    words = headline([family]).plain
    assert words.startswith("1 of 2 comparisons shows")
    assert "1 more has no interval and could not be tested." in words


def test_systems_against_each_other_as_ratio() -> None:
    about = {"kind": "ratio", "null": 1.0, "system": "a", "against": "b"}
    lines = said("system contrast", one(0.5, **about), one(1.02, label="x", **about))
    assert lines == [
        "Between systems: 2 comparisons. Higher in none, lower in 1; no clear sign in either "
        "direction in 1 (there, values as far as 0.07 from 1 are not ruled out).",
        "a against b: 0.50 [0.45, 0.55]",
    ]


def test_neither_direction_hides_the_other() -> None:
    about = {"kind": "gap", "system": "a", "against": "b"}
    many = [one(0.3 + i / 100, label=f"up{i}", **about) for i in range(9)]
    many += [one(-0.2, label="down", **about)]
    lines = said("system contrast", *many)
    assert lines[0].endswith("The largest in each direction:")
    assert [line.split(":")[0][-4:].strip() for line in lines[1:]] == ["up8", "up7", "up6", "down"]


def test_open_intervals() -> None:
    wide = one(0.1, system="a", label="x").replace(interval=(-1.0, float("inf")))
    (line,) = said("overall", wide, one(0.0, system="a", label="y"))
    assert "(some could differ by any amount)" in line


@pytest.mark.parametrize(
    ("estimates", "line"),
    [
        (
            [one(0.2, p=0.01), one(0.1, p=0.1), one(0.0, p=0.9), undefined()],
            "1 of 3 comparisons shows a difference that remains after correction for many "
            "comparisons. 1 more shows one only before the correction and should not be read as "
            "a finding. Where no sign was found, the intervals say how large a difference could "
            "still be. 1 number is not defined; the reasons are given.",
        ),
        (
            [one(0.0, p=0.9), one(0.01, p=0.8)],
            "We found no sign of a difference in 2 comparisons after correction for many "
            "comparisons. Where no sign was found, the intervals say how large a difference "
            "could still be.",
        ),
        ([one(0.2)], "The one comparison made shows a difference."),
        (
            [one(0.2), one(0.3)],
            "2 of 2 comparisons show a difference that remains. No correction for many "
            "comparisons was made: some will differ by chance.",
        ),
        (
            [one(0.2, null=None)],
            "This report describes: nothing in it was tested against a value that would mean "
            "“no difference”.",
        ),
    ],
)
def test_headline(estimates: list[Estimate], line: str) -> None:
    assert headline([EstimateSet(INFO, "overall", tuple(estimates))]).plain == line


def test_reasons_are_counted_and_cut() -> None:
    some = [undefined("often")] * 3 + [undefined(f"rare {i}") for i in range(5)]
    assert reasons(some) == ["often", "rare 0", "4 other reasons, given in the tables"]


def test_support_ignores_what_is_undefined() -> None:
    assert support([one(0.1), one(0.2, n=90), undefined()]) == "90 to 400 users"
    assert support([undefined()]) == ""


def test_a_report_never_promises(ordinary: Result) -> None:
    text = Report(ordinary).markdown().lower()
    for word in ("fair", "unbiased", "debias", "safe", "guarantee", "proves", "there is no bias"):
        assert not re.search(rf"\b{word}", text), word


def test_every_label_that_stands_is_counted(ordinary: Result) -> None:
    for found in families(ordinary):
        if found.kind.endswith("contrast"):
            lead = sentences_of(found)[0]
            total = len(found.estimates)
            assert f"{total} comparison" in lead


def test_empty_result_has_a_report() -> None:
    report = Report(Result(Plan(title="Empty"), ()))
    assert "# Empty" in report.markdown()
    assert "answer" not in {section.name for section in report.sections}


def plain(block: Block) -> str:
    if isinstance(block, Section):
        return "\n".join(plain(inner) for inner in block.blocks)
    parts = block.items if isinstance(block, Bullets) else (block,)
    return "\n".join(part.plain for part in parts if isinstance(part, Paragraph))


@pytest.mark.parametrize(("systems", "described"), [(3, True), (4, False)])
def test_many_systems_are_compared_in_the_report_and_described_in_the_appendix(
    systems: int, described: bool
) -> None:
    share = MetricInfo({}, "share", unit="user")
    names = [f"model {i}" for i in range(systems)]
    levels = [one(0.1 * i, metric="share", null=None, system=n) for i, n in enumerate(names)]
    pairs = [
        one(0.1, metric="share", system=a, against=b, kind="gap")
        for a, b in itertools.combinations(names, 2)
    ]
    found = families(Result(Plan(), (*levels, *pairs), (share,)))
    level = "model 0: 0.00 [−0.05, 0.05]"
    short = comparisons(found, whole=False)
    assert short is not None and "Between systems" in plain(short)
    assert (level in plain(short)) == described
    assert ("In the appendix: each system by itself." in plain(short)) != described
    whole = comparisons(found, whole=True)
    assert whole is not None and level in plain(whole)
