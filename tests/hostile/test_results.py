"""Hostile result folders: a result that is whole, with one thing done to it -> what is said."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ombud.audits import Audit
from ombud.audits.plan import DataPlan, Plan, StatisticsPlan
from ombud.data.tables import write_table
from ombud.worlds import small_world

Deed = Callable[[Path], object]
GATE = ("check", "result", "--allow-edited", "--fail-if", "value > 99")
STRICT = ("check", "result", "--fail-if", "value > 99")
REPORT = ("report", "result", "--to", "report.json")
PAGE = ("report", "result", "--to", "report.html")
RESCORE = ("rescore", "result", "--folder", "again")
VERIFY = ("verify", "result")
COMPARE = ("compare", "result", "result")
RUN = ("run", "plan.toml", "--folder", "result")


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished result beside its data and its plan."""
    home = tmp_path_factory.mktemp("home")
    world = small_world(seed=4)
    names = ("interactions", "labels", "users")
    for name in names:
        write_table(name, world.dataset, home / f"{name}.parquet")
    lists = world.recommenders()[0].recommend(world.interactions.users.ids, 10).to_frame()
    lists.write_parquet(home / "mine.parquet")
    data = DataPlan(**{name: str(home / f"{name}.parquet") for name in names})  # type: ignore[arg-type]
    plan = Plan(
        data=data,
        systems={"mine": {"type": "recorded", "path": str(home / "mine.parquet")}},
        metrics=({"name": "share-gap", "k": 10},),
        statistics=StatisticsPlan(replicates=100),
    )
    (home / "plan.toml").write_text(plan.portable(home).to_toml())
    Audit.from_plan(Plan.load(home / "plan.toml")).run(home / "result")
    return home


def put(name: str, content: str | bytes) -> Deed:
    """Put this into a file of the result."""
    raw = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(raw)


def gone(name: str) -> Deed:
    return lambda folder: (folder / name).unlink()


def stopped(deed: Deed) -> Deed:
    """Do this to the folder of a run that was stopped before it was finished."""
    return lambda folder: (gone("provenance.json")(folder), deed(folder))


def pipe(name: str) -> Deed:
    return lambda folder: ((folder / name).unlink(), os.mkfifo(folder / name))


def link(name: str, target: str) -> Deed:
    return lambda folder: ((folder / name).unlink(), (folder / name).symlink_to(target))


def a_folder(name: str) -> Deed:
    return lambda folder: ((folder / name).unlink(), (folder / name).mkdir())


