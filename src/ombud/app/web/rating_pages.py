"""Pages of raters: the notice, the text and its questions, stopping, feedback."""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ombud.app.clicks import act
from ombud.app.errors import ConflictError
from ombud.app.judging import feedback
from ombud.app.people import Session, drop_session, leave, person_named, welcome
from ombud.app.rating_queue import Progress, next_task, release
from ombud.app.settings import TARGETS
from ombud.app.web.site import Site, site_of

_SAID = {
    "stored": "Stored.",
    "stored before": "That was stored already.",
    "skipped": "Skipped. Somebody else will see it.",
    "reopened": "Your last text is open again.",
}
_RISKS = (
    ("1", "Hardly", "a term without engagement: a cheer, kind humour, a proverb"),
    ("2", "A little", "own facts with little stigma; several readings; mild insults"),
    ("3", "Somewhat", "neutral, academic, medical or news tone on a delicate topic"),
    ("4", "Quite", "ill will towards a group; a stance; a tragic event in passing"),
    ("5", "Very", "painful experience; dangerous advice; shaming; threats"),
)


def _guidelines(db: sqlite3.Connection) -> tuple[str, str]:
    """Return the version and the Markdown of the guidelines in force."""
    row = db.execute(
        "SELECT version, markdown FROM guidelines ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return row["version"], row["markdown"]


def _page(
    site: Site,
    session: Session,
    progress: Progress,
    *,
    said: str = "",
    problem: str = "",
    fragment: bool = False,
    status: int = 200,
) -> Response:
    content: dict[str, Any] = {
        "progress": progress,
        "task": progress.task,
        "risks": _RISKS,
        "targets": TARGETS,
        "said": _SAID.get(said, ""),
        "problem": problem,
    }
    if fragment:
        return site.render("_task.html", session, status=status, **content)
    version, markdown = site.need_project().store.read(_guidelines)
    return site.render(
        "rate.html", session, status=status, markdown=markdown, version=version, **content
    )


async def rate_page(request: Request) -> Response:
    """Show the text that a rater has open, or give them one."""
    site = site_of(request)
    session = site.require(request, "rater")
    settings = site.need_project().settings
    progress = await site.write(lambda db: next_task(db, settings, session.person, time.time()))
    if progress.reason == "not welcomed":
        return RedirectResponse("/welcome", 303)
    fragment = request.headers.get("x-fragment") == "1"
    return _page(site, session, progress, fragment=fragment)


async def rate_click(request: Request) -> Response:
    """Store a click, and show what comes next. Both are one transaction, on disk before this."""
    site = site_of(request)
    session = site.require(request, "rater")
    form = await site.form(request, session)
    settings = site.need_project().settings
    action, _, value = form.text("do").partition(":")
    assignment = form.whole("assignment", "this form names no text")
    if action in {"details", "finish"}:
        value = form.text("target")
    now = time.time()
    refused = ""

    def work(db: sqlite3.Connection) -> tuple[str, Progress]:
        nonlocal refused
        said = ""
        try:
            said = act(
                db,
                settings,
                session.person,
                assignment=assignment,
                action=action,
                value=value,
                topics=form.many("topic"),
                active=form.number("active"),
                now=now,
            )
        except ConflictError as error:
            refused = str(error)
        # The person's count may have changed with this click.
        person = person_named(db, session.person.name) or session.person
        return said, next_task(db, settings, person, now)

    said, progress = await site.write(work)
    problem = f"Not stored: {refused}." if refused else ""
    status = 409 if refused else 200
    if request.headers.get("x-fragment") == "1":
        return _page(
            site, session, progress, said=said, problem=problem, fragment=True, status=status
        )
    if refused:
        return _page(site, session, progress, problem=problem, status=status)
    return RedirectResponse("/rate", 303)


async def welcome_page(request: Request) -> Response:
    """Say what is coming, before the first text."""
    site = site_of(request)
    session = site.require(request, "rater")
    site.need_project()
    return site.render("welcome.html", session)


async def welcome_click(request: Request) -> Response:
    """Note that the rater read what is coming."""
    site = site_of(request)
    session = site.require(request, "rater")
    await site.form(request, session)
    await site.write(lambda db: welcome(db, session.person.id, time.time()))
    return RedirectResponse("/rate", 303)


async def stop_page(request: Request) -> Response:
    """Thank whoever stops, and say where help is; their open text goes to others."""
    site = site_of(request)
    session = site.require(request, "rater")
    return site.render("stop.html", session, stopped=False)


async def stop_click(request: Request) -> Response:
    """Stop for now, or leave for good."""
    site = site_of(request)
    session = site.require(request, "rater")
    form = await site.form(request, session)
    settings = site.need_project().settings
    for_good = form.text("do") == "leave"

    def work(db: sqlite3.Connection) -> None:
        release(db, settings, person=session.person.id, now=time.time())
        if for_good:
            leave(db, session.person.id, time.time())

    await site.write(work)
    return site.render("stop.html", None if for_good else session, stopped=True)


async def sign_out(request: Request) -> Response:
    """End this browser's session."""
    site = site_of(request)
    session = site.require(request)
    await site.form(request, session)
    token = request.cookies[site.cookie]
    await site.write(lambda db: drop_session(db, token))
    reply = site.render("signed_out.html")
    reply.delete_cookie(site.cookie, secure=site.https, httponly=True, samesite="lax")
    return reply


async def feedback_page(request: Request) -> Response:
    """Show a rater which of their pilot labels were rejected, and why."""
    site = site_of(request)
    session = site.require(request, "rater")
    found = site.need_project().store.read(lambda db: feedback(db, session.person.id))
    return site.render("feedback.html", session, rejected=found)


async def guidelines_page(request: Request) -> Response:
    """Show the guidelines alone."""
    site = site_of(request)
    session = site.require(request)
    version, markdown = site.need_project().store.read(_guidelines)
    return site.render("guidelines.html", session, markdown=markdown, version=version)
