"""Results of audits: a list of folders, and the report of each."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from ombud.app.errors import AppError
from ombud.app.web.site import Site, site_of
from ombud.audits.result import Result
from ombud.errors import OmbudError
from ombud.report import Report

_DEEPEST = 4
_MOST_REPORTS = 16


@dataclass(frozen=True, slots=True)
class ResultEntry:
    """One result folder: where, what, when; or what is wrong with it."""

    key: str
    folder: Path
    place: str
    title: str
    finished: str
    systems: tuple[str, ...]
    numbers: int
    fault: str
    answer: str = ""


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
    return sorted(entries_found, key=lambda e: (e.finished, e.place), reverse=True)


def _entry(root: Path, folder: Path) -> ResultEntry:
    place = folder.relative_to(root).as_posix()
    key = blake2b(place.encode(), digest_size=9).hexdigest()
    name = folder.name if place == "." else place
    try:
        result = Result.load(folder)
    except OmbudError as error:
        return ResultEntry(key, folder, name, "", "", (), 0, str(error))
    return ResultEntry(
        key=key,
        folder=folder,
        place=name,
        title=result.plan.title,
        finished=str(result.provenance.get("finished", ""))[:16].replace("T", " "),
        systems=result.systems,
        numbers=len(result.estimates),
        fault="",
        answer=result.answers[0] if result.answers else "",
    )


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


def _report(site: Site, key: str) -> str:
    entry = next((e for e in find_results(_root(site)) if e.key == key), None)
    if entry is None:
        raise AppError("this result is not there any more")
    if entry.fault:
        raise AppError(entry.fault)
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
