"""Each service's wire format, and what each of its answers means."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.systems.moderators import (
    AnthropicMessages,
    GoogleModerateText,
    HttpModerator,
    LlamaGuard,
    OpenAIModeration,
    Perspective,
)
from ombud.systems.moderators.openai import thresholds_from_replies
from ombud.systems.moderators.service import Service

SECRET = "sk-test-0123456789abcdef"


def texts_of(*rows: str) -> Texts:
    n = len(rows)
    return Texts(np.arange(n), np.array(rows, dtype=object), np.full(n, -1, dtype=np.int8))


def each(url: str, folder: Path) -> list[Service]:
    cache = folder / "a.sqlite"
    return [
        Perspective(base_url=url, cache=cache, threshold=0.7),
        OpenAIModeration(model="omni-moderation-2024-09-26", base_url=f"{url}/v1", cache=cache),
        GoogleModerateText(base_url=url, cache=cache, version="v1", threshold=0.5),
        GoogleModerateText(name="bearer", base_url=url, cache=cache, auth="bearer", threshold=0.5),
        AnthropicMessages(model="claude-haiku-5-5", base_url=url, cache=cache),
        LlamaGuard(base_url=f"{url}/v1", cache=cache, key_env="GUARD_KEY"),
        HttpModerator(
            base_url=f"{url}/plain",
            score_path="score",
            threshold=0.5,
            version="1",
            cache=cache,
            key_env="OWN_KEY",
        ),
    ]


def test_each_service_is_asked_as_it_documents(
    stub_with: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = stub_with(key=SECRET)
    for system in each(stub.url, tmp_path):
        monkeypatch.setenv(system.key_env, SECRET)
        # One after the other, so that the last question of each is about the second text.
        system.run = replace(system.run, concurrency=1)
        decisions = system.moderate(texts_of("peace", "zz é"))
        assert decisions.outcomes.tolist() == [0, 1], system.name
        assert decisions.version
    sent = {path: (headers, question) for path, headers, question in stub.requests}
    headers, question = sent["/v1alpha1/comments:analyze"]
    assert headers["x-goog-api-key"] == SECRET
    assert question["requestedAttributes"] == {"TOXICITY": {}} and question["doNotStore"] is True
    _, question = sent["/v1/moderations"]
    assert question == {"model": "omni-moderation-2024-09-26", "input": "zz é"}
    headers, question = sent["/v2/documents:moderateText"]
    assert headers["authorization"] == f"Bearer {SECRET}"
    assert question == {"document": {"type": "PLAIN_TEXT", "content": "zz é"}}
    headers, question = sent["/v1/messages"]
    assert headers["x-api-key"] == SECRET and headers["anthropic-version"] == "2023-06-01"
    assert set(question) == {"model", "max_tokens", "messages"}
    assert "<user_text>zz é</user_text>" in question["messages"][0]["content"]
    _, question = sent["/v1/chat/completions"]
    assert question["messages"] == [{"role": "user", "content": "zz é"}]
    assert all(h["content-type"] == "application/json" for h, _ in sent.values())


def read(system: Service, reply: Any) -> tuple[Outcome, float]:
    answer = system.parse(200, json.dumps(reply).encode())
    return answer.outcome, answer.score


def test_perspective_thresholds_by_attribute() -> None:
    limits = {"threshold": 0.7, "thresholds": {"THREAT": 0.3}}
    system = Perspective(attributes=["TOXICITY", "THREAT"], **limits)
    scores = {"TOXICITY": 0.6, "THREAT": 0.25}
    reply = {"attributeScores": {a: {"summaryScore": {"value": s}} for a, s in scores.items()}}
    # Scores are divided by their thresholds, so that they rank texts as decisions do.
    assert read(system, reply) == (Outcome.ALLOWED, pytest.approx(0.6 / 0.7))
    # An attribute without a threshold leaves the text undecided: nobody chose one for it.
    assert read(replace(system, threshold=None), reply) == (Outcome.SCORED, 0.6)
    assert read(Perspective(attributes=["TOXICITY"]), reply) == (Outcome.SCORED, 0.6)
    with pytest.raises(PlanError, match="thresholds names INSULT"):
        Perspective(thresholds={"INSULT": 0.5})
    reply["attributeScores"]["THREAT"]["summaryScore"]["value"] = 0.3
    assert read(system, reply) == (Outcome.FLAGGED, 1.0)
    del reply["attributeScores"]["THREAT"]
    assert read(system, reply)[0] is Outcome.UNPARSEABLE


def test_google_leaves_topics_out_unless_asked() -> None:
    pairs = {"Toxic": 0.2, "Religion & Belief": 0.95, "Health": 0.7, "Insult": 0.3}
    reply = {"moderationCategories": [{"name": n, "confidence": c} for n, c in pairs.items()]}
    half = {"threshold": 0.5}
    assert read(GoogleModerateText(), reply) == (Outcome.SCORED, 0.3)
    assert read(GoogleModerateText(**half), reply) == (Outcome.ALLOWED, 0.3)
    assert read(GoogleModerateText(categories="all", **half), reply) == (Outcome.FLAGGED, 0.95)
    assert read(GoogleModerateText(categories=["Health"], **half), reply) == (Outcome.FLAGGED, 0.7)
    strict = GoogleModerateText(thresholds={"Insult": 0.25}, **half)
    assert read(strict, reply) == (Outcome.FLAGGED, pytest.approx(0.3 / 0.25))
    with pytest.raises(PlanError, match="thresholds names Health"):
        GoogleModerateText(thresholds={"Health": 0.5})
    assert read(GoogleModerateText(categories=["Absent"]), reply)[0] is Outcome.UNPARSEABLE


def moderation(model: str = "omni", flagged: bool = False, **scores: float) -> dict[str, Any]:
    flags = {category: flagged for category in scores}
    result = {"flagged": flagged, "categories": flags, "category_scores": scores}
    return {"model": model, "results": [result]}


def test_openai_scores_are_divided_by_the_thresholds_of_their_own_model_only() -> None:
    system = OpenAIModeration(model="text-moderation-stable")
    old = moderation("text-moderation-007", hate=0.2, sexual=0.2)
    outcome, score = read(system, old)
    assert (outcome, score) == (Outcome.ALLOWED, pytest.approx(0.2 / 0.400002))
    assert read(system, moderation("omni", hate=0.2, sexual=0.2))[1] == 0.2
    own = OpenAIModeration(
        model="omni-moderation-2024-09-26", thresholds={"sexual": 0.1}, flag_by="thresholds"
    )
    assert read(own, moderation("omni", hate=0.2, sexual=0.2)) == (Outcome.FLAGGED, 2.0)
    by = OpenAIModeration(model="text-moderation-stable", flag_by="thresholds")
    assert read(by, moderation("text-moderation-007", hate=0.39))[0] is Outcome.ALLOWED
    assert read(by, moderation("text-moderation-007", hate=0.41))[0] is Outcome.FLAGGED
    assert read(by, moderation("text-moderation-008", hate=0.41))[0] is Outcome.UNPARSEABLE
    with pytest.raises(PlanError, match="thresholds_from_replies"):
        OpenAIModeration(model="omni-moderation-2024-09-26", flag_by="thresholds")


@pytest.mark.realdata
def test_the_shipped_thresholds_are_those_of_the_paper(realdata: Path) -> None:
    from ombud.systems.moderators.openai import MODERATION_007

    table = realdata.parent / "reference" / "suppression_openai_thresholds.csv"
    if not table.exists():
        pytest.skip(f"no {table.name} beside the data")
    rows = [line.split(",") for line in table.read_text().split()[1:]]
    assert {c: (float(low), float(high)) for c, low, high in rows} == MODERATION_007


def test_thresholds_are_found_again_from_replies() -> None:
    replies = [
        moderation(hate=0.1),
        moderation(hate=0.3),
        moderation(flagged=True, hate=0.35),
        moderation(flagged=True, hate=0.9),
        moderation(sexual=0.5),
    ]
    found = thresholds_from_replies(json.dumps(reply).encode() for reply in replies)
    assert found == {"hate": (0.3, 0.35), "sexual": (0.5, None)}


def test_openai_only_the_chosen_categories_count() -> None:
    reply = moderation(flagged=True, hate=0.9, violence=0.1)
    reply["results"][0]["categories"]["violence"] = False
    assert read(OpenAIModeration(model="omni-moderation-2024-09-26"), reply) == (
        Outcome.FLAGGED,
        0.9,
    )
    assert read(
        OpenAIModeration(model="omni-moderation-2024-09-26", categories=["violence"]), reply
    ) == (Outcome.ALLOWED, 0.1)


def test_a_new_category_is_kept_and_told(stub: Any, tmp_path: Path) -> None:
    stub.faults["a"].append("category")
    system = OpenAIModeration(
        model="omni-moderation-2024-09-26",
        base_url=f"{stub.url}/v1",
        key_env="",
        cache=tmp_path / "a.sqlite",
    )
    decisions = system.moderate(texts_of("a", "b"))
    assert decisions.decided.all()
    assert decisions.category_scores is not None
    new = decisions.category_scores[:, decisions.categories.index("brand/new")]
    assert new[0] == pytest.approx(0.9) and np.isnan(new[1])
    assert system.last_report is not None
    assert any("brand/new" in notice for notice in system.last_report.notices)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("BLOCK", Outcome.FLAGGED),
        ("block", Outcome.FLAGGED),
        (' "BLOCK". ', Outcome.FLAGGED),
        ("ALLOW", Outcome.ALLOWED),
        ("**ALLOW**", Outcome.ALLOWED),
        ("I would BLOCK this", Outcome.UNPARSEABLE),
        ("BLOCK or ALLOW", Outcome.UNPARSEABLE),
        ("", Outcome.UNPARSEABLE),
        ("I apologize, but I can", Outcome.REFUSED),
        ("I can’t help with that", Outcome.REFUSED),
        ("refusal", Outcome.REFUSED),
    ],
)
def test_anthropic_answers(stub: Any, tmp_path: Path, words: str, outcome: Outcome) -> None:
    stub.faults["a"].append(f"say:{words}")
    system = AnthropicMessages(
        model="claude-haiku-5-5", base_url=stub.url, key_env="", cache=tmp_path / "a.sqlite"
    )
    decisions = system.moderate(texts_of("a"))
    assert decisions.outcomes.tolist() == [outcome]
    system.moderate(texts_of("a"))
    assert stub.asked == {"a": 1}, "refused and unparseable are answers: they are not asked again"


@pytest.mark.parametrize(
    ("words", "outcome", "categories"),
    [
        ("safe", Outcome.ALLOWED, []),
        ("\n\nSafe\n", Outcome.ALLOWED, []),
        ("unsafe\nS10", Outcome.FLAGGED, ["S10"]),
        ("unsafe\ns1, s2", Outcome.FLAGGED, ["S1", "S2"]),
        ("unsafe", Outcome.FLAGGED, []),
        ("safe\nbut S1", Outcome.UNPARSEABLE, []),
        ("This is safe", Outcome.UNPARSEABLE, []),
        ("I cannot judge", Outcome.REFUSED, []),
    ],
)
def test_llama_guard_answers(words: str, outcome: Outcome, categories: list[str]) -> None:
    reply = {"model": "guard", "choices": [{"message": {"content": words}}]}
    answer = LlamaGuard().parse(200, json.dumps(reply).encode())
    assert answer.outcome is outcome
    assert list(answer.categories) == categories


def test_llama_guard_filtered_by_the_server_and_chosen_categories() -> None:
    reply: dict[str, Any] = {"choices": [{"message": {"content": "unsafe\nS2"}}]}
    assert read(LlamaGuard(categories=["S1"]), reply)[0] is Outcome.ALLOWED
    assert read(LlamaGuard(categories=["S2"]), reply)[0] is Outcome.FLAGGED
    reply["choices"][0]["finish_reason"] = "content_filter"
    assert read(LlamaGuard(), reply)[0] is Outcome.REFUSED


def test_http_reads_flags_categories_and_versions() -> None:
    system = HttpModerator(
        base_url="http://127.0.0.1/x",
        template={"docs": [{"body": "{text}"}], "n": 1},
        flag_path="out.0.verdict",
        flagged_values=["remove"],
        allowed_values=["keep"],
        categories_path="out.0.why",
        version_path="v",
    )
    assert json.loads(system.body(['say "{x}"'])) == {"docs": [{"body": 'say "{x}"'}], "n": 1}
    reply = {"out": [{"verdict": "Remove", "why": {"hate": 0.7}}], "v": 3}
    answer = system.parse(200, json.dumps(reply).encode())
    assert (answer.outcome, answer.categories, answer.version) == (1, {"hate": 0.7}, "3")
    reply["out"] = [{"verdict": "maybe", "why": {}}]
    assert system.parse(200, json.dumps(reply).encode()).outcome is Outcome.UNPARSEABLE


def test_http_says_all_its_faults_at_once() -> None:
    with pytest.raises(PlanError) as caught:
        HttpModerator(
            base_url="https://example.org",
            template={"text": "x"},
            headers_sent={"Authorization": SECRET, "X-Other": "a\r\nb"},
        )
    for part in ("{text}", "flag_path", "key_env", "line break"):
        assert part in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"3", b'"x"', b"{}", b'{"results": []}', b"[" * 100_000, b"\xff\xfe"],
)
@pytest.mark.parametrize("status", [200, 400, 503])
def test_no_reply_breaks_a_parser(body: bytes, status: int, tmp_path: Path) -> None:
    for system in each("http://127.0.0.1:1", tmp_path):
        wanted = Outcome.UNPARSEABLE if status == 200 else Outcome.ERROR
        assert system.parse(status, body).outcome is wanted, system.name


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                ["results", "model", "choices", "message", "content", "attributeScores", "TOXICITY"]
                + ["moderationCategories", "name", "confidence", "score", "categories", "flagged"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_any_json_gets_an_outcome(reply: Any) -> None:
    for system in each("http://127.0.0.1:1", Path("unused")):
        answer = system.parse(200, json.dumps(reply).encode())
        assert isinstance(answer.outcome, Outcome)
        assert answer.outcome <= Outcome.FLAGGED or answer.reason


def test_a_score_that_is_no_number_is_unparseable() -> None:
    for value in ("0.5", None, True, float("nan"), float("inf")):
        reply = {"attributeScores": {"TOXICITY": {"summaryScore": {"value": value}}}}
        assert read(Perspective(), reply)[0] is Outcome.UNPARSEABLE


def test_identity_changes_with_what_changes_answers_and_not_with_thresholds() -> None:
    assert Perspective().identity == Perspective(threshold=0.9).identity
    assert Perspective().identity != Perspective(language="de").identity
    assert Perspective().identity != Perspective(attributes=["THREAT"]).identity
    assert (
        AnthropicMessages(model="claude-haiku-5-5").identity
        != AnthropicMessages(model="claude-haiku-5-5", prompt="x {text}").identity
    )
    assert LlamaGuard().identity != LlamaGuard(base_url="http://127.0.0.1:9/v1").identity
    assert (
        OpenAIModeration(model="omni-moderation-2024-09-26").identity
        == OpenAIModeration(model="omni-moderation-2024-09-26", categories=["hate"]).identity
    )


def test_plans_build_services_and_say_what_is_wrong(stub: Any) -> None:
    built = registry.create(
        "moderator",
        "google-moderate-text",
        {"categories": ["Toxic"], "run": {"concurrency": 3}, "price": {"amount": 0.01}},
    )
    assert built.run.concurrency == 3 and built.name == "google-moderate-text"
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("perspective", {"threshold": 1.5}, "at most 1"),
        ("perspective", {"base_url": "ftp://x"}, "https://"),
        ("perspective", {"base_url": "https://me:pw@example.org"}, "password"),
        ("perspective", {"api_key": SECRET}, "does not take api_key"),
        ("anthropic", {"prompt": "no place"}, "{text}"),
        ("openai-moderation", {"model": "m", "run": {"concurency": 3}}, "run"),
        ("openai-moderation", {"model": "m", "run": {"concurrency": 0}}, "concurrency is 0"),
    ]
    for name, arguments, fault in bad:
        with pytest.raises(Exception, match=fault) as caught:
            registry.create("moderator", name, arguments)
        assert SECRET not in str(caught.value)


def test_two_addresses_never_share_answers(stub_with: Any, tmp_path: Path) -> None:
    one, other = stub_with(), stub_with()
    for first, second in zip(each(one.url, tmp_path), each(other.url, tmp_path), strict=True):
        first.key_env = second.key_env = ""
        first.moderate(texts_of("peace"))
        before = sum(other.asked.values())
        assert second.quote(texts_of("peace")).questions == 1, second.cache_name
        second.moderate(texts_of("peace"))
        assert sum(other.asked.values()) == before + 1


def test_another_name_asks_nothing_again(stub: Any, tmp_path: Path) -> None:
    for name in ("before", "after", ""):
        system = OpenAIModeration(
            model="omni-moderation-2024-09-26",
            name=name,
            base_url=f"{stub.url}/v1",
            key_env="",
            cache=tmp_path / "a.sqlite",
        )
        system.moderate(texts_of("peace"))
        assert system.name == (name or "openai-moderation")
    assert stub.asked == {"peace": 1}


def test_the_usual_address_is_not_part_of_the_key() -> None:
    usual = OpenAIModeration(model="omni-moderation-2024-09-26")
    assert usual.identity == usual.configuration
    assert (
        OpenAIModeration(model="omni-moderation-2024-09-26", base_url=f"{usual.base_url}/").identity
        == usual.identity
    )
    assert (
        OpenAIModeration(
            model="omni-moderation-2024-09-26", base_url="http://127.0.0.1:9/v1"
        ).identity
        != usual.identity
    )


def test_headers_of_an_own_service_are_part_of_the_key() -> None:
    made = [
        HttpModerator(
            base_url="http://127.0.0.1:9", flag_path="flagged", headers_sent={"X-Model": model}
        )
        for model in ("a", "b")
    ]
    assert made[0].identity != made[1].identity


def test_the_token_that_perspective_repeats_is_checked() -> None:
    system = Perspective()
    token = system.question("zz")["clientToken"]
    score = {"attributeScores": {"TOXICITY": {"summaryScore": {"value": 0.9}}}}

    def judged(**more: str) -> str:
        return system.judge(200, json.dumps({**score, **more}).encode(), "zz").outcome

    assert judged() == judged(clientToken=token) == "scored"
    assert judged(clientToken="another") == "error"


def test_an_address_in_another_spelling_is_the_same_service() -> None:
    usual, other = (
        OpenAIModeration(model="omni-moderation-2024-09-26"),
        OpenAIModeration(
            model="omni-moderation-2024-09-26", base_url="HTTPS://API.OpenAI.com:443/v1"
        ),
    )
    assert usual.identity == other.identity
    assert (
        OpenAIModeration(
            model="omni-moderation-2024-09-26", base_url="https://api.openai.com/v2"
        ).identity
        != usual.identity
    )