def edit(name: str, change: Callable[[Any], object]) -> Deed:
    """Change the content of a JSON file."""

    def deed(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return deed


def first(**fields: Any) -> Deed:
    """Change the first estimate."""
    return edit("estimates.json", lambda c: c["estimates"][0].update(fields))


def table(name: str, **columns: Any) -> Deed:
    return lambda folder: pl.DataFrame(columns).write_parquet(folder / name)


def plan_toml(old: str, new: str) -> Deed:
    def deed(folder: Path) -> None:
        text = (folder / "plan.toml").read_text()
        assert old in text, text
        (folder / "plan.toml").write_text(text.replace(old, new))

    return deed


OUTPUTS, ROWS_FILE, ESTIMATES = "outputs/mine.parquet", "rows/00/mine.parquet", "estimates.json"
PROVENANCE = "provenance.json"

# what is done to the result, the command, what is said, exit code
ROWS: list[tuple[Deed, tuple[str, ...], str, int]] = [
    (lambda folder: None, GATE, "0 of", 0),
    (lambda folder: None, VERIFY, "as it was written", 0),
    # estimates
    (put(ESTIMATES, ""), GATE, "estimates.json is not JSON", 2),
    (put(ESTIMATES, b"\xff\xfe"), GATE, "estimates.json is not JSON", 2),
    (put(ESTIMATES, "[]"), GATE, "an object was expected", 2),
    (put(ESTIMATES, '{"a":' * 100_000), GATE, "nested too deeply", 2),
    (put(ESTIMATES, '{"schema_version": NaN}'), GATE, "no number of JSON", 2),
    (put(ESTIMATES, '{"schema_version": ' + "9" * 6000 + "}"), GATE, "is not JSON", 2),
    (put(ESTIMATES, '{"schema_version": 1}'), GATE, "is damaged", 2),
    (put(ESTIMATES, '{"schema_version": 1, "a": "\\ud800"}'), GATE, "is damaged", 2),
    (gone(ESTIMATES), GATE, "estimates.json is missing", 2),
    (gone(ESTIMATES), VERIFY, "MISSING: estimates.json", 1),
    (a_folder(ESTIMATES), GATE, "cannot be read", 2),
    (pipe(ESTIMATES), GATE, "no ordinary file", 2),
    (link(ESTIMATES, "/etc/hostname"), GATE, "is not JSON", 2),
    (link(ESTIMATES, "/dev/zero"), GATE, "no ordinary file", 2),
    (link(ESTIMATES, "estimates.json"), GATE, "cannot be read", 2),
    (first(value="0.5"), GATE, "must be real number", 2),
    (first(value=True), GATE, "value: Input should be a valid number", 2),
    (first(value=None), GATE, "an undefined estimate needs a reason", 2),
    (first(value=1e99), GATE, "EDITED: estimates.json", 1),
    (first(value=1e308), STRICT, "EDITED: ", 4),
    (first(value="0.5"), STRICT, "estimates.json (changed)", 4),
    (gone(ESTIMATES), STRICT, "estimates.json (missing)", 4),
    (link(ESTIMATES, "/dev/zero"), STRICT, "estimates.json (changed)", 4),
    (pipe(OUTPUTS), STRICT, "mine.parquet (changed)", 4),
    (put("plan.toml", "]["), STRICT, "plan.toml (changed)", 4),
    (put("plan.toml", 'title = "x"\n'), RUN, "plan.toml (changed)", 4),
    (first(value=1e308), RUN, "estimates.json (changed)", 4),
    (first(interval=[1]), GATE, "is damaged", 2),
    (first(interval=["a", "b"]), GATE, "is damaged", 2),
    (first(interval=[0.9, 0.1]), GATE, "is not low to high", 2),
    (first(n=-1), GATE, "n = -1 is negative", 2),
    (first(n=1.5), GATE, "n: ", 2),
    (first(p_value=7), GATE, "p_value: 7 is no probability", 2),
    (first(level=2), GATE, "is not between 0 and 1", 2),
    (first(metric=None), GATE, "metric: ", 2),
    (first(system="\x1b[31m\u202e"), GATE, "EDITED", 0),
    (first(label="x" * 100_000, value=777), ("check", "result", "--allow-edited", "--fail-if", "value > 700"), "xx…xx", 1),
    (first(details=[]), GATE, "details", 2),
    (first(details={"a": {"b": "c" * 10}}), GATE, "EDITED", 0),
    (first(surplus=1), GATE, "unexpected keyword argument 'surplus'", 2),
    (edit(ESTIMATES, lambda c: c["estimates"].clear()), GATE, "could never close", 2),
    (edit(ESTIMATES, lambda c: c["estimates"].reverse()), VERIFY, "CHANGED: estimates.json", 1),
    (edit(ESTIMATES, lambda c: c["metrics"].clear()), REPORT, "EDITED", 0),
    (edit(ESTIMATES, lambda c: c.update(card={"name": 5})), REPORT, "is damaged", 2),
    (edit(ESTIMATES, lambda c: c.update(tables=["/etc/passwd"])), REPORT, "leads out of the folder", 2),
    (edit(ESTIMATES, lambda c: c.update(tables=["../x"])), REPORT, "leads out of the folder", 2),
    (edit(ESTIMATES, lambda c: c.update(tables=["a\0b"])), REPORT, "embedded null", 2),
    (edit(ESTIMATES, lambda c: c.update(tables=[5])), REPORT, "5.parquet is missing", 2),
    (edit(ESTIMATES, lambda c: c.update(schema_version=99)), REPORT, "reads up to 1", 2),
    (edit(ESTIMATES, lambda c: c.update(schema_version=True)), REPORT, "has no schema_version", 2),
    (edit(ESTIMATES, lambda c: c["exclusions"].append({"where": "<b>"})), REPORT, "is damaged", 2),
    # provenance
    (gone(PROVENANCE), GATE, "is not a finished result", 2),
    (gone(PROVENANCE), VERIFY, "provenance.json is missing", 2),
    (put(PROVENANCE, "null"), GATE, "an object was expected", 2),
    (put(PROVENANCE, "{}"), GATE, "was not written by ombud", 2),
    (edit(PROVENANCE, lambda c: c.update(versions=[])), REPORT, "versions must name packages", 2),
    (edit(PROVENANCE, lambda c: c.update(files=[])), GATE, "files must name files", 2),
    (edit(PROVENANCE, lambda c: c.pop("files")), GATE, "Not bound", 0),
    (edit(PROVENANCE, lambda c: c["files"].clear()), GATE, "EDITED", 0),
    (edit(PROVENANCE, lambda c: c["files"].clear()), VERIFY, "holds no hashes", 2),
    (edit(PROVENANCE, lambda c: c["files"].pop(ESTIMATES)), GATE, "EDITED", 0),
    (edit(PROVENANCE, lambda c: c["files"].update({"../../secret": "0" * 64})), VERIFY, "CHANGED: ../../secret", 1),
    (edit(PROVENANCE, lambda c: c["files"].update({"\x1b[2J": "0" * 64})), VERIFY, "MISSING: ␛[2J", 1),
    (edit(PROVENANCE, lambda c: c["inputs"].update({"data.labels": "0" * 64})), VERIFY, "CHANGED: data.labels", 1),
    (edit(PROVENANCE, lambda c: c["inputs"].update({"data.x": "0" * 64})), VERIFY, "not reachable: data.x", 0),
    (edit(PROVENANCE, lambda c: c.update(finished={"a": [1]})), REPORT, "report.json", 0),
    # the plan of the result
    (gone("plan.toml"), GATE, "there is no plan", 2),
    (put("plan.toml", "]["), GATE, "is not TOML", 2),
    (put("plan.toml", "]["), VERIFY, "CHANGED: plan.toml", 1),
    (plan_toml('title = "Audit"', 'title = "Better"'), GATE, "EDITED: plan.toml", 0),
    (plan_toml("replicates = 100", "replicates = inf"), GATE, "statistics.replicates: inf", 2),
    (plan_toml("labels.parquet", "gone.parquet"), RESCORE, "files have changed or gone", 2),
    (plan_toml("[systems.mine]", '[systems."../../mine"]'), RESCORE, "leads out of the folder", 2),
    (put("plan.toml", 'title = "x"\n'), RESCORE, "files have changed or gone", 2),
    # outputs and rows
    (gone(OUTPUTS), RESCORE, "were edited after the audit", 2),
    (put(OUTPUTS, "PAR1"), RESCORE, "were edited after the audit", 2),
    (table(OUTPUTS, user=[1], items=[[1]]), RESCORE, "were edited after the audit", 2),
    (put("outputs/mine.json", "{}"), RESCORE, "were edited after the audit", 2),
    (pipe(OUTPUTS), RESCORE, "were edited after the audit", 2),
    (link(OUTPUTS, "/etc/passwd"), RESCORE, "were edited after the audit", 2),
    (stopped(gone("outputs/mine.json")), RUN, "mine.json is missing", 2),
    (gone(ROWS_FILE), COMPARE, "no number in common", 2),
    (put(ROWS_FILE, "x"), COMPARE, "is not Parquet", 2),
    (table(ROWS_FILE, a=[1]), COMPARE, "mine.parquet is damaged", 2),
    (pipe(ROWS_FILE), COMPARE, "no ordinary file", 2),
    (link(ROWS_FILE, "/etc/passwd"), COMPARE, "leads out of the folder", 2),
    (put(ROWS_FILE, "x"), VERIFY, "CHANGED: rows/00/mine.parquet", 1),
    # what stands behind a finding is excluded where it cannot be read
    (put(ROWS_FILE, "x"), PAGE, "report.html", 0),
    (pipe(ROWS_FILE), PAGE, "report.html", 0),
    (link(ROWS_FILE, "/etc/passwd"), PAGE, "report.html", 0),
    (put("groups/user.parquet", "x"), PAGE, "report.html", 0),
    # going on with a run
    (stopped(put("run.json", "{")), RUN, "run.json is not JSON", 2),
    (stopped(put("run.json", "[]")), RUN, "an object was expected", 2),
    (stopped(put("run.json", "{}")), RUN, "holds another run", 2),
    (stopped(put("run.json", '{"plan": ' + "[" * 100_000)), RUN, "nested too deeply", 2),
    (stopped(gone("run.json")), RUN, "holds no run", 2),
    (gone("run.json"), RESCORE, "run.json is missing", 2),
    (put("run.json", '{"files": 5}'), RESCORE, "run.json is damaged", 2),
    (stopped(put(OUTPUTS, "PAR1")), RUN, "is not Parquet", 2),
    (stopped(table(OUTPUTS, x=[1])), RUN, "mine.parquet: 1 fault", 2),
    (stopped(put("outputs/mine.json", '{"exclusions": [5]}')), RUN, "mine.json is damaged", 2),
    (stopped(put("outputs/mine.json", "{}")), RUN, "mine.json is damaged", 2),
    # the folder itself
    (lambda folder: (shutil.rmtree(folder), folder.write_text("x")), GATE, "there is no result folder", 2),
    (shutil.rmtree, GATE, "there is no result folder", 2),
    (lambda folder: (shutil.rmtree(folder), folder.symlink_to(folder)), GATE, "there is no result folder", 2),
    (stopped(lambda folder: (shutil.rmtree(folder), folder.write_text("x"))), RUN, "File exists", 2),
    (lambda folder: None, ("report", "result", "--to", "report.exe"), "ends in .exe", 2),
    (lambda folder: None, ("report", "result", "--to", "/proc/1/x.json"), "/proc/1", 2),
    # gates: words that are no condition, and conditions that could never close
    (lambda folder: None, ("check", "result", "--fail-if", ""), "cannot read the condition", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "__import__('os').system('x')"), "are understood", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value.__class__ == 1"), "are understood", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "[x for x in ()]"), "are understood", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > 10**10**10"), "are understood", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "(" * 300 + "value > 1" + ")" * 300), "cannot read the condition", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "not " * 500 + "value > 1"), "nested more than 50 deep", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value"), "a condition must compare", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > 'a'"), "cannot be compared", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value = 1"), "cannot read the condition", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > nan"), "unknown name 'nan'", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > 1e999"), "a number in it is infinite", 2),
    (lambda folder: None, ("check", "result", "--fail-if", 'metric == "share gap@11"'), "could never close", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > 1; import os"), "cannot read the condition", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > \0"), "cannot read the condition", 2),
    (lambda folder: None, ("check", "result", "--fail-if", "value > " + "9" * 5000), "cannot read the condition", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("deed", "words", "said", "code"),
    ROWS,
    ids=[f"{i:03d} {words[0]}: {said[:30]}" for i, (_, words, said, _) in enumerate(ROWS)],
)
def test_a_hostile_result(
    deed: Deed, words: tuple[str, ...], said: str, code: int, told: Any, home: Path, tmp_path: Path
) -> None:
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    deed(tmp_path / "result")
    assert said in told(*words, code=code)
