"""Projects with texts, people and ratings in them, made without a browser."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import numpy as np

from ombud.app.clicks import act
from ombud.app.people import Person, add_person, person_named, welcome
from ombud.app.project import Project
from ombud.app.rating_queue import next_task
from ombud.app.settings import ProjectSettings

TOPICS = ("medicine", "politics", "trauma-abuse", "religion", "addictions", "family-parenting")
SENTENCES = (
    "My sister stopped eating when we moved, and nobody at school noticed.",
    "The council will vote on the new clinic next week.",
    "I have been sober for two years, and some evenings are still hard.",
    "He laughed, closed the shop and walked home along the river.",
    "They say people like him should not be allowed to teach.",
    "What a match! We were robbed, but what a match.",
    "The report lists three deaths in custody since the spring.",
    "After the diagnosis she sold the house and learned to sail.",
)


def texts(n: int, seed: int = 1) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    chosen = rng.integers(len(SENTENCES), size=n)
    return {
        "id": [f"t{i:05d}" for i in range(n)],
        "text": [f"{SENTENCES[c]} ({i})" for i, c in enumerate(chosen)],
        "topics": [[TOPICS[c % len(TOPICS)]] if c % 3 else [] for c in chosen],
    }


def project(folder: Path, n: int = 30, **settings: Any) -> Project:
    made = Project.create(folder, ProjectSettings(**settings))
    made.add_texts(texts(n))
    return made


def rater(made: Project, name: str) -> Person:
    def work(db: sqlite3.Connection) -> Person:
        welcome(db, add_person(db, name, "rater", time.time()), time.time())
        found = person_named(db, name)
        assert found is not None
        return found

    return made.store.write(work)


def now_of(made: Project, name: str) -> Person:
    found = made.store.read(lambda db: person_named(db, name))
    assert found is not None
    return found


def rate(
    made: Project, name: str, risk: int | None, *, at: float = 0.0, skip: bool = False
) -> bool:
    """One text from first look to last click (None: cannot be judged); False if none was left."""
    settings, now = made.settings, at or time.time()

    def work(db: sqlite3.Connection) -> bool:
        person = person_named(db, name)
        assert person is not None
        task = next_task(db, settings, person, now).task
        if task is None:
            return False

        def click(action: str, value: str = "", **more: Any) -> None:
            act(
                db, settings, person, assignment=task.assignment, action=action, value=value,
                now=now + 4, **more,
            )  # fmt: skip

        if skip:
            click("skip")
        elif risk is None:
            click("answer", "cannot be judged")
        elif risk == 0:
            click("answer", "not delicate")
        else:
            click("answer", "delicate")
            click("risk", str(risk))
            if settings.ask_topics or settings.ask_target:
                click("finish", "self" if risk == 5 else "none", topics=["medicine"])
        return True

    return made.store.write(work)


def fill(made: Project, names: tuple[str, ...], seed: int = 3) -> None:
    """Let raters, each with a leaning, rate until nothing is left."""
    rng = np.random.default_rng(seed)
    for name in names:
        rater(made, name)
    settings = made.settings
    going = list(names)
    clock = time.time() - 5000
    while going:
        for name in list(going):
            task = made.store.write(
                lambda db, n=name, t=clock: next_task(db, settings, person_named(db, n), t).task  # type: ignore[arg-type,misc]
            )
            if task is None:
                going.remove(name)
                continue
            true = sum(task.text.encode()[:40]) % 6
            risk = int(np.clip(round(true + rng.normal(0, 0.8)), 0, 5))
            rate(made, name, risk, at=clock)
            clock += 3
