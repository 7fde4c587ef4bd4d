"""Audits end to end: memory, folder, stop and go on, measure again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.audits.audit import rescore
from ombud.audits.compare import compare
from ombud.audits.load import load_data
from ombud.audits.run_folder import RunFolder
from ombud.data import Interactions, Recommendations
from ombud.errors import AuditedSystemError, PlanError, ResultError
from ombud.files import read_json
from ombud.metrics import LabelShare, ShareGap
from ombud.systems import RecordedRecommendations
from ombud.worlds import World, small_world

LISTS = Recommendations.from_frame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})


@pytest.fixture(scope="module")
def world() -> World:
    return small_world(seed=3)


def audit(world: World, **options: object) -> Audit:
    metrics = [ShareGap(k=10), LabelShare(k=10)]
    return Audit(world.dataset, world.recommenders(), metrics, **options)  # type: ignore[arg-type]


def test_memory_and_folder_give_the_same_numbers(world: World, tmp_path: Path) -> None:
    in_memory = audit(world).run()
    stored = audit(world).run(tmp_path / "r")
    assert in_memory.estimates == stored.estimates
    loaded = Result.load(tmp_path / "r")
    assert loaded.estimates == stored.estimates
    assert loaded.exclusions == stored.exclusions
    assert loaded.metrics == stored.metrics
    assert loaded.provenance["seed"] == 0 and loaded.provenance["versions"]["ombud"]
    assert rescore(tmp_path / "r").estimates == stored.estimates


def test_a_finished_run_asks_nobody_again(world: World, tmp_path: Path) -> None:
    class Counting(RecordedRecommendations):
        asked = 0

        def recommend(self, users: object, n: int, exclude_seen: bool = True) -> Recommendations:
            type(self).asked += 1
            return super().recommend(users, n)  # type: ignore[arg-type]

    lists = world.recommenders()[0].recommend(world.interactions.users.ids, 10)
    system = Counting.from_frame(lists, "one")
    first = Audit(world.dataset, {"one": system}, [ShareGap()]).run(tmp_path / "r")
    asked = Counting.asked
    again = Audit(world.dataset, {"one": system}, [ShareGap()]).run(tmp_path / "r")
    assert asked > 0 and Counting.asked == asked
    assert again.estimates == first.estimates


def test_what_a_system_left_out_is_kept_with_its_answers(world: World, tmp_path: Path) -> None:
    from dataclasses import replace

    from ombud.data import Exclusion

    lists = world.recommenders()[0].recommend(world.interactions.users.ids, 10)
    told = replace(lists, exclusions=(Exclusion("service", "lists", 3, "they were garbage"),))

    class Telling:
        name = "telling"

        def recommend(self, users: object, n: int, exclude_seen: bool = True) -> Recommendations:
            return told.top(n)

    first = Audit(world.dataset, [Telling()], [ShareGap()]).run(tmp_path / "r")
    assert "telling: service: 3 lists excluded: they were garbage" in map(str, first.exclusions)
    assert set(rescore(tmp_path / "r").exclusions) == set(first.exclusions)


def test_another_run_does_not_overwrite(world: World, tmp_path: Path) -> None:
    audit(world).run(tmp_path / "r")
    with pytest.raises(ResultError, match=r"holds another run \(different: plan\)"):
        audit(world, seed=9).run(tmp_path / "r")
    with pytest.raises(ResultError, match=r"different: data"):
        audit(small_world(seed=4)).run(tmp_path / "r")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear diary")
    with pytest.raises(ResultError, match="not empty and holds no run"):
        audit(world).run(tmp_path / "mine")


@pytest.mark.parametrize("at", range(1, 5))
def test_killed_during_any_of_the_first_writes_a_folder_can_be_used_again(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a kill leaves of a file that was being written is the neighbour, half full."""

    class Killed(BaseException):
        pass

    real, count = os.replace, 0

    def replace_or_die(source: Any, target: Any) -> None:
        nonlocal count
        count += 1
        if count == at:
            shutil.copy(source, f"{source}.kept")
            Path(f"{source}.kept").write_bytes(b"half")
            raise Killed
        real(source, target)

    folder = tmp_path / "r"
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace_or_die)
        with pytest.raises(Killed):
            RunFolder(folder, {"a": 1}, "title = 'x'").store_outputs("s", LISTS)
    for kept in folder.rglob("*.kept"):
        kept.rename(kept.with_suffix(""))
    assert any(path.suffix == ".part" for path in folder.rglob(".*"))
    again = RunFolder(folder, {"a": 1}, "title = 'x'")
    again.store_outputs("s", LISTS)
    assert again.outputs("s") is not None and read_json(folder / "run.json")["a"] == 1


