"""`http` on replies of real services: lists, maxima, thresholds by category, and first replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.http.dispatch import RunStoppedError
from ombud.http.pace import RunSettings
from ombud.systems.moderators.azure import AzureContentSafety
from ombud.systems.moderators.http import HttpModerator, all_at

REPLIES = Path(__file__).with_name("replies")
ALLOWED, FLAGGED, _, ERROR, UNPARSEABLE, SCORED = map(int, Outcome)


def body(name: str) -> Any:
    return json.loads((REPLIES / f"{name}.json").read_text())["body"]


def service(**options: Any) -> HttpModerator:
    return HttpModerator(**{"base_url": "https://example.org", **options})


def read(reply: Any, **options: Any) -> tuple[int, float]:
    answer = service(**options).parse(200, json.dumps(reply).encode())
    return answer.outcome, answer.score


AZURE = {"categories_path": "categoriesAnalysis[*].severity", "category_key": "category"}


def test_lists_of_objects() -> None:
    """Azure: by hand, Hate 5 and Violence 2; and as the service's own class reads it."""
    reply = body("azure-text-analyze")
    assert read(reply, **AZURE) == (SCORED, 5)
    assert read(reply, **AZURE, threshold=5) == (FLAGGED, 5)
    assert read(reply, **AZURE, threshold=6) == (ALLOWED, 5)
    each = {"Hate": 6, "SelfHarm": 2, "Sexual": 4, "Violence": 2}
    assert read(reply, **AZURE, thresholds=each) == (FLAGGED, 1.0)
    own = AzureContentSafety(
        base_url="https://a.cognitiveservices.azure.com", api_version="2024-09-01", thresholds=each
    ).parse(200, json.dumps(reply).encode())
    assert (own.outcome, own.score) == read(reply, **AZURE, thresholds=each)
    one = service(**AZURE, threshold=4).parse(200, json.dumps(reply).encode())
    assert one.categories == {"Hate": 5, "SelfHarm": 0, "Sexual": 0, "Violence": 2}
    # Without names there are positions; and the largest alone needs no names.
    assert read(reply, score_path="categoriesAnalysis[*].severity", threshold=5) == (FLAGGED, 5)
    assert read(reply, **AZURE, categories=["Violence"], threshold=4) == (ALLOWED, 2)
    assert read(reply, **AZURE, categories=["Spam"], threshold=4)[0] == UNPARSEABLE
    assert read({"categoriesAnalysis": []}, **AZURE, threshold=4)[0] == UNPARSEABLE
    twice = {"categoriesAnalysis": [{"category": "Hate", "severity": 0}] * 2}
    assert read(twice, **AZURE, threshold=4)[0] == UNPARSEABLE


def test_nested_values_and_any() -> None:
    reply = body("perspective-analyze")
    nested = {"categories_path": "attributeScores.*.summaryScore.value"}
    assert read(reply, **nested, threshold=0.7) == (FLAGGED, 0.81)
    found = service(**nested).parse(200, json.dumps(reply).encode())
    assert found.categories == {"TOXICITY": 0.81, "IDENTITY_ATTACK": 0.46}
    checks = body("bedrock-invoke-guardrail-checks")
    path = "results.contentFilter.results[*].severityScore"
    pairs = {"categories_path": path, "category_key": "category"}
    assert read(checks, **pairs, threshold=0.7) == (FLAGGED, 0.8)
    mistral = body("mistral-moderations")
    flags = {"flag_path": "results[*].categories.*"}
    assert read(mistral, **flags)[0] == FLAGGED
    assert read({"results": [{"categories": {"a": False, "b": False}}]}, **flags)[0] == ALLOWED
    assert read({"results": [{"categories": {"a": False, "b": None}}]}, **flags)[0] == UNPARSEABLE
    plain = {"categories_path": "results.0.category_scores", "thresholds": {"pii": 0.5}}
    assert read(mistral, **plain) == (SCORED, 0.913)  # ten categories have no threshold


@given(
    st.dictionaries(st.text("abc", min_size=1), st.floats(0, 1), min_size=1, max_size=5),
    st.floats(0.01, 1),
)
def test_a_maximum_is_that_of_the_values_in_any_order(
    scores: dict[str, float], threshold: float
) -> None:
    for order in (list(scores.items()), list(scores.items())[::-1]):
        reply = {"found": [{"n": name, "s": value} for name, value in order]}
        paths = {"categories_path": "found[*].s", "category_key": "n", "threshold": threshold}
        outcome, score = read(reply, **paths)
        assert score == max(scores.values())
        assert outcome == (max(scores.values()) >= threshold)
    assert sorted(all_at(reply, "found[*].s").values()) == sorted(scores.values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give flag_path, score_path or categories_path"),
        ({"score_path": "s", "thresholds": {"a": 0.5}}, "thresholds are for categories_path"),
        ({"categories_path": "c", "category_key": "n"}, "category_key needs"),
        ({"score_path": "s", "categories": ["a"]}, "categories are for categories_path"),
        ({"score_path": "s", "check_first": -1}, "check_first is -1"),
        ({"score_path": "s", "threshold": float("nan")}, "threshold is nan"),
    ],
)
def test_paths_that_cannot_work_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        service(**options)


