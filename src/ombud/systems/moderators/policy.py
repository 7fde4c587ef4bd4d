"""A model that judges texts by a policy, behind any server that speaks the OpenAI chat protocol."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from ombud.data.decisions import Outcome
from ombud.errors import PlanError
from ombud.registry import hint, moderator
from ombud.systems.moderators.answers import Answer, is_refusal, unparseable
from ombud.systems.moderators.forms import (
    FORMS,
    Form,
    UnreadableError,
    Verdict,
    keyed_words,
    verdict_masses,
    without_reasoning,
)
from ombud.systems.moderators.service import ChatService, digest, share

FLAG_MASS, ALLOW_MASS = "probability of flag words", "probability of allow words"
"""The score categories that hold both parts of a score from log probabilities."""
_CUT = ("length", "max_tokens")


@moderator("policy")
@dataclass(kw_only=True)
class PolicyModerator(ChatService):
    """A policy model on vLLM, Ollama, llama.cpp or any OpenAI-compatible chat server.

    The plan gives the policy and the form of the answer. Reasoning is skipped. An answer that is
    cut off, empty, in other words, or that states a verdict twice is *unparseable*, with the
    reason; one in which the server or the model declines is *refused*. None of them is *allowed*.

    The forms: ``llama-guard`` (Llama Guard 3 and 4), ``shieldgemma``, ``gpt-oss-safeguard``,
    ``granite-guardian`` (3.0 to 4.1), ``qwen3guard`` (Gen), ``wildguard``, ``nemotron`` (Safety
    Guard, Content Safety, Reasoning), ``polyguard``; and ``words``, for any model that your
    policy instructs to answer with two words of yours, or with a JSON object.

    With `logprobs`, the score is the probability of the words that flag, divided by that of all
    verdict words, where the verdict stands; both are kept as score categories, so that what was
    neither can be seen. After reasoning it is the score of a decision that is already argued:
    near 0 or 1. A server that sends no log probabilities gives no scores.

    Parameters
    ----------
    form
        How the model answers.
    model
        The model, as the server names it; it has no default.
    policy
        The policy; it stands where ``{policy}`` stands in `prompt`, `system`, `after` and `extra`.
        By default that is the system message for gpt-oss-safeguard and ``words``, and the
        ``guideline`` of the chat template for ShieldGemma.
    policy_file
        A file with the policy instead.
    prompt
        The user message; ``{text}`` stands for the text. WildGuard has no chat template: its whole
        prompt goes here.
    system
        The system message, such as PolyGuard's.
    after
        A second user message, as Granite Guardian 4.1 takes its criteria.
    extra
        More fields of the request, such as ``{chat_template_kwargs = {guardian_config = {risk_name
        = "harm"}}}``.
    categories
        Which of the categories that an answer names count, such as ``["S1", "S10"]``; None for
        all.
    controversial
        What the middle level of Qwen3Guard counts as.
    flagged_words, allowed_words
        With the form ``words``, or instead of a form's own.
    verdict_key
        With ``words`` and gpt-oss-safeguard, the key of the verdict in a JSON object.
    logprobs
        How many alternatives of each token are requested, for scores; 0 for none.
    max_tokens
        The longest answer, in tokens; 0 sends no limit, as models that reason need.
    threshold
        Flag when the score reaches it, whatever the verdict; an answer without a score is then
        *unparseable*. None for the verdict.
    """

    base_url: str = "http://127.0.0.1:8000/v1"
    model: str = ""
    form: str = ""
    policy: str = ""
    policy_file: Path | None = None
    system: str = ""
    after: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    categories: list[str] | None = None
    controversial: Literal["flagged", "allowed"] = "flagged"
    flagged_words: list[str] = field(default_factory=list)
    allowed_words: list[str] = field(default_factory=list)
    verdict_key: str = ""
    logprobs: int = 20
    max_tokens: int = 0
    threshold: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise PlanError(f"{self.name}: set model, as the server names it")
        if self.form not in FORMS:
            raise PlanError(
                f"{self.name}: no form is called {self.form!r}; {hint(self.form, FORMS)}"
            )
        if not 0 <= self.logprobs <= 20:
            raise PlanError(f"{self.name}: logprobs is {self.logprobs}; it must be from 0 to 20")
        if self.threshold is not None:
            share(self.threshold, "threshold", self.name)
            if not self.logprobs:
                raise PlanError(f"{self.name}: threshold needs scores; set logprobs, such as 20")
            if self.categories is not None:
                fault = "the score is of all categories together; set threshold or categories"
                raise PlanError(f"{self.name}: {fault}")
        # No fields: a saved result holds what the plan sets.
        self._policy = self._read_policy()
        self._place_policy()
        self._words = self._read_words()

    def _read_policy(self) -> str:
        if self.policy_file is None:
            return self.policy
        if self.policy:
            raise PlanError(f"{self.name}: set policy or policy_file, not both")
        try:
            return Path(self.policy_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as fault:
            raise PlanError(f"{self.name}: policy_file cannot be read: {fault}") from None

    def _place_policy(self) -> None:
        """Put the policy where the form wants it, and refuse a plan in which it has no place."""
        form, name = FORMS[self.form], self.name
        self._system, self._extra = self.system, self.extra
        given = "{policy}" in f"{self.prompt}{self.system}{self.after}{self.extra}"
        if self._policy and not given:
            if form.policy == "system" and not self.system:
                self._system = "{policy}"
            elif form.policy == "guideline" and not self.extra:
                self._extra = {"chat_template_kwargs": {"guideline": "{policy}"}}
            else:
                fault = "put {policy} into prompt, system, after or extra"
                raise PlanError(f"{name}: the policy would not be sent; {fault}")
        if given and not self._policy:
            raise PlanError(f"{name}: {{policy}} stands for a policy; set policy or policy_file")
        for one, where in form.needs.items():
            lacks = self.prompt == "{text}" if one == "prompt" else not getattr(self, one)
            if lacks and not (one == "policy" and self._policy):
                published = f", as published in {where}" if where else ""
                raise PlanError(f"{name}: the form {self.form!r} needs {one}{published}")

    def _read_words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        form = FORMS[self.form]
        if self.verdict_key and not form.policy == "system":
            raise PlanError(f"{self.name}: the form {self.form!r} has no verdict_key")
        yes = tuple(word.strip().lower() for word in self.flagged_words) or form.flagged
        no = tuple(word.strip().lower() for word in self.allowed_words) or form.allowed
        if set(yes) & set(no):
            both = ", ".join(sorted(set(yes) & set(no)))
            raise PlanError(f"{self.name}: {both} cannot mean both flagged and allowed")
        more = form.between
        return (yes + more, no) if self.controversial == "flagged" else (yes, no + more)

    @property
    def url(self) -> str:
        """Where questions are posted."""
        return f"{self.base_url}/chat/completions"

    @property
    def configuration(self) -> str:
        """Model, and everything that is sent with a text."""
        more = (self._policy, self._system, self.after, self.logprobs, self._extra)
        extras = (more,) if any(more) else ()
        parts = (self.prompt, self.max_tokens, self.temperature, *extras)
        return f"{self.model}#{digest(*parts)}"

    @property
    def prompt_characters(self) -> int:
        """What prompt, policy and system message add to each text."""
        extra = str(self._extra) if self._extra else ""
        sent = (self.prompt, self._system, self.after, extra)
        return sum(len(part.replace("{policy}", self._policy)) for part in sent if part)

    def question(self, text: str) -> Any:
        """Return the JSON of a question about one text."""
        content = self._filled(self.prompt).replace("{text}", text)
        messages = [{"role": "user", "content": content}]
        if self._system:
            messages.insert(0, {"role": "system", "content": self._filled(self._system)})
        if self.after:
            messages.append({"role": "user", "content": self._filled(self.after)})
        question: dict[str, Any] = {"model": self.model, "messages": messages}
        if self.max_tokens:
            question["max_tokens"] = self.max_tokens
        if self.temperature is not None:
            question["temperature"] = self.temperature
        if self.logprobs:
            question |= {"logprobs": True, "top_logprobs": self.logprobs}
        return question | self._filled(self._extra)

    def _filled(self, part: Any) -> Any:
        """Return a part of the request with the policy in its place."""
        if isinstance(part, str):
            return part.replace("{policy}", self._policy)
        if isinstance(part, Mapping):
            return {key: self._filled(value) for key, value in part.items()}
        return [self._filled(value) for value in part] if isinstance(part, list) else part

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means."""
        model = str(reply.get("model") or "")
        choices = reply["choices"]
        if len(choices) != 1:
            return unparseable(f"the reply has {len(choices)} answers", model)
        choice = choices[0]
        message = choice["message"]
        finish = str(choice.get("finish_reason") or "")
        if finish == "content_filter" or message.get("refusal"):
            return Answer(Outcome.REFUSED, version=model, reason="the server refused")
        content = message.get("content") or ""
        if not isinstance(content, str):
            content = "".join(part.get("text") or "" for part in content)
        cut = (
            "the answer is cut off; raise max_tokens" if finish in {"length", "max_tokens"} else ""
        )
        try:
            text = without_reasoning(content)
            if not text.strip():
                raise UnreadableError("the answer is empty")
            verdict = self._form.find(text, (*self._words[0], *self._words[1]))
        except UnreadableError as fault:
            if not cut and is_refusal(content):
                declined = "the model declined to answer"
                return Answer(Outcome.REFUSED, version=model, reason=declined)
            return unparseable(cut or str(fault), model)
        if cut and not verdict.complete:
            return unparseable(cut, model)
        return self._answer(verdict, content, choice.get("logprobs"), model)

    @property
    def _form(self) -> Form:
        form = FORMS[self.form]
        if not self.verdict_key:
            return form
        return Form(keyed_words(self.verdict_key), form.flagged, form.allowed, form.needs)

    def _answer(self, verdict: Verdict, content: str, logprobs: Any, model: str) -> Answer:
        flagged = verdict.word in self._words[0]
        named: dict[str, float] = dict.fromkeys(verdict.categories, 1.0) if flagged else {}
        if flagged and self.categories is not None:
            if not named:
                reason = f"{verdict.word!r} names no category, and 'categories' says which count"
                return unparseable(reason, model)
            flagged = bool(named.keys() & set(self.categories))
        yes, no = self._masses(verdict, content, logprobs)
        score = yes / (yes + no) if yes + no > 0 else math.nan
        if not math.isnan(score):
            named |= {FLAG_MASS: yes, ALLOW_MASS: no}
        if self.threshold is not None:
            if math.isnan(score):
                reason = (
                    "the reply has no log probabilities of the verdict, and threshold needs them"
                )
                return unparseable(reason, model)
            flagged = score >= self.threshold
        return Answer(Outcome(flagged), score, named, model)

    def _masses(self, verdict: Verdict, content: str, logprobs: Any) -> tuple[float, float]:
        """Return what the log probabilities give either side; NaN where they cannot be read."""
        try:
            tokens = logprobs["content"]
            joined = "".join(str(one["token"]) for one in tokens)
            start = joined.rfind(content)
            at = start + verdict.at
            if start < 0:  # the server took reasoning or marks out of the answer
                words = (*self._words[0], *self._words[1])
                at = self._form.find(without_reasoning(joined), words).at
            return verdict_masses(tokens, at, *self._words)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return math.nan, math.nan


