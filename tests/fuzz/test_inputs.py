"""Whatever a plan, a table, a gate or a stored result holds, the answer is a table or a sentence."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.audits import Audit, Plan, Result
from ombud.audits.condition import Condition
from ombud.audits.result import MetricInfo
from ombud.audits.run_folder import RunFolder
from ombud.data import Decisions, Recommendations
from ombud.data.exclusions import Exclusion
from ombud.data.tables import TABLES, TableOptions, read_table_file
from ombud.errors import OmbudError, PlanError
from ombud.report import Report
from ombud.stats.estimate import Estimate

FUZZ = settings.get_profile("fuzz")
PLAN: dict[str, Any] = {
    "title": "Fuzzed",
    "seed": 1,
    "by": ["g"],
    "data": {"interactions": "i.csv", "labels": "l.csv", "users": "u.csv", "texts": "t.csv", "absent": "no"},
    "statistics": {"replicates": 100, "level": 0.9, "minimum": 2},
    "split": {"method": "per-user", "share": 0.2},
    "systems": {
        "shop": {"type": "recorded", "path": "r.csv", "moderates": False},
        "best": {"type": "popular"},
        "words": {"type": "keyword", "terms": ["z"]},
        "far": {
            "type": "http", "moderates": True, "base_url": "https://example.org", "score_path": "a.b",
            "threshold": 0.5, "run": {"retries": 1}, "headers_sent": {"X-A": "b"},
        },
    },
    "metrics": [{"name": "share-gap", "k": 3}, {"name": "flag-share"}, {"name": "recall", "k": 2}],
}  # fmt: skip

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 0, 2**31, 2**63, 2**64, 10**400, -(2**70)]),
    st.floats(),
    st.sampled_from([float("nan"), float("inf"), -0.0, 1e308]),
    st.text(max_size=8),
    st.sampled_from(
        ["", "r.csv", "gone.csv", "..", "/dev/zero", "~x", "\0", "constructor", "http://a"]
    ),
    st.just([]),
    st.just({}),
    st.lists(st.integers() | st.text(max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=3), max_size=3),
)


def places(part: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in nested values."""
    pairs = (
        part.items()
        if isinstance(part, dict)
        else enumerate(part)
        if isinstance(part, list)
        else ()
    )
    return [here, *(place for key, value in pairs for place in places(value, (*here, key)))]


@st.composite
def changed(draw: st.DrawFn, base: Any, most: int = 2) -> Any:
    """Nested values with one or two of their parts replaced, removed, or given a neighbour."""
    made = deepcopy(base)
    for _ in range(draw(st.integers(1, most))):
        *path, key = draw(st.sampled_from(places(made)[1:]))
        holder = made
        for step in path:
            holder = holder[step]
        deed = draw(st.sampled_from(["replace", "remove", "add"]))
        if deed == "remove":
            del holder[key]
        elif deed == "add" and isinstance(holder, dict):
            holder[draw(st.text(max_size=6) | st.just(f"{key}s"))] = draw(ODD)
        else:
            holder[key] = draw(ODD)
        if not places(made)[1:]:
            break
    return made


@FUZZ
@given(content=changed(PLAN))
def test_any_plan_is_an_audit_or_a_sentence(content: dict[str, Any], tables: Path) -> None:
    try:
        plan = Plan.from_dict(content).relative_to(tables)
        Audit.from_plan(plan)
    except OmbudError as error:
        assert 0 < len(str(error)) < 20_000
        return
    file = tables / "again.toml"
    file.write_text(plan.to_toml(), encoding="utf-8")
    assert Plan.load(file) == plan


def test_the_plan_that_is_changed_has_no_fault(tables: Path) -> None:
    assert len(Audit.from_plan(Plan.from_dict(deepcopy(PLAN)).relative_to(tables)).systems) == 4


