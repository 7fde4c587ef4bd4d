"""Which text a rater sees, and what becomes of clicks."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _filling import fill, now_of, project, rate, rater

from ombud.app.clicks import act
from ombud.app.errors import ConflictError, NotAllowedError
from ombud.app.judging import open_round
from ombud.app.people import person_named
from ombud.app.project import Project
from ombud.app.rating_queue import Progress, next_task
from ombud.app.settings import ProjectSettings
from ombud.app.tables import labels_table, ratings_table


def give(made: Project, name: str, at: float = 0.0) -> Progress:
    settings = made.settings
    person = now_of(made, name)
    return made.store.write(lambda db: next_task(db, settings, person, at or time.time()))


def click(
    made: Project, name: str, assignment: int, action: str, value: str = "", **more: Any
) -> str:
    settings, person = made.settings, now_of(made, name)
    return made.store.write(
        lambda db: act(
            db, settings, person, assignment=assignment, action=action, value=value,
            now=more.pop("at", time.time()), **more,
        )
    )  # fmt: skip


def state(made: Project, text: str) -> str:
    row = made.store.read(
        lambda db: db.execute("SELECT state FROM texts WHERE name = ?", (text,)).fetchone()
    )
    return str(row[0])


def test_every_text_gets_three_ratings_and_no_more(tmp_path: Path) -> None:
    with project(tmp_path / "p", 20, repeat_share=0) as made:
        fill(made, ("a", "b", "c", "d", "e"))
        rows = made.store.read(ratings_table)
        assert Counter(rows["id"].to_list()) == dict.fromkeys((f"t{i:05d}" for i in range(20)), 3)
        assert rows.select("id", "rater").is_unique().all()
        assert rows["risk"].is_between(0, 5).all()


def test_a_rater_holds_one_text_at_a_time(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5) as made:
        rater(made, "a")
        first = give(made, "a").task
        assert first == give(made, "a").task
        assert first is not None and first.step == "answer"


def test_two_steps(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5) as made:
        rater(made, "a")
        task = give(made, "a").task
        assert task is not None
        with pytest.raises(ConflictError, match="say first whether"):
            click(made, "a", task.assignment, "risk", "3")
        assert click(made, "a", task.assignment, "answer", "delicate") == "stored"
        again = give(made, "a").task
        assert again is not None and (again.assignment, again.step) == (task.assignment, "risk")
        click(made, "a", task.assignment, "risk", "4")
        later = give(made, "a").task
        assert later is not None and later.assignment != task.assignment
        (row,) = made.store.read(ratings_table).rows(named=True)
        assert (row["answer"], row["risk"], row["guidelines"]) == ("delicate", 4, "delicate@2")


def test_topics_and_target_are_asked_on_request(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5, ask_topics=True, ask_target=True) as made:
        rater(made, "a")
        task = give(made, "a").task
        assert task is not None
        click(made, "a", task.assignment, "answer", "delicate")
        click(made, "a", task.assignment, "risk", "5")
        now = give(made, "a").task
        assert now is not None and now.step == "details"
        click(made, "a", task.assignment, "details", "self", topics=["sex", "age"])
        kept = give(made, "a").task
        assert kept is not None and kept.topics == ("age", "sex") and kept.target == "self"
        with pytest.raises(Exception, match="unknown topics: nonsense"):
            click(made, "a", task.assignment, "finish", "self", topics=["nonsense"])
        click(made, "a", task.assignment, "finish", "self", topics=["age"])
        (row,) = made.store.read(ratings_table).rows(named=True)
        assert row["topics"] == ["age"] and row["target"] == "self"


def test_the_same_click_twice_counts_once(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5) as made:
        rater(made, "a")
        task = give(made, "a").task
        assert task is not None
        assert click(made, "a", task.assignment, "answer", "not delicate") == "stored"
        assert click(made, "a", task.assignment, "answer", "not delicate") == "stored before"
        with pytest.raises(ConflictError, match="answered already"):
            click(made, "a", task.assignment, "answer", "cannot be judged")
        (row,) = made.store.read(ratings_table).rows(named=True)
        assert row["answer"] == "not delicate"
        assert now_of(made, "a").finished == 1


def test_nobody_answers_for_another(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5) as made:
        rater(made, "a")
        rater(made, "b")
        task = give(made, "a").task
        assert task is not None
        with pytest.raises(NotAllowedError):
            click(made, "b", task.assignment, "answer", "delicate")


def test_a_skipped_text_goes_to_others_and_never_comes_back(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, repeat_share=0) as made:
        for name in "abcd":
            rater(made, name)
        rate(made, "a", 0, skip=True)
        assert give(made, "a").reason == "nothing left"
        for name in "bcd":
            assert rate(made, name, 2)
        assert state(made, "t00000") == "complete"
        skipped = made.store.read(ratings_table).filter(skipped=True)
        assert skipped["rater"].to_list() == ["a"] and skipped["answer"].to_list() == [None]


def test_two_votes_for_cannot_be_judged_discard_a_text(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, repeat_share=0) as made:
        for name in "abcde":
            rater(made, name)
        rate(made, "a", None)
        rate(made, "b", 3)
        assert state(made, "t00000") == "open"
        rate(made, "c", None)
        assert state(made, "t00000") == "discarded"
        assert give(made, "d").reason == "nothing left"
        labels = made.store.read(lambda db: labels_table(db, made.settings))
        assert labels["delicate"].to_list() == [None] and labels["cannot"].to_list() == [2]


def test_one_such_vote_asks_a_fourth_rater(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, repeat_share=0) as made:
        for name, risk in (("a", None), ("b", 3), ("c", 3), ("d", 1)):
            rater(made, name)
            assert rate(made, name, risk)
        assert state(made, "t00000") == "complete"


def test_labels_of_a_split_vote(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, repeat_share=0) as made:
        for name, risk in (("a", 3), ("b", 5), ("c", 1)):
            rater(made, name)
            rate(made, name, risk)
        assert state(made, "t00000") == "split"
        (row,) = made.store.read(lambda db: labels_table(db, made.settings)).rows(named=True)
        assert (row["identified"], row["delicate"], row["risk"]) == (True, True, None)
        assert row["median_risk"] == 3 and row["share_5"] == pytest.approx(1 / 3)


def test_repeats_come_after_a_gap_and_do_not_count(tmp_path: Path) -> None:
    with project(tmp_path / "p", 12, repeat_share=1, repeat_gap=4) as made:
        rater(made, "a")
        while rate(made, "a", 2):
            pass
        rows = made.store.read(ratings_table)
        order = rows["id"].to_list()
        twice = rows.filter(repeat=True)["id"].to_list()
        # The last texts have no gap behind them any more: their repeats are left out.
        assert 7 <= len(twice) < 12 and len(set(twice)) == len(twice)
        for name in twice:
            first, second = (at for at, other in enumerate(order) if other == name)
            assert second - first > 4
        assert all(state(made, f"t{i:05d}") == "open" for i in range(12))


def test_the_share_of_repeats(tmp_path: Path) -> None:
    with project(tmp_path / "p", 600, repeat_share=0.05, repeat_gap=5) as made:
        rater(made, "a")
        while rate(made, "a", 2):
            pass
        repeats = made.store.read(ratings_table)["repeat"].sum()
        assert 13 <= repeats <= 50  # 30 expected; outside this once in a thousand


def test_the_last_answer_can_be_changed(tmp_path: Path) -> None:
    with project(tmp_path / "p", 3) as made:
        rater(made, "a")
        first = give(made, "a").task
        assert first is not None and not first.can_undo
        click(made, "a", first.assignment, "answer", "not delicate")
        second = give(made, "a").task
        assert second is not None and second.can_undo
        assert click(made, "a", second.assignment, "undo") == "reopened"
        assert click(made, "a", second.assignment, "undo") == "stored before"
        back = give(made, "a").task
        assert back is not None and back.assignment == first.assignment and not back.can_undo
        with pytest.raises(ConflictError, match="in front of you"):
            click(made, "a", back.assignment, "undo")
        click(made, "a", back.assignment, "answer", "cannot be judged")
        (row,) = made.store.read(ratings_table).rows(named=True)
        assert row["answer"] == "cannot be judged"
        (before,) = made.store.read(lambda db: db.execute("SELECT answer FROM changes").fetchall())
        assert before[0] == "not delicate"
        assert now_of(made, "a").finished == 1


def test_an_abandoned_text_goes_to_others(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1, raters_per_text=1, hold_hours=2) as made:
        rater(made, "a")
        rater(made, "b")
        start = time.time()
        task = give(made, "a", start).task
        assert task is not None
        assert give(made, "b", start + 3600).reason == "nothing left"
        assert give(made, "b", start + 3 * 3600).task is not None
        with pytest.raises(ConflictError, match="somebody else"):
            click(made, "a", task.assignment, "answer", "delicate")


def test_the_day_is_over_after_some_hours(tmp_path: Path) -> None:
    with project(tmp_path / "p", 50, hours_per_day=0.01) as made:
        rater(made, "a")
        noon = 1_800_000_000 - 1_800_000_000 % 86400 + 43200.0
        seen = 0
        while rate(made, "a", 1, at=noon + 10 * seen):
            seen += 1
        assert seen == 9  # 36 seconds, 4 a text
        assert give(made, "a", noon + 600).reason == "enough for today"
        assert give(made, "a", noon + 86400).task is not None


def test_no_texts_before_the_notice_was_read(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5) as made:
        made.invite("a")
        assert give(made, "a").reason == "not welcomed"


def test_the_main_round_is_for_those_who_passed(tmp_path: Path) -> None:
    with project(tmp_path / "p", 5) as made:
        made.add_texts({"id": ["x"], "text": ["A pilot text."]}, round_="pilot")
        rater(made, "a")
        assert give(made, "a").reason == "not passed"
        made.store.write(lambda db: open_round(db, "closed"))
        assert give(made, "a").reason == "closed"


def test_covered_words_stay_on_the_server_until_asked_for(tmp_path: Path) -> None:
    from ombud.taxonomy import load_terms

    slur = next(t.text for t in load_terms("terms-identity@1").terms if t.kind == "slur")
    with Project.create(tmp_path / "p", ProjectSettings()) as made:
        made.add_texts({"text": [f"They called us {slur}s, again.", "Nothing here."]})
        rater(made, "a")
        for _ in range(2):
            task = give(made, "a").task
            assert task is not None
            if task.covered:
                assert slur not in task.text and "*" in task.text and task.hidden_terms == 1
                click(made, "a", task.assignment, "show")
                shown = give(made, "a").task
                assert shown is not None and slur in shown.text and not shown.covered
            click(made, "a", task.assignment, "answer", "not delicate")
        rows = made.store.read(ratings_table)
        assert sorted(rows["shown"].to_list()) == [False, True]


@pytest.mark.parametrize("seed", [8, 9, 10])
def test_raters_who_quarrel_in_any_order_break_nothing(tmp_path: Path, seed: int) -> None:
    """Random clicks of five raters, some senseless: what is stored stays consistent."""
    rng = np.random.default_rng(seed)
    with project(tmp_path / "p", 15, repeat_share=0.3, repeat_gap=2, ask_topics=True) as made:
        settings = made.settings
        names = [f"r{i}" for i in range(5)]
        for name in names:
            rater(made, name)
        seen: list[int] = [1]
        words = "risk:1 risk:5 finish: back: skip: undo: show: risk:9 x:"
        actions = [f"answer:{one}" for one in ("delicate", "not delicate", "cannot be judged")]
        actions += words.split()
        for turn in range(1500):
            name = str(rng.choice(names))
            task = give(made, name, 1e9 + turn).task
            if task is not None:
                seen.append(task.assignment)
            target = int(rng.choice(seen)) if rng.random() < 0.2 or not task else task.assignment
            action, _, value = str(rng.choice(actions, p=_chances())).partition(":")
            try:
                click(made, name, target, action, value, at=1e9 + turn)
            except Exception as error:
                assert type(error).__name__ in {"AppError", "ConflictError", "NotAllowedError"}

        def facts(db: Any) -> None:
            done = db.execute(
                "SELECT t.id, count(*) FILTER (WHERE answer != 'cannot be judged'), "
                "count(DISTINCT person) = count(*) FROM texts t JOIN assignments a "
                "ON a.text = t.id AND a.state = 'done' AND a.repeat = 0 GROUP BY t.id"
            ).fetchall()
            assert all(n <= 3 and single for _, n, single in done)
            for person in names:
                one = person_named(db, person)
                assert one is not None
                (n,) = db.execute(
                    "SELECT count(*) FROM assignments WHERE person = ? AND state = 'done'",
                    (one.id,),
                ).fetchone()
                assert one.finished == n
            counted = dict(db.execute("SELECT state, n FROM counts WHERE n > 0").fetchall())
            real = dict(db.execute("SELECT state, count(*) FROM texts GROUP BY 1").fetchall())
            assert counted == real

        made.store.read(facts)
        assert settings.raters_per_text == 3


def _chances() -> list[float]:
    weights = np.array([6, 4, 1, 4, 4, 6, 1, 1, 1, 1, 0.5, 0.5])
    return list(weights / weights.sum())
