"""A first plan from files: what headers say, what is assumed, and that it runs as written."""

from __future__ import annotations

import tomllib
from pathlib import Path

import polars as pl
import pytest

from ombud.audits import Audit, Gate, Plan, Result
from ombud.audits.headers import read_role
from ombud.audits.scaffold import Start
from ombud.errors import DataError, PlanError
from ombud.worlds import small_world


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_world(seed=1, users=60, texts=300).write(tmp_path_factory.mktemp("world"), 10)


def run(folder: Path) -> Result:
    plan = Plan.load(folder / "plan.toml")
    few = plan.statistics.model_copy(update={"replicates": 100})
    return Audit.from_plan(plan.model_copy(update={"statistics": few})).run()


def test_files_with_headers_of_their_own_are_audited_as_written(
    files: dict[str, Path], tmp_path: Path
) -> None:
    history = pl.read_parquet(files["interactions"])
    history.rename({"user": "userId", "item": "movieId"}).write_csv(tmp_path / "ratings.csv")
    votes = pl.read_parquet(files["labels"])
    votes.rename({"item": "Movie ID", "label": "tag", "yes": "yes_votes", "no": "No-Votes"}).select(
        "tag", "Movie ID", "No-Votes", "yes_votes"
    ).write_ndjson(tmp_path / "tags.jsonl")
    people = pl.read_parquet(files["users"]).rename({"user": "id"})
    people.with_columns(height=1.8, name="id").write_csv(tmp_path / "users.csv")
    shown = pl.read_parquet(files["recommendations/amplifying"])
    names = {"user": "customer", "item": "product", "rank": "position"}
    shown.rename(names).write_parquet(tmp_path / "shown.parquet")
    start = Start.from_files(folder=tmp_path)
    start.write()
    plan = tomllib.loads((tmp_path / "plan.toml").read_text())
    assert plan["data"]["columns"]["labels"] == {
        "item": "Movie ID", "label": "tag", "yes": "yes_votes", "no": "No-Votes",
    }  # fmt: skip
    assert plan["by"] == ["age", "gender"]
    assert any("'height'" in text for text in start.unused)
    found = run(tmp_path)
    direct = Plan.from_dict(
        {
            "data": {n: str(files[n]) for n in ("interactions", "labels", "users")},
            "by": ["age", "gender"],
            "systems": {
                "shown": {"type": "recorded", "path": str(files["recommendations/amplifying"])}
            },
            "metrics": [{"name": "share-gap", "k": 10}],
            "statistics": {"replicates": 100},
        }
    )
    same = Audit.from_plan(direct).run()
    assert [e.value for e in found.estimates] == [e.value for e in same.estimates]
    (judged,) = Gate.load(tmp_path / "gate.toml").judge(found.estimates)
    assert judged.fault == "" and judged.kept + judged.broken + judged.undecided


def test_texts_and_scores_make_a_plan_for_a_moderator(
    files: dict[str, Path], tmp_path: Path
) -> None:
    texts = pl.read_parquet(files["texts"]).rename({"id": "comment_id", "text": "comment_text"})
    texts.with_columns(toxic=pl.col("label").cast(pl.Int8)).drop("label").write_parquet(
        tmp_path / "comments.parquet"
    )
    decided = pl.read_parquet(files["decisions/neutral"])
    decided.select(comment_id="id", toxicity="score").write_csv(tmp_path / "scores.csv")
    pl.read_parquet(files["text_groups"]).write_csv(tmp_path / "about.csv")
    start = Start.from_files(folder=tmp_path)
    start.write()
    roles = {role.path.name: role.role for role in start.roles}
    assert roles == {
        "about.csv": "text_groups", "comments.parquet": "texts", "scores.csv": "decisions",
    }  # fmt: skip
    assert any("flags are not measured" in text for text in start.assumed)
    found = run(tmp_path)
    assert {e.metric for e in found.estimates} >= {"false-positive rate"}
    assert any(e.group.startswith("identity=") for e in found.estimates)
    assert all(not one.fault for one in Gate.load(tmp_path / "gate.toml").judge(found.estimates))


@pytest.mark.parametrize(
    ("tables", "assumed"),
    [
        ({"interactions": ("user", "item")}, "trains the system 'popular'"),
        ({"texts": ("text", "label")}, "a list of words that ombud holds"),
    ],
)
def test_without_answers_of_a_system_the_plan_names_one_and_says_so(
    tables: dict[str, tuple[str, ...]], assumed: str, files: dict[str, Path], tmp_path: Path
) -> None:
    for name, columns in tables.items():
        pl.read_parquet(files[name]).select(columns).write_csv(tmp_path / f"{name}.csv")
    start = Start.from_files(folder=tmp_path)
    start.write()
    assert any(assumed in text for text in start.assumed)
    assert assumed in (tmp_path / "plan.toml").read_text()
    assert all(
        not one.fault for one in Gate.load(tmp_path / "gate.toml").judge(run(tmp_path).estimates)
    )


