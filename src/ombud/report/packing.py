"""One archive of a result for an auditor: what was asked, found and assumed, with hashes.

It holds what another person needs to read an audit and to check that it was not changed. It says
nothing about whether any rule, standard or law is kept.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import polars as pl
import tomli_w

from ombud import __version__
from ombud.audits.plan import change_paths
from ombud.audits.provenance import file_hashes
from ombud.audits.result import Result
from ombud.audits.verify import LEFT_OUT, MANIFEST, PACK_SCHEMA, Redaction
from ombud.errors import PlanError, ResultError
from ombud.files import csv_text, write_atomically
from ombud.report.context import Context
from ombud.report.display import joined
from ombud.report.markdown import document, section_lines
from ombud.report.model import Cell, Column, Section, Table
from ombud.report.page import DATA
from ombud.report.redaction import file_name, merged_groups, shown_plan
from ombud.report.report import Report
from ombud.report.verdict import stored_verdict

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_SHORTEST = 12
_EPOCH = (1980, 1, 1, 0, 0, 0)
_IDS = frozenset({"user", "person", "unit", "id", "text_id"})
_TEXTS = frozenset({"text", "comment", "sentence"})
# One row a user, without an id.
_SINGLE = frozenset({"user-preference-users"})


def pack(result: Result, to: Path | str | None = None, *, redact: Redaction = "ids") -> Path:
    """Write a result as one archive for an auditor, and return where.

    The same result and level give the same bytes. Paths of this machine, home folders and keys are
    in none of its files.

    Parameters
    ----------
    result
        A stored result (`Result.load`).
    to
        The file, ending in ``.zip``; default, beside the folder of the result.
    redact
        What is left out: ``none`` (nothing but paths), ``texts`` (texts and lists of terms), or
        ``ids`` (these, and everything about single users and texts).

    Raises
    ------
    ResultError
        If the result is not stored, or was edited since it was made.
    """
    if redact not in LEFT_OUT:
        raise PlanError(f"no redaction is called {redact!r}; known: {', '.join(LEFT_OUT)}")
    if result.folder is None:
        raise ResultError("only stored results can be packed; give run() a folder")
    if result.integrity is not None and result.integrity.changed:
        raise ResultError(f"it is not packed: {result.integrity.said}")
    folder = result.folder.resolve()
    path = Path(to) if to is not None else folder.with_name(f"{folder.name}.zip")
    if path.suffix != ".zip":
        raise PlanError(f"{path} ends in {path.suffix or 'nothing'}; an archive ends in .zip")
    held = _without_places(merged_groups(_redacted(result, redact)), folder)
    files = {name: text.encode() for name, text in _texts(held, redact).items()}
    files |= _stored(held, folder, redact)
    files["README.txt"] = _readme(held, redact, files).encode()
    _refuse_secrets(files, folder)
    files = dict(sorted(files.items()))
    sums = {name: sha256(data).hexdigest() for name, data in files.items()}
    listed = "".join(f"{digest}  {name}\n" for name, digest in sums.items())
    files["SHA256SUMS"] = listed.encode()
    sums["SHA256SUMS"] = sha256(files["SHA256SUMS"]).hexdigest()
    manifest = {
        "schema_version": PACK_SCHEMA,
        "made_by": f"ombud {__version__}",
        "title": result.plan.title,
        "redaction": redact,
        "left_out": list(LEFT_OUT[redact]),
        "result": sha256((folder / "provenance.json").read_bytes()).hexdigest(),
        "files": {
            name: {"sha256": digest, "bytes": len(files[name])} for name, digest in sums.items()
        },
    }
    files[MANIFEST] = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    write_atomically(path, lambda part: _write(files, part))
    return path


def _write(files: dict[str, bytes], path: Path) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED, compresslevel=6) as archive:
        for name, data in sorted(files.items()):
            info = ZipInfo(name, date_time=_EPOCH)
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            info.create_system = 3
            archive.writestr(info, data, compresslevel=6)


def _redacted(result: Result, redact: Redaction) -> Result:
    """Return the result without the tables that a level leaves out."""
    if redact == "none":
        return result
    gone = _TEXTS if redact == "texts" else _TEXTS | _IDS
    kept = {
        name: table
        for name, table in result.tables.items()
        if not (gone & set(_worded(table, gone))) and (redact == "texts" or name not in _SINGLE)
    }
    return replace(result, tables=kept)


def _worded(table: pl.DataFrame, names: frozenset[str]) -> list[str]:
    """Return which of some columns a table has; a count of texts is no text."""
    return [
        name
        for name, dtype in table.schema.items()
        if name in names and (name in _IDS or dtype == pl.String)
    ]


def _texts(result: Result, redact: Redaction) -> dict[str, str]:
    """Return the files that are made anew for the archive."""
    report = Report(result, public=True)
    plan = shown_plan(result.plan)
    if redact == "none":
        named = change_paths(result.plan, file_name)
        plan = named.model_dump(mode="json", exclude_none=True)
    content = result.to_dict()
    expected = [one.to_dict() for one in report.expected]
    return {
        "plan.toml": tomli_w.dumps(plan),
        "card.md": _card(result, report),
        "card.json": _json(result.card.model_dump(mode="json")),
        "estimates.json": _json(content),
        "estimates.csv": csv_text(result.to_tidy()),
        "expected.json": _json({"expected": expected}),
        "methods.md": _methods(report),
        "report.html": report.html(),
        "verdict.json": _json(stored_verdict(result)),
    }


def _json(content: object) -> str:
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _stored(result: Result, folder: Path, redact: Redaction) -> dict[str, bytes]:
    """Return the files that are taken as they are stored."""
    found = {"provenance.json": (folder / "provenance.json").read_bytes()}
    for name in file_hashes(folder):
        first = name.partition("/")[0]
        if first == "tables":
            keep = Path(name).stem in result.tables
        elif first in {"outputs", "predictions", "rows"}:
            keep = redact != "ids"
        elif first == "inputs":
            keep = redact == "none" or (redact == "texts" and Path(name).stem != "texts")
        else:
            keep = False  # plan, run and estimates are made anew, without paths
        if keep:
            found[name] = (folder / name).read_bytes()
    return found


def _card(result: Result, report: Report) -> str:
    """Return who audits whom, on which data, and what was expected."""
    card = result.card
    data = [(name.replace("_", " "), str(value)) for name, value in card if value and name in _CARD]
    data += [(f"SHA-256 of {name}", digest) for name, digest in sorted(card.hashes.items())]
    data += [(name, str(value)) for name, value in sorted(card.facts.items())]
    held = Section("data-card", "The data", (_terms("card", "Data card.", data),))
    expected = [section for section in report.sections if section.name == "limits"]
    made = [*expected, held, *DATA.made(Context.of(result))]
    return document(f"{result.plan.title}: card", section_lines(made))


def _terms(name: str, caption: str, pairs: list[tuple[str, str]]) -> Table:
    rows = tuple((Cell(key), Cell(value)) for key, value in pairs)
    return Table(name, caption, (Column("Name"), Column("Value")), rows)


_CARD = frozenset({"name", "title", "source", "licence", "citation", "known_harms", "unknowns"})


def _methods(report: Report) -> str:
    """Return methods and limitations in words."""
    plan = report.result.plan
    settings = [(k, str(v)) for k, v in plan.statistics.model_dump().items()]
    table = _terms("statistics", "Settings of the plan.", settings)
    statistics = Section("statistics", "How uncertainty was computed", (table,))
    made = [s for s in report.sections if s.name in {"method", "what-was-measured", "limitations"}]
    lines = section_lines([*made, statistics])
    return document(f"{plan.title}: methods and limitations", lines)


_SAID = {
    "README.txt": "this file",
    "card.json": "the data's card, for programs",
    "card.md": "who audits whom, on which data, what was expected, what was excluded",
    "estimates.csv": "every number, one row each",
    "estimates.json": "every number with its interval, method, support and reason",
    "expected.json": "limits that were declared before the run, and whether they are met",
    "methods.md": "methods and limits, in words",
    "plan.toml": "what was asked; files by name, without their folders",
    "provenance.json": "versions, seed, times, and the SHA-256 of inputs and of the whole result",
    "report.html": "the report, the verdict first",
    "verdict.json": "the verdict of each question, for programs",
    "SHA256SUMS": "hashes of all files, for: sha256sum -c SHA256SUMS",
    MANIFEST: "lengths and SHA-256 of all files, for: ombud verify ARCHIVE",
}


def _readme(result: Result, redact: Redaction, files: dict[str, bytes]) -> str:
    folders = sorted({name.partition("/")[0] for name in files if "/" in name})
    lines = [
        result.plan.title,
        "",
        "An audit made with ombud, packed for reading and checking. It states what was measured",
        "and how sure that is. It certifies nothing and claims no compliance with any rule or law.",
        "",
        *(f"{name:<18}{said}" for name, said in _SAID.items()),
        *([f"folders: {joined(folders)}, as the result stores them"] if folders else []),
        "",
        f"Left out (level {redact!r}):",
        *(f"- {one}" for one in LEFT_OUT[redact]),
        "",
        "Hashes show that a file is not the one that was packed. Who can change the whole archive",
        "can change its hashes too: compare the SHA-256 of manifest.json, which ombud verify",
        "prints, with one that was noted elsewhere.",
    ]
    return "\n".join(lines) + "\n"


def _without_places(result: Result, folder: Path) -> Result:
    """Return the result with no folder of this machine in its words."""
    places = ((str(folder), "."), (str(Path.home().resolve()), "~"))

    def clean(text: str) -> str:
        for place, shown in places:
            text = text.replace(place, shown)
        return text

    estimates = tuple(
        e.replace(note=clean(e.note), reason=clean(e.reason), method=clean(e.method))
        for e in result.estimates
    )
    left_out = tuple(
        replace(e, where=clean(e.where), reason=clean(e.reason)) for e in result.exclusions
    )
    words = {name: clean(value) for name, value in result.card if isinstance(value, str)}
    hashes = {Path(name).name: digest for name, digest in result.card.hashes.items()}
    dropped = tuple(clean(one) for one in result.card.dropped)
    card = result.card.model_copy(update={**words, "hashes": hashes, "dropped": dropped})
    return replace(result, estimates=estimates, exclusions=left_out, card=card)


def _refuse_secrets(files: dict[str, bytes], folder: Path) -> None:
    """Refuse an archive that holds a folder of this machine, or a key of its environment."""
    secrets = {
        name: value.encode()
        for name, value in os.environ.items()
        if _SECRET.search(name) and len(value) >= _SHORTEST
    }
    for name, data in files.items():
        if str(folder).encode() in data:
            raise ResultError(f"it is not packed: {name} would name the folder {folder}")
        for variable, value in secrets.items():
            if value in data:
                raise ResultError(f"it is not packed: {name} would hold the value of {variable}")
