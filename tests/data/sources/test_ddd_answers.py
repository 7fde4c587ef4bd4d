"""Answers of Does the Dog Die in their several forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ombud.data.labels import vote_states
from ombud.data.sources.ddd_answers import answers_of_csv, answers_of_json, json_lines
from ombud.data.sources.ddd_votes import match_answers
from ombud.errors import DataError

LINKS = pl.DataFrame({"item": [4, 9], "imdb": [50798, None], "tmdb": [None, 22660]})


def reply(**item: Any) -> dict[str, Any]:
    stat = {"topicId": 153, "topicName": "a dog dies", "yesSum": 3, "noSum": 1}
    return {"item": item, "topicItemStats": [stat]}


@pytest.mark.parametrize(
    ("ids", "item"),
    [
        ({"imdbId": "tt0050798"}, 4),
        ({"imdbId": "0050798", "tmdbId": 1}, 4),
        ({"imdbId": None, "tmdbId": 22660}, 9),
        ({"imdbId": "tt1", "tmdbid": "22660"}, 9),
    ],
)
def test_imdb_goes_before_tmdb(ids: dict[str, Any], item: int) -> None:
    votes = match_answers(answers_of_json([reply(**ids)]), LINKS)
    assert votes.items.tolist() == [item]
    assert votes.yes[0, votes.names.index("a-dog-dies")] == 3


def test_unmatched_and_repeated_answers_are_counted() -> None:
    replies = [reply(imdbId="tt0050798"), reply(imdbId="tt0050798"), reply(imdbId="tt7")]
    votes = match_answers(answers_of_json(replies), LINKS)
    words = [str(e) for e in votes.exclusions]
    assert words == [
        "votes: 1 of 3 answers excluded: no movie has their IMDb or TMDB id",
        "votes: 1 of 3 answers excluded: an earlier answer is about the same movie",
    ]
    with pytest.raises(DataError, match="none of 1 answers"):
        match_answers(answers_of_json([reply(imdbId="tt7")]), LINKS)


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        {"item": {}},
        {"item": 3, "topicItemStats": []},
        {"item": {}, "topicItemStats": [7]},
        {"item": {}, "topicItemStats": [{"yesSum": "many"}]},
        {"item": {}, "topicItemStats": [{"yesSum": -1, "noSum": 0}]},
    ],
)
def test_other_answers_are_refused(wrong: Any) -> None:
    with pytest.raises(DataError, match="answer 1"):
        list(answers_of_json([wrong], "x"))


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert list(json_lines(path)) == [{"a": 1}, {"a": 2}]
    path.write_text('{"a": 1}\n{')
    with pytest.raises(DataError, match="line 2 is not JSON"):
        list(json_lines(path))


@pytest.mark.realdata
def test_the_real_answer(realdata: Path) -> None:
    path = realdata / "ddd-sample" / "old_yeller_topic_votes.csv"
    (answer,) = answers_of_csv(path)
    assert (answer.imdb, answer.tmdb, len(answer.topics)) == (50798, 22660, 197)
    voted = [topic for topic in answer.topics if topic[2] + topic[3]]
    assert len(voted) == 134
    votes = match_answers([answer], LINKS)
    states, _ = vote_states(votes.yes, votes.no)
    assert len(votes.names) == 136
    assert states[0, votes.names.index("a-dog-dies")] == 1
    # By hand from the file: 175 yes and 10 no for the dog, 4 yes and 29 no for a dragon.
    assert votes.yes[0, votes.names.index("a-dog-dies")] == 175
    assert states[0, votes.names.index("a-dragon-dies")] == 0
    dropped = " ".join(str(e) for e in votes.exclusions)
    assert "2 rows excluded: 2 labels that ombud refuses to store" in dropped
    assert "59 topics are not in warnings-ddd@1" in dropped
