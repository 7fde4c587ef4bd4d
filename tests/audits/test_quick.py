"""`ombud.audit`: tables of any kind in, a result out, and the same numbers as a plan gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import ombud
from ombud.data import Dataset, Interactions
from ombud.errors import AuditedSystemError, DataError, PlanError

SEEN = [(u, (u + 3 * i) % 20) for u in range(12) for i in range(4)]
HISTORY = pl.DataFrame(SEEN, schema=["user", "item"], orient="row")
LABELS = pl.DataFrame({"item": [0, 2, 4, 6, 8], "label": ["gore"] * 5})
LISTS = pl.DataFrame({"user": [u for u in range(12) for _ in range(3)],
                      "item": [(u + 7 * i + 1) % 20 for u in range(12) for i in range(3)],
                      "rank": [1, 2, 3] * 12})  # fmt: skip


def expected() -> float:
    bad = set(LABELS["item"].to_list())
    gaps = []
    for user in range(12):
        shares = [
            sum(i in bad for i in items) / len(items)
            for items in (
                LISTS.filter(pl.col("user") == user)["item"].to_list(),
                HISTORY.filter(pl.col("user") == user)["item"].to_list(),
            )
        ]
        gaps.append(shares[0] - shares[1])
    return sum(gaps) / len(gaps)


def gap(result: Any) -> float:
    (found,) = [e.value for e in result.estimates if e.kind == "level" and e.label == "gore"]
    return float(found)


def test_frames_of_every_kind_give_the_same_number(tmp_path: Path) -> None:
    HISTORY.rename({"user": "member_no", "item": "title_no"}).write_csv(
        tmp_path / "h.csv", separator=";"
    )
    forms: list[tuple[Any, Any, Any]] = [
        (HISTORY, LABELS, LISTS),
        (HISTORY.to_pandas(), LABELS.to_pandas(), LISTS.to_pandas()),
        (HISTORY.to_arrow(), LABELS.to_arrow(), LISTS.to_arrow()),
        (str(tmp_path / "h.csv"), LABELS, {"mine": LISTS}),
        (HISTORY, LABELS.with_columns(pl.col("item").cast(pl.Float64)),
         lambda users, n: {u: LISTS.filter(pl.col("user") == u)["item"].to_list() for u in users}),
    ]  # fmt: skip
    for history, labels, lists in forms:
        metrics = [{"name": "share-gap", "k": 3}]
        if callable(lists):
            lists = {"mine": ombud.systems.OwnRecommender(lists, recommends_seen=True)}
        result = ombud.audit(
            interactions=history, labels=labels, recommendations=lists, unlabeled="no",
            metrics=metrics,
        )  # fmt: skip
        assert gap(result) == pytest.approx(expected(), abs=1e-6)


def test_what_is_missing_is_one_sentence() -> None:
    with pytest.raises(PlanError, match="what is audited"):
        ombud.audit(interactions=HISTORY)
    with pytest.raises(PlanError, match="which column is the item"):
        ombud.audit(interactions=HISTORY.rename({"item": "zzz"}), recommendations=LISTS)
    named = HISTORY.rename({"item": "zzz"})
    found = ombud.audit(interactions=named, recommendations=LISTS, columns={"item": "zzz"})
    assert found.estimates


def test_frames_where_tables_are_expected() -> None:
    data = Dataset(interactions=pd.DataFrame({"user": [1, 2], "item": [1, 1]}))
    assert isinstance(data.interactions, Interactions) and data.exclusions == ()
    with pytest.raises(DataError, match="every row says that a label applies"):
        Dataset(labels=LABELS)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="a int is not Interactions, a path or a frame"):
        Dataset(interactions=3)  # type: ignore[arg-type]


def test_scores_without_a_threshold_have_no_flags_and_zero_is_a_threshold() -> None:
    ids = list(range(20))
    texts = pl.DataFrame({"id": ids, "text": [f"text {n}" for n in ids], "label": [0] * 20})
    scores = pl.DataFrame({"id": ids, "score": [0.2] * 20})
    bare = ombud.audit(texts=texts, decisions=scores)
    for rate in bare.select(key="false-positive-rate"):
        assert (rate.value, rate.reason_code) == (None, "no-decisions")
        assert "threshold" in rate.reason
    (median,) = bare.select(key="median-score", kind="level", group="")
    assert median.value == pytest.approx(0.2)
    (lost,) = bare.select(key="undecided-share", kind="level", group="")
    assert lost.value == 0.0
    result = ombud.audit(texts=texts, decisions=scores, threshold=0)
    (rate,) = result.select(key="false-positive-rate", kind="level", group="")
    assert rate.value == 1.0


def test_empty_ratings_that_no_metric_reads_do_not_end_an_audit() -> None:
    rated = HISTORY.with_columns(rating=pl.when(pl.col("item") > 5).then(3.0))
    found = ombud.audit(
        interactions=rated, labels=LABELS, recommendations=LISTS, unlabeled="no"
    )  # fmt: skip
    assert gap(found) == pytest.approx(expected())


def test_row_numbers_from_0_are_not_ids_from_1() -> None:
    bad = [n % 3 == 0 for n in range(60)]
    flags = [n % 3 == 0 or n % 5 == 0 for n in range(60)]
    texts = pl.DataFrame({"text": [f"text {n}" for n in range(60)], "toxic": bad})
    decisions = pl.DataFrame({"id": range(60), "flagged": flags})
    result = ombud.audit(texts=texts, decisions=decisions)
    (rate,) = [e.value for e in result.estimates if e.metric == "false-positive rate"]
    fine = [flag for flag, one in zip(flags, bad, strict=True) if not one]
    assert rate == pytest.approx(sum(fine) / len(fine))
    assert "warning/rows-from-0" in {e.key for e in result.exclusions}
    groups = pl.DataFrame({"id": range(60), "group": ["a", "b"] * 30})
    with pytest.raises(DataError, match="start with 0"):
        ombud.audit(texts=texts, decisions=decisions, text_groups=groups)


def test_how_a_table_is_written_can_be_stated() -> None:
    texts = pl.DataFrame({"text": [f"text {n}" for n in range(60)], "toxic": [-1, 0, 1] * 20})
    decisions = pl.DataFrame({"id": range(1, 61), "flagged": [1, 0, 1, 1, 1, 1] * 10})
    with pytest.raises(PlanError, match=r"reading=\{...\}"):
        ombud.audit(texts=texts, decisions=decisions)
    result = ombud.audit(
        texts=texts, decisions=decisions, reading={"texts": {"missing": ["-1"]}}
    )  # fmt: skip
    (rate,) = [e for e in result.estimates if e.metric == "false-positive rate"]
    assert (rate.value, rate.n) == (0.5, 20)


def test_items_of_lists_that_count_from_0_are_named() -> None:
    history = HISTORY.with_columns(pl.col("item") + 1)
    labels = LABELS.with_columns(pl.col("item") + 1)
    result = ombud.audit(
        interactions=history, labels=labels, recommendations=LISTS, unlabeled="no"
    )  # fmt: skip
    assert any("are they row numbers?" in e.reason for e in result.exclusions)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"columns": {"label": "nosuch"}}, "no column 'nosuch'"),
        ({"threshold": 0.7}, "--threshold 0.7 was not used"),
        ({"unlabeled": "no"}, "no file holds labels"),
        ({"reading": {"users": {"missing": ["-"]}}}, "no file holds users"),
        ({"yes_values": ["removed"]}, "--yes-values removed was not used"),
    ],
)
def test_an_argument_that_changes_nothing_is_refused(given: dict[str, Any], words: str) -> None:
    texts = pl.DataFrame({"id": range(40), "text": ["some words"] * 40, "toxic": [0, 1] * 20})
    flags = pl.DataFrame({"id": range(40), "flagged": [0, 1, 1, 1] * 10})
    with pytest.raises(PlanError, match=words):
        ombud.audit(texts=texts, decisions=flags, **given)


def test_a_mapping_by_id_is_a_table() -> None:
    by_user = {u: LISTS.filter(pl.col("user") == u)["item"].to_list() for u in range(12)}
    metrics = [{"name": "share-gap", "k": 3}]
    result = ombud.audit(
        interactions=HISTORY, labels=LABELS, recommendations=by_user, unlabeled="no",
        metrics=metrics,
    )  # fmt: skip
    assert gap(result) == pytest.approx(expected(), abs=1e-6)
    texts = pl.DataFrame({"id": range(40), "text": ["some words"] * 40, "toxic": [0, 1] * 20})
    flags = {n: n % 4 == 0 for n in range(40)}
    result = ombud.audit(texts=texts, decisions=flags, metrics=["false-positive-rate"])
    assert [e.value for e in result.estimates if e.kind == "level"] == [0.5]


@pytest.mark.parametrize("form", [pl.DataFrame, pd.DataFrame])
def test_cells_of_frames_may_hold_json(form: Any) -> None:
    rows = LISTS.group_by("user", maintain_order=True).agg("item").rows()
    lists = form({"user": [u for u, _ in rows], "items": [json.dumps(items) for _, items in rows]})
    result = ombud.audit(
        interactions=HISTORY, labels=LABELS, recommendations=lists, unlabeled="no",
        metrics=[{"name": "share-gap", "k": 3}],
    )  # fmt: skip
    assert gap(result) == pytest.approx(expected(), abs=1e-6)
    texts = pl.DataFrame({"id": range(40), "text": ["some words"] * 40, "toxic": [0, 1] * 20})
    cells = [str([{"label": "toxic" if n % 4 == 0 else "ok", "score": 0.9}]) for n in range(40)]
    made = form({"id": list(range(40)), "prediction": cells})
    result = ombud.audit(texts=texts, decisions=made, metrics=["false-positive-rate"])
    assert [e.value for e in result.estimates if e.kind == "level"] == [0.5]


def test_replies_of_perspective_have_flags_with_a_threshold_only(tmp_path: Path) -> None:
    texts = pl.DataFrame({"id": range(40), "text": ["some words"] * 40, "toxic": [0, 1] * 20})
    replies = [
        {"id": n, "attributeScores": {"TOXICITY": {"summaryScore": {"value": n / 40}}}}
        for n in range(40)
    ]
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, replies)))
    for given in (tmp_path / "r.jsonl", replies):
        bare = ombud.audit(texts=texts, decisions=given)
        assert {e.value for e in bare.select(key="false-positive-rate")} == {None}
        assert any(e.key == "warning/no-decisions" for e in bare.exclusions)
    result = ombud.audit(
        texts=texts, decisions=tmp_path / "r.jsonl", threshold=0.5, metrics=["false-positive-rate"]
    )
    assert [e.value for e in result.estimates if e.kind == "level"] == [0.5]


def test_a_function_may_return_labels_with_scores_as_pipelines_do() -> None:
    texts = pl.DataFrame({"id": range(40), "text": [f"text {n}" for n in range(40)]})
    texts = texts.with_columns(toxic=pl.col("id") % 2)
    share = {"metrics": ["false-positive-rate"]}

    def rate(words: tuple[str, str], *, nested: bool = False, **given: Any) -> float | None:
        def moderate(asked: list[str]) -> list[Any]:
            made = [{"label": words[int(t[5:]) % 4 == 0], "score": 0.8} for t in asked]
            return [[one] for one in made] if nested else made

        result = ombud.audit(texts=texts, decisions=moderate, **share, **given)
        return next(e.value for e in result.estimates if e.kind == "level")

    assert rate(("ok", "toxic")) == rate(("ok", "toxic"), nested=True) == 0.5
    assert rate(("ok", "toxic"), threshold=0.9) == 0.0
    assert rate(("LABEL_0", "LABEL_1"), yes_values=["LABEL_1"]) == 0.5
    with pytest.raises(AuditedSystemError, match="which labels mean flagged"):
        rate(("LABEL_0", "LABEL_1"))