COLUMNS = (
    "user", "item", "rating", "time", "set", "label", "yes", "no", "present", "state", "rank", "score",
    "id", "text", "cluster", "family", "flagged", "outcome", "repeat", "categories", "group", "attribute",
    "g", "g_status",
)  # fmt: skip
TYPES = (
    pl.Int8, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.Boolean, pl.String, pl.Categorical,
    pl.Date, pl.Datetime("ms", "UTC"), pl.Time, pl.Duration, pl.Binary, pl.Null, pl.Decimal(9, 2),
    pl.List(pl.Int64), pl.Struct({"a": pl.Int64}),
)  # fmt: skip
CELLS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.booleans(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    st.sampled_from(["", " ", "007", "flagged", "2024-02-30", "{}", '{"a": 1e999}', "[[[[", "nan"]),
)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Tables of known columns with unlikely types and values."""
    height = draw(st.integers(0, 6))
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=6, unique=True))
    columns = []
    for name in names:
        cells = draw(st.lists(CELLS, min_size=height, max_size=height))
        dtype = draw(st.sampled_from(TYPES))
        try:
            columns.append(pl.Series(name, cells, dtype=dtype, strict=False))
        except (pl.exceptions.PolarsError, TypeError, ValueError, OverflowError):
            columns.append(pl.Series(name, list(map(str, cells))))
    return pl.DataFrame(columns)


@FUZZ
@given(frame=frames(), form=st.sampled_from([*TABLES, "recommendations", "decisions"]))
def test_any_frame_is_a_table_or_a_sentence(frame: pl.DataFrame, form: str, tables: Path) -> None:
    path = tables / "any.parquet"
    try:
        frame.write_parquet(path)
    except pl.exceptions.PolarsError:
        return  # there is no such file
    try:
        if form == "recommendations":
            read: Any = Recommendations.from_frame(path)
        elif form == "decisions":
            read = Decisions.from_frame(path, threshold=0.5)
        else:
            read = read_table_file(form, path, TableOptions(unlabeled="no"))
    except OmbudError as error:
        assert 0 < len(str(error)) < 20_000
        return
    assert len(repr(read)) < 20_000


WORDS = st.sampled_from(
    ["value", "low", "metric", "label", "n", "and", "or", "not", "in", "==", "<", ">=", "(", ")", "[", "]",
     "'a'", '"gap"', "0.1", "1e999", "-", ",", "lambda", ":", "=", "x", ".", "**", "#", "\n", "\0", "é"]
)  # fmt: skip
ESTIMATE = Estimate(
    metric="gap", value=0.2, interval=(0.1, 0.3), method="x", n=9, null=0.0, label="a"
)


@FUZZ
@given(text=st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=20))
def test_any_condition_is_a_gate_or_a_sentence(text: str) -> None:
    try:
        verdict = Condition(text).check(
            (ESTIMATE, Estimate.undefined(metric="gap", reason="r", n=0))
        )
    except PlanError:
        return
    assert len(verdict.met) + len(verdict.undefined) <= 2


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("stored") / "r"
    result = Result(
        Plan(),
        (ESTIMATE, Estimate.undefined(metric="gap", reason="none", n=0)),
        metrics=(MetricInfo({"name": "gap"}, "gap", null=0.0),),
        exclusions=(Exclusion("labels", "rows", 3, "no item", 10),),
        provenance={"schema_version": 1, "versions": {"ombud": "1"}},
    )
    RunFolder(folder, {}, result.plan.to_toml()).finish(result)
    return folder, json.loads((folder / "estimates.json").read_text())


@FUZZ
@given(data=st.data())
def test_any_estimates_are_a_report_or_a_sentence(
    stored: tuple[Path, dict[str, Any]], data: st.DataObject
) -> None:
    folder, content = stored
    (folder / "estimates.json").write_text(json.dumps(data.draw(changed(content))))
    try:
        result = Result.load(folder)
    except OmbudError:
        return
    report = Report(result)
    json.loads(report.json())
    assert report.markdown() and report.html(script=False)