def published_prompt() -> str:
    """Return the prompt of the speech-suppression paper, with ``{text}`` for the text.

    Examples
    --------
    >>> published_prompt().splitlines()[-1]
    '- If unsafe, a second line must include a comma-separated list of violated categories.'
    """
    file = files("ombud.systems.moderators") / "files" / "llama-guard-published.txt"
    return file.read_text(encoding="utf-8").strip()


@moderator("llama-guard")
@dataclass(kw_only=True)
class LlamaGuard(PolicyModerator):
    """Llama Guard: the moderator ``policy`` with the form ``llama-guard``.

    Parameters
    ----------
    prompt
        What is sent; ``{text}`` stands for the text. The server's chat template puts Llama Guard's
        own categories around it. ``published`` is the prompt of the speech-suppression paper, with
        the six categories O1 to O6 of the first Llama Guard (send it to a server that adds none of
        its own).
    """

    model: str = "meta-llama/Llama-Guard-3-8B"
    form: str = "llama-guard"
    logprobs: int = 0
    max_tokens: int = 50

    def __post_init__(self) -> None:
        if self.prompt == "published":
            self.prompt = published_prompt()
        super().__post_init__()

    def as_published(self) -> Mapping[str, Any]:
        """Return Llama Guard 2 with the prompt of the speech-suppression paper."""
        return {"model": "meta-llama/Meta-Llama-Guard-2-8B", "prompt": published_prompt()}
