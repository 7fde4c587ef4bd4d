"""Sourcing: the sample, its strata and weights, the table, splits, and the folder."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.errors import DataError, PlanError
from ombud.taxonomy.dictionary import Dictionary, DictionaryTerm
from ombud.text.domains import DomainKinds, read_domains
from ombud.text.reservoir import Reservoir, water_fill
from ombud.text.sourcing import (
    Sourced,
    Sourcing,
    assign_splits,
    pilot_ids,
    source_texts,
    write_sourced,
)

WORDS = [f"w{i}" for i in range(5000)]
TERMS = Dictionary(
    "mine",
    (
        DictionaryTerm("age", "offensive", "oldie"),
        DictionaryTerm("age", "potentially-offensive", "elderly"),
        DictionaryTerm("politics", "offensive", "tyrant"),
    ),
)


def paragraph(draw: random.Random, *terms: str) -> str:
    words = [draw.choice(WORDS) for _ in range(20)]
    for place, term in enumerate(terms):
        words[place * 3 + 2] = term
    return " ".join(words)


def corpus(path: Path, pages: int = 60, seed: int = 1) -> list[dict[str, str]]:
    """60 pages of 10 paragraphs: 3 with elderly, 1 with oldie, 1 with both kinds, 5 with none."""
    draw = random.Random(seed)
    rows = []
    for page in range(pages):
        parts = [paragraph(draw, "elderly") for _ in range(3)]
        parts += [paragraph(draw, "Oldies"), paragraph(draw, "tyrant", "elderly")]
        parts += [paragraph(draw) for _ in range(5)]
        site = "news.example.org" if page % 3 else "www.talk.example.net"
        rows.append({"text": "\n\n".join(parts), "url": f"https://{site}/{page}"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def run(path: Path, **options: object) -> Sourced:
    fields = {"size": 100, "shortest": 20} | options
    domains = fields.pop("domains", None)
    without = fields.pop("without", ())
    return source_texts(
        [path],
        dictionary=TERMS,
        settings=Sourcing(**fields),  # type: ignore[arg-type]
        domains=domains,  # type: ignore[arg-type]
        without=without,  # type: ignore[arg-type]
    )


def test_no_more_distinct_texts_are_estimated_than_were_found(tmp_path: Path) -> None:
    """A small pilot estimates from a few keys, which may say twice as many as there are."""
    path = tmp_path / "a.jsonl"
    corpus(path, pages=6)
    for seed in range(8):
        table = run(path, size=6, seed=seed).table
        assert (table["distinct"] <= table["found"]).all()


def test_cells_are_counted_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    corpus(path)
    found = run(path)
    cells = {(r["topic"], r["severity"]): r for r in found.table.iter_rows(named=True)}
    assert cells["age", "potentially-offensive"]["found"] == 180
    assert cells["age", "potentially-offensive"]["mentioned"] == 240
    assert cells["age", "offensive"]["found"] == 60
    assert cells["politics", "offensive"]["found"] == 60  # the strongest term decides
    assert cells["control", ""]["found"] == 300
    assert found.facts["paragraphs"] == 600
    # 90 with terms from three cells that have enough, 10 controls.
    sampled = [row["sampled"] for row in found.table.iter_rows(named=True) if row["sampled"]]
    assert sorted(sampled) == [10, 30, 30, 30]
    assert found.shortfall == 0


def test_weights_add_up_to_the_distinct_paragraphs(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    corpus(path)
    found = run(path, size=400)
    rows = found.candidates.group_by("topic", "severity").agg(pl.col("weight").sum())
    weights = {(row[0], row[1]): row[2] for row in rows.iter_rows()}
    assert weights["age", "offensive"] == pytest.approx(60)
    assert weights["politics", "offensive"] == pytest.approx(60)
    # Where some had to go the number is estimated.
    assert weights[None, None] == pytest.approx(300, rel=0.35)


def test_every_candidate_keeps_where_it_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = corpus(path)
    found = run(path)
    texts = {part: row["url"] for row in rows for part in row["text"].split("\n\n")}
    for row in found.candidates.iter_rows(named=True):
        assert texts[row["text"]] == row["url"] == row["page"]
        assert row["file"] == "a.jsonl"
        assert row["control"] == (row["topic"] is None) == (not row["terms"])
        assert set(row["terms"]) <= {"elderly", "oldie", "tyrant"}
    both = found.candidates.filter(pl.col("topic") == "politics").row(0, named=True)
    assert both["topics"] == ["age", "politics"]
    assert both["terms"] == ["elderly", "tyrant"]


def test_the_sample_depends_on_texts_and_seed_alone(tmp_path: Path) -> None:
    rows = corpus(tmp_path / "a.jsonl")
    random.Random(5).shuffle(rows)
    for at in (0, 1):
        part = tmp_path / f"part{at}.jsonl"
        part.write_text("".join(json.dumps(row) + "\n" for row in rows[at::2]))
    one = run(tmp_path / "a.jsonl")
    two = source_texts(
        [tmp_path / "part1.jsonl", tmp_path / "part0.jsonl"],
        dictionary=TERMS,
        settings=Sourcing(size=100, shortest=20),
    )
    assert one.candidates["id"].to_list() == two.candidates["id"].to_list()
    assert one.candidates["split"].to_list() == two.candidates["split"].to_list()
    other = run(tmp_path / "a.jsonl", seed=1)
    assert set(other.candidates["id"]) != set(one.candidates["id"])


def test_repetitions_are_taken_once(tmp_path: Path) -> None:
    rows = corpus(tmp_path / "a.jsonl", pages=20)
    again = [{**row, "url": f"{row['url']}/copy", "text": row["text"].upper()} for row in rows]
    near = [{**row, "url": f"{row['url']}/near", "text": row["text"] + " x"} for row in rows]
    path = tmp_path / "b.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows + again + near))
    found = run(path, size=1000)
    assert found.candidates.height <= 200
    texts = [text.lower().removesuffix(" x") for text in found.candidates["text"]]
    assert len(set(texts)) == len(texts)


def test_splits_share_no_page(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    corpus(path, pages=200)
    found = run(path, size=600)
    parts = found.candidates.group_by("page").agg(pl.col("split").n_unique())
    assert parts["split"].max() == 1
    assert set(found.candidates["split"]) == {"train", "validation", "test"}


def test_kinds_of_sites_have_quotas_and_others_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    corpus(path)
    kinds = DomainKinds(
        {"news": ("example.org",), "forum": ("elsewhere.example",)}, {"news": 0.75, "forum": 0.25}
    )
    found = run(path, domains=kinds)
    assert set(found.candidates["kind"]) == {"news"}
    assert found.candidates.height == 75 and found.shortfall == 25
    (left,) = [e for e in found.exclusions if e.what == "documents"]
    assert left.count == 20 and "not listed" in left.reason


def test_pilot_texts_are_not_chosen_again(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    corpus(path)
    pilot = run(path, size=50)
    write_sourced(tmp_path / "out" / "pilot", pilot)
    names = pilot_ids(tmp_path / "out" / "pilot", dictionary=TERMS.digest, domains="")
    assert sorted(names) == sorted(pilot.candidates["id"])
    main = run(path, without=names)
    assert not set(main.candidates["id"]) & set(names)
    assert main.candidates.height == 100
    with pytest.raises(PlanError, match="another set of: dictionary"):
        pilot_ids(tmp_path / "out" / "pilot", dictionary="x", domains="")
    with pytest.raises(PlanError, match="no pilot"):
        pilot_ids(tmp_path / "nothing", dictionary="x", domains="")


def test_long_and_short_paragraphs_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("short\n\n" + "elderly " * 1_500_000 + "\n\n" + "an elderly person " * 5)
    found = run(path)
    assert found.candidates.height == 1
    reasons = {e.reason: e.count for e in found.exclusions}
    assert reasons == {"shorter than 20 characters": 1, "longer than 5,000 characters": 1}


def test_nothing_to_use_is_an_error_that_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("short\n")
    with pytest.raises(DataError, match="shorter than 20"):
        run(path)
    with pytest.raises(DataError, match="no files"):
        source_texts([])
    with pytest.raises(PlanError, match="control is 1"):
        Sourcing(control=1.0)


def test_memory_holds_no_more_texts_than_wanted_twice(tmp_path: Path) -> None:
    reservoir: Reservoir[str] = Reservoir(4, 40, threshold=None)
    rng = np.random.default_rng(1)
    for _ in range(50):
        keys = rng.integers(0, 2**64, 200, dtype=np.uint64)
        strata = rng.choice(4, 200, p=[0.9, 0.08, 0.015, 0.005])
        at = reservoir.wanted(keys, strata)
        texts = [f"{key}" for key in keys[at]]
        reservoir.offer(keys[at], strata[at], texts, texts)
        assert reservoir.size <= 40
    # Even shares, whatever the strata's sizes.
    assert reservoir.sizes() == [10, 10, 10, 10]
    assert reservoir.distinct(0) == pytest.approx(9000, rel=0.7)


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 30))
def test_a_reservoir_does_not_depend_on_order(draw: random.Random, room: int) -> None:
    rows = [(draw.randrange(2**64), draw.randrange(3)) for _ in range(80)]

    def kept(order: list[tuple[int, int]]) -> list[list[int]]:
        reservoir: Reservoir[int] = Reservoir(3, room + 3, threshold=None)
        for at in range(0, len(order), 9):
            keys = np.array([key for key, _ in order[at : at + 9]], dtype=np.uint64)
            strata = np.array([s for _, s in order[at : at + 9]], dtype=np.int64)
            reservoir.offer(keys, strata, [str(k) for k in keys], keys.tolist())
        given = water_fill(reservoir.sizes(), room)
        return [[key for key, _ in reservoir.smallest(s)][: given[s]] for s in range(3)]

    first = kept(rows)
    draw.shuffle(rows)
    assert kept(rows) == first
    # Independent route: sort every stratum and fill evenly.
    whole = [sorted({key for key, s in rows if s == stratum}) for stratum in range(3)]
    shares = water_fill([len(part) for part in whole], room)
    assert first == [part[:share] for part, share in zip(whole, shares, strict=True)]


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.integers(0, 300))
def test_water_filling_is_even(available: list[int], total: int) -> None:
    given = water_fill(available, total)
    assert sum(given) == min(total, sum(available))
    assert all(0 <= g <= a for g, a in zip(given, available, strict=True))
    open_parts = [g for g, a in zip(given, available, strict=True) if g < a]
    if open_parts:
        assert max(given) - min(open_parts) <= 1


def test_repeats_join_pages() -> None:
    pages = [f"p{i}" for i in range(200)]
    repeats = np.full(200, -1)
    repeats[1:] = np.arange(199)
    shares = {"train": 0.5, "test": 0.5}
    assert len(set(assign_splits(pages, shares=shares, repeats=repeats))) == 1
    apart = assign_splits(pages, shares=shares)
    assert 60 < apart.count("train") < 140
    # Adding a page moves no other.
    assert assign_splits([*pages, "q"], shares=shares)[:200] == apart
    with pytest.raises(PlanError, match=r"add up to 0\.5"):
        assign_splits(pages, shares={"train": 0.5})


def test_domain_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "sites.toml"
    path.write_text('[news]\ndomains = ["example.org"]\nquota = 0.5\n[forum]\ndomains = ["a b"]\n')
    with pytest.raises(DataError) as caught:
        read_domains(path)
    assert "'a b' is not a domain" in str(caught.value)
    assert "every kind" in str(caught.value)
    path.write_text('[news]\ndomains = ["Example.org"]\n')
    kinds = read_domains(path)
    assert kinds.kind_of("sub.example.ORG") == "news"
    path.write_text("[news\n")
    with pytest.raises(DataError, match="not TOML"):
        read_domains(path)