SCRIPT = """
import sys, time
from pathlib import Path
from ombud.audits import Audit, collect as module
from ombud.metrics import ShareGap
from ombud.worlds import small_world

module.CHUNK = 20
world = small_world(seed=3)
inner = world.recommenders()[0]

class Slow:
    name = "slow"
    def recommend(self, users, n, exclude_seen=True):
        with Path(sys.argv[2]).open("a") as log:
            log.write("\\n".join(map(str, users)) + "\\n")
        time.sleep(float(sys.argv[3]))
        return inner.recommend(users, n)

Audit(world.dataset, [Slow()], [ShareGap(k=5)]).run(sys.argv[1])
"""


def test_killed_and_started_again_it_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "asked.txt"
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "r"), str(log)]
    process = subprocess.Popen([*command, "0.2"])
    deadline = time.monotonic() + 600
    parts = tmp_path / "r" / "outputs" / "parts"
    while len(list(parts.glob("*.parquet"))) < 3:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = len(list(parts.glob("*.parquet")))
    assert kept >= 3
    with pytest.raises(ResultError, match="start it again with the same plan and folder"):
        Result.load(tmp_path / "r")
    subprocess.run([*command, "0"], check=True)
    asked = log.read_text().split()
    users = small_world(seed=3).interactions.n_users
    # Only the part that was being asked for when the process died is asked for again.
    assert len(set(asked)) == users and len(asked) <= users + 20
    result = Result.load(tmp_path / "r")
    assert result.estimates[0].n > 0
    assert not list(parts.glob("*.parquet"))
    assert not list((tmp_path / "r").rglob("*.part"))


def test_a_plan_from_files(world: World, tmp_path: Path) -> None:
    files = world.write(tmp_path, 10)
    plan = {
        "title": "From files",
        "data": {n: files[n].name for n in ("interactions", "labels", "users")},
        "systems": {"mine": {"type": "recorded", "path": "recommendations/neutral.parquet"}},
        "metrics": [{"name": "share-gap", "k": 10}],
    }
    path = tmp_path / "plan.toml"
    path.write_text(Plan.from_dict(plan).to_toml())
    result = Audit.from_plan(Plan.load(path)).run(tmp_path / "r")
    live = Audit(world.dataset, {"mine": world.recommenders()[0]}, [ShareGap(k=10)]).run()
    assert [e.value for e in result.estimates] == pytest.approx([e.value for e in live.estimates])
    assert set(result.provenance["inputs"]) == {
        "data.interactions",
        "data.labels",
        "data.users",
        "systems.mine.path",
    }
    # Another record in the same place is another run; so is other data.
    planted = pl.read_parquet(files["recommendations/amplifying"])
    planted.write_parquet(files["recommendations/neutral"])
    with pytest.raises(ResultError, match="different: files, records"):
        Audit.from_plan(Plan.load(path)).run(tmp_path / "r")
    assert rescore(tmp_path / "r").estimates == result.estimates
    pl.read_parquet(files["interactions"]).head(5000).write_parquet(files["interactions"])
    with pytest.raises(ResultError, match=r"have changed or gone .*: data.interactions"):
        rescore(tmp_path / "r")