def test_repeated_pairs_missing_ratings_and_one_sided_labels_are_said(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,1,3\n1,1,4\n2,1,\n2,2,5\n3,2,1\n")
    (tmp_path / "genres.csv").write_text("item,genre\n1,war\n2,love\n")
    start = Start.from_files(folder=tmp_path)
    plan = start.plan()
    assert plan["data"]["duplicates"] == "last" and plan["data"]["missing"] == "drop"
    assert plan["data"]["unlabeled"] == "unknown" and len(start.assumed) == 5
    start.write()  # and it can be read


def test_nothing_is_overwritten_and_nothing_half_written(tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item\n1,1\n2,1\n")
    (tmp_path / "gate.toml").write_text("mine")
    with pytest.raises(PlanError, match=r"gate\.toml is there already"):
        Start.from_files(folder=tmp_path).write()
    assert (tmp_path / "gate.toml").read_text() == "mine"
    assert not (tmp_path / "plan.toml").exists()
    (tmp_path / "gate.toml").unlink()
    (tmp_path / "ratings.csv").write_text("user,item\n1,1\n,1\n")
    with pytest.raises(PlanError, match="missing in row 2"):
        Start.from_files(folder=tmp_path).write()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ratings.csv"]


def test_what_headers_do_not_tell_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("who,what\n1,2\n")
    (tmp_path / "b.csv").write_text("user,item\n1,2\n")
    (tmp_path / "c.csv").write_text("user,item\n1,2\n")
    with pytest.raises(PlanError, match=r"what does it hold\?.* --as ROLE="):
        Start.from_files([tmp_path / "a.csv"], tmp_path).plan()
    with pytest.raises(PlanError, match="several files look like interactions"):
        Start.from_files([tmp_path / "b.csv", tmp_path / "c.csv"], tmp_path).plan()
    with pytest.raises(PlanError, match=r"which column is the text.* --map text=COLUMN"):
        Start.from_files([f"texts={tmp_path / 'b.csv'}"], tmp_path).plan()
    roles = [f"test={tmp_path / 'c.csv'}", tmp_path / "b.csv"]
    assert Start.from_files(roles, tmp_path).plan()["data"]["test"] == "c.csv"
    (tmp_path / "t.csv").write_text("text\nsome words\n")
    with pytest.raises(PlanError, match="which texts should be flagged"):
        Start.from_files([tmp_path / "t.csv"], tmp_path).plan()
    with pytest.raises(PlanError, match="there is no table"):
        Start.from_files(folder=tmp_path / "empty")
    with pytest.raises(PlanError, match="not read"):
        Start.from_files([tmp_path / "x.exe"], tmp_path)


@pytest.mark.parametrize(
    ("header", "role"),
    [
        ("userId,movieId,rating,timestamp", "interactions"),
        ("user_id,item_id,rank", "recommendations"),
        ("movieId,tag", "labels"),
        ("user,age", "users"),
        ("id,text,label", "texts"),
        ("id,flagged", "decisions"),
        ("id,identity", "text_groups"),
        ("isbn,gender", "items"),
    ],
)
def test_roles_by_header(header: str, role: str, tmp_path: Path) -> None:
    values = {"tag": "war", "text": "some words", "flagged": "0", "label": "1"}
    row = ",".join(values.get(name, "1") for name in header.split(","))
    path = tmp_path / "file.csv"
    path.write_text(f"{header}\n{row}\n")
    assert read_role(path).role == role


def test_hostile_names_of_files_stay_in_comments(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,item\n1,1\n2,1\n")
    (tmp_path / 'u\n[expect."x"]\n.csv').write_text("user,n\n1,0.5\n2,0.7\n")
    Start.from_files(folder=tmp_path).write()
    assert "expect" not in tomllib.loads((tmp_path / "plan.toml").read_text())


def test_columns_of_a_plan_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("userId,item\n007,1\n")
    base = {"systems": {"p": {"type": "popular"}}, "metrics": [{"name": "coverage"}]}

    def load(**data: object) -> Audit:
        return Audit.from_plan(Plan.from_dict(base | {"data": {"interactions": str(path)} | data}))

    read = load(columns={"interactions": {"user": "userId"}}).data.interactions
    assert read is not None and read.users.ids.tolist() == ["007"]
    with pytest.raises(PlanError, match="'user_no', mapped to 'user', is missing"):
        load(columns={"interactions": {"user": "user_no"}})
    assert load(columns={"interactions": {"user": "userID"}}).data is not None
    with pytest.raises(PlanError, match="no column is called 'usr'; did you mean 'user'"):
        load(columns={"interactions": {"usr": "userId"}})
    with pytest.raises(PlanError, match="'labels', of which there is no file"):
        load(columns={"labels": {"item": "i"}})
    with pytest.raises(PlanError, match="beside it columns"):
        small = {"source": "small", "columns": {"interactions": {"user": "u"}}}
        Audit.from_plan(Plan.from_dict(base | {"data": small}))


def test_a_broken_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_bytes(b"PAR1 no")
    with pytest.raises((PlanError, DataError), match=r"r\.parquet"):
        Start.from_files(folder=tmp_path)
