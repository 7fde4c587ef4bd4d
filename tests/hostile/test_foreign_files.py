"""Pipes, numbers beyond computation, half characters, damaged archives: each has its limit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits.plan import Plan
from ombud.errors import DataError, PlanError, ResultError
from ombud.files import read_json, read_plain, read_utf8
from ombud.link.problems import Problems
from ombud.link.readers.base import decode_lines
from ombud.taxonomy.model import read_crosswalk, read_taxonomy
from ombud.text.documents import Damage, _PageReader, read_documents
from ombud.text.sourcing import Sourcing, source_texts


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a thing of Unix")
def test_a_pipe_is_refused_wherever_a_file_is_read_as_a_whole(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        read_plain(pipe)
    with pytest.raises(PlanError, match="not a regular file"):
        Plan.load(pipe)
    with pytest.raises(ResultError, match="no ordinary file"):
        read_json(pipe)
    for read in (read_utf8, read_taxonomy, read_crosswalk):
        with pytest.raises(DataError, match="not a regular file"):
            read(pipe)
    with pytest.raises(DataError, match="not a regular file"):
        list(read_documents(pipe.rename(tmp_path / "pipe.txt")))


def test_a_large_sparse_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(ResultError, match="more than 1,024 MB"):
        read_json(path)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1e308", "-1e308", "1e400", "NaN", "9" * 5000])
def test_numbers_of_a_result_beyond_computation_are_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(f'{{"n": {number}}}')
    with pytest.raises(ResultError, match=r"a\.json is not JSON"):
        read_json(path)
    path.write_text(json.dumps({"n": [2**64, -(2**63), 1e100, 5e-324]}))
    assert read_json(path)["n"][0] == 2**64


def test_half_a_character_costs_only_itself() -> None:
    lines = [b'{"name": "a\\ud800b"}', b'{"name": "whole"}', b'{"name": "\\ud83d\\ude00"}']
    found = decode_lines(lines, {"name": pl.String}, "x", Problems())
    assert found["name"].to_list() == ["a\ufffdb", "whole", "\U0001f600"]


def test_one_file_that_cannot_be_read_does_not_refuse_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(
        "Sentence of an old man and of the war that he saw as a child.\n\n" * 50
    )
    (tmp_path / "b.arc").write_text("x")
    found = source_texts([tmp_path / "b.arc", tmp_path / "a.txt"], settings=Sourcing(size=5))
    assert list(found.damaged) == ["b.arc"]
    with pytest.raises(DataError, match="'.arc' are not read"):
        source_texts([tmp_path / "b.arc"], settings=Sourcing(size=5))


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet", "x.txt.gz", "x.csv.gz"])
def test_bytes_that_are_nothing_are_damage_or_an_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"\x1f\x8b\x08" + bytes(range(256)) * 9)
    damage = Damage()
    try:
        list(read_documents(path, damage=damage))
    except DataError:
        return
    assert damage.files or damage.counts or damage.mended


def test_a_page_that_takes_too_long_ends_and_the_next_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("resiliparse")
    pages = _PageReader()
    try:
        assert "plain words" in (pages.text("<html><body><p>plain words</p></body></html>") or "")
        monkeypatch.setattr("ombud.text.documents._PAGE_SECONDS", 0.5)
        assert pages.text("<div>" * 300_000 + "deep") is None
        monkeypatch.setattr("ombud.text.documents._PAGE_SECONDS", 60.0)
        assert "next" in (pages.text("<html><body><p>the next</p></body></html>") or "")
    finally:
        pages.close()


# numpy leaves the file open when it is no archive.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_truncated_detector_is_an_error_that_names_it(tmp_path: Path) -> None:
    from ombud.systems.detectors import Head, NgramDetector

    detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1))
    detector.fit(
        [f"{'bad' if n % 2 else 'good'} words {n}" for n in range(60)], np.array([0, 1] * 30)
    )
    path = detector.save(tmp_path / "d")
    weights = (path / "weights.npz").read_bytes()
    for cut in (0, 10, len(weights) // 2, len(weights) - 30):
        (path / "weights.npz").write_bytes(weights[:cut])
        with pytest.raises(DataError, match="the detector is damaged"):
            NgramDetector.load(path)
