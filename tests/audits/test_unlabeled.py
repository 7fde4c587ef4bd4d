"""``unlabeled``: one word for what a missing label means, for every item and every engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud import Audit, Dataset, Interactions, Labels, Plan, RecordedRecommendations, audit
from ombud.audits.presets import complete
from ombud.data.avoid_lists import Avoided
from ombud.data.ids import Vocabulary
from ombud.data.items import Items
from ombud.data.labels import LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics import ShareGap
from ombud.questions.disagreement import disputed

USERS, PLACES = 40, 10
HISTORY = pl.DataFrame(
    {"user": [u for u in range(USERS) for _ in range(PLACES)], "item": list(range(10)) * USERS}
)
LABELS = pl.DataFrame({"item": [0, 1, 20], "label": ["violence", "other", "violence"]})
LISTS = pl.DataFrame(
    {
        "user": [u for u in range(USERS) for _ in range(PLACES)],
        # The last ten users are shown item 35, of which no other table knows, instead of item 20.
        "item": [
            35 if u >= 30 and item == 20 else item for u in range(USERS) for item in range(20, 30)
        ],
        "rank": list(range(1, 11)) * USERS,
    }
)
# By hand: histories 1 of 10; lists 1 of 10 for 30 users and 0 of 10 for 10 users.
GAP = (30 * 0.1 + 10 * 0.0) / USERS - 0.1


def plan_of(folder: Path, **data: Any) -> Plan:
    for name, frame in (("history", HISTORY), ("labels", LABELS), ("lists", LISTS)):
        frame.write_parquet(folder / f"{name}.parquet")
    paths = {
        "interactions": str(folder / "history.parquet"),
        "labels": str(folder / "labels.parquet"),
    }
    content = {
        "data": paths | data,
        "systems": {"s": {"type": "recorded", "path": str(folder / "lists.parquet")}},
        "metrics": [{"name": "share-gap", "k": 10}],
    }
    return Plan.from_dict(content)


def gap_of(result: Any) -> tuple[float, int]:
    (found,) = result.select(label="violence", kind="level")
    return found.value, found.n


@pytest.mark.parametrize("word", ["unlabeled", "absent"])
def test_no_covers_items_that_the_labels_do_not_have(word: str) -> None:
    labels = Labels.from_applied(LABELS, **{word: "no"})  # type: ignore[arg-type]
    data = Dataset(Interactions.from_frame(HISTORY), labels)
    result = Audit(data, [RecordedRecommendations(LISTS, name="s")], [ShareGap(k=10)]).run()
    assert gap_of(result) == (pytest.approx(GAP), USERS)


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("word", ["unlabeled", "absent"])
def test_no_in_a_plan_covers_every_item(tmp_path: Path, word: str, engine: str) -> None:
    plan = plan_of(tmp_path, **{word: "no"}).model_copy(
        update={"engine": Plan.from_dict({"engine": {"type": engine}}).engine}
    )
    notices: list[str] = []
    result = Audit.from_plan(plan).run(tmp_path / "result", notice=notices.append)
    assert gap_of(result) == (pytest.approx(GAP), USERS)
    assert [n for n in notices if "older name" in n] == (
        ['[data] absent is an older name; write unlabeled = "no" or "unknown" under [data]']
        if word == "absent"
        else []
    )


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_a_share_that_cannot_be_computed_has_its_reason(tmp_path: Path, engine: str) -> None:
    plan = plan_of(tmp_path, unlabeled="unknown").model_copy(
        update={"engine": Plan.from_dict({"engine": {"type": engine}}).engine}
    )
    result = Audit.from_plan(plan).run(tmp_path / "result")
    (found,) = result.select(label="violence", kind="level")
    assert (found.value, found.n, found.reason_code) == (None, 0, "no-labels")
    assert "no item is known not to carry this label" in found.reason


def test_a_stored_result_reads_its_labels_back_as_they_were(tmp_path: Path) -> None:
    data = Dataset(Interactions.from_frame(HISTORY), Labels.from_applied(LABELS, unlabeled="no"))
    audit = Audit(data, [RecordedRecommendations(LISTS, name="s")], [ShareGap(k=10)])
    result = audit.run(tmp_path / "result")
    assert result.plan.data.unlabeled == "no"
    again = Labels.from_states(tmp_path / "result" / "inputs" / "labels.parquet")
    again = again.with_unlabeled("no")
    assert data.labels is not None
    assert again.states.tolist() == data.labels.states.tolist()
    assert again.labeled.tolist() == data.labels.labeled.tolist()


def test_both_names_that_differ_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="older name of unlabeled"):
        plan_of(tmp_path, unlabeled="no", absent="unknown")
    with pytest.raises(PlanError, match="remove absent"):
        Labels.from_applied(LABELS, unlabeled="no", absent="unknown")


def test_a_file_that_only_says_yes_must_be_declared(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"Set \[data\] unlabeled"):
        Audit.from_plan(plan_of(tmp_path))


def test_what_the_data_states_is_told_from_what_is_declared() -> None:
    rows = {"item": ["a", "b"], "label": ["x", "y"], "present": [True, False]}
    labels = Labels.from_applied(rows, unlabeled="no")
    assert labels.states.tolist() == [[1, 0], [0, 0]]
    assert labels.labeled.tolist() == [[True, False], [False, True], [False, False]]
    only_yes = Labels.from_applied({"item": ["a", "b"], "label": ["x", "y"]}, unlabeled="no")
    assert only_yes.labeled.tolist() == [[True, True], [True, True], [False, False]]
    votes = {"item": ["a", "b"], "label": ["x", "y"], "yes": [3, 1], "no": [0, 1]}
    voted = Labels.from_votes(votes).with_unlabeled("no")
    assert voted.states.tolist() == [[1, 0], [0, LabelState.DISPUTED]]
    assert voted.select(("y",)).padded.tolist() == [[0], [LabelState.DISPUTED], [0]]


def test_a_comparison_of_groups_has_the_tipping_points_of_its_formula() -> None:
    """r* = 1 - g / (p_A (1 - c_A) - p_B (1 - c_B)), each counted over users, by plain sums."""
    rng = np.random.default_rng(3)
    state = {i: ("yes", "no", None)[i % 3] for i in range(60)}
    histories = {u: rng.choice(60, 12, replace=False).tolist() for u in range(120)}
    # By group, how many recommended items carry the label, do not, and are unlabeled.
    shown = {u: (1, 1, 8) if u < 60 else (3, 7, 0) for u in range(120)}
    lists = {u: [3 * i + k for k, n in enumerate(counts) for i in rng.choice(20, n, replace=False)]
             for u, counts in shown.items()}  # fmt: skip

    def frame(rows: dict[int, list[int]]) -> pl.DataFrame:
        flat = [(u, i, n) for u, items in rows.items() for n, i in enumerate(items, 1)]
        return pl.DataFrame(flat, schema=["user", "item", "rank"], orient="row")

    labels = [(i, "gore", said == "yes") for i, said in state.items() if said]
    table = pl.DataFrame(labels, schema=["item", "label", "present"], orient="row")
    users = pl.DataFrame({"user": range(120), "side": ["A"] * 60 + ["B"] * 60})
    result = audit(
        interactions=frame(histories).drop("rank"), recommendations=frame(lists), labels=table,
        users=users, metrics=["share-gap"],
    )  # fmt: skip
    (found,) = [e for e in result.estimates if e.kind == "gap" and e.group == "side=A"]
    assert found.tipping is not None and found.interval is not None

    def slope(rows: dict[int, list[int]], side: range) -> float:
        known = [[state[i] for i in rows[u] if state[i]] for u in side]
        rate = np.mean([one.count("yes") / len(one) for one in known])
        covered = np.mean([len(one) / len(rows[u]) for one, u in zip(known, side, strict=True)])
        return float(rate * (1 - covered))

    low = found.interval[0]
    both = (range(60), range(60, 120))
    up, down = (slope(rows, both[0]) - slope(rows, both[1]) for rows in (lists, histories))
    assert low > 0 and found.tipping.recommended == pytest.approx(1 - low / up)
    # Unlabeled items in histories would have to carry it at a rate above 1.
    assert 1 + low / down > 5 and found.tipping.history is None


def test_groups_of_items_stay_unknown_where_no_row_names_them() -> None:
    items = Items.from_frame({"item": ["a", "b"], "gender": ["f", None]})
    labels = Labels.from_applied({"item": ["a"], "label": ["x"]}, unlabeled="no")
    both = items.as_labels(["gender"], labels)
    other = both.aligned(Vocabulary(np.array(["a", "b", "c"], dtype=object)))
    assert dict(zip(both.names, other.T.tolist(), strict=True)) == {
        "x": [1, 0, 0],
        "gender=f": [1, LabelState.UNKNOWN, LabelState.UNKNOWN],
    }


def test_an_avoid_list_trusts_the_declaration() -> None:
    lists = Recommendations.from_frame({"user": ["u", "u"], "item": ["a", "z"]})
    avoided = Avoided.of(everyone=["x"])
    rows = {"item": ["a"], "label": ["x"]}
    for word, unknown in (("no", [False, False]), ("unknown", [False, True])):
        labels = Labels.from_applied(rows, unlabeled=word)  # type: ignore[arg-type]
        hit, open_ = avoided.judge(lists, labels)
        assert hit[0].tolist() == [True, False]
        assert open_[0].tolist() == unknown


def test_preset_warnings_counts_unlabeled_items_as_the_plan_declares(tmp_path: Path) -> None:
    def readings(options: dict[str, Any], **data: Any) -> set[str]:
        plan = plan_of(tmp_path, **data)
        plan = plan.model_copy(update={"preset": "warnings", "metrics": (), "options": options})
        filled = complete(plan)
        chief = [m for m in filled.metrics if m["name"] == "amplification-user"][0]
        told = {chief["unknown"], f"data {filled.data.unlabeled}"}
        return told | {
            "paper beside"
            for m in filled.metrics
            if m["name"] == "amplification" and m["unknown"] == "no" != chief["unknown"]
        }

    assert readings({}, unlabeled="unknown") == {"exclude", "data unknown", "paper beside"}
    assert readings({}, unlabeled="no") == {"no", "data no"}
    assert readings({"unknown": "no"}) == {"no", "data no"}
    assert readings({"unknown": "exclude"}) == {"exclude", "data unknown", "paper beside"}
    with pytest.raises(PlanError, match="its older name"):
        readings({"unknown": "no"}, unlabeled="unknown")


def test_a_declaration_is_no_vote() -> None:
    votes = {"item": ["a", "b"], "label": ["x", "y"], "yes": [3, 1], "no": [0, 1]}
    labels = Labels.from_votes(votes)
    declared = labels.with_unlabeled("no")
    assert declared.as_stated.tolist() == labels.padded.tolist()
    assert disputed(declared).states.tolist() == disputed(labels).states.tolist()
