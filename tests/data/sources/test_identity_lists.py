"""Lists of titles by identity: reading the published folders, joining, counted misses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.audits.load import load_data
from ombud.audits.plan import Plan
from ombud.data.dataset import Dataset
from ombud.data.sources.identity_lists import (
    groups_by_title,
    read_identity_lists,
    title_key,
    year_in,
)
from ombud.errors import DataError, OmbudError, PlanError


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def published(folder: Path) -> Path:
    """The folders of the paper: category, group, a list for each sub-identity."""
    lists = folder / "tags"
    write(lists / "race/non_white/asian_tagged_movies.csv", "title,year\nThe Sea,1999\nGone,2001\n")
    write(lists / "race/white/europe.csv", "Title,Year\nRivér (2003 film),2003.0\nTwice,\n")
    write(lists / "gender/women/all.csv", "title,year\nthe sea,1999\nThe Sea,1984\nRiver,2003\n")
    return lists


FILMS = "title,year,rating,plot\nThe Sea,1999,PG,a boat\nRiver,2003,PG-13,a raft\n" + (
    "Twice,1990,R,a\nTwice,1991,G,b\nHill,2000,NR,c\n"
)


def films(folder: Path) -> Path:
    return write(folder / "films.csv", FILMS)


def source(name: str, **options: object) -> Dataset:
    made = registry.create("source", name, options)
    assert isinstance(made, Dataset)
    return made


def test_lists_are_joined_by_title_and_year_and_misses_are_counted(tmp_path: Path) -> None:
    data = source("synopses", path=str(films(tmp_path)), groups=str(published(tmp_path)))
    assert data.texts is not None and data.text_groups is not None
    assert data.texts.texts.tolist() == ["a boat", "a raft", "a", "b"]
    groups = data.text_groups
    assert dict(zip(groups.names, groups.attributes, strict=True)) == {
        "women": "gender",
        "non-white": "race",
        "white": "race",
    }
    inside = groups.aligned(data.texts.ids)
    named = [{groups.names[g] for g in np.flatnonzero(row)} for row in inside]
    assert named == [{"women", "non-white"}, {"women", "white"}, set(), set()]
    missed = {e.reason: (e.count, e.of) for e in data.exclusions if e.where == "identity lists"}
    assert missed == {
        "no text has their title": (1, 7),
        "texts with their title are of another year": (1, 7),
        "they state no year, and texts with their title are of several years": (1, 7),
    }
    # Every entry is joined or counted once.
    assert 7 - sum(count for count, _ in missed.values()) == int(inside.sum())


def test_a_table_of_lists_and_a_title_without_years(tmp_path: Path) -> None:
    lists = write(tmp_path / "own.csv", "title,group,attribute\nTwice,sailors,work\nHill,male,\n")
    table = write(tmp_path / "t.csv", "title,rating,plot\nTwice,G,x\nHill,PG,y\n")
    data = source("synopses", path=str(table), groups=str(lists))
    assert data.text_groups is not None
    assert data.text_groups.names == ("sailors", "men")
    assert data.text_groups.attributes == ("work", "gender")
    assert data.text_groups.members.tolist() == [[True, False], [False, True]]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "neither a table nor a folder"),
        ({"lists/a.csv": "title\nx\n"}, "names no group"),
        ({"lists/men/a.csv": "when\n1999\n"}, "none of its columns is a title"),
        ({"lists/men/a.csv": "title\nNowhere\n"}, "none of 1 entries has the title of a text"),
    ],
)
def test_lists_that_cannot_be_used(tmp_path: Path, files: dict[str, str], words: str) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    with pytest.raises(DataError, match=words):
        source("synopses", path=str(films(tmp_path)), groups=str(tmp_path / "lists"))
    table = write(tmp_path / "nogroup.csv", "title\nThe Sea\n")
    with pytest.raises(DataError, match="'group' is missing"):
        read_identity_lists(table)


@given(st.text(max_size=30))
def test_a_title_key_is_its_own_key(title: str) -> None:
    key = title_key(title)
    assert title_key(key) == key
    assert title_key(f" {title} ") == key


@given(st.integers(1870, 2099))
def test_every_year_is_found(year: int) -> None:
    assert year_in(f"{year}") == year_in(f"{year}.0") == year_in(f"{year}-05-01") == year
    assert year_in("", f"Title ({year} film)") == year


def test_joining_by_brute_force() -> None:
    rng = np.random.default_rng(3)
    titles = [f"T{i}" for i in rng.integers(0, 12, 60)]
    years = [None if rng.random() < 0.2 else int(y) for y in rng.integers(2000, 2003, 60)]
    rows = [
        (f"t{rng.integers(0, 15)}", None if rng.random() < 0.3 else int(y), "g", "g")
        for y in rng.integers(2000, 2003, 40)
    ]
    schema = {"key": pl.String, "year": pl.Int64, "group": pl.String, "attribute": pl.String}
    lists = pl.DataFrame(rows, schema=schema, orient="row").unique(maintain_order=True)
    made, missed = groups_by_title(pl.Series(range(60)), titles, years, lists)
    expected = np.zeros(60, dtype=bool)
    lost = 0
    for key, year, _, _ in lists.rows():
        same = [i for i, t in enumerate(titles) if t.lower() == key]
        kinds = {years[i] for i in same}
        if year is None:
            hit = same if len(kinds) == 1 else []
        else:
            hit = [i for i in same if years[i] == year] or (same if kinds == {None} else [])
        expected[hit] = True
        lost += not hit
    assert made.members[:, 0].tolist() == expected.tolist()
    assert sum(e.count for e in missed) == lost


# Groups beside any source.


def forum(folder: Path) -> Path:
    write(
        folder / "forum/annotations_metadata.csv",
        "file_id,user_id,label\n" + "".join(f"1_{i},u{i},noHate\n" for i in range(6)),
    )
    texts = "".join(f"1_{i},words {i}\n" for i in range(6))
    write(folder / "forum/stormfront_sentences.csv", f"file_id,text\n{texts}")
    return folder / "forum"


def plan(**data: object) -> Plan:
    return Plan.model_validate(
        {"data": data, "systems": {"s": {"type": "keyword", "terms": ["x"]}}}
    )


def test_text_groups_stand_beside_a_source(tmp_path: Path) -> None:
    table = write(
        tmp_path / "groups.csv", "id,group\n1_0,sailors\n1_3,sailors\nelsewhere,sailors\n"
    )
    options = {"path": str(forum(tmp_path))}
    data = load_data(plan(source="stormfront", options=options, text_groups=str(table)))
    assert data.text_groups is not None and data.texts is not None
    inside = data.text_groups.aligned(data.texts.ids)[:, 0]
    assert np.flatnonzero(inside).tolist() == [0, 3]
    assert "groups.csv" in data.card.hashes
    told = [str(e) for e in data.exclusions]
    assert any("not among the texts" in one for one in told)
    other = write(tmp_path / "other.csv", "id,group\nx,sailors\n")
    with pytest.raises(DataError, match="none of its 1 ids"):
        load_data(plan(source="stormfront", options=options, text_groups=str(other)))
    named = write(tmp_path / "named.csv", "sentence,group\n1_0,sailors\n")
    columns = {"text_groups": {"id": "sentence"}}
    chosen = plan(source="stormfront", options=options, text_groups=str(named), columns=columns)
    assert load_data(chosen).text_groups is not None
    with pytest.raises(PlanError, match="no texts"):
        size = {"users": 60, "items": 60, "interactions": 100}
        load_data(plan(source="large", options=size, text_groups=str(table)))
    with pytest.raises(PlanError, match="which a source does not use"):
        load_data(plan(source="stormfront", options=options, interactions=str(table)))


def test_groups_of_a_part_and_of_a_table_over_all_parts(tmp_path: Path) -> None:
    own = write(tmp_path / "g.csv", "id,group\n1_0,sailors\nnowhere,sailors\n")
    parts = [
        {"source": "stormfront", "path": str(forum(tmp_path)), "groups": str(own)},
        {"source": "synopses", "path": str(films(tmp_path)), "groups": str(published(tmp_path))},
    ]
    data = source("together", parts=parts)
    assert data.text_groups is not None and data.texts is not None
    assert set(data.text_groups.names) == {"sailors", "women", "non-white", "white"}
    assert any("table of groups" in e.reason and e.count == 1 for e in data.exclusions)
    over = write(tmp_path / "over.csv", "id,group\nstormfront:1_5,divers\n")
    made = load_data(plan(source="together", options={"parts": parts}, text_groups=str(over)))
    assert made.text_groups is not None and made.texts is not None
    inside = made.text_groups.aligned(made.texts.ids)
    named = [sorted(made.text_groups.names[g] for g in np.flatnonzero(row)) for row in inside]
    assert named[:6] == [[], [], [], [], [], ["divers"]]
    assert named[6] == ["non-white", "women"]  # the other set keeps the groups of its source
    bad = [{**parts[0], "groups": str(write(tmp_path / "n.csv", "id,group\nq,w\n"))}, parts[1]]
    with pytest.raises(OmbudError, match="none of its 1 ids"):
        source("together", parts=bad)
