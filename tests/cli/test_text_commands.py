"""ombud text source and ombud text score, as a user runs them."""

from __future__ import annotations

import errno
import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from ombud.cli import app

WORDS = [f"w{i}" for i in range(2000)]


def corpus(path: Path, pages: int = 40) -> None:
    draw = np.random.default_rng(3)
    rows = []
    for page in range(pages):
        parts = [" ".join(draw.choice(WORDS, 15)) + end for end in (" elderly", " refugee", "", "")]
        rows.append({"text": "\n\n".join(parts), "url": f"https://news.example.org/{page}"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


def test_a_pilot_comes_first(tmp_path: Path) -> None:
    corpus(tmp_path / "a.jsonl")
    command = ("text", "source", tmp_path / "a.jsonl", "--to", tmp_path / "out", "--size", "40")
    code, output = run(*command)
    assert code == 2 and "there is no pilot" in output
    code, output = run(*command, "--pilot", "--pilot-size", "10")
    assert code == 0 and "10 texts in" in output
    assert "wanted" in output and "age" in output
    code, output = run(*command)
    assert code == 0
    frame = pl.read_parquet(tmp_path / "out" / "candidates.parquet")
    pilot = pl.read_parquet(tmp_path / "out" / "pilot" / "candidates.parquet")
    assert frame.height == 40 and not set(frame["id"]) & set(pilot["id"])
    assert pl.read_csv(tmp_path / "out" / "wanted_found.csv")["sampled"].sum() == 40
    code, output = run(*command)
    assert code == 2 and "finished run" in output


def test_damage_is_said_at_the_top_and_strict_stops(tmp_path: Path) -> None:
    corpus(tmp_path / "a.jsonl", pages=400)
    data = gzip.compress((tmp_path / "a.jsonl").read_bytes())
    corpus(tmp_path / "b.jsonl")
    (tmp_path / "c.jsonl.gz").write_bytes(data[:-2000])
    files = (tmp_path / "b.jsonl", tmp_path / "c.jsonl.gz")
    code, output = run("text", "source", *files, "--to", tmp_path / "x", "--no-pilot")
    assert code == 0 and output.startswith("DAMAGED c.jsonl.gz")
    code, output = run("text", "source", *files, "--to", tmp_path / "y", "--no-pilot", "--strict")
    assert code == 2 and not (tmp_path / "y").exists()
    code, output = run(
        "text", "source", tmp_path / "none.csv", "--to", tmp_path / "z", "--no-pilot"
    )
    assert code == 2 and "no such file" in output


def test_files_of_ones_own_are_used(tmp_path: Path) -> None:
    corpus(tmp_path / "a.jsonl")
    (tmp_path / "terms.csv").write_text("topic,severity,term\nage,offensive,w7\n")
    (tmp_path / "sites.toml").write_text('[news]\ndomains = ["example.org"]\n')
    code, output = run(
        "text",
        "source",
        tmp_path / "a.jsonl",
        "--to",
        tmp_path / "out",
        "--no-pilot",
        "--dictionary",
        tmp_path / "terms.csv",
        "--only",
        "--domains",
        tmp_path / "sites.toml",
        "--json",
    )
    assert code == 0
    content = json.loads(output)
    cells = {(row["topic"], row["severity"]) for row in content["table"] if row["found"]}
    assert cells <= {("age", "offensive"), ("control", "")}
    assert {row["kind"] for row in content["table"]} == {"news"}
    code, output = run("text", "source", tmp_path / "a.jsonl", "--to", tmp_path / "o", "--only")
    assert code == 2 and "--only needs --dictionary" in output


def test_scores_of_a_file(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("numba")
    from ombud.systems.detectors import Head, NgramDetector

    texts = [f"a {word} remark, number {i}" for i, word in enumerate(["kind", "cruel"] * 40)]
    detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1))
    detector.fit(texts, [0, 1] * 40).save(tmp_path / "model")
    pl.DataFrame({"text": texts[:11]}).write_parquet(tmp_path / "a.parquet")
    command = ("text", "score", tmp_path / "a.parquet", "--to", tmp_path / "out.parquet")
    code, output = run(*command, "--detector", tmp_path / "model")
    assert code == 0 and "5 of 11 texts are delicate by ngrams binary (> 0.5)" in output
    assert "not calibrated" in output
    assert pl.read_parquet(tmp_path / "out.parquet").height == 11
    code, output = run(*command, "--detector", tmp_path)
    assert code == 2 and "holds no detector" in output


def test_a_full_disk_is_said_and_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores of an earlier run stay whole; nothing is left half written."""
    pytest.importorskip("numba")
    import pyarrow.parquet as pq

    from ombud import files
    from ombud.systems.detectors import Head, NgramDetector

    texts = [f"a {word} remark, number {i}" for i, word in enumerate(["kind", "cruel"] * 20)]
    detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1))
    detector.fit(texts, [0, 1] * 20).save(tmp_path / "model")
    pl.DataFrame({"text": texts}).write_parquet(tmp_path / "a.parquet")
    corpus(tmp_path / "c.jsonl")
    score = ("text", "score", tmp_path / "a.parquet", "--to", tmp_path / "out.parquet",
             "--detector", tmp_path / "model")  # fmt: skip
    source = ("text", "source", tmp_path / "c.jsonl", "--to", tmp_path / "out", "--no-pilot")
    assert run(*score)[0] == 0
    kept = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    def full(*words: object, **named: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    monkeypatch.setattr(files.os, "fsync", full)
    for command in (score, source):
        code, output = run(*command)
        assert code == 2 and "No space left on device" in output
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == kept


def test_parts_of_the_sample_and_the_shipped_sites(tmp_path: Path) -> None:
    from ombud.text.domains import read_domains

    assert set(read_domains("sites@1").kinds) == {"news", "sensitive", "hostile"}
    assert read_domains("sites@1").kind_of("www.mentalhealthforum.net") == "sensitive"
    corpus(tmp_path / "a.jsonl")
    command = ("text", "source", tmp_path / "a.jsonl", "--to", tmp_path / "out", "--size", "40",
               "--no-pilot", "--splits")  # fmt: skip
    for wrong in ("train", "train=x", "train=0.5,train=0.5", "train=0.5"):
        assert run(*command, wrong)[0] == 2
    code, output = run(*command, "train=0.5, bench=0.5")
    assert code == 0, output
    parts = set(pl.read_parquet(tmp_path / "out" / "candidates.parquet")["split"].to_list())
    assert parts == {"train", "bench"}
