"""Disputed labels and rated texts: by hand, by loops, and in a report."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit, Plan
from ombud.audits.analysis import Context
from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.labels import Labels
from ombud.data.texts import Texts
from ombud.errors import DataError, PlanError
from ombud.metrics.engine.estimator import Settings
from ombud.metrics.shares import ShareGap
from ombud.questions.disagreement import ANY, LabelDisagreement, RaterAgreement, disputed, pairwise
from ombud.report import Report
from ombud.report.markdown import section_lines
from ombud.worlds import small_world


@given(st.integers(0, 6), st.integers(0, 6))
def test_two_voters_disagree_as_often_as_pairs_do(yes: int, no: int) -> None:
    votes = [1] * yes + [0] * no
    pairs = list(combinations(votes, 2))
    found = float(pairwise(np.array([float(yes)]), np.array([float(no)]))[0])
    if not pairs:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(np.mean([a != b for a, b in pairs]))
        assert 0 <= found <= 1


def test_disputed_by_hand() -> None:
    votes = {
        "item": ["a", "b", "c", "a", "b"],
        "label": ["blood", "blood", "blood", "dogs", "dogs"],
        "yes": [9, 5, 0, 1, 0],
        "no": [1, 5, 8, 9, 0],
    }
    labels = disputed(Labels.from_votes(votes))
    assert labels.names == ("blood", "dogs", ANY)
    states = dict(zip(labels.items.ids.tolist(), labels.states.tolist(), strict=True))
    assert states == {"a": [0, 0, 0], "b": [1, -2, 1], "c": [0, -2, 0]}


def test_disputes_and_lists_of_a_world() -> None:
    world = small_world(seed=2)
    data = world.dataset
    systems = {s.name: s.recommend(data.interactions.users.ids, 10) for s in world.recommenders()}
    made = LabelDisagreement(k=10).analyze(Context(data, systems, Settings(replicates=100)))
    labels = data.labels
    for place, label in enumerate(labels.names):
        yes, no = labels.yes[:, place], labels.no[:, place]
        apart, count, open_ = [], 0, 0
        for y, n, state in zip(yes, no, labels.states[:, place], strict=True):
            if y + n < 2:
                continue
            count += 1
            open_ += state == -1
            apart.append(2 * y * n / ((y + n) * (y + n - 1)))
        got = {e.key.partition("/")[2]: e for e in made.estimates if e.label == label
               and not e.system}  # fmt: skip
        assert got["disputed-share"].value == pytest.approx(open_ / count)
        assert got["pairwise"].value == pytest.approx(np.mean(apart))
        assert got["pairwise"].interval[0] < got["pairwise"].value < got["pairwise"].interval[1]
    levels = [e for e in made.estimates if e.system and e.kind == "level" and not e.group]
    assert {e.label for e in levels} == {*labels.names, ANY}
    name, lists = next(iter(systems.items()))
    one = next(e for e in levels if e.system == name and e.label == ANY)
    flags = {item: (s == -1).any() if (s != -2).any() else None
             for item, s in zip(labels.items.ids.tolist(), labels.states, strict=True)}  # fmt: skip
    gaps = []
    for user, row in zip(lists.users.tolist(), lists.items, strict=True):
        shown = [flags.get(i) for i in lists.catalogue.take(row[row >= 0]).tolist()]
        code = data.interactions.users.codes([user])[0]
        met = data.interactions.items.take(data.interactions.matrix[[code]].indices).tolist()
        known = [[f for f in part if f is not None] for part in (shown, map(flags.get, met))]
        if all(known):
            gaps.append(np.mean(known[0]) - np.mean(known[1]))
    assert one.value == pytest.approx(np.mean(gaps))


def test_labels_without_votes_are_counted() -> None:
    labels = Labels.from_applied({"item": ["a"], "label": ["x"]}, absent="no")
    made = LabelDisagreement().analyze(Context(Dataset(labels=labels), {}, Settings()))
    assert "1 of 1 labels excluded: they were applied, not voted on" in str(made.exclusions[0])
    with pytest.raises(PlanError, match="needs labels"):
        LabelDisagreement().analyze(Context(Dataset(), {}, Settings()))


def texts_of(n: int = 240) -> Texts:
    rng = np.random.default_rng(6)
    yes = rng.integers(0, 6, n)
    columns = {"text": [f"t{i}" for i in range(n)], "yes": yes, "no": 5 - yes}
    return Texts.from_frame(pl.DataFrame(columns))


def test_rates_by_agreement_and_soft_labels_are_those_of_loops() -> None:
    texts = texts_of()
    rng = np.random.default_rng(7)
    share = texts.yes / 5
    flags = (rng.random(len(texts)) < share).astype(np.int8)
    decisions = Decisions(texts.ids, flags, np.zeros(len(texts), np.float32))
    data = Dataset(texts=texts)
    made = RaterAgreement().analyze(Context(data, {"m": decisions}, Settings(replicates=100)))
    at = {(e.key.removeprefix("rater-agreement/"), e.group, e.kind): e for e in made.estimates}
    rates: dict[Any, list[int]] = {}
    soft = {"false-positive-rate": [0.0, 0.0], "recall": [0.0, 0.0]}
    for yes, flag in zip(texts.yes.tolist(), flags.tolist(), strict=True):
        name = "recall" if yes > 2 else "false-positive-rate"
        group = "raters=agree" if yes in {0, 5} else "raters=disagree"
        for key in ((name, ""), (name, group)):
            rates.setdefault(key, []).append(flag)
        for name, p in (("false-positive-rate", 1 - yes / 5), ("recall", yes / 5)):
            soft[name][0] += flag * p
            soft[name][1] += p
    for (name, group), values in rates.items():
        assert at[name, group, "level"].value == pytest.approx(np.mean(values))
    for name, (top, bottom) in soft.items():
        assert at[f"{name}/soft", "", "level"].value == pytest.approx(top / bottom)
    gap = at["false-positive-rate", "raters=agree", "gap"]
    both = [at["false-positive-rate", f"raters={g}", "level"].value for g in ("agree", "disagree")]
    assert gap.value == pytest.approx(both[0] - both[1])
    assert at["disputed-share", "", "level"].value == np.mean((texts.yes > 0) & (texts.yes < 5))


def test_votes_say_what_should_be_flagged_and_come_back(tmp_path: Path) -> None:
    texts = Texts.from_frame({"text": ["a", "b", "c"], "yes": [3, 1, 0], "no": [0, 1, 2]})
    assert texts.truth.tolist() == [1, -1, 0]
    again = Texts.from_frame(texts.to_frame())
    assert again.yes.tolist() == [3, 1, 0] and again.truth.tolist() == [1, -1, 0]
    with pytest.raises(DataError, match="of votes, but none called 'no'"):
        Texts.from_frame({"text": ["a"], "yes": [1]})
    plain = Dataset(texts=Texts.from_frame({"text": ["a"], "label": [True]}))
    made = RaterAgreement().analyze(Context(plain, {}, Settings()))
    assert "there are no votes of raters" in str(made.exclusions[0])
    with pytest.raises(PlanError, match="share: Input should be greater than 0.5"):
        RaterAgreement(share=0.5)


@pytest.mark.parametrize("preset", ["suppression", "delicate"])
def test_a_text_audit_with_votes_has_both_without_being_asked(preset: str, tmp_path: Path) -> None:
    texts = texts_of(120)
    words = [f"{'men' if i % 2 else 'women'} {'bad' if i % 3 else 'fine'}" for i in range(120)]
    frame = texts.to_frame().drop("label").with_columns(text=pl.Series(words))
    frame.write_parquet(tmp_path / "texts.parquet")
    plan = {
        "preset": preset,
        "data": {"texts": str(tmp_path / "texts.parquet")},
        "systems": {"k": {"type": "keyword", "terms": ["bad"]}},
        "statistics": {"replicates": 100},
    }
    result = Audit.from_plan(Plan.from_dict(plan)).run()
    words_ = "\n".join(section_lines(Report(result).sections))
    assert "Where raters agree" in words_ and "soft labels" in words_
    assert any(e.key == "rater-agreement/false-positive-rate/agreed" for e in result.estimates)


def test_the_warnings_report_says_which_labels_are_disputed() -> None:
    plan = {
        "preset": "warnings",
        "seed": 1,
        "data": {"source": "small", "options": {"seed": 3}},
        "by": [],
        "options": {"k": 10, "accuracy_at": [10], "trained": ["TopPop"], "bounds": False},
        "statistics": {"replicates": 100},
    }
    result = Audit.from_plan(Plan.from_dict(plan)).run()
    words = "\n".join(section_lines(Report(result).sections))
    assert "Most disputed: " in words and "disputed items" in words
    assert ShareGap(k=10).title not in words.split("Which labels people dispute")[1][:400]
