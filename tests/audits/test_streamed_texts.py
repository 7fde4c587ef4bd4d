"""Recorded decisions about texts in blocks on disk: the numbers of an audit in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from _texts_lake import by_name, plan_of_texts, same, write_texts

from ombud.audits import Audit
from ombud.audits.backends.stream import sort_into_blocks
from ombud.audits.backends.tables import Tables
from ombud.audits.presets import tagger_of
from ombud.errors import OmbudError, PlanError
from ombud.report import Report


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder)
    return folder


@pytest.mark.parametrize(
    ("texts", "groups"),
    [("texts", "wide"), ("clusters", "members"), ("clusters", None)],
    ids=["alone", "clusters", "tagged"],
)
def test_blocks_of_texts_give_the_numbers_of_memory(
    lake: Path, tmp_path: Path, texts: str, groups: str | None
):
    memory = Audit.from_plan(plan_of_texts(lake, texts, groups)).run(tmp_path / "memory")
    engine = {"type": "stream", "blocks": 3}
    stream = Audit.from_plan(plan_of_texts(lake, texts, groups, engine=engine)).run(
        tmp_path / "stream"
    )
    mine, theirs = by_name(memory), by_name(stream)
    assert mine.keys() == theirs.keys() and len(mine) > 20
    exact = 0
    for about, a in mine.items():
        b = theirs[about]
        assert (a.n, a.reason, a.method) == (b.n, b.reason, b.method)
        if a.value is None:
            continue
        assert b.value == pytest.approx(a.value, abs=1e-9)
        assert a.note == b.note
        if not any(word in a.method for word in ("bootstrap", "bca", "percentile", "expanded")):
            exact += 1  # these intervals are made of sums alone
            assert b.interval == pytest.approx(a.interval, abs=1e-9)
            assert b.p_value == pytest.approx(a.p_value, abs=1e-9)
    assert exact and set(stream.exclusions) == set(memory.exclusions)
    stored = pl.read_parquet(tmp_path / "stream" / "rows" / "00" / "one" / "*.parquet")
    whole = pl.read_parquet(tmp_path / "memory" / "rows" / "00" / "one.parquet")
    assert stored["unit"].sort().equals(whole["unit"].sort())
    if texts == "clusters" and groups is not None:
        engine = {"type": "stream", "blocks": 1, "rows": False}
        other = Audit.from_plan(plan_of_texts(lake, texts, groups, engine=engine)).run(
            tmp_path / "other"
        )
        same(stream, other)
        assert "suppression" in Report(stream).markdown()


@pytest.fixture
def few_files():
    """Let 200 more files be open than there are now."""
    resource = pytest.importorskip("resource", reason="the system has no limit of open files")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(list(Path("/dev/fd").iterdir())) if Path("/dev/fd").exists() else 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 200, before[1]))
    yield resource
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _sort(lake: Path, scratch: Path, groups: str | None, blocks: int) -> int:
    plan = plan_of_texts(lake, "clusters", groups)
    tables = Tables.of(plan, tagger=tagger_of(plan))
    sort_into_blocks(tables, scratch, blocks, lambda done, total, note: None, "")
    return len(list(scratch.rglob("*.arrow")))


def test_of_clusters_too_one_table_is_open_at_once(
    lake: Path, tmp_path: Path, few_files, monkeypatch
):
    before = few_files.getrlimit(few_files.RLIMIT_NOFILE)

    def refuse(*_: object) -> None:
        raise ValueError("not allowed to raise maximum limit")

    set_limit = few_files.setrlimit
    monkeypatch.setattr(few_files, "setrlimit", refuse)
    assert _sort(lake, tmp_path / "one", "members", 110) == 4 * 110
    for groups, blocks in (("members", 300), (None, 110)):  # what is tagged is written beside
        with pytest.raises(PlanError, match=rf"{blocks} blocks are too many here.*ulimit -n"):
            _sort(lake, tmp_path / "two", groups, blocks)
        assert not list(tmp_path.glob("two/**/*.arrow"))
    monkeypatch.setattr(few_files, "setrlimit", set_limit)
    assert _sort(lake, tmp_path / "three", None, 300) == 4 * 300
    assert few_files.getrlimit(few_files.RLIMIT_NOFILE) == before


ENGINE = {"type": "stream", "blocks": 2}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"metrics": [{"name": "median-score"}]}, r"\(median\) is no function of sums"),
        ({"metrics": [{"name": "ndcg"}]}, "measures a recommender, and the data is of a moderator"),
        ({"by": ["age"]}, "by names age; the table has the attributes named"),
        ({"systems": {"numbered": {"type": "recorded"}}}, "nothing would match; cast one of them"),
        (
            {"preset": "suppression", "options": {"regressions": True}},
            "analyses: analyses read all tables at once",
        ),
    ],
    ids=["median", "lists", "by", "ids", "analysis"],
)
def test_what_blocks_of_texts_cannot_do_is_refused_at_once(
    lake: Path, tmp_path: Path, more: dict[str, Any], told: str
):
    for name, system in more.get("systems", {}).items():
        system["path"] = str(lake / f"{name}.parquet")
    pl.DataFrame({"id": [1], "flagged": [True]}).write_parquet(lake / "numbered.parquet")
    with pytest.raises(PlanError, match=told):
        Audit.from_plan(plan_of_texts(lake, "texts", "wide", engine=ENGINE, **more)).run(
            tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda f: pl.concat([f, f.head(1).with_columns(pl.col("cluster") + 1)]),
            "column 'id' repeats an id, such as 't0'",
        ),
        (lambda f: f.with_columns(label=1), "no text is known not to deserve a flag"),
        (lambda f: f.with_columns(id="x" + pl.col("id")), "none of its 2,401 ids is that of a t"),
    ],
    ids=["twice", "truth", "strangers"],
)
def test_texts_with_faults_are_refused(lake: Path, tmp_path: Path, change: Any, told: str):
    good = pl.read_parquet(lake / "clusters.parquet")
    change(good).write_parquet(tmp_path / "texts.parquet")
    plan = plan_of_texts(lake, "texts", None, engine=ENGINE)
    data = plan.data.model_copy(update={"texts": str(tmp_path / "texts.parquet")})
    with pytest.raises(OmbudError, match=told):
        Audit.from_plan(plan.model_copy(update={"data": data})).run(tmp_path / "out")
    assert not (tmp_path / "out" / "provenance.json").exists()
