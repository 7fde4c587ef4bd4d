"""What all pages share: the project, the session, templates."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar
from urllib.parse import parse_qs

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ombud.app.errors import AppError, NotAllowedError
from ombud.app.people import Session, session_of
from ombud.app.project import Project
from ombud.app.web.security import Guesses
from ombud.report.display import templates_of, visible

_T = TypeVar("_T")
_HOME = {"rater": "/rate", "reviewer": "/review", "lead": "/project"}


class LoginNeededError(NotAllowedError):
    """Nobody is signed in here."""


def whole(text: str, problem: str) -> int:
    """Return the number of something stored; digits of other scripts, and too many, are none."""
    if re.fullmatch("[0-9]{1,18}", text) is None:
        raise AppError(problem)
    return int(text)


@dataclass(frozen=True)
class Form:
    """The fields of a form, checked to come from a page of ours."""

    fields: dict[str, list[str]]

    def text(self, name: str, default: str = "") -> str:
        """Return the only, or the last, value of a field."""
        return self.fields.get(name, [default])[-1]

    def many(self, name: str) -> list[str]:
        """Return all values of a field."""
        return self.fields.get(name, [])

    def whole(self, name: str, problem: str) -> int:
        """Return a field as the number of something stored; an error with this text otherwise."""
        return whole(self.text(name), problem)

    def number(self, name: str) -> float | None:
        """Return a field as a number, None when it is empty.

        Raises
        ------
        AppError
            If it is no finite number.
        """
        text = self.text(name).strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if value != value or value in (float("inf"), float("-inf")):
            raise AppError(f"{name}: {text!r} is no number")
        return value


@dataclass
class Site:
    """One running app."""

    project: Project | None  # The annotation project, or None
    results: Path | None  # A folder of results, or None
    # Whether browsers reach it over HTTPS: cookies are then sent over nothing else.
    https: bool = False
    keeper: Project | None = None  # Where sessions live when there is no project
    scratch: TemporaryDirectory[str] | None = None  # A folder that goes when the site is closed
    guesses: Guesses = field(default_factory=Guesses)
    cache: dict[str, Any] = field(default_factory=dict)

    @property
    def people(self) -> Project:
        """Whose people may come in."""
        found = self.project or self.keeper
        assert found is not None
        return found

    def close(self) -> None:
        """Finish what waits, and leave nothing behind but the project."""
        self.people.close()
        if self.scratch is not None:
            self.scratch.cleanup()

    @property
    def cookie(self) -> str:
        """The name of the session cookie."""
        return "__Host-ombud" if self.https else "ombud"

    def need_project(self) -> Project:
        """Return the project, or say that there is none."""
        if self.project is None:
            raise AppError("this app shows results only; there is no annotation project")
        return self.project

    async def write(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Make a change; returns when it is on disk."""
        return await asyncio.wrap_future(self.people.store.submit(work))

    def session(self, request: Request) -> Session | None:
        """Return who is asking."""
        token = request.cookies.get(self.cookie)
        if not token:
            return None
        return self.people.store.read(lambda db: session_of(db, token, time.time()))

    def require(self, request: Request, *roles: str) -> Session:
        """Return who is asking, who must have one of some roles (any, if none is named)."""
        session = self.session(request)
        if session is None:
            raise LoginNeededError("You are not signed in here. Open your invitation link again.")
        if roles and session.person.role not in roles:
            raise NotAllowedError(f"This page is not for a {session.person.role}.")
        return session

    async def form(self, request: Request, session: Session) -> Form:
        """Return a form that carries the session's token."""
        form = await self.open_form(request)
        if not compare_digest(form.text("csrf").encode(), session.csrf.encode()):
            raise NotAllowedError("This form is not from here, or is too old. Reload the page.")
        return form

    async def open_form(self, request: Request) -> Form:
        """Return a form of somebody who is not signed in yet."""
        body = (await request.body()).decode("utf-8", "replace")
        try:
            return Form(parse_qs(body, keep_blank_values=True, max_num_fields=500))
        except ValueError:
            raise AppError("this form cannot be read") from None

    def render(
        self, name: str, session: Session | None = None, *, status: int = 200, **content: Any
    ) -> HTMLResponse:
        """Return a page."""
        role = session.person.role if session else ""
        settings = self.project.settings if self.project else None
        html = (
            _environment()
            .get_template(name)
            .render(
                site=self,
                settings=settings,
                title=settings.title if settings else "ombud",
                person=session.person if session else None,
                csrf=session.csrf if session else "",
                home=_HOME.get(role, "/"),
                **content,
            )
        )
        return HTMLResponse(html, status)

    def home(self, session: Session) -> Response:
        """Send somebody to the page where their work is."""
        if self.project is None:
            return RedirectResponse("/results", 303)
        return RedirectResponse(_HOME[session.person.role], 303)


def site_of(request: Request) -> Site:
    """Return the site that a request came to."""
    site: Site = request.app.state.site
    return site


def shown_text(text: str) -> str:
    """Return a text fit to be shown: lines kept, nothing hidden or turned around in them."""
    return "\n".join(visible(line) for line in text.splitlines())


@lru_cache(maxsize=8)
def _markdown(text: str) -> Markup:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    # A page has one first heading, and it is not that of the guidelines.
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"
    return Markup(parser.renderer.render(tokens, parser.options, {}))


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def _moment(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment: Environment = templates_of("ombud.app", shown_text)
    environment.filters |= {"markdown": _markdown, "percent": _percent, "moment": _moment}
    return environment