@pytest.mark.parametrize(
    ("options", "reply", "words"),
    [
        # The first severity alone is read: a text with Violence 6 would be allowed.
        (
            {"score_path": "categoriesAnalysis.0.severity", "threshold": 4},
            {"categoriesAnalysis": [{"severity": 0}, {"severity": 6}]},
            "categoriesAnalysis.1.severity is 6, which no path reads, in a reply read as allowed",
        ),
        (
            {"score_path": "score", "threshold": 0.5},
            {"score": 0.1, "flagged": True},
            "flagged is True",
        ),
        (
            {"score_path": "score", "threshold": 0.5},
            {"score": 0.9, "flagged": False},
            "in a reply read as flagged",
        ),
        ({"flag_path": "flagged"}, {"flagged": False, "action": "BLOCK"}, "action is 'BLOCK'"),
        ({"flag_path": "a.toxic"}, {"a": {"toxic": False}, "is_safe": False}, "is_safe is False"),
        ({"score_path": "score", "threshold": 0.5}, {"score": 0.1, "flagged": False}, ""),
        ({"score_path": "score"}, {"score": 0.1, "flagged": True}, ""),  # nothing was decided
        (
            {"score_path": "score", "threshold": 0.5},
            {"score": 0.9, "hate": False, "spam": True},
            "",
        ),
    ],
)
def test_unused_fields_that_contradict_the_decision(
    options: dict[str, Any], reply: Any, words: str
) -> None:
    system = service(**options)
    answer = system.parse(200, json.dumps(reply).encode())
    told = system.suspect(reply, answer)
    assert words in told and bool(told) == bool(words)


def texts_of(n: int) -> Texts:
    rows = np.array([*(f"text {i}" for i in range(n)), None], dtype=object)[:-1]
    return Texts(np.arange(n), rows, np.full(n, -1, dtype=np.int8))


def at_stub(stub: Any, folder: Path, **options: Any) -> HttpModerator:
    run = RunSettings(concurrency=1, retries=0, backoff=0.001)
    more = {"score_path": "score", "threshold": 0.5, "key_env": "", **options}
    return HttpModerator(base_url=f"{stub.url}/plain", cache=folder / "a.sqlite", run=run, **more)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ({"verdict": "ok"}, "nothing stands at 'score'"),
        ({"score": 0.1, "blocked": True}, "blocked"),
    ],
    ids=["a part is missed", "a contradiction"],
)
def test_first_replies_are_examined_before_the_run_continues(
    reply: Any, words: str, stub: Any, tmp_path: Path
) -> None:
    stub.faults["text 3"].append(f"body:{json.dumps(reply).encode().hex()}")
    with pytest.raises(RunStoppedError, match=rf"1 of 20: .*{words}.*check_first = 0"):
        at_stub(stub, tmp_path).moderate(texts_of(60))
    assert sum(stub.asked.values()) == 20
    with pytest.raises(RunStoppedError, match=words):  # before anything else is paid for
        at_stub(stub, tmp_path).moderate(texts_of(60))
    assert sum(stub.asked.values()) == 20
    made = at_stub(stub, tmp_path, check_first=0).moderate(texts_of(60))
    assert sum(stub.asked.values()) == 60
    odd = UNPARSEABLE if "verdict" in reply else ALLOWED
    assert made.outcomes.tolist() == [odd if i == 3 else ALLOWED for i in range(60)]


def test_a_run_that_reads_all_its_replies_is_not_stopped(stub: Any, tmp_path: Path) -> None:
    done: list[tuple[int, int]] = []
    system = at_stub(stub, tmp_path)
    system.moderate(texts_of(45), progress=lambda at, of, note: done.append((at, of)))
    assert sum(stub.asked.values()) == 45 and done[-1] == (45, 45)
    assert [at for at, _ in done] == sorted(at for at, _ in done)
    # A run of no more texts than are examined has nothing to continue with.
    stub.faults["text 1"].append(f"body:{b'{}'.hex()}")
    few = at_stub(stub, tmp_path, version="2").moderate(texts_of(5))
    assert few.outcomes.tolist() == [ALLOWED, UNPARSEABLE, *[ALLOWED] * 3]
