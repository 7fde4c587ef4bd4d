"""Reviews, pass marks and adjudication."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest
from _filling import now_of, project, rate, rater

from ombud.app.errors import AppError, ConflictError, NotAllowedError
from ombud.app.judging import (
    acceptance,
    adjudicate,
    apply_pass_mark,
    feedback,
    next_case,
    open_round,
    review,
)
from ombud.app.people import Person
from ombud.app.project import Project
from ombud.app.rating_queue import next_task
from ombud.app.tables import labels_table, ratings_table
from ombud.stats.proportions import proportion


def reviewer(made: Project, name: str = "Rita") -> Person:
    made.invite(name, "reviewer")
    return now_of(made, name)


def piloted(folder: Path, **settings: object) -> Project:
    made = project(folder, 5, review_share=1.0, **settings)
    made.add_texts(
        {"id": [f"p{i}" for i in range(10)], "text": [f"Pilot text {i}." for i in range(10)],
         "topics": ["age" if i % 2 else "sex" for i in range(10)]},
        round_="pilot",
    )  # fmt: skip
    made.store.write(lambda db: open_round(db, "pilot"))
    return made


def judge_all(made: Project, person: Person, accept: dict[str, bool]) -> None:
    """Accept or reject by rater."""
    owner = dict(
        made.store.read(
            lambda db: db.execute(
                "SELECT a.id, p.name FROM assignments a JOIN people p ON p.id = a.person"
            ).fetchall()
        )
    )
    while True:
        case = made.store.write(lambda db: next_case(db, "review", person, time.time()))
        if case is None:
            return
        ok = accept[owner[case.item]]
        reason = "" if ok else "A neutral tone is 3."
        made.store.write(
            lambda db, c=case, ok=ok, reason=reason: review(  # type: ignore[misc]
                db, person, c.item, accepted=ok, reason=reason, now=time.time()
            )
        )


def test_the_published_acceptance_rate() -> None:
    found = proportion(426, 500, metric="acceptance")
    assert found.value == pytest.approx(0.852)
    assert found.interval == pytest.approx((0.818, 0.880), abs=5e-4)


def test_a_pilot_from_labels_to_pass_marks(tmp_path: Path) -> None:
    with piloted(tmp_path / "p", training_texts=3) as made:
        rita = reviewer(made)
        for name in ("good", "poor", "unseen"):
            rater(made, name)
        for _ in range(5):
            rate(made, "good", 3)
            rate(made, "poor", 5)
        assert not rate(made, "unseen", 2)  # each pilot text once
        judge_all(made, rita, {"good": True, "poor": False})
        settings = made.settings
        found = made.store.read(lambda db: acceptance(db, settings))
        assert (found.overall.value, found.overall.n, found.waiting) == (0.5, 10, 0)
        assert {e.group: e.value for e in found.by_rater} == {
            "good": 1.0, "poor": 0.0, "unseen": None,
        }  # fmt: skip
        assert {e.group for e in found.by_topic} == {"Age", "Sex"}
        done = made.store.write(lambda db: apply_pass_mark(db, settings))
        assert done == {"passed": ["good"], "training": ["poor"], "not reviewed": ["unseen"]}
        rejected = made.store.read(lambda db: feedback(db, now_of(made, "poor").id))
        assert len(rejected) == 5 and rejected[0][2] == "A neutral tone is 3."

        # The poor one rates three more, which are accepted, and passes on the second attempt.
        assert [rate(made, "poor", 3) for _ in range(4)] == [True, True, True, False]
        judge_all(made, rita, {"poor": True})
        done = made.store.write(lambda db: apply_pass_mark(db, settings))
        assert done["passed"] == ["poor"]
        made.store.write(lambda db: open_round(db, "main"))
        assert rate(made, "poor", 3) and rate(made, "good", 3)
        person = now_of(made, "unseen")
        progress = made.store.write(lambda db: next_task(db, settings, person, time.time()))
        assert progress.reason == "not passed"
        rows = made.store.read(ratings_table)
        assert rows.filter(round="pilot", attempt=2).height == 3


def test_two_reviewers_do_not_see_the_same_label(tmp_path: Path) -> None:
    with piloted(tmp_path / "p") as made:
        one, two = reviewer(made, "Rita"), reviewer(made, "Sam")
        rater(made, "a")
        rate(made, "a", 3)
        rate(made, "a", 4)
        now = time.time()
        cases = [
            made.store.write(lambda db, p=p: next_case(db, "review", p, now))  # type: ignore[misc]
            for p in (one, two, one)
        ]
        assert cases[0] is not None and cases[1] is not None
        assert cases[0].item != cases[1].item and cases[2] == cases[0]
        late = made.store.write(lambda db: next_case(db, "review", two, now + 3600))
        assert late is not None


def test_a_label_is_reviewed_once(tmp_path: Path) -> None:
    with piloted(tmp_path / "p") as made:
        one, two = reviewer(made, "Rita"), reviewer(made, "Sam")
        rater(made, "a")
        rate(made, "a", 3)

        def judge(person: Person, accepted: bool, reason: str = "") -> None:
            made.store.write(
                lambda db: review(db, person, 1, accepted=accepted, reason=reason, now=1.0)
            )

        with pytest.raises(AppError, match="needs a reason"):
            judge(one, False)
        judge(one, True)
        judge(one, True)  # sent twice
        with pytest.raises(ConflictError, match="reviewed already"):
            judge(two, False, "No.")
        with pytest.raises(NotAllowedError):
            judge(now_of(made, "a"), True)


def split(folder: Path) -> Project:
    made = project(folder, 1, repeat_share=0)
    for name, risk in (("a", 3), ("b", 5), ("c", 1)):
        rater(made, name)
        rate(made, name, risk)
    return made


def test_a_split_text_is_decided(tmp_path: Path) -> None:
    with split(tmp_path / "p") as made:
        rita = reviewer(made)
        case = made.store.write(lambda db: next_case(db, "adjudication", rita, time.time()))
        assert case is not None and [v.risk for v in case.votes] == [1, 3, 5]
        settings = made.settings

        def decide(person: Person, answer: str, risk: int | None) -> None:
            made.store.write(
                lambda db: adjudicate(
                    db, settings, person, case.item, answer=answer, risk=risk, now=2.0
                )
            )

        for answer, risk in (("delicate", None), ("not delicate", 3), ("delicate", 7), ("x", None)):
            with pytest.raises(AppError):
                decide(rita, answer, risk)
        decide(rita, "delicate", 4)
        decide(rita, "delicate", 4)
        with pytest.raises(ConflictError, match="decided already"):
            decide(rita, "delicate", 5)
        (row,) = made.store.read(lambda db: labels_table(db, settings)).rows(named=True)
        assert (row["risk"], row["adjudicated"], row["state"]) == (4, True, "settled")
        assert row["delicate"] is True and row["median_risk"] == 3
        assert made.store.write(lambda db: next_case(db, "adjudication", rita, 3.0)) is None


@pytest.mark.parametrize(
    ("answer", "risk", "labels"),
    [
        ("delicate", 3, (True, True, 3)),
        ("delicate", 1, (True, False, 1)),  # the raters said 1, 3, 5: delicate by majority
        ("not delicate", None, (False, False, 0)),
        ("cannot be judged", None, (None, None, None)),
    ],
)
def test_a_decision_gives_labels_that_do_not_contradict(
    tmp_path: Path,
    answer: str,
    risk: int | None,
    labels: tuple[bool | None, bool | None, int | None],
) -> None:
    with split(tmp_path / "p") as made:
        rita, settings = reviewer(made), made.settings
        case = made.store.write(lambda db: next_case(db, "adjudication", rita, time.time()))
        assert case is not None
        made.store.write(
            lambda db: adjudicate(db, settings, rita, case.item, answer=answer, risk=risk, now=2.0)
        )
        (row,) = made.store.read(lambda db: labels_table(db, settings)).rows(named=True)
        assert (row["identified"], row["delicate"], row["risk"]) == labels
        assert row["adjudicated"] is True


def test_a_text_with_a_majority_is_not_decided_by_anybody(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, repeat_share=0) as made:
        for name in "abc":
            rater(made, name)
            rate(made, name, 2)
        rita, settings = reviewer(made), made.settings
        with pytest.raises(ConflictError, match="does not wait"):
            made.store.write(
                lambda db: adjudicate(db, settings, rita, 1, answer="delicate", risk=5, now=1.0)
            )


def test_a_reviewed_label_cannot_be_changed(tmp_path: Path) -> None:
    with piloted(tmp_path / "p") as made:
        rita = reviewer(made)
        rater(made, "a")
        rate(made, "a", 3)

        def can_undo(db: sqlite3.Connection) -> bool:
            task = next_task(db, made.settings, now_of(made, "a"), time.time()).task
            return task is not None and task.can_undo

        assert made.store.write(can_undo)
        judge_all(made, rita, {"a": True})
        assert not made.store.write(can_undo)
