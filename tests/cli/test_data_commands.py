"""`ombud data get`, `ask-ddd` and `build` as a user meets them."""

from __future__ import annotations

import importlib.util
import json
import pickle
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from ombud.audits import Audit, Plan
from ombud.cli import app
from ombud.http.download import Download, RemoteFile

runner = CliRunner()


def ombud(*words: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.stdout if "--json" in words else result.output


@pytest.fixture(scope="module")
def formats() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "_published_formats.py"
    spec = importlib.util.spec_from_file_location("_published_formats", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def movies(tmp_path_factory: pytest.TempPathFactory, formats: ModuleType) -> Path:
    folder = tmp_path_factory.mktemp("build")
    ids = formats.write_movielens_zip(
        folder / "ml-25m.zip", users=200, movies=150, ratings=4000, seed=1
    )
    formats.write_votes(folder / "ddd_dict.pkl", ids, voted=120, seed=1)
    return folder


def test_build_ml_ddd_and_audit_it(movies: Path, tmp_path: Path) -> None:
    text = ombud(
        *("data", "build", "ml-ddd", "--movielens", movies / "ml-25m.zip"),
        *("--votes", movies / "ddd_dict.pkl", "--to", tmp_path / "ml-ddd"),
    )
    assert "clear_yes" in text and "filter, pass 1" in text and "wrote" in text
    assert sorted(p.name for p in (tmp_path / "ml-ddd").iterdir()) == [
        "card.json",
        "interactions.parquet",
        "labels.parquet",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["ml-ddd"], "no temporary file is left"
    ombud("data", "check", tmp_path / "ml-ddd" / "interactions.parquet", "--as", "interactions")
    lists = pl.read_parquet(tmp_path / "ml-ddd" / "interactions.parquet").select("user").unique()
    item = pl.read_parquet(tmp_path / "ml-ddd" / "labels.parquet")["item"][0]
    lists = lists.sort("user").with_columns(item=pl.lit(item), rank=pl.lit(1))
    lists.write_parquet(tmp_path / "lists.parquet")
    plan = Plan.from_dict(
        {
            "title": "Built",
            "data": {"source": "ml-ddd", "options": {"path": str(tmp_path / "ml-ddd")}},
            "systems": {"one": {"type": "recorded", "path": str(tmp_path / "lists.parquet")}},
            "metrics": [{"name": "label-share", "k": 1, "unknown": "no"}],
        }
    )
    result = Audit.from_plan(plan).run(tmp_path / "result")
    assert any(e.metric.startswith("label share") for e in result.estimates)


def test_build_options_reach_the_card(movies: Path, tmp_path: Path) -> None:
    words = ("data", "build", "ml-ddd", "--movielens", movies / "ml-25m.zip", "--votes")
    words += (movies / "ddd_dict.pkl", "--to", tmp_path / "x", "--strict", "--passes", "3")
    facts = json.loads(ombud(*words, "--threshold", "0.8", "--json"))["facts"]
    assert facts["threshold_rule"] == "more than" and facts["threshold"] == 0.8
    assert "80%" in facts["rule"] and facts["filter_passes"] <= 3
    assert "it exists" in ombud(*words, code=2)
    ombud(*words, "--replace")
    assert "threshold is 0.2" in ombud(*words, "--replace", "--threshold", "0.2", code=2)


def test_published_is_strict_with_three_passes(movies: Path, tmp_path: Path) -> None:
    words = ("data", "build", "ml-ddd", "--movielens", movies / "ml-25m.zip", "--votes")
    words += (movies / "ddd_dict.pkl", "--to")
    own = json.loads(ombud(*words, tmp_path / "a", "--strict", "--passes", "3", "--json"))
    published = json.loads(ombud(*words, tmp_path / "b", "--published", "--json"))
    names = ("interactions", "clear_yes", "clear_no", "unclear", "no_votes", "threshold_rule")
    assert {n: own["facts"][n] for n in names} == {n: published["facts"][n] for n in names}
    assert "1 of 137 published labels not stored" in " ".join(published["dropped"])
    assert "--published" in published["facts"]["rule_of_published_totals"]
    assert "give it or --passes" in ombud(
        *words, tmp_path / "c", "--published", "--passes", "2", code=2
    )
    assert "0.75" in ombud(*words, tmp_path / "c", "--published", "--threshold", "0.8", code=2)


def test_users_and_items_can_have_different_minimums(movies: Path, tmp_path: Path) -> None:
    words = ("data", "build", "ml-ddd", "--movielens", movies / "ml-25m.zip", "--votes")
    words += (movies / "ddd_dict.pkl", "--to", tmp_path / "x", "--minimum-items", "12")
    ombud(*words)
    table = pl.read_parquet(tmp_path / "x" / "interactions.parquet")
    assert table.group_by("item").len()["len"].min() >= 12
    assert 3 <= table.group_by("user").len()["len"].min() < 12


def test_the_released_tables_can_be_written_and_read_again(
    movies: Path, tmp_path: Path, formats: ModuleType
) -> None:
    tables = formats.write_ao3(tmp_path, users=200, works=60, kudos=1500, seed=2)
    build = ("data", "build", "ao3", "--sensitivity")
    ombud(*build, tables[0], "--interactions", tables[1], "--to", tmp_path / "one")
    ombud("data", "export", tmp_path / "one", "--to", tmp_path / "released")
    both = [
        tmp_path / "released" / f"ao3_{name}_table.csv" for name in ("sensitivity", "interaction")
    ]
    ombud(*build, both[0], "--interactions", both[1], "--to", tmp_path / "two")
    first, second = (
        json.loads((tmp_path / name / "card.json").read_text())["facts"] for name in ("one", "two")
    )
    same = [name for name in first if not name.startswith("filter")]
    # Sums are in another order, because pseudonyms are.
    for name in same:
        assert first[name] == (
            pytest.approx(second[name]) if isinstance(first[name], float) else second[name]
        )

    words = ("--movielens", movies / "ml-25m.zip", "--votes", movies / "ddd_dict.pkl")
    ombud("data", "build", "ml-ddd", *words, "--to", tmp_path / "movies")
    ombud("data", "export", tmp_path / "movies", "--to", tmp_path / "released")
    wide = pl.read_csv(tmp_path / "released" / "ml-ddd_sensitivity_table.csv")
    ratings = pl.read_csv(tmp_path / "released" / "ml-ddd_interaction_table.csv")
    assert ratings.columns == ["user_id", "work_id", "rating"]
    mean = ratings.group_by("work_id").agg(pl.col("rating").mean(), pl.len()).sort("work_id")
    wide = wide.sort("work_id")
    assert wide["av_rating"].to_list() == pytest.approx(mean["rating"].to_list())
    assert wide["n_ratings"].to_list() == mean["len"].to_list()
    states = ("Clear Yes", "Clear No", "No Votes", "Unclear")
    warning = next(c for c in wide.columns if c.startswith("Clear Yes: ")).removeprefix(
        "Clear Yes: "
    )
    of_one = wide.select(pl.sum_horizontal(f"{state}: {warning}" for state in states))
    assert of_one.to_series().unique().to_list() == [1]
    assert sum(c.startswith("Clear Yes: ") for c in wide.columns) == 136
    assert "there is no" in ombud("data", "export", tmp_path, "--to", tmp_path / "y", code=2)


def test_build_ao3(tmp_path: Path, formats: ModuleType) -> None:
    tables = formats.write_ao3(tmp_path, users=200, works=60, kudos=1500, seed=2)
    text = ombud(
        *("data", "build", "ao3", "--sensitivity", tables[0], "--interactions", tables[1]),
        *("--to", tmp_path / "ao3", "--minimum", "4"),
    )
    assert "filter_minimum: 4" in text
    assert "Kudos" not in (tmp_path / "ao3" / "card.json").read_text()[:10]
    assert "AO3 kudos" in ombud("data", "describe", "ao3")


def test_faults_are_sentences(movies: Path, tmp_path: Path) -> None:
    harmful = tmp_path / "ddd_dict.pkl"
    harmful.write_bytes(pickle.dumps(print))
    text = ombud(
        *("data", "build", "ml-ddd", "--movielens", movies / "ml-25m.zip"),
        *("--votes", harmful, "--to", tmp_path / "ml-ddd"),
        code=2,
    )
    assert "refused" in text and not (tmp_path / "ml-ddd").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["ddd_dict.pkl"]


def test_get_asks_for_the_licence_first(tmp_path: Path) -> None:
    text = ombud("data", "get", "movielens-25m", "--to", tmp_path / "d", code=2)
    assert "--accept-licence" in text and "GroupLens" in text
    assert not (tmp_path / "d").exists()
    assert "known: ao3" in ombud("data", "get", "movielens-26m", "--accept-licence", code=2)
    assert "movielens-25m" in ombud("data", "get", "list")
    assert set(json.loads(ombud("data", "get", "list", "--json"))) >= {"ao3", "ddd-votes"}


def test_get_fetches_and_says_what_was_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(remote: RemoteFile, folder: Path, **_: Any) -> Any:
        from ombud.http.download import Fetched

        return Fetched(str(folder / remote.name), remote.url, 7, "abc", "def", "no checksum", "now")

    one = Download("toy", "A toy", (RemoteFile("https://x.org/t", "t"),), "free", "https://x.org")
    monkeypatch.setattr("ombud.http.download.get_download", lambda _: one)
    monkeypatch.setattr("ombud.http.download.fetch", fetched)
    text = ombud("data", "get", "toy", "--to", tmp_path, "--accept-licence")
    assert "sha256 abc" in text and "checked: no checksum" in text
    assert json.loads(ombud("data", "get", "toy", "--to", tmp_path, "--accept-licence", "--json"))


def test_ask_ddd_needs_a_key(movies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMBUD_DDD_KEY", raising=False)
    words = ("data", "ask-ddd", "--movielens", movies / "ml-25m.zip", "--to", tmp_path / "d.sqlite")
    assert "OMBUD_DDD_KEY" in ombud(*words, code=2)
    assert not (tmp_path / "d.sqlite").exists()