def test_all_faults_of_all_files_in_one_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,itm\n1,2\n")
    (tmp_path / "b.csv").write_text("item,label,yes,no\n1,w,-1,0\n")
    plan = Plan.from_dict(
        {"data": {"interactions": "a.csv", "labels": "b.csv", "users": "absent.csv"}}
    ).relative_to(tmp_path)
    with pytest.raises(PlanError) as caught:
        Audit.from_plan(plan)
    for words in ("'item' is missing", "'yes' is below 0", "there is no file"):
        assert words in str(caught.value)


def test_plans_say_all_their_faults(tmp_path: Path) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.from_dict({"seed": -1, "colour": "red", "statistics": {"level": 2}})
    assert "3 faults" in str(caught.value)
    with pytest.raises(PlanError, match="schema version 99; this ombud reads up to 1"):
        Plan.from_dict({"schema_version": 99})
    with pytest.raises(PlanError, match="there is no plan"):
        Plan.load(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_text("= =")
    with pytest.raises(PlanError, match="is not TOML"):
        Plan.load(tmp_path / "bad.toml")


def test_paths_in_a_plan_are_known_by_their_type(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "preset": "warnings",
        "data": {
            "source": "movielens-tmdb",
            "options": {"path": "files", "keywords": "words", "mapping": "tmdb-to-ao3@1"},
        },
        "options": {"rerankers": [{"type": "avoid-list", "of": "SVD", "path": "one.csv"}]},
        "systems": {"x": {"type": "avoid-list", "inner": {"type": "recorded", "path": "l.csv"}}},
        "metrics": [{"name": "avoid-leak", "path": "avoid.csv"}],
        "analyses": [{"name": "identity-tag-counts", "terms": "terms-identity@1"}],
    }
    plan = Plan.from_dict(content).relative_to(tmp_path)
    assert plan.data.options["path"] == str(tmp_path / "files")
    assert plan.data.options["keywords"] == str(tmp_path / "words")
    assert plan.data.options["mapping"] == "tmdb-to-ao3@1"
    assert plan.systems["x"]["inner"]["path"] == str(tmp_path / "l.csv")
    assert plan.metrics[0]["path"] == str(tmp_path / "avoid.csv")
    assert plan.analyses[0]["terms"] == "terms-identity@1"
    assert plan.options["rerankers"][0]["path"] == str(tmp_path / "one.csv")
    assert plan.relative_to(tmp_path / "elsewhere") == plan
    files = Plan.from_dict({"data": {"interactions": "a.csv"}}).relative_to(tmp_path)
    assert files.data.interactions == str(tmp_path / "a.csv")
    assert files.portable(tmp_path / "result").data.interactions == "../a.csv"


def test_no_home_folder_stands_in_a_portable_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "people" / "ann"
    monkeypatch.setenv("HOME", str(home))
    plan = Plan.from_dict({"data": {"interactions": str(home / "data" / "a.csv")}})
    portable = plan.portable(tmp_path / "results").data.interactions
    assert portable == "~/data/a.csv"
    again = plan.portable(tmp_path / "results").relative_to(tmp_path / "results")
    assert again.data.interactions == str(home / "data" / "a.csv")


def test_a_moved_result_can_be_rescored(tmp_path: Path) -> None:
    from ombud.audits.audit import rescore

    world = small_world(seed=3)
    Audit(world.dataset, world.recommenders(), [ShareGap(k=5)], seed=1).run(tmp_path / "a" / "r")
    (tmp_path / "a").rename(tmp_path / "b")
    before = Result.load(tmp_path / "b" / "r")
    again = rescore(tmp_path / "b" / "r")
    assert [e.value for e in again.estimates] == [e.value for e in before.estimates]
    for file in ("plan.toml", "run.json"):
        assert str(tmp_path) not in (tmp_path / "b" / "r" / file).read_text()


def test_what_a_source_would_not_use_is_refused() -> None:
    plan = Plan.from_dict(
        {
            "data": {"source": "small", "texts": "t.csv"},
            "systems": {"p": {"type": "popular"}},
            "metrics": [{"name": "label-share"}],
        }
    )
    with pytest.raises(PlanError, match="beside it texts"):
        Audit.from_plan(plan)


def test_audits_that_cannot_be(world: World) -> None:
    systems = world.recommenders()
    with pytest.raises(PlanError, match="at least one system"):
        Audit(world.dataset, [], [ShareGap()])
    with pytest.raises(PlanError, match="at least one metric"):
        Audit(world.dataset, systems, [])
    with pytest.raises(PlanError, match="the same name"):
        Audit(world.dataset, [systems[0], systems[0]], [ShareGap()])
    with pytest.raises(PlanError, match="they name files"):
        Audit(world.dataset, {"../up": systems[0]}, [ShareGap()])

    class Short:
        name = "short"

        def recommend(self, users: object, n: int, exclude_seen: bool = True) -> Recommendations:
            return systems[0].recommend(world.interactions.users.ids[:3], n)

    with pytest.raises(AuditedSystemError, match="short answered with 3 lists"):
        Audit(world.dataset, [Short()], [ShareGap()]).run()


def test_metrics_that_read_alike_are_refused_and_options_show_in_titles(world: World) -> None:
    systems = world.recommenders()[:1]
    with pytest.raises(PlanError, match="two metrics are called share gap@5"):
        Audit(world.dataset, systems, [ShareGap(k=5), ShareGap(k=5)])
    both = [ShareGap(k=5), ShareGap(k=5, unknown="no")]
    made = Audit(world.dataset, systems, both, by=[]).run()
    titles = {e.metric for e in made.estimates}
    assert titles == {"share gap@5", "share gap@5, unknown as no"}


def test_groups_given_to_the_audit_are_stored_with_it(world: World, tmp_path: Path) -> None:
    from ombud.data import Grouping

    users = world.interactions.users.ids
    halves = Grouping.from_values(users, {"half": ["a", "b"] * (len(users) // 2)})
    first = audit(world, by=halves).run(tmp_path / "r")
    assert {e.group for e in first.estimates} == {"", "half=a", "half=b"}
    assert rescore(tmp_path / "r").estimates == first.estimates
    with pytest.raises(ResultError, match="different: data"):
        audit(world).run(tmp_path / "r")


def test_a_sample_of_users(world: World) -> None:
    result = Audit(world.dataset, world.recommenders()[:1], [LabelShare(unknown="no")], sample=50)
    assert {e.n for e in result.run().estimates if not e.group} == {50}


def test_damaged_and_newer_results(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    audit(world).run(folder)
    file = folder / "estimates.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"schema_version": 99}))
    with pytest.raises(ResultError, match="schema version 99; this ombud reads up to 1"):
        Result.load(folder)
    file.write_text(json.dumps(content | {"tables": ["../../secret"]}))
    with pytest.raises(ResultError, match="leads out of the folder"):
        Result.load(folder)
    file.write_text("{")
    with pytest.raises(ResultError, match="is not JSON"):
        Result.load(folder)
    file.write_text(json.dumps(content | {"estimates": [{"metric": "x"}]}))
    with pytest.raises(ResultError, match="is damaged"):
        Result.load(folder)
    with pytest.raises(ResultError, match="there is no result folder"):
        Result.load(tmp_path / "absent")


def test_links_in_a_result_are_not_followed(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    audit(world).run(tmp_path / "r")
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "rows").symlink_to(outside)
    (tmp_path / "s" / "run.json").write_text((tmp_path / "r" / "run.json").read_text())
    with pytest.raises(ResultError, match="link"):
        audit(world).run(tmp_path / "s")
    assert not list(outside.iterdir())


def test_damaged_rows_and_outputs(world: World, tmp_path: Path) -> None:
    first, second = audit(world).run(tmp_path / "a"), audit(world).run(tmp_path / "b")
    (tmp_path / "b" / "rows" / "00" / "neutral.parquet").write_bytes(b"no parquet")
    with pytest.raises(ResultError, match="neutral.parquet"):
        compare(first, second)
    (tmp_path / "b" / "outputs" / "neutral.parquet").write_bytes(b"no parquet")
    with pytest.raises(ResultError, match="neutral.parquet"):
        rescore(tmp_path / "b")


def test_two_results_are_compared_on_the_same_users(world: World, tmp_path: Path) -> None:
    neutral, planted = world.recommenders()[:2]
    metrics = [ShareGap(k=10)]
    before = Audit(world.dataset, {"mine": neutral}, metrics).run(tmp_path / "a")
    after = Audit(world.dataset, {"mine": planted}, metrics).run(tmp_path / "b")
    changes = [change for change in compare(before, after) if not change.group]
    direct = Audit(world.dataset, {"after": planted, "before": neutral}, metrics).run()
    gaps = {e.label: e for e in direct.estimates if e.against == "before"}
    assert len(changes) == len(gaps)
    for change in changes:
        assert change.value == pytest.approx(gaps[change.label].value)
        assert change.interval == pytest.approx(gaps[change.label].interval)
    other = Audit(world.dataset, {"mine": planted}, [LabelShare()]).run(tmp_path / "c")
    with pytest.raises(ResultError, match="share no metric"):
        compare(before, other)


def test_users_without_history_and_unknown_items_are_counted(world: World) -> None:
    lists = pl.DataFrame({"user": ["ghost", "u"], "item": ["nowhere", "i"], "rank": [1, 1]})
    interactions = Interactions.from_frame({"user": ["u", "v"], "item": ["i", "j"]})
    from ombud.data import Dataset, Labels

    labels = Labels.from_applied({"item": ["i", "z"], "label": ["w", "w"]})
    result = Audit(
        Dataset(interactions, labels),
        {"mine": RecordedRecommendations.from_frame(lists)},
        [ShareGap(k=1)],
    ).run()
    text = "\n".join(map(str, result.exclusions))
    assert "mine: users: 1 of 2 users excluded: no list was recommended" in text
    assert "mine: recommendations: 1 of 2 lists excluded: their users have no history" in text
    assert "labels: 1 of 2 items excluded: they carry labels but occur in no history" in text
    assert np.all([e.n <= 1 for e in result.estimates])


def test_accuracy_from_a_plan_and_again_without_the_models(world: World, tmp_path: Path) -> None:
    ratings = small_world(seed=3, ratings=True)
    ratings.write(tmp_path, 10)
    plan = {
        "data": {"interactions": "interactions.parquet", "labels": "labels.parquet"},
        "split": {"method": "per-user", "share": 0.2},
        "systems": {"liked": {"type": "popular", "by": "damped-mean"}, "any": {"type": "random"}},
        "metrics": [{"name": "rmse"}, {"name": "recall", "k": 10}],
        "statistics": {"replicates": 200},
    }
    asked = Plan.from_dict(plan).relative_to(tmp_path)
    result = Audit.from_plan(asked).run(tmp_path / "r")
    rmse = [e for e in result.estimates if e.metric == "RMSE"]
    assert {e.system for e in rmse} == {"liked"}, "random scores are no ratings"
    assert rmse[0].value is not None and 0 < rmse[0].value < 2
    assert (tmp_path / "r" / "predictions" / "liked.parquet").exists()
    held = Interactions.from_frame(str(tmp_path / "r" / "held_out.parquet"))
    assert held.to_frame().equals(load_data(asked).test.to_frame())
    assert rescore(tmp_path / "r").estimates == result.estimates
    other = Plan.from_dict({"seed": 5, "metrics": [{"name": "recall", "k": 10}]})
    again = rescore(tmp_path / "r", plan=other)
    wanted = [e.value for e in result.estimates if e.metric != "RMSE"]
    assert [e.value for e in again.estimates] == pytest.approx(wanted)
