"""The app: its routes, its errors, and how it is served."""

from __future__ import annotations

import asyncio
import socket
import tempfile
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ombud.app.errors import AppError, ConflictError, NotAllowedError, NotStoredError
from ombud.app.people import accept, find_invited
from ombud.app.project import Project
from ombud.app.web import judging_pages, lead_pages, rating_pages, result_pages
from ombud.app.web.security import POLICY, Guard
from ombud.app.web.site import LoginNeededError, Site, site_of
from ombud.errors import OmbudError

_STATUS = (
    (LoginNeededError, 401),
    (NotAllowedError, 403),
    (ConflictError, 409),
    (NotStoredError, 507),
)
_LOCAL = ("127.0.0.1", "localhost", "::1")


async def _start(request: Request) -> Response:
    site = site_of(request)
    return site.home(site.require(request))


def _too_many(site: Site, wait: float) -> Response:
    problem = f"Too many links that are not valid. Try again in {wait / 60:.0f} minutes."
    reply = site.render("error.html", status=429, problem=problem)
    reply.headers["retry-after"] = str(int(wait) + 1)
    return reply


async def _invitation(request: Request) -> Response:
    """Show whom a link invites; pressing the button signs in, so that a preview does not."""
    site = site_of(request)
    token = request.path_params["token"]
    if wait := site.guesses.wait(token):
        return _too_many(site, wait)
    try:
        if request.method == "GET":
            person = site.people.store.read(lambda db: find_invited(db, token, time.time()))
            return site.render("invite.html", invited=person)
        session = await site.write(lambda db: accept(db, token, time.time()))
    except NotAllowedError as error:
        site.guesses.failed(token)
        if wait := site.guesses.wait_of_all:
            return _too_many(site, wait)
        return site.render("error.html", status=403, problem=str(error))
    signed_in = RedirectResponse("/", 303)
    signed_in.set_cookie(
        site.cookie,
        session,
        max_age=7 * 24 * 3600,
        secure=site.https,
        httponly=True,
        samesite="lax",
    )
    return signed_in


async def _refused(request: Request, error: Exception) -> Response:
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 400)
    if request.headers.get("x-fragment") == "1":
        return PlainTextResponse(str(error), status)
    site = site_of(request)
    return site.render("error.html", site.session(request), status=status, problem=str(error))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "There is no such page.", 405: "This cannot be asked for in this way."}
    problem = words.get(error.status_code, error.detail)
    site = site_of(request)
    return site.render(
        "error.html", site.session(request), status=error.status_code, problem=problem
    )


async def _unexpected(request: Request, error: Exception) -> Response:
    """Say that something broke; the traceback goes to the terminal of whoever runs the app."""
    words = "Something went wrong here. What was confirmed is stored; this was not."
    return PlainTextResponse(words, 500, headers={"content-security-policy": POLICY})


def create_app(site: Site, hosts: Iterable[str] = _LOCAL) -> Starlette:
    """Return the app of a site.

    `hosts` are names under which it may be asked.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        # Closing waits for what is still being written, and the event loop must not.
        await asyncio.to_thread(site.close)

    get, post = ["GET"], ["POST"]
    routes = [
        Route("/", _start, methods=get),
        Route("/invite/{token}", _invitation, methods=["GET", "POST"]),
        Route("/welcome", rating_pages.welcome_page, methods=get),
        Route("/welcome", rating_pages.welcome_click, methods=post),
        Route("/rate", rating_pages.rate_page, methods=get),
        Route("/rate", rating_pages.rate_click, methods=post),
        Route("/stop", rating_pages.stop_page, methods=get),
        Route("/stop", rating_pages.stop_click, methods=post),
        Route("/feedback", rating_pages.feedback_page, methods=get),
        Route("/guidelines", rating_pages.guidelines_page, methods=get),
        Route("/sign-out", rating_pages.sign_out, methods=post),
        Route("/review", judging_pages.review_page, methods=get),
        Route("/review", judging_pages.review_click, methods=post),
        Route("/adjudicate", judging_pages.adjudicate_page, methods=get),
        Route("/adjudicate", judging_pages.adjudicate_click, methods=post),
        Route("/project", lead_pages.project_page, methods=get),
        Route("/project", lead_pages.project_click, methods=post),
        Route("/agreement", lead_pages.agreement_page, methods=get),
        Route("/export/{name}", lead_pages.export_file, methods=get),
        Route("/results", result_pages.results_page, methods=get),
        Route("/results/compare", result_pages.compare_page, methods=get),
        Route("/results/{key}", result_pages.report_page, methods=get),
        Mount("/static", StaticFiles(directory=str(files("ombud.app") / "static"))),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=tuple(hosts))],
        exception_handlers={
            OmbudError: _refused,
            HTTPException: _http_error,
            Exception: _unexpected,
        },
        lifespan=lifespan,
    )
    app.state.site = site
    return app


def open_site(
    folder: Path | str, *, results: Path | str | None = None, https: bool = False
) -> Site:
    """Return the site of a folder: an annotation project, a folder of results, or both.

    `folder` is a project, a folder with results in it or below, or a result; `results` is a folder
    of results to show beside a project. `https` says that browsers reach the app over HTTPS.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise AppError(f"there is no folder {folder}")
    shown = Path(results) if results is not None else None
    if shown is not None and not shown.is_dir():
        raise AppError(f"there is no folder {shown}")
    if Project.holds_one(folder):
        return Site(Project(folder), shown, https=https)
    if shown is None and not result_pages.find_results(folder):
        raise AppError(
            f"{folder} holds neither an annotation project nor results. Make a project with "
            f"`ombud annotation new {folder}`, or run an audit with `ombud run`"
        )
    # Sessions of a viewer of results need no memory beyond the process.
    scratch = tempfile.TemporaryDirectory(prefix="ombud-app-")
    keeper = Project.create(Path(scratch.name) / "sessions")
    return Site(None, shown or folder, https=https, keeper=keeper, scratch=scratch)


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there is none."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise AppError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. "
            "Choose another with --port"
        ) from None


def serve(app: Starlette, listening: socket.socket) -> None:
    """Serve until stopped. Addresses hold tokens, so no requests are logged."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing depends on the address of who asks
        timeout_graceful_shutdown=5,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])
