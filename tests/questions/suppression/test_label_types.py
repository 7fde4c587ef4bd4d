"""One text with several labels: each type measured by itself, with each text once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.metrics import FalsePositiveRate
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.engine.text_rows import acceptable_parts
from ombud.questions.suppression.metrics import Suppression
from ombud.questions.suppression.texts import SuppressionCounts

QUICK = Settings(replicates=200, minimum=2)


def films(n: int = 400, seed: int = 1) -> tuple[Dataset, Decisions]:
    """Two sets; the second has two types, of which the first is its label."""
    rng = np.random.default_rng(seed)
    rating = rng.integers(0, 3, n)  # 0 PG, 1 PG-13, 2 above
    forum = np.arange(n) < n // 4
    label = np.where(forum, rating > 1, rating > 1).astype(int)
    texts = Texts.from_frame(
        pl.DataFrame(
            {
                "id": np.arange(n),
                "text": [f"text {i}" for i in range(n)],
                "label": label,
                "set": np.where(forum, "forum", "films"),
                "family": np.where(forum, "traditional", "generative-ai"),
                "label:PG-13 ok": [
                    None if f else bool(r > 1) for f, r in zip(forum, rating, strict=True)
                ],
                "label:PG ok": [
                    None if f else bool(r > 0) for f, r in zip(forum, rating, strict=True)
                ],
            }
        )
    )
    members = rng.random((n, 1)) < 0.4
    groups = Grouping(Vocabulary(texts.ids), ("g",), members, ("identity",))
    flags = rng.random(n) < np.where(members[:, 0], 0.5, 0.2)
    scores = rng.random(n).astype(np.float32)
    return Dataset(texts=texts, text_groups=groups), Decisions(
        texts.ids, flags.astype(np.int8), scores
    )


def test_each_type_is_measured_with_each_text_once() -> None:
    data, decisions = films()
    assert data.texts is not None and data.text_groups is not None
    metric = FalsePositiveRate(families=True)
    found = estimate_metric(metric, {"s": metric.measure(decisions, data)}, data.text_groups, QUICK)
    rates = {e.label: e for e in found if not e.group and not e.against}
    # The type of all films is that of their set and family, so it is measured once.
    parts = ["", "generative-ai", "traditional", "set=films", "set=forum"]
    assert list(rates) == [*parts, "set=films, labeled PG ok"]
    flags = decisions.outcomes == 1
    pg = data.texts.types["PG ok"] == 0
    assert rates["set=films, labeled PG ok"].value == pytest.approx(flags[pg].mean())
    assert rates["set=films, labeled PG ok"].n == pg.sum()
    fine = data.texts.truth == 0
    assert rates[""].value == pytest.approx(flags[fine].mean())
    assert rates[""].n == fine.sum()  # no text twice, whatever its types
    ratio = Suppression(families=True)
    ratios = estimate_metric(ratio, {"s": ratio.measure(decisions, data)}, data.text_groups, QUICK)
    (typed,) = [e for e in ratios if e.label.endswith("PG ok")]
    inside = data.text_groups.members[:, 0]
    assert typed.value == pytest.approx(flags[pg & inside].mean() / flags[pg].mean())


def test_numbers_without_types_do_not_change_with_them() -> None:
    data, decisions = films()
    assert data.texts is not None
    plain = Dataset(
        texts=Texts(
            data.texts.ids,
            data.texts.texts,
            data.texts.truth,
            None,
            data.texts.families,
            sets=data.texts.sets,
        ),
        text_groups=data.text_groups,
    )
    metric = FalsePositiveRate(families=True)
    values = []
    for some in (data, plain):
        found = estimate_metric(
            metric, {"s": metric.measure(decisions, some)}, some.text_groups, QUICK
        )
        values.append(
            {(e.label, e.group, e.against): e.value for e in found if "labeled" not in e.label}
        )
    assert values[0] == values[1]


@given(st.integers(0, 10_000))
def test_parts_by_brute_force(seed: int) -> None:
    data, _ = films(60, seed)
    texts = data.texts
    assert texts is not None and texts.sets is not None
    parts = {part.label: part for part in acceptable_parts(texts)}
    assert len(parts) == len(acceptable_parts(texts))
    for part in parts.values():
        truth = texts.types[part.type] if "labeled" in part.label else texts.truth
        inside = np.ones(len(texts), dtype=bool)
        if part.kind == "set":
            inside = texts.sets == part.name
        elif part.kind == "family":
            assert texts.families is not None
            inside = texts.families == part.name
        assert part.rows.tolist() == (inside & (truth == 0)).tolist()
    assert parts["set=films"].type == "PG-13 ok"
    assert parts["set=forum"].type == ""


def test_types_go_through_a_frame_and_back(tmp_path: Path) -> None:
    data, _ = films(20)
    assert data.texts is not None
    frame = data.texts.to_frame()
    again = Texts.from_frame(frame)
    assert {k: v.tolist() for k, v in again.types.items()} == {
        k: v.tolist() for k, v in data.texts.types.items()
    }
    frame.write_csv(tmp_path / "texts.csv")
    read = Texts.from_frame(tmp_path / "texts.csv")
    assert read.types["PG ok"].tolist() == data.texts.types["PG ok"].tolist()
    only = Texts.from_frame({"text": ["a", "b"], "label:harsh": [1, 0], "label:mild": [1, 1]})
    assert only.truth.tolist() == [1, 0]
    with pytest.raises(DataError, match="label:harsh"):
        Texts.from_frame({"text": ["a", "b"], "label:harsh": ["what", "else"]})


def test_all_types_of_openai_and_of_civil_comments(tmp_path: Path) -> None:
    rows = [
        {"prompt": "a", "S": 0, "H": 0, "V": 1},
        {"prompt": "b", "S": 1},
        {"prompt": "c", "S": 0},
        {"prompt": "d", **dict.fromkeys(("H", "H2", "HR", "S", "SH", "V", "V2"), 0)},
    ]
    path = tmp_path / "samples-1680.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    made = registry.create("source", "openai-1680", {"path": str(path), "label": "all"})
    assert isinstance(made, Dataset) and made.texts is not None
    types = {name: column.tolist() for name, column in made.texts.types.items()}
    assert made.texts.truth.tolist() == types["overall"] == [1, 1, -1, 0]
    assert types["sexual"] == [0, 1, 0, 0]
    assert types["violence"] == [1, -1, -1, 0]
    assert {"overall", "hate/threatening", "harassment", "violence/graphic"} < set(types)
    assert len(types) == 8
    published = {"path": str(path), "label": "all", "missing": "acceptable"}
    other = registry.create("source", "openai-1680", published)
    assert isinstance(other, Dataset) and other.texts is not None
    assert other.texts.types["violence"].tolist() == [1, 0, 0, 0]


def test_counts_by_brute_force() -> None:
    data, decisions = films(300, seed=5)
    assert data.texts is not None and data.text_groups is not None
    repeated = Decisions(
        np.concatenate([decisions.ids, decisions.ids[:50]]),
        np.concatenate([decisions.outcomes, 1 - decisions.outcomes[:50]]).astype(np.int8),
        np.concatenate([decisions.scores, decisions.scores[:50]]),
        repeats=np.repeat([0, 1], [300, 50]).astype(np.int32),
    )
    found = SuppressionCounts().analyze(Context(data, {"s": repeated}, Settings()))
    rows = found.tables["suppression-counts"].to_dicts()
    flags = decisions.outcomes.astype(float)
    flags[:50] = 0.5
    texts, member = data.texts, data.text_groups.members[:, 0]
    assert texts.sets is not None and texts.families is not None
    for row in rows:
        truth = texts.types["PG ok"] if "labeled" in row["label"] else texts.truth
        keep = truth == 0
        if row["part"] == "set":
            keep &= texts.sets == row["name"]
        if row["part"] == "family":
            keep &= texts.families == row["name"]
        whole = keep.copy()
        if row["group"]:
            keep &= member
        assert row["texts"] == keep.sum()
        if row["by"] == "flags":
            assert row["flagged"] == pytest.approx(flags[keep].sum())
            assert row["ratio"] == pytest.approx(flags[keep].mean() / flags[whole].mean())
        else:
            medians = [np.median(decisions.scores[one]) for one in (keep, whole)]
            assert row["ratio"] == pytest.approx(medians[0] / medians[1], rel=1e-5)
    assert {row["type"] for row in rows} == {"", "PG-13 ok", "PG ok"}
