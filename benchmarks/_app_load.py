"""Raters who click as fast as told, and a server that may be killed under them."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

__all__ = ["Outcome", "Server", "check", "kill_at_random_moments", "make_project", "rate_for"]

SENTENCES = ("It rained on the day of the vote.", "She never spoke of the ward again.", "Goal!")


@dataclass
class Rater:
    """What a rater was told: final answers by assignment, and the last confirmed click."""

    name: str
    token: str
    stored: dict[int, tuple[str, int | None]] = field(default_factory=dict)
    half: int | None = None  # "delicate" was confirmed for this assignment, and no more
    unsure: int | None = None  # sent, and not answered


@dataclass
class Outcome:
    """What happened: times of answers in seconds, and what the database says afterwards."""

    times: list[float] = field(default_factory=list)
    lost: int = 0
    doubled: int = 0
    stored: int = 0
    kills: int = 0

    def quantile(self, q: float) -> float:
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else float("nan")


def make_project(folder: Path, texts: int, raters: int) -> list[Rater]:
    from ombud.app.project import Project
    from ombud.app.settings import ProjectSettings

    settings = ProjectSettings(title="Load", repeat_gap=10)
    with Project.create(folder, settings) as project:
        ids = [f"t{i}" for i in range(texts)]
        project.add_texts({"id": ids, "text": [f"{SENTENCES[i % 3]} {i}" for i in range(texts)]})
        return [Rater(f"rater {i}", project.invite(f"rater {i}")) for i in range(raters)]


class Server:
    """`ombud app` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [sys.executable, "-m", "ombud", "app", str(folder), "--port", str(self.port)]
        environment = os.environ | {"OMBUD_PLUGINS": "none"}
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        deadline = time.monotonic() + 600
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the server did not start") from None
                time.sleep(0.05)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()


def _field(html: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', html)
    return found[1] if found else ""


async def _enter(session: aiohttp.ClientSession, url: str, token: str) -> str:
    """Sign in and accept the notice; return the token that forms carry."""
    async with session.post(f"{url}/invite/{token}") as reply:
        html = await reply.text()
        assert reply.status == 200, html
    csrf = _field(html, "csrf")
    async with session.post(f"{url}/welcome", data={"csrf": csrf}) as reply:
        assert reply.status == 200
    return csrf


async def _rate(
    rater: Rater, url: str, until: float, think: float, outcome: Outcome, seed: int
) -> None:
    rng = random.Random(seed)
    jar = aiohttp.CookieJar(unsafe=True)
    head = {"X-Fragment": "1"}
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        csrf = await _enter(session, url, rater.token)
        async with session.get(f"{url}/rate", headers=head) as reply:
            html = await reply.text()
        while time.monotonic() < until:
            task = _field(html, "assignment")
            if not task:
                return
            at = int(task)
            if 'value="answer:delicate"' in html:
                do = rng.choice(("answer:delicate", "answer:delicate", "answer:not delicate"))
            else:
                do = f"risk:{rng.randint(1, 5)}"
            if think:
                await asyncio.sleep(rng.expovariate(1 / think))
            rater.unsure = at
            began = time.monotonic()
            data = {"csrf": csrf, "assignment": task, "do": do, "active": "1"}
            async with session.post(f"{url}/rate", data=data, headers=head) as reply:
                html = await reply.text()
                assert reply.status == 200, (reply.status, html)
            outcome.times.append(time.monotonic() - began)
            rater.unsure = None
            kind, _, value = do.partition(":")
            rater.half = at if do == "answer:delicate" else None
            if kind == "risk":
                rater.stored[at] = ("delicate", int(value))
            elif value != "delicate":
                rater.stored[at] = (value, None)


async def _all(
    raters: list[Rater], url: str, seconds: float, think: float, outcome: Outcome, seed: int
) -> None:
    until = time.monotonic() + seconds
    jobs = [
        _rate(rater, url, until, think, outcome, seed * 1000 + i) for i, rater in enumerate(raters)
    ]
    for found in await asyncio.gather(*jobs, return_exceptions=True):
        # A killed server ends a rater's work in the middle; anything else is a fault.
        if isinstance(found, BaseException) and not isinstance(
            found, aiohttp.ClientError | OSError
        ):
            raise found


def rate_for(
    raters: list[Rater], url: str, seconds: float, think: float, outcome: Outcome, seed: int = 1
) -> None:
    """Let all raters rate at once, each waiting about `think` seconds before a click."""
    asyncio.run(_all(raters, url, seconds, think, outcome, seed))


def check(folder: Path, raters: list[Rater], outcome: Outcome) -> None:
    """Compare what raters were told with what is stored."""
    db = sqlite3.connect(folder / "annotation.sqlite")
    rows = db.execute(
        "SELECT p.name, a.id, a.text, a.repeat, a.state, a.answer, a.risk FROM assignments a "
        "JOIN people p ON p.id = a.person"
    ).fetchall()
    by_id = {row[1]: row for row in rows}
    done = [row for row in rows if row[4] == "done"]
    outcome.stored = len(done)
    told = 0
    for rater in raters:
        for assignment, answer in rater.stored.items():
            row = by_id.get(assignment)
            told += 1
            if row is None or row[0] != rater.name or row[4] != "done" or row[5:] != answer:
                outcome.lost += 1
        if rater.half is not None and by_id[rater.half][5] != "delicate":
            outcome.lost += 1
    twice = Counter((row[0], row[2], row[3]) for row in done)
    outcome.doubled += sum(n - 1 for n in twice.values())
    per_text = Counter(row[2] for row in done if not row[3] and row[5] != "cannot be judged")
    outcome.doubled += sum(max(0, n - 3) for n in per_text.values())
    # What was never confirmed may be there once: the click that was on its way at a kill.
    unsure = max(outcome.kills, 1) * len(raters) if outcome.kills else 0
    if len(done) - told > unsure:
        outcome.doubled += len(done) - told - unsure
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    db.close()


def kill_at_random_moments(folder: Path, raters: list[Rater], kills: int, seed: int = 1) -> Outcome:
    """Kill the server under its raters, again and again; return what was lost."""
    rng = random.Random(seed)
    outcome = Outcome(kills=kills)
    for turn in range(kills):
        server = Server(folder)
        # After so many more clicks, so that a busy machine does as much as a quiet one.
        clicks = len(outcome.times) + rng.randint(20, 200)

        async def both(server: Server = server, clicks: int = clicks, turn: int = turn) -> None:
            work = asyncio.create_task(
                _all(raters, server.url, 600, 0.0, outcome, seed * 100 + turn)
            )
            while len(outcome.times) < clicks and not work.done():
                await asyncio.sleep(0.001)
            await asyncio.to_thread(server.kill)
            await work

        asyncio.run(both())
    check(folder, raters, outcome)
    return outcome
