"""Results of audits: a list of folders, and the report of each."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ombud.app.errors import AppError
from ombud.app.web.site import Site, site_of
from ombud.audits.compare import compare
from ombud.audits.condition import ANSWERS
from ombud.audits.result import Result
from ombud.report import Report
from ombud.report.watching import change_verdict

_DEEPEST = 4
_MOST_REPORTS = 16
_BEGINNING, _ENDING = 8000, 2000
_BRIEF = re.compile(r'\s*\{\s*"brief":\s*')
_STARTED = re.compile(r'"started": "(\d{4}-\d\d-\d\dT\d\d:\d\d)')
_TEXTS = ("question", "headline", "finding")


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """One result folder: where, what, when; or why its verdict cannot be shown."""

    key: str
    folder: Path
    place: str
    started: str
    answer: str = ""
    question: str = ""
    headline: str = ""
    finding: str = ""
    systems: tuple[str, ...] = ()
    fault: str = ""


def find_results(root: Path) -> list[ResultEntry]:
    """Return the results in a folder and the folders below it, newest first; links stay closed."""
    found: list[Path] = []
    level = [root]
    for _ in range(_DEEPEST):
        below: list[Path] = []
        for folder in level:
            if (folder / "provenance.json").is_file():
                found.append(folder)
                continue
            try:
                entries = sorted(folder.iterdir())
            except OSError:
                continue
            below += [e for e in entries if e.is_dir() and not e.is_symlink() and e.name[0] != "."]
        level = below
    entries_found = [_entry(root, folder) for folder in found]
    return sorted(entries_found, key=lambda e: (e.started, e.place), reverse=True)


def _entry(root: Path, folder: Path) -> ResultEntry:
    """Return what a folder says in brief: at most 10,000 bytes of it are read."""
    place = folder.relative_to(root).as_posix()
    key = blake2b(place.encode(errors="surrogateescape"), digest_size=9).hexdigest()
    about = (key, folder, folder.name if place == "." else place)
    started = ""
    try:
        # The times are near the end of the file; hashes of any number of files come before.
        ending = _part(folder / "provenance.json", -_ENDING)
        time = _STARTED.search(ending)
        started = "" if time is None else time[1].replace("T", " ")
        brief = _brief(folder / "verdict.json")
    except FileNotFoundError:
        return ResultEntry(*about, started, fault="verdict.json is missing.")
    except AppError as error:
        return ResultEntry(*about, started, fault=str(error))
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
        return ResultEntry(*about, started, fault="verdict.json cannot be read.")
    question, headline, finding = (str(brief.get(name) or "") for name in _TEXTS)
    systems = brief.get("systems")
    named = tuple(str(s) for s in systems) if isinstance(systems, list) else ()
    answer = next((known for known in ANSWERS if known == brief.get("answer")), "")
    return ResultEntry(*about, started, answer, question, headline, finding, named)


def _part(path: Path, size: int) -> str:
    """Return the first bytes of a regular file as text, or for a negative size the last ones."""
    # Without O_NONBLOCK, a named pipe would wait here for a writer.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise AppError(f"{path.name} is not a regular file.")
        if size < 0:
            os.lseek(handle, max(0, status.st_size + size), os.SEEK_SET)
        return os.read(handle, abs(size)).decode("utf-8", "ignore")
    finally:
        os.close(handle)


def _brief(path: Path) -> dict[str, Any]:
    """Return the brief verdict that a file begins with."""
    text = _part(path, _BEGINNING)
    found = _BRIEF.match(text)
    if found is None:
        raise AppError("verdict.json does not begin with a brief verdict: run the audit again.")
    brief, _ = json.JSONDecoder().raw_decode(text, found.end())
    if not isinstance(brief, dict):
        raise ValueError("a brief verdict is a table")
    return brief


def _root(site: Site) -> Path:
    if site.results is None:
        raise AppError("no folder of results was named when the app was started")
    return site.results


async def results_page(request: Request) -> Response:
    """List the results."""
    site = site_of(request)
    session = site.require(request, "lead")
    found = await run_in_threadpool(find_results, _root(site))
    return site.render("results.html", session, results=found, folder=_root(site).name)


def _find(site: Site, keys: Sequence[str]) -> list[ResultEntry]:
    """Return the results with these keys, the earlier ones first."""
    found = [e for e in find_results(_root(site)) if e.key in keys]
    if len(found) < len(keys):
        raise AppError("this result is not there any more")
    return found[::-1]


def _report(site: Site, key: str) -> str:
    (entry,) = _find(site, [key])
    stamp = (entry.folder / "provenance.json").stat().st_mtime_ns
    kept: dict[tuple[str, int], str] = site.cache.setdefault("reports", {})
    if (key, stamp) not in kept:
        # Drawn anew from the numbers: an HTML file in the folder may have been made by anybody.
        html = Report(Result.load(entry.folder)).html()
        while len(kept) >= _MOST_REPORTS:
            del kept[next(iter(kept))]
        kept[key, stamp] = html
    return kept[key, stamp]


async def report_page(request: Request) -> Response:
    """Show the report of a result, in a sandbox: it cannot act for whoever is signed in."""
    site = site_of(request)
    site.require(request, "lead")
    html = await run_in_threadpool(_report, site, request.path_params["key"])
    policy = "sandbox allow-scripts allow-downloads allow-popups; frame-ancestors 'none'"
    return HTMLResponse(html, headers={"content-security-policy": policy})


def _compared(site: Site, keys: Sequence[str]) -> dict[str, Any]:
    before, after = _find(site, keys)
    results = [Result.load(entry.folder) for entry in (before, after)]
    found = compare(results[0], results[1])
    edits = [r.integrity.said for r in results if r.integrity is not None and r.integrity.said]
    verdict = change_verdict(found, results[1])
    return {"before": before, "after": after, "verdict": verdict, "notes": [*edits, *found.remarks]}


async def compare_page(request: Request) -> Response:
    """Show the verdict on the change from the earlier to the later of two results."""
    site = site_of(request)
    session = site.require(request, "lead")
    keys = list(dict.fromkeys(request.query_params.getlist("of")))
    if len(keys) != 2:
        raise AppError("Select exactly two results to compare.")
    found = await run_in_threadpool(_compared, site, keys)
    return site.render("compare.html", session, **found)
