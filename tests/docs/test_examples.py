"""Example plans are what a user starts from: each is a whole plan, and says how it is run."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomli_w
from typer.testing import CliRunner

from ombud import registry
from ombud.audits.load import load_data
from ombud.audits.plan import Plan
from ombud.audits.presets import complete
from ombud.cli.commands import app
from ombud.data.card import Card

EXAMPLES = Path(__file__).parents[2] / "examples"
PLANS = sorted(path for path in EXAMPLES.rglob("*.toml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_an_example_is_a_whole_plan(path: Path) -> None:
    plan = complete(Plan.load(path))
    assert plan.metrics or plan.analyses
    kinds = {*registry.names("recommender"), *registry.names("moderator")}
    assert {settings["type"] for settings in plan.systems.values()} <= kinds
    for metric in plan.metrics:
        registry.create("metric", metric["name"], {k: v for k, v in metric.items() if k != "name"})


FILLED_IN = ("systems", "metrics", "analyses", "split", "sample", "title")
STORED = json.loads(Path(__file__).with_name("completed_examples.json").read_text())


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_a_preset_fills_in_the_same_plan_as_ever(path: Path) -> None:
    """Results are compared by their plans: what a preset fills in changes on purpose only."""
    filled = complete(Plan.load(path)).model_dump(mode="json", include=set(FILLED_IN))
    text = json.dumps(filled).replace(str(path.parent), "<folder>")
    assert json.loads(text) == STORED[path.relative_to(EXAMPLES).as_posix()]


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_an_example_names_the_command_that_runs_it(path: Path) -> None:
    if path.parent.name != "ci":
        assert f"ombud run examples/{path.relative_to(EXAMPLES).as_posix()}" in path.read_text()


# Published settings have up to 100 factors, so that there must be more users and items.
USERS, ITEMS, EACH = 130, 110, 14


def _rated(user: int) -> list[int]:
    return sorted({(7 * user + 13 * k + k * k) % ITEMS for k in range(EACH)})


def _isbn(number: int) -> str:
    digits = f"{number:09d}"
    check = -sum((10 - place) * int(d) for place, d in enumerate(digits)) % 11
    return digits + ("X" if check == 10 else str(check))


def _books(folder: Path) -> None:
    (folder / "bookcrossing").mkdir(parents=True)
    (folder / "author-gender").mkdir()
    isbns = [_isbn(20500 + n) for n in range(ITEMS)]
    names = ["Johnston, Mary", "Grant, Robert"]
    books = [f"{isbn},Book {n},{names[n % 2]!r},2000,P" for n, isbn in enumerate(isbns)]
    head = "ISBN,Book-Title,Book-Author,Year-Of-Publication,Publisher\n"
    rows = "\n".join(books).replace("'", '"')
    (folder / "bookcrossing" / "BX-Books.csv").write_text(head + rows + "\n")
    rated = [f"{u},{isbns[n]},{5 + (u + n) % 5}" for u in range(1, USERS) for n in _rated(u)]
    ratings = "User-ID,ISBN,Book-Rating\n" + "\n".join(rated) + "\n"
    (folder / "bookcrossing" / "BX-Ratings.csv").write_text(ratings)
    genders = ("female", "male")
    people = [f"{n}\t{name}\t{n}\t{name}\t{genders[n]}" for n, name in enumerate(names)]
    (folder / "author-gender" / "post45_hathitrust_prizewinners.tsv").write_text(
        "hathi_id\tauthor\tperson_id\tfull_name\tgender\n" + "\n".join(people) + "\n"
    )
    good = folder / "goodbooks-10k"
    good.mkdir()
    plain = ["Mary Johnston", "Robert Grant"]
    lines = [f"{n},{n},{n},{isbn},,{plain[n % 2]},Book {n}" for n, isbn in enumerate(isbns)]
    text = (
        "book_id,goodreads_book_id,work_id,isbn,isbn13,authors,title\n"
        + "\n".join(lines).replace("'", '"')
        + "\n"
    )
    (good / "books.csv").write_text(text)
    rated = [f"{u},{n},{1 + (u + n) % 5}" for u in range(1, USERS) for n in _rated(u)]
    (good / "ratings.csv").write_text("user_id,book_id,rating\n" + "\n".join(rated) + "\n")
    named = "fantasy,romance,mystery,young-adult,classics,historical-fiction,science-fiction"
    genres = [f'{n},"{named},non-fiction"' for n in range(ITEMS)]
    (good / "book_genres.csv").write_text("book_id,genres\n" + "\n".join(genres) + "\n")


def _movies(folder: Path) -> None:
    small = folder / "movielens-small"
    small.mkdir(parents=True)
    rated = [
        f"{u},{m + 1},{1 + (u + m) % 5},{978300000 + m}" for u in range(1, USERS) for m in _rated(u)
    ]
    (small / "ratings.csv").write_text(
        "userId,movieId,rating,timestamp\n" + "\n".join(rated) + "\n"
    )
    films = [f"{m},Film {m} (1999),Drama|War" for m in range(1, ITEMS + 1)]
    (small / "movies.csv").write_text("movieId,title,genres\n" + "\n".join(films) + "\n")
    links = [f"{m},{m},{m}" for m in range(1, ITEMS + 1)]
    (small / "links.csv").write_text("movieId,imdbId,tmdbId\n" + "\n".join(links) + "\n")
    words = [
        f"{m},\"[{{'id': {m}, 'name': '{'gore' if m % 3 else 'spider'}'}}]\""
        for m in range(1, ITEMS + 1)
    ]
    (folder / "tmdb-keywords").mkdir()
    (folder / "tmdb-keywords" / "keywords.csv").write_text(
        "id,keywords\n" + "\n".join(words) + "\n"
    )
    large = folder / "movielens-1m"
    large.mkdir()
    rows = [
        f"{u}::{m + 1}::{1 + (u + m) % 5}::978300000" for u in range(1, USERS) for m in _rated(u)
    ]
    (large / "ratings.dat").write_text("\n".join(rows) + "\n")
    films = [f"{m}::Film {m} (1999)::Drama|War" for m in range(1, ITEMS + 1)]
    (large / "movies.dat").write_text("\n".join(films) + "\n")
    people = [f"{u}::{'FM'[u % 2]}::25::1::00000" for u in range(1, USERS)]
    (large / "users.dat").write_text("\n".join(people) + "\n")


def _texts(folder: Path) -> None:
    for name in ("olid", "stormfront", "tweeteval-hate", "jigsaw-bias"):
        (folder / name).mkdir(parents=True)
    rows = [f"{n},tweet {n},{'OFF' if n % 3 == 0 else 'NOT'}" for n in range(60)]
    (folder / "olid" / "olid_data.csv").write_text("id,tweet,subtask_a\n" + "\n".join(rows) + "\n")
    rows = [f"{n}_1,{n % 7},7,0,{'hate' if n % 4 == 0 else 'noHate'}" for n in range(60)]
    (folder / "stormfront" / "annotations_metadata.csv").write_text(
        "file_id,user_id,subforum_id,num_contexts,label\n" + "\n".join(rows) + "\n"
    )
    rows = [f"{n}_1,{n % 7},the woman said {n}" for n in range(60)]
    (folder / "stormfront" / "stormfront_sentences.csv").write_text(
        "file_id,user_id,text\n" + "\n".join(rows) + "\n"
    )
    for part in ("train", "val", "test"):
        lines = [f"{part} a man wrote {n}" for n in range(30)]
        (folder / "tweeteval-hate" / f"{part}_text.txt").write_text("\n".join(lines) + "\n")
        labels = "\n".join(str(n % 2) for n in range(30)) + "\n"
        (folder / "tweeteval-hate" / f"{part}_labels.txt").write_text(labels)
    words = ("hug", "hate")
    rows = [f"verb_adj,{'toxic' if w == 'hate' else 'nontoxic'},{w} {who}" for w in words
            for who in ("lesbian", "gay", "muslim", "old", "young")]  # fmt: skip
    (folder / "jigsaw-bias" / "en_sentence_templates.csv").write_text(
        "template,toxicity,phrase\n" + "\n".join(rows) + "\n"
    )


def _works(folder: Path) -> None:
    """The folder that ``ombud data build ao3`` writes, and lists beside the plan."""
    pairs = [(user, item) for user in range(USERS) for item in _rated(user)]
    history = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    warnings = ["warning one", "warning two"]
    states = [(item, w, int(item % (3 + n) == 0)) for item in range(ITEMS)
              for n, w in enumerate(warnings)]  # fmt: skip
    labels = pl.DataFrame(states, schema=["item", "label", "state"], orient="row")
    path = folder / "ao3"
    path.mkdir(parents=True)
    history.write_parquet(path / "interactions.parquet")
    labels.with_columns(pl.col("state").cast(pl.Int8)).write_parquet(path / "labels.parquet")
    (path / "card.json").write_text(Card(name="ao3", title="AO3").model_dump_json())
    unseen = [sorted(set(range(ITEMS)) - set(_rated(user))) for user in range(USERS)]
    rows = [
        (u, item, k) for u in range(USERS) for k, item in enumerate(unseen[u][u % 50 :][:20], 1)
    ]
    lists = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
    lists.write_parquet(folder.parent / "lists.parquet")


def _comments(folder: Path) -> None:
    who = ("a woman", "a gay man", "a black man", "someone")
    rows = [f"{who[n % 4]} said {n} things,{n % 2}" for n in range(400)]
    (folder.parent / "texts.csv").write_text("text,label\n" + "\n".join(rows) + "\n")


WRITERS = {"authors": _books, "counterfactual": _movies, "warnings": _movies, "fan-fiction": _works,
           "suppression": _texts, "delicate": _texts, "ci": _comments}  # fmt: skip


# Training and search take minutes with the budgets as printed (OMBUD_SLOW=1); every run has these.
FEW = {
    "users": 3, "targets": 6, "at_risk": 2, "looked_at": 6, "random": 1, "tries": 2, "moved": 2,
    "retrained": 1, "random_treatments": 1, "noise_runs": 1, "most_labels": 1, "people": 1,
    "escape_budget": 1,
}  # fmt: skip
LEAST: dict[str, dict[str, Any]] = {
    "authors": {"trained": ["item-kNN"], "users": 30, "accuracy_users": 10, "placebo": False},
    "counterfactual": FEW,
    "warnings": {"trained": ["TopPop", "SVD"], "forms": ["ratio-of-means"], "bounds": False},
}
LONG = [path for path in PLANS if path.parent.name in LEAST and path.stem != "fan-fiction"]
RUNS = [pytest.param(path, True, id=f"{path.parent.name}/{path.stem}") for path in PLANS]
RUNS += [
    pytest.param(
        path, False, id=f"{path.parent.name}/{path.stem}-as-printed", marks=pytest.mark.slow
    )
    for path in LONG
]


def _with_least_budget(path: Path, content: str) -> str:
    """Return a plan with the smallest budgets that its own keys allow; all else as printed."""
    plan = tomllib.loads(content)
    given = plan.get("options", {})
    plan["options"] = {**given, **LEAST[path.parent.name]}
    if "genres" in given:
        plan["options"]["genres"] = given["genres"][:1]
    if path.parent.name == "counterfactual":
        plan["systems"] = {name: plan["systems"][name] for name in ("EASE", "Item kNN")}
    plan |= {"statistics": {"replicates": 100}, **({"sample": 20} if "sample" in plan else {})}
    return tomli_w.dumps(plan)


def _placed(path: Path, root: Path, quick: bool = False) -> str:
    """Put a plan where it is in the repository, and its data beside it; return its name."""
    folder = root / "examples" / path.parent.name
    folder.mkdir(parents=True)
    content = path.read_text()
    least = quick and path in LONG
    (folder / path.name).write_text(_with_least_budget(path, content) if least else content)
    WRITERS.get(path.stem, WRITERS[path.parent.name])(folder / "data")
    return f"examples/{path.parent.name}/{path.name}"


@pytest.mark.parametrize("path", PLANS, ids=lambda p: p.relative_to(EXAMPLES).as_posix())
def test_an_example_reads_its_data_from_the_repository_root(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = load_data(complete(Plan.load(_placed(path, tmp_path))))
    assert data.interactions is not None or data.texts is not None


@pytest.mark.parametrize(("path", "quick"), RUNS)
def test_an_example_runs_as_printed(
    path: Path, quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the root of the repository, on tiny data of the same form."""
    monkeypatch.chdir(tmp_path)
    words = ["run", _placed(path, tmp_path, quick), "--folder", "result", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["estimates"]
