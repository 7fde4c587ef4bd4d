"""A project, and the app of it on a port of its own."""

from __future__ import annotations

import dataclasses
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import uvicorn

from ombud.app.project import Project
from ombud.app.web.server import create_app, open_site, open_socket
from ombud.app.web.site import Site

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@dataclass
class Running:
    """An app that runs in this process."""

    site: Site
    url: str
    clients: list[httpx.Client] = dataclasses.field(default_factory=list)

    @property
    def project(self) -> Project:
        return self.site.need_project()

    def client(self) -> httpx.Client:
        """A browser that runs no scripts, closed with the test."""
        client = httpx.Client(base_url=self.url, follow_redirects=True, timeout=300)
        self.clients.append(client)
        return client

    def enter(self, name: str, role: str = "rater", *, welcomed: bool = True) -> Visitor:
        """Sign in with a new invitation."""
        client = self.client()
        html = client.post(f"/invite/{self.site.people.invite(name, role)}").text  # type: ignore[arg-type]
        visitor = Visitor(client, field(html, "csrf"))
        if role == "rater" and welcomed:
            visitor.post("/welcome")
        return visitor


@dataclass
class Visitor:
    """Somebody with a browser that runs no scripts."""

    client: httpx.Client
    csrf: str

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers=headers)

    def post(
        self, path: str, _headers: dict[str, str] | None = None, **fields: object
    ) -> httpx.Response:
        return self.client.post(path, data={"csrf": self.csrf} | fields, headers=_headers)

    def task(self) -> str:
        return field(self.get("/rate").text, "assignment")

    def click(self, do: str, assignment: str = "", **fields: object) -> httpx.Response:
        return self.post(
            "/rate", {"X-Fragment": "1"}, do=do, assignment=assignment or self.task(), **fields
        )


def field(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    return found[1] if found else ""


@pytest.fixture
def serving() -> Iterator[Callable[..., Running]]:
    """Serve a project or a folder of results until the test ends."""
    servers: list[tuple[uvicorn.Server, threading.Thread, Running]] = []

    def start(folder: Path, results: Path | None = None) -> Running:
        site = open_site(folder, results=results)
        listening = open_socket("127.0.0.1", 0)
        config = uvicorn.Config(create_app(site), log_level="critical", access_log=False, ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        running = Running(site, f"http://127.0.0.1:{listening.getsockname()[1]}")
        servers.append((server, thread, running))
        while not server.started:
            time.sleep(0.01)
        return running

    yield start
    for server, thread, running in servers:
        for client in running.clients:
            client.close()
        server.should_exit = True
        thread.join(20)
