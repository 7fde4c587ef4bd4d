"""One archive for an auditor: what is in it, what is not, and whether it was changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import polars as pl
import pytest
from typer.testing import CliRunner

from ombud.audits import Audit, Gate, Plan, Result, verify
from ombud.audits.plan import StatisticsPlan
from ombud.audits.verify import LEFT_OUT, MANIFEST, Redaction
from ombud.cli import app
from ombud.errors import PlanError, ResultError
from ombud.metrics import FalsePositiveRate
from ombud.report import pack
from ombud.worlds import small_world

EXPECT = {"few": {"limit": "value <= 0.5", "where": 'group == ""', "reason": "agreed"}}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result whose data, answers and tables lie in its folder."""
    world = small_world(seed=1, users=30, texts=200)
    folder = tmp_path_factory.mktemp("some place") / "mine.result"
    audit = Audit(
        replace(world.dataset, interactions=None, labels=None, users=None),
        world.moderators()[:1],
        [FalsePositiveRate()],
        statistics=StatisticsPlan(replicates=100),
        title="Ours & theirs",
        about={"auditor": "Ada", "purpose": "Review."},
        expect=EXPECT,
    )
    audit.run(folder)
    return folder


def held(path: Path) -> dict[str, bytes]:
    with ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def packed(stored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(Result.load(stored), tmp_path_factory.mktemp("out") / "a.zip")


def test_the_archive_has_what_an_auditor_reads(packed: Path, stored: Path) -> None:
    files = held(packed)
    plan = tomllib.loads(files["plan.toml"].decode())
    assert Plan.from_dict(plan).expect.keys() == EXPECT.keys()
    assert (
        b"Ada" in files["card.md"] and b"declared these limits before anything" in files["card.md"]
    )
    assert b"false-positive rate" in files["methods.md"] and b"replicates" in files["methods.md"]
    loaded = Result.load(stored)
    assert len(json.loads(files["estimates.json"])["estimates"]) == len(loaded.estimates)
    assert pl.read_csv(files["estimates.csv"]).height == len(loaded.estimates)
    judged = [one.state for one in Gate.of(loaded.plan).judge(loaded.estimates)]
    assert [o["state"] for o in json.loads(files["expected.json"])["expected"]] == judged
    assert files["provenance.json"] == (stored / "provenance.json").read_bytes()
    assert b"claims no compliance" in files["README.txt"]
    manifest = json.loads(files[MANIFEST])
    assert manifest["files"].keys() == files.keys() - {MANIFEST}
    for name, said in manifest["files"].items():
        digest, length = sha256(files[name]).hexdigest(), len(files[name])
        assert said == {"sha256": digest, "bytes": length}
    assert manifest["result"] == verify(stored).fingerprint


def test_the_same_result_gives_the_same_bytes(packed: Path, stored: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "other.result"
    shutil.copytree(stored, moved)
    again = pack(Result.load(moved), tmp_path / "b.zip")
    assert again.read_bytes() == packed.read_bytes()


def test_levels_leave_out_what_they_say(packed: Path, stored: Path, tmp_path: Path) -> None:
    result = Result.load(stored)
    tables = {
        "per-person": pl.DataFrame({"person": [1]}),
        "words": pl.DataFrame({"text": ["some words"]}),
        "counts": pl.DataFrame({"text": [3]}),
    }
    result = replace(result, tables=tables)
    for name, table in tables.items():
        (stored / "tables").mkdir(exist_ok=True)
        table.write_parquet(stored / "tables" / f"{name}.parquet")
    try:
        names: dict[Redaction, set[str]] = {
            level: set(held(pack(result, tmp_path / f"{level}.zip", redact=level)))
            for level in LEFT_OUT
        }
    finally:
        shutil.rmtree(stored / "tables")
    assert not any("/" in name for name in names["ids"] - {"tables/counts.parquet"})
    assert {"outputs/neutral.parquet", "rows/00/neutral.parquet"} <= names["texts"]
    assert "tables/per-person.parquet" in names["texts"]
    assert not {"inputs/texts.parquet", "tables/words.parquet"} & names["texts"]
    assert {"inputs/texts.parquet", "tables/words.parquet"} <= names["none"]
    assert names["ids"] < names["texts"] < names["none"]


def test_no_text_id_or_place_is_in_what_is_sent_by_default(packed: Path, stored: Path) -> None:
    everything = b"\n".join(held(packed).values())
    for word in (b"text-001", b"choir of", str(stored).encode(), stored.parent.name.encode()):
        assert word not in everything
    assert str(Path.home()).encode() + b"/" not in everything


def test_keys_and_folders_are_refused(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Result.load(stored)
    told = replace(result.estimates[0], note=f"see {stored}/x and {Path.home()}/y")
    clean = held(pack(replace(result, estimates=(told,)), tmp_path / "a.zip"))
    assert b"see ./x and ~/y" in clean["estimates.json"]
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890abcdef")
    leaking = replace(result, estimates=(replace(told, note="sk-1234567890abcdef"),))
    with pytest.raises(ResultError, match="would hold the value of SOME_API_KEY"):
        pack(leaking, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def test_what_cannot_be_packed_is_said(stored: Path, tmp_path: Path) -> None:
    result = Result.load(stored)
    with pytest.raises(ResultError, match="only stored results"):
        pack(replace(result, folder=None), tmp_path / "a.zip")
    with pytest.raises(PlanError, match="ends in"):
        pack(result, tmp_path / "a.tar")
    with pytest.raises(PlanError, match="no redaction is called 'all'"):
        pack(result, tmp_path / "a.zip", redact="all")  # type: ignore[arg-type]
    edited = tmp_path / "edited"
    shutil.copytree(stored, edited)
    text = (edited / "estimates.json").read_text()
    (edited / "estimates.json").write_text(text.replace('"n": ', '"n": 1'))
    with pytest.raises(ResultError, match="not packed: EDITED"):
        pack(Result.load(edited), tmp_path / "a.zip")


def rewritten(packed: Path, path: Path, **changes: bytes | None) -> Path:
    files = held(packed) | changes
    with ZipFile(path, "w") as archive:
        for name, data in files.items():
            if data is not None:
                archive.writestr(name, data)
    return path


def test_an_archive_is_verified_without_unpacking(packed: Path, tmp_path: Path) -> None:
    found = verify(packed)
    assert found.is_intact and {c.state for c in found.checks} == {"intact"}
    assert verify(packed, expect=found.fingerprint).is_intact
    assert not verify(packed, expect="0" * 64).is_intact
    card = held(packed)["card.md"]
    for changes, state in (
        ({"card.md": card.replace(b"Ada", b"Bob")}, "changed"),
        ({"card.md": card + b"x" * 10}, "changed"),
        ({"card.md": None}, "missing"),
    ):
        bad = verify(rewritten(packed, tmp_path / "bad.zip", **changes))
        assert [c.name for c in bad.select(state)] == ["card.md"] and not bad.is_intact
    more = verify(rewritten(packed, tmp_path / "more.zip", **{"../x": b"y"}))
    assert [c.name for c in more.select("not recorded")] == ["../x"]
    assert CliRunner().invoke(app, ["verify", str(packed)]).exit_code == 0
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "bad.zip")]).exit_code == 1
    assert CliRunner().invoke(app, ["verify", str(packed), "--again"]).exit_code == 2


def test_other_files_are_no_archives(tmp_path: Path, packed: Path) -> None:
    path = tmp_path / "x.zip"
    for data in (b"", b"PK\x03\x04 no", packed.read_bytes()[:-30]):
        path.write_bytes(data)
        with pytest.raises(ResultError):
            verify(path)
    for manifest in (b"[]", b"{}", b'{"files": {"a": 1}}', b"{" * 9, b'{"files": {}}'):
        rewritten(packed, path, **{MANIFEST: manifest})
        with pytest.raises(ResultError):
            verify(path)


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="there is no sha256sum")
def test_hashes_are_checked_without_ombud(packed: Path, tmp_path: Path) -> None:
    with ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_the_command_names_what_it_left_out(stored: Path, tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["pack", str(stored), "--to", str(tmp_path / "a.zip")])
    assert told.exit_code == 0 and told.stdout.count("left out: ") == len(LEFT_OUT["ids"])
