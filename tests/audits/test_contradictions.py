"""Inputs that contradict each other: named at the top, never resolved silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud import Audit, Plan, Texts
from ombud.errors import DataError
from ombud.report.model import plain
from ombud.report.verdict import verdicts_of
from ombud.text.tagging import other_languages

N = 400


def moderated(
    folder: Path, labels: list[int | None], flags: list[bool], engine: str = "memory", **more: Any
) -> Any:
    ids = [f"t{n}" for n in range(len(labels))]
    texts = {"id": ids, "text": [f"some plain words, number {n}" for n in range(len(labels))]}
    texts |= more.pop("columns", {})
    frame = pl.DataFrame({**texts, "label": labels}, schema_overrides={"label": pl.Int8})
    frame.write_parquet(folder / "texts.parquet")
    pl.DataFrame({"id": ids, "flagged": flags}).write_parquet(folder / "flags.parquet")
    plan = {
        "data": {"texts": str(folder / "texts.parquet"), **more.pop("data", {})},
        "systems": {"s": {"type": "recorded", "path": str(folder / "flags.parquet")}},
        "metrics": [{"name": "false-positive-rate"}],
        "engine": {"type": engine},
        **more,
    }
    return Audit.from_plan(Plan.from_dict(plan)).run()


def keys(result: Any) -> dict[str, Any]:
    return {e.key: e for e in result.exclusions if e.is_warning}


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_decisions_that_agree_less_often_than_chance(tmp_path: Path, engine: str) -> None:
    rng = np.random.default_rng(2)
    labels = [n % 2 for n in range(N)]
    right = [bool(label) if rng.random() < 0.8 else not label for label in labels]
    assert "warning/worse-than-chance" not in keys(moderated(tmp_path, labels, right, engine))
    chance = (rng.random(N) < 0.5).tolist()
    assert "warning/worse-than-chance" not in keys(moderated(tmp_path, labels, chance, engine))
    turned = [not flag for flag in right]
    told = keys(moderated(tmp_path, labels, turned, engine))["warning/worse-than-chance"]
    wrong = sum(flag != bool(label) for flag, label in zip(turned, labels, strict=True))
    assert (told.count, told.of, told.system) == (wrong, N, "s")
    assert "--read decisions.yes=VALUE" in told.reason and "excluded" not in str(told)


def test_a_text_with_both_labels_is_counted(tmp_path: Path) -> None:
    labels, flags = [n % 2 for n in range(N)], [n % 3 == 0 for n in range(N)]
    words = [f"some plain words, number {n}" for n in range(N)]
    words[5] = words[4]  # labels 1 and 0
    words[8] = words[6]  # both 0
    result = moderated(tmp_path, labels, flags, columns={"text": words})
    told = keys(result)["warning/contrary-labels"]
    assert (told.count, told.of) == (2, N)


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_row_numbers_that_start_with_0_and_with_1(tmp_path: Path, engine: str) -> None:
    labels, flags = [n % 2 for n in range(N)], [n % 3 == 0 for n in range(N)]
    columns = {"id": list(range(1, N + 1))}
    # Some texts have no decision: whether both files count rows cannot be seen.
    gaps = [n for n in range(N - 1) if n % 7 != 3]
    pl.DataFrame({"id": gaps, "flagged": [flags[n] for n in gaps]}).write_parquet(
        tmp_path / "gaps.parquet"
    )
    system = {"type": "recorded", "path": str(tmp_path / "gaps.parquet")}
    with pytest.raises(DataError, match="start with 0 and those of the texts with 1"):
        moderated(tmp_path, labels, flags, engine, columns=columns, systems={"s": system})
    kept = pl.DataFrame({"id": gaps[1:], "flagged": [flags[n] for n in gaps[1:]]})
    kept.write_parquet(tmp_path / "kept.parquet")
    sound = system | {"path": str(tmp_path / "kept.parquet")}
    result = moderated(tmp_path, labels, flags, engine, columns=columns, systems={"s": sound})
    assert result.estimates[0].value is not None
    # Texts that are numbered from 10, and an id 0 that is of none, are no rows from 0.
    columns["id"] = list(range(10, N + 10))
    ids = [0, *range(10, N)]
    some = pl.DataFrame({"id": ids, "flagged": [flags[n] for n in range(len(ids))]})
    some.write_parquet(tmp_path / "kept.parquet")
    result = moderated(tmp_path, labels, flags, engine, columns=columns, systems={"s": sound})
    assert result.estimates[0].value is not None


@pytest.mark.parametrize("engine", ["memory", "stream"])
@pytest.mark.parametrize("metric", ["false-positive-rate", "detection-recall"])
def test_labels_of_flagged_texts_alone_cannot_tell(
    tmp_path: Path, engine: str, metric: str
) -> None:
    if metric == "detection-recall" and engine == "stream":
        pytest.skip("measured in memory only")
    flags = [n % 4 == 0 for n in range(N)]
    only = [n // 4 % 2 if flag else None for n, flag in enumerate(flags)]
    result = moderated(tmp_path, only, flags, engine, metrics=[{"name": metric}])
    (e,) = [e for e in result.select(kind="level") if not e.group]
    assert e.value is None
    assert e.reason.startswith("almost only flagged texts are labeled (100 of 100 labeled texts")
    sampled = [n % 3 % 2 if n % 5 else None for n in range(N)]
    result = moderated(tmp_path, sampled, flags, engine, metrics=[{"name": metric}])
    assert all(e.value is not None for e in result.select(kind="level") if not e.group)


def test_measures_that_need_no_labels_do_not_answer_for_those_that_do(tmp_path: Path) -> None:
    flags = [n % 4 == 0 for n in range(N)]
    only = [n // 4 % 2 if flag else None for n, flag in enumerate(flags)]
    groups = pl.DataFrame({"id": [f"t{n}" for n in range(N)], "age": ["old", "young"] * (N // 2)})
    groups.write_csv(tmp_path / "ages.csv")
    metrics = [{"name": "false-positive-rate"}, {"name": "undecided-share"}]
    data = {"text_groups": str(tmp_path / "ages.csv")}
    result = moderated(tmp_path, only, flags, data=data, by=["age"], metrics=metrics)
    (verdict,) = verdicts_of(result)
    assert verdict.answer == "cannot tell"
    assert "Almost only flagged texts are labeled" in plain(verdict.systems[0].sentence)


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_lists_of_items_that_occur_nowhere_are_refused(tmp_path: Path, engine: str) -> None:
    tables = {
        "history": pl.DataFrame({"user": [1, 1, 2, 2] * 10, "item": list(range(40))}),
        "labels": pl.DataFrame({"item": range(40), "label": "gore", "present": [True, False] * 20}),
        "foreign": pl.DataFrame({"user": [1, 1, 2], "rank": [1, 2, 1], "item": ["F1", "F2", "F3"]}),
        "mixed": pl.DataFrame({"user": [1, 1, 2], "rank": [1, 2, 1], "item": [3, 801, 802]}),
    }
    for name, frame in tables.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")

    def run(lists: str) -> Any:
        plan = {
            "data": {
                "interactions": str(tmp_path / "history.parquet"),
                "labels": str(tmp_path / "labels.parquet"),
            },
            "systems": {"s": {"type": "recorded", "path": str(tmp_path / f"{lists}.parquet")}},
            "metrics": [{"name": "share-gap", "k": 2}],
            "engine": {"type": engine},
        }
        return Audit.from_plan(Plan.from_dict(plan)).run(tmp_path / f"{lists} result")

    with pytest.raises(DataError, match="no recommended item occurs in any other table") as error:
        run("foreign")
    assert "ids such as 'F1', and the histories [0, 1]" in str(error.value)
    told = keys(run("mixed"))["warning/unknown-items"]
    assert (told.count, told.of, told.system) == (2, 3, "s")
    assert told.where == "s: recommendations" and "ids such as 801" in told.reason


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_near_identical_groups_are_named(tmp_path: Path, engine: str) -> None:
    age = ["old", "old ", "young", "Young"] * (N // 4)
    pl.DataFrame({"id": [f"t{n}" for n in range(N)], "age": age}).write_parquet(
        tmp_path / "groups.parquet"
    )
    labels, flags = [n % 2 for n in range(N)], [n % 3 == 0 for n in range(N)]
    data = {"text_groups": str(tmp_path / "groups.parquet")}
    result = moderated(tmp_path, labels, flags, engine, data=data)
    told = keys(result)["warning/near-identical"]
    assert (told.count, told.of) == (4, 4)
    assert "'age=old' and 'age=old '" in told.reason


def test_texts_in_another_language_are_counted_and_named(tmp_path: Path) -> None:
    columns = {"language": ["en-US", "de", "en", "fr"] * (N // 4)}
    labels, flags = [n % 2 for n in range(N)], [n % 3 == 0 for n in range(N)]
    more = {"preset": "suppression", "metrics": [], "options": {"scores": False}}
    result = moderated(tmp_path, labels, flags, columns=columns, **more)
    told = keys(result)["warning/other-language"]
    assert (told.count, told.of) == (N // 2, N)
    assert "de 100, fr 100" in told.reason
    pytest.importorskip("py3langid")
    german = ["Das ist ein ganz gewöhnlicher deutscher Satz über das Wetter im Garten."] * N
    result = moderated(tmp_path, labels, flags, columns={"text": german}, **more)
    assert "as detected: de 400" in keys(result)["warning/other-language"].reason
    many = Texts.from_frame(pl.DataFrame({"id": range(2100), "text": german[:1] * 2100}))
    (told,) = other_languages(many)
    assert "as detected in a sample of 2,000 of 2,100 texts: de 2,000" in told.reason


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_lists_of_mostly_unknown_users_are_a_warning(tmp_path: Path, engine: str) -> None:
    users = [f"{'U' if n % 3 else 'u'}{n}" for n in range(60)]
    who = pl.DataFrame({"user": [u.lower() for u in users]})
    plays = who.join(pl.DataFrame({"item": ["a", "b", "c"]}), how="cross")
    plays.write_parquet(tmp_path / "plays.parquet")
    labels = pl.DataFrame({"item": ["a", "b", "c", "d"], "label": "x", "present": [1, 0, 1, 0]})
    labels.write_parquet(tmp_path / "labels.parquet")
    lists = pl.DataFrame({"user": users, "item": ["a", "d"] * 30, "rank": 1})
    lists.write_parquet(tmp_path / "lists.parquet")
    plan = {
        "data": {name: str(tmp_path / f"{file}.parquet")
                 for name, file in (("interactions", "plays"), ("labels", "labels"))},
        "systems": {"s": {"type": "recorded", "path": str(tmp_path / "lists.parquet")}},
        "metrics": [{"name": "share-gap", "k": 1}],
        "engine": {"type": engine},
    }  # fmt: skip
    result = Audit.from_plan(Plan.from_dict(plan)).run()
    told = keys(result)["warning/unknown-users"]
    assert (told.count, told.of, told.system) == (40, 60, "s")
