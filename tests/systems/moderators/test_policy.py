"""Answers of policy models: each form's own replies, and scores from log probabilities."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import OmbudError, PlanError
from ombud.systems.moderators import Perspective, PolicyModerator, RunSettings
from ombud.systems.moderators.answers import Answer
from ombud.systems.moderators.forms import FORMS, verdict_masses
from ombud.systems.moderators.policy import ALLOW_MASS, FLAG_MASS, LlamaGuard

REPLIES = Path(__file__).parent / "replies"
A, F, R, U = Outcome.ALLOWED, Outcome.FLAGGED, Outcome.REFUSED, Outcome.UNPARSEABLE
NEEDED: dict[str, dict[str, Any]] = {
    "gpt-oss-safeguard": {"policy": "1 if the text threatens a person, else 0"},
    "wildguard": {"prompt": "Human user:\n{text}\nAnswers:"},
    "polyguard": {"system": "classify"},
    "words": {"flagged_words": ["BLOCK"], "allowed_words": ["ALLOW"]},
}


def policy(form: str, **options: Any) -> PolicyModerator:
    return PolicyModerator(form=form, model="m", **{**NEEDED.get(form, {}), **options})


def reply(content: Any, finish: str = "stop", **message: Any) -> dict[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    return {"model": "m-1", "choices": [choice]}


def read(system: PolicyModerator, body: Any) -> Answer:
    return system.parse(200, json.dumps(body).encode())


YES = {  # what each form answers when it flags, and when it allows
    "llama-guard": ("\n\nunsafe\nS10", "safe"),
    "shieldgemma": ("Yes, the text demeans a group.", "No. There is no hate in it."),
    "gpt-oss-safeguard": ('{"violation": 1, "policy_category": "H2.f"}', "0"),
    "granite-guardian": ("<think>\n</think>\n<score> yes </score>", "<score>no</score>"),
    "qwen3guard": (
        "Safety: Unsafe\nCategories: Suicide & Self-Harm",
        "Safety: Safe\nCategories: None",
    ),
    "wildguard": (
        "Harmful request: yes\nResponse refusal: N/A\nHarmful response: N/A",
        "Harmful request: no\nResponse refusal: no\nHarmful response: no",
    ),
    "nemotron": (
        "User Safety: unsafe\nSafety Categories: Hate/Identity Hate, Harassment",
        '{"User Safety": "safe"}',
    ),
    "polyguard": (
        "Harmful request: yes\nResponse refusal: no\nRequest safety violations: S10",
        "Harmful request: no\nRequest safety violations: None",
    ),
    "words": ("BLOCK", " allow."),
}
TWICE = {
    "llama-guard": ("safe\nunsafe\nS1", "unsafe\nS1\nunsafe"),
    "shieldgemma": ("No\nYes", "Yes. Yes.", "Yes or No", "No. On reflection, the answer is: Yes"),
    "gpt-oss-safeguard": ('{"violation": 0, "violation": 1}', "0 1", "violation: 0\nviolation: 1"),
    "granite-guardian": ("<score>no</score><score>yes</score>", "No\nYes"),
    "qwen3guard": ("Safety: Safe\nSafety: Unsafe", "Safety: Safe Safety: Safe"),
    "wildguard": ("Harmful request: no\nHarmful request: yes",),
    "nemotron": (
        "User Safety: safe; User Safety: unsafe",
        '{"User Safety": "safe", "user safety": "unsafe"}',
    ),
    "polyguard": ("Harmful request: no\nHarmful request: no",),
    "words": ("ALLOW BLOCK", "ALLOW/BLOCK"),
}
FOREIGN = {
    "llama-guard": "unsicher\nS1",
    "shieldgemma": "Ja, der Text beleidigt.",
    "gpt-oss-safeguard": "eins",
    "granite-guardian": "<score> oui </score>",
    "qwen3guard": "\u5b89\u5168\u6027: \u4e0d\u5b89\u5168",
    "wildguard": "Solicitud da\u00f1ina: s\u00ed",
    "nemotron": "User Safety: unsicher",
    "polyguard": "Harmful request: \u0434\u0430",
    "words": "ZULASSEN",
}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_each_form_reads_its_verdicts(form: str) -> None:
    system = policy(form)
    for words, outcome in zip(YES[form], (F, A), strict=True):
        assert read(system, reply(words)).outcome is outcome, words
        thought = f"<think>It is unsafe: yes.\nUser Safety: safe</think>\n\n{words}"
        assert read(system, reply(thought)).outcome is outcome, thought
        unopened = f"Perhaps 1, perhaps no.</think>{words}"  # the chat template opened it
        assert read(system, reply(unopened)).outcome is outcome, unopened
        harmony = f"<|channel|>analysis<|message|>no<|channel|>final<|message|>{words}"
        assert read(system, reply(harmony)).outcome is outcome, harmony


@pytest.mark.parametrize("form", sorted(FORMS))
def test_each_form_refuses_what_it_cannot_read(form: str) -> None:
    system = policy(form)
    yes, no = YES[form]
    for twice in TWICE[form]:
        answer = read(system, reply(twice))
        assert (answer.outcome, answer.reason) == (U, "the answer states a verdict twice"), twice
    for opened in (f"<think>{no}", f"{no}\n<think>{no}", f"<|channel|>analysis<|message|>{no}"):
        answer = read(system, reply(opened))
        assert (answer.outcome, answer.reason) == (U, "the reasoning is left open"), opened
    for empty in ("", "  \n", None, "<think>it is safe: no</think>\n"):
        answer = read(system, reply(empty))
        assert (answer.outcome, answer.reason) == (U, "the answer is empty"), empty
    cut = read(system, reply(None, "length", reasoning="The text demeans a"))
    assert (cut.outcome, cut.reason) == (U, "the answer is cut off; raise max_tokens")
    assert read(system, reply(f"<think>{no}", "length")).reason == cut.reason
    assert read(system, reply(FOREIGN[form])).outcome is U
    assert read(system, reply("I cannot help with that.")).outcome is R
    assert read(system, reply(no, refusal="no")).outcome is R
    assert read(system, reply(no, "content_filter")).outcome is R
    two = {"choices": [reply(yes)["choices"][0], reply(no)["choices"][0]]}
    assert read(system, two).reason == "the reply has 2 answers"
    assert system.parse(200, b"<html>busy</html>").outcome is U
    half = json.dumps(reply(no)).encode()[:-3]
    assert system.parse(200, half).outcome is U


ONE_WORD = {"shieldgemma", "gpt-oss-safeguard", "granite-guardian", "words"}


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_cut_answer_counts_only_if_nothing_can_follow(form: str) -> None:
    answer = read(policy(form), reply(YES[form][1], "length"))
    whole = form in ONE_WORD
    assert answer.outcome is (A if whole else U)
    assert whole or "cut off" in answer.reason
    assert read(policy("gpt-oss-safeguard"), reply('{"violation": 0', "length")).outcome is U
    assert read(policy("gpt-oss-safeguard"), reply('{"violation": 0', "stop")).outcome is U


def softmax(yes: float, no: float) -> float:
    return math.exp(yes) / (math.exp(yes) + math.exp(no))


@pytest.mark.parametrize(
    ("file", "form", "outcome", "categories", "score"),
    [
        ("llama-guard", "llama-guard", F, {"S10"}, softmax(-0.105, -2.303)),
        ("shieldgemma", "shieldgemma", F, set(), softmax(-0.223, -1.609)),
        ("gpt-oss-safeguard", "gpt-oss-safeguard", F, {"H2.f"}, math.nan),
        ("granite-guardian", "granite-guardian", F, set(), math.nan),
        ("qwen3guard", "qwen3guard", F, {"Unethical Acts"}, math.nan),
        ("wildguard", "wildguard", F, set(), math.nan),
        ("nemotron-content-safety", "nemotron", F, {"Hate/Identity Hate", "Harassment"}, math.nan),
        ("polyguard", "polyguard", F, {"S10"}, math.nan),
    ],
)
def test_documented_replies(
    file: str, form: str, outcome: Outcome, categories: set[str], score: float
) -> None:
    saved = json.loads((REPLIES / f"{file}.json").read_text())
    answer = read(policy(form), saved["body"])
    assert answer.outcome is outcome and answer.version == saved["body"]["model"]
    assert set(answer.categories) - {FLAG_MASS, ALLOW_MASS} == categories
    assert answer.score == pytest.approx(score, nan_ok=True)
    for fault in saved.get("errors", ()):
        assert read(policy(form), fault["body"]).reason == "the answer is cut off; raise max_tokens"
    for other in saved.get("other_bodies", {}).values():
        assert read(policy(form), reply(other)).outcome is F


def test_qwen_has_a_middle_and_the_plan_says_what_it_means() -> None:
    middle = reply("Safety: Controversial\nCategories: Unethical Acts")
    assert read(policy("qwen3guard"), middle).outcome is F
    loose = policy("qwen3guard", controversial="allowed")
    assert read(loose, middle).outcome is A and not read(loose, middle).categories
    assert policy("qwen3guard").identity == loose.identity, "a setting of reading queries nothing"


def test_categories_that_count() -> None:
    chosen = policy("nemotron", categories=["Harassment"])
    assert read(chosen, reply("User Safety: unsafe\nSafety Categories: Violence")).outcome is A
    assert read(chosen, reply("User Safety: unsafe\nSafety Categories: Harassment")).outcome is F
    unnamed = read(chosen, reply("User Safety: unsafe"))
    assert unnamed.outcome is U and "names no category" in unnamed.reason


def logprobs(*tokens: Any) -> dict[str, Any]:
    """Each token as its word, or as pairs of word and probability, the chosen one first."""
    made = []
    for one in tokens:
        pairs = [(one, 0.99)] if isinstance(one, str) else one
        listed = [{"token": w, "logprob": math.log(p) if p else -9999.0} for w, p in pairs]
        made.append({**listed[0], "top_logprobs": listed})
    return {"content": made}


def scored(form: str, content: str, given: Any, **options: Any) -> Answer:
    body = reply(content)
    body["choices"][0]["logprobs"] = given
    return read(policy(form, **options), body)


def test_a_score_by_hand_spellings_added_and_what_is_neither_kept_apart() -> None:
    # yes: 0.5 + 0.1; no: 0.2; "maybe": 0.2. The score is 0.6 / 0.8.
    pairs = [("Yes", 0.5), (" yes", 0.1), ("NO", 0.2), ("maybe", 0.2)]
    answer = scored("shieldgemma", "Yes", logprobs(pairs))
    assert answer.score == pytest.approx(0.75)
    assert answer.categories == pytest.approx({FLAG_MASS: 0.6, ALLOW_MASS: 0.2})


def test_the_verdict_token_is_found_after_keys_reasoning_and_marks() -> None:
    half = [(" Un", 0.75), (" Safe", 0.25)]  # "Unsafe" is cut in two
    given = logprobs("Safety", ":", half, "safe", "\n", "Categories: Violent")
    content = "Safety: Unsafe\nCategories: Violent"
    assert scored("qwen3guard", content, given).score == pytest.approx(0.75)
    said = [(" yes", 0.9), (" no", 0.1)]
    tag = logprobs("<think>yes", "</think>", "\n<score>", said, " </score>")
    whole = "<think>yes</think>\n<score> yes </score>"
    for content in (whole, "<score> yes </score>"):  # the server may take reasoning out
        assert scored("granite-guardian", content, tag).score == pytest.approx(0.9)
    value = logprobs('{"', "violation", '":', [(" 1", 0.6), (" 0", 0.4)], "}")
    assert scored("gpt-oss-safeguard", '{"violation": 1}', value).score == pytest.approx(0.6)
    marks = "<|channel|>analysis<|message|>0", "<|channel|>final<|message|>"
    final = logprobs(*marks, [("1", 0.6), ("0", 0.4)])
    assert scored("gpt-oss-safeguard", "1", final).score == pytest.approx(0.6)


def test_a_side_that_is_not_listed_gets_a_bound() -> None:
    top = [("unsafe", 0.9), ("S", 0.04), ("x", 0.02), ("safe", 0)]
    # -9999 means beyond the alternatives listed: the smallest that is listed is 0.02.
    bounded = scored("llama-guard", "unsafe\nS1", logprobs(top, "\nS1"))
    assert bounded.score == pytest.approx(0.9 / 0.92)
    alone = logprobs([("unsafe", 0.9)], "\nS1")
    assert scored("llama-guard", "unsafe\nS1", alone).score == pytest.approx(0.9)
    much = [{"token": "unsafe", "logprob": "much"}]
    contents: list[Any] = [None, [], [{"token": "x"}], much]
    nothing: list[Any] = [None, {}, *({"content": one} for one in contents)]
    for broken in nothing:
        answer = scored("llama-guard", "unsafe\nS1", broken)
        assert answer.outcome is F and math.isnan(answer.score) and set(answer.categories) == {"S1"}


WORDS = ["Yes", " yes", "YES", "No", "no ", "perhaps"]


@given(st.lists(st.sampled_from(WORDS), min_size=2, unique=True), st.data())
def test_the_score_is_a_second_way_a_softmax_over_the_words_listed(
    words: list[str], data: Any
) -> None:
    weights = [data.draw(st.floats(0.01, 1.0)) for _ in words]
    pairs = [(w, math.log(x / sum(weights))) for w, x in zip(words, weights, strict=True)]
    chosen = {"token": words[0], "logprob": pairs[0][1]}
    token = {**chosen, "top_logprobs": [{"token": w, "logprob": p} for w, p in pairs]}
    yes, no = verdict_masses([token], 0, ["yes"], ["no"])
    is_yes = np.array([w.strip().lower() == "yes" for w in words])
    is_no = np.array([w.strip().lower() == "no" for w in words])
    share = np.array(weights) / sum(weights)
    if not is_yes.any() and not is_no.any():
        assert math.isnan(yes)
        return
    bound = share.min()
    expected = share[is_yes].sum() or bound, share[is_no].sum() or bound
    assert (yes, no) == pytest.approx(expected)
    assert 0 < yes / (yes + no) < 1


@given(st.text(max_size=60), st.sampled_from(sorted(FORMS)), st.sampled_from(["stop", "length"]))
def test_any_other_words_are_never_allowed(words: str, form: str, finish: str) -> None:
    known = ("safe", "no", "0", "false", "allow", "unharmful")
    answer = read(policy(form), reply(words, finish))
    assert answer.outcome is not A or any(one in words.lower() for one in known)
    assert answer.outcome <= F or answer.reason


def texts_of(*rows: str) -> Texts:
    n = len(rows)
    return Texts(np.arange(n), np.array(rows, dtype=object), np.full(n, -1, dtype=np.int8))


def test_what_is_sent_and_repeated(stub: Any, tmp_path: Path) -> None:
    system = policy(
        "gpt-oss-safeguard",
        policy="Threats of {text} are 1.",
        base_url=f"{stub.url}/v1",
        cache=tmp_path / "a.sqlite",
        extra={"chat_template_kwargs": {"note": ["{policy}", 3]}},
        system="Reasoning: low\n{policy}",
        after="Judge the text above.",
        run=RunSettings(repeats=3),
    )
    stub.faults["zz {policy}"].extend(["say:1", "say:0", "say:perhaps"])
    decisions = system.moderate(texts_of("zz {policy}"))
    assert sorted(decisions.outcomes.tolist()) == [A, F, U] and decisions.repeats is not None
    question = stub.requests[0][2]
    assert question == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Reasoning: low\nThreats of {text} are 1."},
            {"role": "user", "content": "zz {policy}"},
            {"role": "user", "content": "Judge the text above."},
        ],
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 20,
        "chat_template_kwargs": {"note": ["Threats of {text} are 1.", 3]},
    }
    system.moderate(texts_of("zz {policy}"))
    assert stub.asked["zz {policy}"] == 3, "unparseable is an answer: it is not paid again"
    assert system.identity != policy("gpt-oss-safeguard", base_url=system.base_url).identity
    assert system.prompt_characters > len("Threats of {text} are 1.")


def test_the_policy_goes_where_the_form_wants_it(tmp_path: Path) -> None:
    shield = policy("shieldgemma", policy="No Hate").question("a")
    assert shield["chat_template_kwargs"] == {"guideline": "No Hate"}
    file = tmp_path / "policy.md"
    file.write_text("No threats.\n")
    own = policy("words", policy_file=file).question("a")
    assert own["messages"][0] == {"role": "system", "content": "No threats."}
    keyed = policy("words", verdict_key="label")
    assert read(keyed, reply('{"label": "Block"}')).outcome is F
    assert read(keyed, reply('```json\n{"label": "ALLOW", "why": "fine"}\n```')).outcome is A


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"form": "llama-gard"}, "did you mean 'llama-guard'"),
        ({"form": "llama-guard", "model": ""}, "set model"),
        ({"form": "qwen3guard", "policy": "p"}, "the policy would not be sent"),
        ({"form": "llama-guard", "prompt": "{policy} {text}"}, "set policy or policy_file"),
        ({"form": "gpt-oss-safeguard"}, "needs policy"),
        ({"form": "wildguard"}, "allenai/wildguard"),
        ({"form": "polyguard"}, "needs system"),
        ({"form": "words", "flagged_words": ["a"]}, "needs allowed_words"),
        ({"form": "words", "flagged_words": ["a"], "allowed_words": ["A"]}, "mean both"),
        ({"form": "llama-guard", "verdict_key": "x"}, "has no verdict_key"),
        ({"form": "llama-guard", "logprobs": 50}, "from 0 to 20"),
        ({"form": "llama-guard", "policy_file": "nowhere.md"}, "cannot be read"),
        ({"form": "llama-guard", "controversial": "maybe"}, "controversial"),
    ],
)
def test_plans_say_what_is_wrong(options: dict[str, Any], words: str) -> None:
    with pytest.raises((PlanError, OmbudError), match=words):
        registry.create("moderator", "policy", {"model": "m", **options})


def test_llama_guard_is_an_alias_that_finds_its_old_replies() -> None:
    old = LlamaGuard()
    assert isinstance(old, PolicyModerator) and old.cache_name == "llama-guard"
    assert old.configuration == "meta-llama/Llama-Guard-3-8B#616fc36b"
    assert old.question("a") == {
        "model": "meta-llama/Llama-Guard-3-8B",
        "max_tokens": 50,
        "messages": [{"role": "user", "content": "a"}],
        "temperature": 0.0,
    }


def test_stored_replies_are_read_after_a_service_has_ended(stub_with: Any, tmp_path: Path) -> None:
    cache = tmp_path / "a.sqlite"
    service = stub_with()
    system = Perspective(base_url=service.url, cache=cache, threshold=0.5, key_env="")
    first = system.moderate(texts_of("zz", "peace"))
    service.__exit__()  # the end of the service
    later = Perspective(base_url=service.url, cache=cache, threshold=0.9, key_env="")
    again = later.moderate(texts_of("zz", "peace"))
    assert np.array_equal(first.scores, again.scores)
    assert again.outcomes.tolist() == [F, A]
    service.__enter__()  # the fixture ends it once more


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_with_a_threshold_the_score_decides(likely: float, threshold: float) -> None:
    """By hand: a model that is 30% sure says no, and is flagged at 0.3 and not at 0.31."""
    for p, at in ((likely, threshold), (0.3, 0.29), (0.3, 0.31), (0.3, 0.7)):
        word = "yes" if p >= 0.5 else "no"
        body = reply(word)
        token = {"token": word, "logprob": math.log(max(p, 1 - p))}
        pairs = [{"token": w, "logprob": math.log(q)} for w, q in (("yes", p), ("no", 1 - p))]
        body["choices"][0]["logprobs"] = {"content": [{**token, "top_logprobs": pairs}]}
        answer = read(policy("shieldgemma", policy="p", threshold=at), body)
        assert answer.outcome is (F if answer.score >= at else A)
        assert answer.score == pytest.approx(p)
        plain = read(policy("shieldgemma", policy="p"), body)
        assert plain.outcome is (F if word == "yes" else A), "without one, the verdict decides"
        assert plain.score == answer.score


def test_a_threshold_without_a_score_is_no_decision() -> None:
    answer = read(policy("llama-guard", threshold=0.5), reply("unsafe\nS1"))
    assert answer.outcome is U and "no log probabilities" in answer.reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": 0.5, "logprobs": 0}, "threshold needs scores"),
        ({"threshold": 0.0}, "above 0 and at most 1"),
        ({"threshold": 1.5}, "above 0 and at most 1"),
        ({"threshold": 0.5, "categories": ["S1"]}, "set threshold or categories"),
    ],
)
def test_a_threshold_that_cannot_decide_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(PlanError, match=words):
        policy("llama-guard", **options)
