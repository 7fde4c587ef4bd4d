"""Functions and objects of one's own as systems: what they may return, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.audits import Audit
from ombud.audits.load import load_system
from ombud.data import Dataset, Interactions, Labels, Texts
from ombud.data.decisions import Outcome
from ombud.errors import AuditedSystemError, PlanError
from ombud.metrics import FalsePositiveRate, ShareGap
from ombud.systems import OwnRecommender, RecordedDecisions, RecordedRecommendations
from ombud.systems.own import as_system, read_decisions, read_lists

USERS = [1, 2, 3]
WANTED = [["a", "b"], ["b", "c"], ["c", "a"]]


def rows(lists: Any) -> list[list[str]]:
    return read_lists("mine", lists, np.array(USERS), 2).to_lists()["items"].to_list()


def long() -> pl.DataFrame:
    pairs = [(u, i, k) for u, items in zip(USERS, WANTED, strict=True) for k, i in enumerate(items)]
    return pl.DataFrame(
        {
            "user": [p[0] for p in pairs],
            "item": [p[1] for p in pairs],
            "rank": [p[2] + 1 for p in pairs],
        }
    )


@pytest.mark.parametrize(
    "answer",
    [
        WANTED,
        tuple(WANTED),
        dict(zip(USERS, WANTED, strict=True)),
        np.array(WANTED),
        (np.array(WANTED), np.array([[0.9, 0.1]] * 3)),
        [np.array(items) for items in WANTED],
        [{items[0]: 0.9, items[1]: 0.1} for items in WANTED],
        [[(items[0], 2.0), (items[1], 1.0)] for items in WANTED],
        long(),
        long().to_pandas(),
    ],
    ids=[
        "lists",
        "tuple",
        "dict",
        "array",
        "ids and scores",
        "arrays",
        "scores",
        "pairs",
        "polars",
        "pandas",
    ],  # fmt: skip
)
def test_every_form_gives_the_same_lists(answer: Any) -> None:
    assert rows(answer) == WANTED


@given(st.lists(st.lists(st.integers(0, 30), unique=True, max_size=6), min_size=1, max_size=8))
def test_lists_come_out_as_they_went_in(lists: list[list[int]]) -> None:
    users = np.arange(len(lists))
    result = read_lists("mine", lists, users, 4)
    assert result.to_lists()["items"].to_list() == [items[:4] for items in lists]
    cut = sum(max(0, len(items) - 4) for items in lists)
    short = sum(4 - len(items) for items in lists if 0 < len(items) < 4)
    counts = {e.reason.split()[3]: e.count for e in result.exclusions if e.what == "places"}
    assert counts == {k: v for k, v in (("longer", cut), ("shorter", short)) if v}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (5, "mine returned int (5); one list of item ids for each user was expected"),
        (None, "mine returned NoneType (None)"),
        ([["a"]], "1 lists for 3 users"),
        ([1, 2, 3], "mine returned int (1) for a user; a list of item ids"),
        ({"x": ["a"]}, "none of the users that it was asked for"),
        ("abc", "mine returned str"),
    ],
)
def test_wrong_lists_give_a_sentence_and_an_example(answer: Any, said: str) -> None:
    with pytest.raises(AuditedSystemError) as error:
        rows(answer)
    first, *example = str(error.value).splitlines()
    assert said in first
    assert [line.strip().split()[0] for line in example] == ["def", "return"]


def test_an_item_twice_is_refused() -> None:
    with pytest.raises(AuditedSystemError, match="more than once"):
        rows([["a", "a"], ["b"], ["c"]])


@pytest.fixture
def data() -> Dataset:
    frame = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "b", "c"]})
    labels = pl.DataFrame({"item": ["a", "d"], "label": ["x", "x"]})
    return Dataset(
        interactions=Interactions.from_frame(frame), labels=Labels.from_applied(labels, absent="no")
    )


def test_seen_items_are_refused_unless_meant(data: Dataset) -> None:
    def same(users: Any, n: int) -> Any:
        return [["a", "d"]] * len(users)

    with pytest.raises(AuditedSystemError, match="own history to 1 of 3 users, first to user 1;"):
        Audit(data, [same], [ShareGap(k=2)]).run()
    meant = OwnRecommender(same, "same", recommends_seen=True)
    assert Audit(data, [meant], [ShareGap(k=2)]).run().estimates


class Model:
    """What a user may have fitted: with a `fit` that ombud must not call."""

    trained = 0

    def fit(self, interactions: Interactions) -> None:
        self.trained += 1

    def recommend(self, users: Any, n: int) -> Any:
        return {user: ["d" if self.trained == 7 else "e"] for user in users}


def test_what_a_user_fitted_is_used_as_it_is(data: Dataset) -> None:
    model = Model()
    model.trained = 7
    held = replace(data, test=data.interactions)
    result = Audit(held, {"model": model}, [ShareGap(k=2)]).run()
    assert model.trained == 7
    assert any("shorter than the 2 items" in e.reason and e.count == 3 for e in result.exclusions)
    assert any("may have seen the held-out interactions" in e.reason for e in result.exclusions)


def test_a_copy_is_trained_where_that_is_asked_for(data: Dataset) -> None:
    model = Model()
    model.trained = 6
    own = OwnRecommender(model, "model", train_copy=True)
    result = Audit(data, [own], [ShareGap(k=2)]).run()
    assert model.trained == 6 and own._trained.trained == 7
    assert not any("held-out" in e.reason for e in result.exclusions)
    with pytest.raises(PlanError, match="needs an object with fit"):
        OwnRecommender(lambda users, n: [], train_copy=True)


def test_a_plan_trains_a_copy_where_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def created(of: str, kind: str, options: dict[str, Any]) -> Any:
        assert "fit" not in options
        return Model() if kind == "popular" else RecordedDecisions({"id": [1], "flagged": [1]})

    monkeypatch.setattr("ombud.audits.load.registry.create", created)
    made = load_system("mine", {"type": "popular", "fit": True}, "recommender")
    assert isinstance(made, OwnRecommender) and made.trainable and made.name == "mine"
    assert isinstance(load_system("mine", {"type": "popular"}, "recommender"), Model)
    with pytest.raises(PlanError, match="fit = true trains a copy of an object"):
        load_system("mine", {"type": "keyword", "fit": True}, "moderator")


def test_models_of_libraries_are_taken_as_they_are(data: Dataset) -> None:
    class Factors:
        """Recommends as models of the package implicit do."""

        user_factors = np.zeros((3, 2))

        def fit(self, user_items: Any) -> None:
            raise AssertionError

        def recommend(self, userid: Any, user_items: Any, N: int = 10,
                      filter_already_liked_items: bool = True) -> Any:  # fmt: skip
            assert user_items.shape == (len(userid), data.interactions.n_items)
            last = np.full((len(userid), N), data.interactions.n_items - 1)
            last[:, 1:] = -1
            return last, np.ones(last.shape, np.float32)

    assert data.interactions is not None
    result = Audit(data, {"factors": Factors()}, ["share-gap"]).run()
    assert result.select(system="factors")
    wrong = Factors()
    wrong.user_factors = np.zeros((5, 2))
    with pytest.raises(PlanError, match="fitted on 5 users, and the data has 3"):
        Audit(data, {"factors": wrong}, ["share-gap"]).run()


def test_classifiers_and_pipelines_are_taken_as_they_are() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = ["bad bad", "fine day", "bad thing", "fine thing"] * 5
    texts = Texts.from_frame({"text": words, "label": [1, 0, 1, 0] * 5})
    for classes in ([1, 0], ["toxic", "neutral"]):
        model = make_pipeline(CountVectorizer(), LogisticRegression())
        model.fit(words, classes * 10)
        system = as_system("sk", model, "moderator")
        assert system.moderate(texts).outcomes.tolist() == [1, 0] * 10
    model.fit(words, ["x", "y"] * 10)
    with pytest.raises(PlanError, match=r"which of its classes \(x, y\) means flagged"):
        as_system("sk", model, "moderator")

    class Pipeline:
        """Called as a text-classification pipeline of transformers is."""

        task = "text-classification"
        model = SimpleNamespace(config=SimpleNamespace(id2label={0: "neutral", 1: "toxic"}))

        def __call__(self, texts: list[str], **options: Any) -> Any:
            share = [0.9 if "bad" in text else 0.1 for text in texts]
            return [
                [{"label": "toxic", "score": s}, {"label": "neutral", "score": 1 - s}]
                for s in share
            ]

    system = as_system("hf", Pipeline(), None)
    assert system.moderate(texts).outcomes.tolist() == [1, 0] * 10


def decided(answer: Any) -> list[int]:
    texts = Texts.from_frame({"id": [7, 8, 9], "text": ["x", "y", "z"]})
    return [int(one) for one in read_decisions("mine", answer, texts).outcomes]


@pytest.mark.parametrize(
    "answer",
    [
        [True, False, None],
        np.array([0.5, 0.49, np.nan]),
        [{"flagged": True}, {"score": 0.1, "categories": {"hate": 0.1}}, {"score": float("nan")}],
        {9: None, 8: False, 7: True},
        [1, 0, None],
        pl.DataFrame({"id": [8, 7], "flagged": [False, True]}),
    ],
)
def test_every_form_gives_the_same_decisions(answer: Any) -> None:
    assert decided(answer) == [Outcome.FLAGGED, Outcome.ALLOWED, Outcome.ERROR]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (True, "mine returned bool (True); one boolean, score or dict for each text"),
        ([True], "1 answers for 3 texts"),
        (["toxic", "ok", "ok"], "mine returned str ('toxic') for a text"),
        ([-1, 1, 1], "mine returned int (-1) for a text"),
        ([{"label": "toxic"}] * 3, "mine returned dict"),
        (np.zeros((3, 2)), "an array of shape (3, 2)"),
        ({7: True}, "without 2 of 3 text ids, the first 8"),
    ],
)
def test_wrong_decisions_give_a_sentence_and_an_example(answer: Any, said: str) -> None:
    with pytest.raises(AuditedSystemError) as error:
        decided(answer)
    first, *example = str(error.value).splitlines()
    assert said in first
    assert [line.strip().split()[0] for line in example] == ["def", "return"]


def test_moderators_go_through_texts_as_strings() -> None:
    class Shouting:
        name = "shouting"

        def moderate(self, texts: Any) -> Any:
            return [text.isupper() for text in texts]

    def same(texts: Any) -> Any:
        return [text.isupper() for text in texts]

    frame = {"text": ["HEY", "hey"] * 10, "label": [False] * 20}
    data = Dataset(texts=Texts.from_frame(frame))
    result = Audit(data, [Shouting(), same], [FalsePositiveRate()]).run()
    assert [e.value for e in result.estimates if e.kind == "level"] == [0.5, 0.5]


def test_what_is_no_system_is_refused() -> None:
    with pytest.raises(PlanError, match="a system is a function, or an object with"):
        as_system("mine", 5, "recommender")
    with pytest.raises(PlanError, match=r"say which it is: OwnRecommender\(mine\)"):
        as_system("mine", len, None)


def test_recorded_frames_are_systems() -> None:
    shown: Any = long()
    lists = RecordedRecommendations(shown, name="shop")
    assert lists.recommend(np.array(USERS), 2).to_lists()["items"].to_list() == WANTED
    frame: Any = pl.DataFrame({"id": [1], "score": [0.7]})
    past = RecordedDecisions(frame, threshold=0.5)
    assert past.name == "recorded"
    assert past.decisions.outcomes.tolist() == [Outcome.FLAGGED]
