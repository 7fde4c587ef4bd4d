"""The counterfactual analysis: right by brute force, every number with its policy, all counted."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ombud.audits import Audit, Result
from ombud.audits.audit import rescore
from ombud.errors import PlanError
from ombud.metrics import Coverage
from ombud.metrics.engine.estimator import Settings
from ombud.probes.summaries import ReachTable
from ombud.questions.counterfactual.analysis import Counterfactual
from ombud.questions.counterfactual.reach import popularity_gap
from ombud.questions.counterfactual.report import OVERLAP, ROOTS
from ombud.questions.counterfactual.sample import AuditSample

sys.path.insert(0, str(Path(__file__).parent))
from two_tastes import LONELY, SYSTEMS, plan_of, write_world

EASE = {"Our EASE": SYSTEMS["Our EASE"]}


def test_availability_is_what_trying_every_edit_gives(world: Path) -> None:
    plan = plan_of(world, EASE, users=500, targets=500, parts=["reach"], retrained=0)
    audit = Audit.from_plan(plan)
    result = audit.run()
    (proved,) = (e for e in result.select("reach/availability/proved") if not e.group)
    (possible,) = (e for e in result.select("reach/availability/possible") if not e.group)
    (system,) = audit.systems.values()
    data = audit.data.interactions
    dense = data.matrix.toarray()
    hits = pairs = 0
    for row in dense:
        tried = [row] + [np.where(np.arange(len(row)) == i, 1 - row, row) for i in range(len(row))]
        lists = system.recommend_for(sparse.csr_array(np.array(tried)), 3).items
        for target in np.flatnonzero(row == 0):
            # Rating the target itself is never an edit.
            allowed = [j for j in range(len(tried)) if tried[j][target] == 0]
            hits += bool((lists[allowed] == target).any())
            pairs += 1
    assert proved.details["pairs"] == pairs
    assert proved.value <= hits / pairs + 1e-9
    assert hits / pairs <= possible.value + 1e-9
    assert proved.value == pytest.approx(hits / pairs, abs=0.02)  # but for ties


def test_more_edits_reach_no_less(world: Path) -> None:
    values = []
    for budget in (0, 1, 2):
        plan = plan_of(world, EASE, budget=budget, parts=["reach"], retrained=0, users=5)
        result = Audit.from_plan(plan).run()
        values.append(
            next(e.value for e in result.select("reach/availability/proved") if not e.group)
        )
    assert values == sorted(values)
    assert values[0] < values[2]


def test_an_item_that_nobody_shares_is_found_out(world: Path) -> None:
    plan = plan_of(world, EASE, parts=["reach"], targets=500, people=6, retrained=0)
    rows = Audit.from_plan(plan).run().tables["counterfactual-reach"]
    lonely = rows.filter(item=LONELY)
    assert lonely.height > 0
    assert set(lonely["reachable"]) == {"no"}
    assert "yes" in set(rows["reachable"])


def test_every_number_names_its_policy(result: Result) -> None:
    roots = {e.key.partition("/")[0] for e in result.estimates}
    assert roots >= {"reach", "escape", "drift-in", "stability", "consistency"}
    for e in result.estimates:
        if e.key.partition("/")[0] in ROOTS:
            assert e.details.get("policy") in {"frozen", "retrained"}, e.key
    assert {e.details["policy"] for e in result.select("reach/holds-retrained")} == {"retrained"}
    assert {e.details["policy"] for e in result.select("stability/largest")} == {"retrained"}


def test_shares_of_escape_grow_with_edits_and_keep_everybody(result: Result) -> None:
    for system in ("Our EASE", "ALS"):
        shares = [
            e
            for e in result.select("escape/share")
            if e.system == system and not e.group and e.value is not None
        ]
        assert [e.details["edits"] for e in shares] == [1, 2, 3]
        assert [e.value for e in shares] == sorted(e.value for e in shares)
        assert len({e.n for e in shares}) == 1
        assert shares[-1].details["found"] + shares[-1].details["censored"] == shares[-1].n


def test_nobody_has_to_rate_what_they_want_to_avoid(world: Path) -> None:
    few = {"parts": ["escape"], "people": 12, "retrained": 0}
    shut = Audit.from_plan(plan_of(world, EASE, **few)).run()
    open_ = Audit.from_plan(plan_of(world, EASE, rate_labelled=True, **few)).run()
    edits = ";".join(shut.tables["counterfactual-ways"]["edits"])
    added = {part.strip().removeprefix("add ") for part in edits.split(";") if "add " in part}
    assert added and all(int(title.split()[-1]) < 12 for title in added if "Film" in title)
    shares = [
        [e.value for e in result.select("escape/share") if not e.group] for result in (shut, open_)
    ]
    assert all(one <= other for one, other in zip(*shares, strict=True))


def test_unknown_labels_stay_unknown_unless_declared(tmp_path: Path) -> None:
    """Who is counted has the same answer however the unknown items are labeled; nobody else is."""

    def ways(rows: pl.DataFrame) -> tuple[Result, dict[tuple[str, int], int | None]]:
        rows.write_csv(tmp_path / "labels.csv")
        few = {"parts": ["escape", "drift-in"], "people": 9, "at_risk": 9, "looked_at": 9}
        plan = plan_of(tmp_path, EASE, **few, retrained=0, random=0, escape_budget=1)
        found = Audit.from_plan(plan).run()
        told = found.tables.get("counterfactual-ways", pl.DataFrame()).to_dicts()
        return found, {(r["direction"], r["person"]): r["cost"] for r in told}

    write_world(tmp_path, users=20, items=12)
    labels, open_ = pl.read_csv(tmp_path / "labels.csv"), ["item-03", "item-08"]
    rest = labels.filter(~pl.col("item").is_in(open_))
    result, counted = ways(rest)
    possible = [
        ways(pl.concat([rest, pl.DataFrame({"item": open_, "label": "dark", "present": said})]))[1]
        for said in itertools.product([True, False], repeat=2)
    ]
    for who, cost in counted.items():
        assert {one[who] for one in possible} == {cost}
    gone = set(possible[0]) - set(counted)
    assert gone and all(len({one[who] for one in possible}) > 1 for who in gone)
    excluded = [e for e in result.exclusions if "depends on items whose label" in e.reason]
    assert sum(e.count for e in excluded) == len(gone)

    nothing, _ = ways(labels.filter(pl.col("item") == LONELY))
    for e in nothing.select("escape/share"):
        assert e.value is None and e.reason_code == "no-labels"
    # A few items do not stand above an answer that is about more than labels; most items do.
    told = [[e for e in r.exclusions if "unlabeled-items" in e.key] for r in (result, nothing)]
    assert [(e.count > e.of / 2, e.is_warning) for some in told for e in some if e.of] == [
        (False, False), (True, True),
    ]  # fmt: skip


def test_sets_labels_and_ranks_are_told(result: Result) -> None:
    sets = result.select("reach/set/proved")
    named = {(e.label, e.details["items"]) for e in sets if e.system == "Our EASE"}
    assert named == {("dark", 12), ("kind: All", 24), ("kind: Odd", 12)}
    for e in sets:
        assert e.details["today"] <= e.value + 1e-9  # no edit is an edit
    (whole,) = (e for e in sets if e.label == "kind: All" and e.system == "Our EASE")
    assert whole.value == 1.0
    (dark,) = (
        e for e in result.select("reach/label/availability/proved") if e.system == "Our EASE"
    )
    assert dark.label == "dark" and not dark.group and dark.value is not None
    for system in ("Our EASE", "ALS"):
        now, best = (
            next(e for e in result.select(f"reach/{key}") if e.system == system and not e.group)
            for key in ("rank/today", "rank/best")
        )
        assert best.value <= now.value


def test_reach_after_retraining_is_told_where_a_closed_form_does(result: Result) -> None:
    proved, possible = (
        [e for e in result.select(f"retrained-reach/availability/{key}") if not e.group]
        for key in ("proved", "possible")
    )
    assert {e.system for e in proved} == {"Our EASE", "ALS"}  # dice have nothing to retrain
    by_system = {e.system: (e, f) for e, f in zip(proved, possible, strict=True)}
    ease, bound = by_system["Our EASE"]
    assert ease.details["policy"] == "retrained" and ease.details["exact_updates"]
    assert ease.details["witnesses_agree"] == ease.details["witnesses_trained"] == 2
    assert ease.value <= bound.value  # but for ties, one edit is enumerated
    als = by_system["ALS"][0].details
    assert als["seeds"] == 2 and not als["exact_updates"]


def test_the_columns_of_definition_one_are_stored(result: Result) -> None:
    pairs = result.tables["counterfactual-pairs"]
    assert set(pairs["system"]) == {"Our EASE", "ALS"} and set(pairs["policy"]) == {"retrained"}
    ease = pairs.filter(system="Our EASE")
    assert set(ease["status"]) == {"proved"} and set(ease["seeds"]) == {1}
    assert (ease["best"] >= ease["today"] - 1e-12).all()
    assert (ease["bound"] - ease["best"]).abs().max() <= 1e-6
    np.testing.assert_allclose(ease["gain"], ease["best"] - ease["today"])
    assert set(ease["rated"]) == {True, False}
    assert (ease.filter(pl.col("rated"))["today"] == 0).all()
    als = pairs.filter(system="ALS")
    assert set(als["status"]) <= {"searched", "undecided"} and set(als["seeds"]) == {2}
    assert als["gain_low"].is_not_null().all() and als["frozen_best"].is_not_null().all()
    mean = {
        e.system: e.value for e in result.select("retrained-reach/best")
        if not e.group and not e.label
    }  # fmt: skip
    assert set(mean) == {"Our EASE", "ALS"}
    lifts = ease.filter((pl.col("today") > 0) & ~pl.col("rated"))
    np.testing.assert_allclose(lifts["log_lift"], np.log(lifts["best"] / lifts["today"]))


def test_other_distances_and_who_moves_whom(result: Result, world: Path, tmp_path: Path) -> None:
    names = {e.details["distance"] for e in result.select("stability/largest")}
    assert {"difference in label share of dark"} < names and len(names) == 6
    assert {e.details["treatment"] for e in result.select("stability/largest")} == {
        "removed", "entries"
    }  # fmt: skip
    assert all(e.details["passes"] is None for e in result.select("stability/largest"))
    users = sorted({line.split(",")[0] for line in (world / "plays.csv").read_text().split()[1:]})
    rows = [f"{user},{'ab'[n % 2]}" for n, user in enumerate(users)]
    (tmp_path / "users.csv").write_text("\n".join(["user,team", *rows]))
    plan = plan_of(
        world, {"kNN": {"type": "user-knn"}}, parts=["stability"], by_group=True, beta=2.0
    )
    files = plan.data.model_copy(update={"users": str(tmp_path / "users.csv")})
    found = Audit.from_plan(plan.model_copy(update={"data": files})).run()
    moves = found.select("stability/who-moves-whom", distance=OVERLAP)
    assert {(e.group, e.details["movers"]) for e in moves} == {
        (one, other) for one in ("team=a", "team=b") for other in ("team=a", "team=b")
    }
    assert any("total variation" in str(e.details["distance"])
               for e in found.select("stability/largest"))  # fmt: skip


def test_only_permitted_edits_are_made(world: Path) -> None:
    names = [f"item-{i:02d}" for i in range(6)]
    plan = plan_of(
        world, EASE, parts=["reach", "escape"], kinds=["add"], editable=names, retrained=0, budget=2
    )
    result = Audit.from_plan(plan).run()
    rows = [*result.tables["counterfactual-reach"]["edits"],
            *result.tables["counterfactual-ways"]["edits"]]  # fmt: skip
    words = {edit for row in rows for edit in row.split("; ") if edit}
    assert words and words <= {f"add Film no. {i}" for i in range(6)}


def test_what_cannot_be_asked_is_counted(result: Result) -> None:
    (dice,) = (e for e in result.exclusions if e.key == "not-frozen")
    assert dice.system == "Dice"
    assert "random" in dice.reason
    assert not [e for e in result.select("reach/availability/proved") if e.system == "Dice"]
    assert [e for e in result.select("stability/largest") if e.system == "Dice"]


def test_the_budget_of_questions_is_kept(result: Result) -> None:
    spent = result.tables["counterfactual-cost"].filter(part="reach through lists alone")
    assert spent["questions"].to_list() and max(spent["questions"]) <= 150
    asked = [e for e in result.select("asked-reach/availability/proved") if not e.group]
    white = [e for e in result.select("reach/availability/possible") if not e.group]
    assert {e.system for e in asked} == {"Our EASE"}
    assert asked[0].value <= 1.0
    assert asked[0].details["black_box"] and white


def test_a_run_started_again_finds_the_same(world: Path, tmp_path: Path) -> None:
    plan = plan_of(world, EASE, parts=["reach", "escape"])
    first = Audit.from_plan(plan).run(tmp_path / "again")
    second = Audit.from_plan(plan).run(tmp_path / "again")  # answers are stored, models are not
    assert [e.to_dict() for e in first.estimates] == [e.to_dict() for e in second.estimates]


def test_stored_answers_cannot_be_asked_what_if(stored: Path) -> None:
    again = rescore(stored)
    left_out = {e.system for e in again.exclusions if e.key == "not-probed"}
    assert left_out == set(SYSTEMS)
    assert not again.select("reach/availability/proved")


class _Service(BaseHTTPRequestHandler):
    told: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.add(body["fields"]["country"])
        seen = {entry["item"] for entry in body["history"]}
        items = [f"item-{i:02d}" for i in range(24) if f"item-{i:02d}" not in seen]
        raw = json.dumps({"items": items[: body["n"]]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *args: object) -> None:
        pass


def test_a_service_is_asked_within_its_budget(world: Path, tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url, countries = f"http://127.0.0.1:{server.server_port}/", {"country": ["DE", "FR"]}
        service = {"shop": {"url": url, "fields": countries}}
        plan = plan_of(world, EASE, parts=["reach"], services=service, queries=60, retrained=0)
        result = Audit.from_plan(plan).run(tmp_path / "run")
    finally:
        server.shutdown()
        server.server_close()
    spent = result.tables["counterfactual-cost"].filter(system="shop")
    assert 0 < spent["questions"].item() <= 60
    (share,) = (e for e in result.select("asked-reach/availability/proved") if not e.group)
    assert share.system == "shop" and _Service.told == {"DE", "FR"}
    (twice,) = result.select("consistency/asked-twice")
    assert twice.value == 1.0 and twice.n == 8
    assert list((tmp_path / "run").glob("questions-*.sqlite"))


def test_a_service_that_writes_is_refused(world: Path) -> None:
    service = {"shop": {"url": "http://127.0.0.1:9/", "writes": True}}
    plan = plan_of(world, EASE, parts=["reach"], services=service, users=2, targets=2, retrained=0)
    with pytest.raises(PlanError, match="sandbox"):
        Audit.from_plan(plan).run()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"labels": ["light"]}, "light"),
        ({"black_box": ["nobody"]}, "nobody"),
        ({"sets": ["colour"]}, "colour"),
    ],
)
def test_names_that_match_nothing_are_refused(world: Path, options: dict, says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Audit.from_plan(plan_of(world, EASE, **options)).run()


def test_escape_without_labels_is_refused(world: Path) -> None:
    plan = plan_of(world, EASE)
    audit = Audit.from_plan(plan)
    bare = Audit(replace(audit.data, labels=None), audit.systems, [Coverage(k=3)])
    bare.analyses = (Counterfactual(k=3),)
    with pytest.raises(PlanError, match="need labels"):
        bare.run()


@pytest.mark.parametrize(
    "options", [{"k": 0}, {"parts": ()}, {"parts": ("fly",)}, {"treatments": ("fly",)}]
)
def test_options_that_make_no_sense_are_refused(options: dict) -> None:
    with pytest.raises(PlanError, match="counterfactual"):
        Counterfactual(**options)


def test_the_gap_of_popularity_by_hand() -> None:
    reachable = np.array([[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5]])
    table = ReachTable(reachable=reachable, system="s", policy="frozen", budget=1, k=3)
    popular = np.array([False, False, True, True])
    gap = popularity_gap(table, popular, Settings(replicates=50))
    # Less popular: 1 of 4 pairs; more popular: 3 of 4, the undecided pair not counted.
    assert gap.value == pytest.approx(0.25 - 0.75)
    assert gap.details["less_popular"] == 0.25
    assert gap.details["more_popular"] == 0.75
    assert gap.events == 2  # users whose halves differ
    # Of what the first user has not seen, everything is within reach in both halves.
    seen = np.array([[np.nan, 1.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5]])
    gap = popularity_gap(replace(table, reachable=seen), popular, Settings(replicates=50))
    assert gap.events == 1


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 6), st.integers(2, 8), st.integers(0, 2**16))
def test_the_gap_is_the_difference_of_two_shares(users: int, targets: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    reachable = rng.choice([0.0, 0.5, 1.0], size=(users, targets))
    popular = np.arange(targets) % 2 == 1
    table = ReachTable(reachable=reachable, system="s", policy="frozen", budget=1, k=3)
    gap = popularity_gap(table, popular, Settings(replicates=20))
    proved = reachable == 1
    assert gap.value == pytest.approx(proved[:, ~popular].mean() - proved[:, popular].mean())


def test_samples_stand_for_everybody(world: Path) -> None:
    data = Audit.from_plan(plan_of(world, EASE)).data
    asked = AuditSample(data, seed=4)
    users, targets = asked.users(10), asked.targets(12)
    assert users.weights.sum() == pytest.approx(asked.interactions.n_users)
    assert targets.weights.sum() == pytest.approx(asked.interactions.n_items)
    assert sorted(asked.order.tolist()) == list(range(asked.interactions.n_users))
    assert asked.titles[asked.interactions.items.codes(["item-04"])[0]] == "Film no. 4"
    assert asked.titles[asked.interactions.items.codes([LONELY])[0]] == LONELY


@pytest.mark.parametrize("drawing", ["list", "first"])
def test_other_drawing_rules_and_a_model_that_does_not_fold_in(world: Path, drawing: str) -> None:
    systems = EASE | {"BPR": {"type": "bpr", "factors": 4, "epochs": 2, "seed": 1}}
    plan = plan_of(
        world, systems, parts=["reach"], drawing=drawing, frozen=False, users=3, targets=5,
        retrained_users=3,
    )  # fmt: skip
    result = Audit.from_plan(plan).run()
    pairs = result.tables["counterfactual-pairs"]
    assert set(pairs["drawing"]) == {drawing} and pairs["beta"].is_null().all()
    ease = pairs.filter(system="Our EASE")
    assert set(ease["best"]) <= {0.0, 1.0} and "proved" in set(ease["status"])
    bpr = pairs.filter(system="BPR")
    assert set(bpr["seeds"]) == {2} and "proved" not in set(bpr["status"])
    found = [e for e in result.select("retrained-reach/best") if not e.group and not e.label]
    assert {e.details["users"] for e in found} == {3}  # three are asked, not one of each group
    assert not any(e.details["stratified"] for e in found)
