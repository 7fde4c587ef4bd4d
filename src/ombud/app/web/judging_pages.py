"""Pages of reviewers: labels of the pilot, and texts without a majority."""

from __future__ import annotations

import sqlite3
import time

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ombud.app.errors import AppError, ConflictError
from ombud.app.judging import Case, adjudicate, next_case, review
from ombud.app.people import Session
from ombud.app.settings import ANSWERS
from ombud.app.web.site import Form, Site, site_of, whole
from ombud.text.folding import mask


def _page(
    site: Site,
    session: Session,
    case: Case | None,
    *,
    uncovered: bool = False,
    problem: str = "",
    kind: str,
    status: int = 200,
) -> Response:
    text = ""
    if case is not None:
        text = case.text if uncovered else mask(case.text, case.spans)
    return site.render(
        "judge.html",
        session,
        status=status,
        case=case,
        kind=kind,
        text=text,
        covered=case is not None and bool(case.spans) and not uncovered,
        problem=problem,
        answers=ANSWERS,
    )


def _item(form: Form) -> int:
    return form.whole("item", "this form names nothing to judge")


async def review_page(request: Request) -> Response:
    """Show the next label of the pilot."""
    site = site_of(request)
    session = site.require(request, "reviewer", "lead")
    site.need_project()
    case = await site.write(lambda db: next_case(db, "review", session.person, time.time()))
    return _page(site, session, case, kind="review", uncovered="show" in request.query_params)


async def review_click(request: Request) -> Response:
    """Store a review."""
    site = site_of(request)
    session = site.require(request, "reviewer", "lead")
    form = await site.form(request, session)
    item = _item(form)

    def work(db: sqlite3.Connection) -> None:
        review(
            db,
            session.person,
            item,
            accepted=form.text("do") == "accept",
            reason=form.text("reason"),
            now=time.time(),
        )

    try:
        await site.write(work)
    except (ConflictError, AppError) as error:
        case = await site.write(lambda db: next_case(db, "review", session.person, time.time()))
        status = 409 if isinstance(error, ConflictError) else 400
        problem = f"Not stored: {error}."
        return _page(site, session, case, kind="review", problem=problem, status=status)
    return RedirectResponse("/review", 303)


async def adjudicate_page(request: Request) -> Response:
    """Show the next text without a majority."""
    site = site_of(request)
    session = site.require(request, "reviewer", "lead")
    site.need_project()
    case = await site.write(lambda db: next_case(db, "adjudication", session.person, time.time()))
    uncovered = "show" in request.query_params
    return _page(site, session, case, kind="adjudication", uncovered=uncovered)


async def adjudicate_click(request: Request) -> Response:
    """Store a decision."""
    site = site_of(request)
    session = site.require(request, "reviewer", "lead")
    form = await site.form(request, session)
    item, settings = _item(form), site.need_project().settings
    answer, _, risk = form.text("do").partition(":")

    def work(db: sqlite3.Connection) -> None:
        adjudicate(
            db,
            settings,
            session.person,
            item,
            answer=answer,
            risk=whole(risk, "this is no risk") if risk else None,
            reason=form.text("reason"),
            now=time.time(),
        )

    try:
        await site.write(work)
    except ConflictError as error:
        person = session.person
        case = await site.write(lambda db: next_case(db, "adjudication", person, time.time()))
        problem = f"Not stored: {error}."
        return _page(site, session, case, kind="adjudication", problem=problem, status=409)
    return RedirectResponse("/adjudicate", 303)
