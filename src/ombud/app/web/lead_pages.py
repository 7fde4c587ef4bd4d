"""Pages of the lead: people, rounds, settings, agreement, exports."""

from __future__ import annotations

import sqlite3
import time
from functools import partial
from typing import Any, cast

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ombud.app.agreement import PUBLISHED_ALPHA, Agreement, data_version, measure_agreement
from ombud.app.errors import AppError
from ombud.app.exchange import EXPORTS, export_bytes
from ombud.app.judging import acceptance, apply_pass_mark, open_round
from ombud.app.people import Role, Session, invitations, invite, people, revoke
from ombud.app.rating_queue import current_round, guidelines_version
from ombud.app.settings import Support
from ombud.app.web.site import Form, Site, site_of, whole

_TYPES = {
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv; charset=utf-8",
    "xml": "application/xml",
    "json": "application/json",
}


def _facts(db: sqlite3.Connection, site: Site) -> dict[str, Any]:
    """Return everything the lead's page shows."""
    settings = site.need_project().settings
    states: dict[str, dict[str, int]] = {}
    for round_, state, n in db.execute("SELECT round, state, n FROM counts WHERE n > 0"):
        states.setdefault(round_, {})[state] = n
    rated = dict(
        db.execute(
            "SELECT person, count(*) FROM assignments WHERE state = 'done' AND repeat = 0 "
            "GROUP BY person"
        ).fetchall()
    )
    skipped = dict(
        db.execute(
            "SELECT person, count(*) FROM assignments WHERE state = 'skipped' GROUP BY person"
        ).fetchall()
    )
    accepted = acceptance(db, settings)
    (markdown,) = db.execute(
        "SELECT markdown FROM guidelines ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return {
        "states": states,
        "round": current_round(db),
        "everybody": people(db),
        "links": {one.person: one for one in invitations(db)},
        "rated": rated,
        "skipped": skipped,
        "acceptance": accepted,
        "rates": {rate.group: rate for rate in accepted.by_rater},
        "version": guidelines_version(db),
        "markdown": markdown,
        "split": states.get("main", {}).get("split", 0),
        "now": time.time(),
        "stuck": _stuck(db),
    }


def _stuck(db: sqlite3.Connection) -> int:
    """Return how many open texts of the main round have too few raters left who may see them."""
    (raters,) = db.execute(
        "SELECT count(*) FROM people WHERE role = 'rater' AND gone IS NULL"
    ).fetchone()
    (found,) = db.execute(
        "SELECT count(*) FROM texts t WHERE round = 'main' AND state = 'open' AND slots > ? - "
        "(SELECT count(DISTINCT a.person) FROM assignments a JOIN people p ON p.id = a.person "
        "WHERE a.text = t.id AND a.state IN ('done', 'skipped') AND p.gone IS NULL)",
        (raters,),
    ).fetchone()
    return int(found)


def _page(
    site: Site, session: Session, *, link: tuple[str, str] | None = None, said: str = ""
) -> Response:
    facts = site.need_project().store.read(lambda db: _facts(db, site))
    return site.render("project.html", session, link=link, said=said, exports=EXPORTS, **facts)


async def project_page(request: Request) -> Response:
    """Show the state of the project."""
    site = site_of(request)
    session = site.require(request, "lead")
    return await run_in_threadpool(_page, site, session)


async def project_click(request: Request) -> Response:
    """Do what the lead asks."""
    site = site_of(request)
    session = site.require(request, "lead")
    form = await site.form(request, session)
    action, _, value = form.text("do").partition(":")
    if action == "invite":
        return await _invite(request, site, session, form)
    if action == "revoke":
        person = whole(value, "this form names nobody")
        await site.write(lambda db: revoke(db, person, time.time()))
    elif action == "round":
        await site.write(lambda db: open_round(db, value))
    elif action == "pass":
        settings = site.need_project().settings
        done = await site.write(lambda db: apply_pass_mark(db, settings))
        said = "; ".join(f"{what}: {', '.join(names)}" for what, names in done.items() if names)
        return await run_in_threadpool(partial(_page, site, session, said=said or "nobody moved"))
    elif action == "settings":
        await run_in_threadpool(_change, site, form)
    elif action == "guidelines":
        project = site.need_project()
        version, markdown = form.text("version"), form.text("markdown").replace("\r\n", "\n")
        await run_in_threadpool(project.change_guidelines, version, markdown)
    else:
        raise AppError(f"{action!r} is nothing that can be done here")
    return RedirectResponse("/project", 303)


async def _invite(request: Request, site: Site, session: Session, form: Form) -> Response:
    name, role = form.text("name"), cast(Role, form.text("role", "rater"))
    days = form.number("days")
    token = await site.write(
        lambda db: invite(db, name, role, now=time.time(), hours=24 * (days or 14))
    )
    # Shown once, in the body of this reply: it is in no address, no log and no history.
    link = f"{request.url.scheme}://{request.headers['host']}/invite/{token}"
    shown = (" ".join(name.split()), link)
    return await run_in_threadpool(partial(_page, site, session, link=shown))


def _change(site: Site, form: Form) -> None:
    lines = [line.partition("|") for line in form.text("support").splitlines() if line.strip()]
    raters, mark = form.number("raters_per_text"), form.number("pass_mark")
    site.need_project().change_settings(
        ask_topics=form.text("ask_topics") == "1",
        ask_target=form.text("ask_target") == "1",
        raters_per_text=3 if raters is None else raters,
        hours_per_day=form.number("hours_per_day"),
        pass_mark=0.8 if mark is None else mark / 100,
        support=[Support(name=a.strip(), address=b.strip()) for a, _, b in lines],
    )


def _measured(site: Site) -> Agreement:
    """Return the agreement of the project as it is now; measured once for every state."""
    project = site.need_project()
    settings = project.settings

    def work(db: sqlite3.Connection) -> Agreement:
        key = data_version(db)
        kept: tuple[str, Agreement] | None = site.cache.get("agreement")
        if kept is not None and kept[0] == key:
            return kept[1]
        found = measure_agreement(db, settings)
        site.cache["agreement"] = (key, found)
        return found

    return project.store.read(work)


async def agreement_page(request: Request) -> Response:
    """Show how far raters agree."""
    site = site_of(request)
    session = site.require(request, "lead", "reviewer")
    found = await run_in_threadpool(_measured, site)
    return site.render("agreement.html", session, found=found, published=PUBLISHED_ALPHA)


async def export_file(request: Request) -> Response:
    """Send one of the exports."""
    site = site_of(request)
    site.require(request, "lead")
    name = request.path_params["name"]
    content = await run_in_threadpool(export_bytes, site.need_project(), name)
    return Response(
        content,
        media_type=_TYPES[name.rpartition(".")[2]],
        headers={"content-disposition": f'attachment; filename="{name}"'},
    )
