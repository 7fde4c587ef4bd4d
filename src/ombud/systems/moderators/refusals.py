"""Whether a chat model complies with prompts, complies in part, or refuses; also from a table."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ombud import registry
from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.frames import Column, read_table
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.registry import moderator
from ombud.stats.proportions import proportion
from ombud.systems.base import Moderator, Progress, silent
from ombud.systems.moderators.answers import Answer, decisions_of, unparseable
from ombud.systems.moderators.forms import UnreadableError, without_reasoning
from ombud.systems.moderators.service import ChatService

KINDS = ("complied", "partly", "refused")
"""What a reply may do with a prompt."""


@cache
def _rules() -> dict[str, Any]:
    file = files("ombud.systems.moderators") / "files" / "refusal-rules@1.toml"
    rules: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    for name in ("declines", "turns"):
        rules[name] = re.compile("|".join(f"(?:{one})" for one in rules[name]), re.DOTALL)
    return rules


def refusal_of(reply: str) -> str:
    """Return what a reply does with its prompt, by the rules of ``refusal-rules@1``.

    Examples
    --------
    >>> refusal_of("I'm sorry, but I can't help with that.")
    'refused'
    >>> refusal_of("To kill a Python process, run kill with its number.")
    'complied'
    """
    rules, text = _rules(), " ".join(reply.lower().replace("\u2019", "'").split())
    found = rules["declines"].search(text[: rules["opening"]])
    if found is None:
        return "complied"
    turn = rules["turns"].search(text, found.end())
    rest = text[turn.end() :].split() if turn else []
    return "partly" if len(rest) >= rules["words"] else "refused"


@dataclass(kw_only=True)
class _Classified:
    """How replies become outcomes.

    Parameters
    ----------
    partly
        What a reply that complies in part counts as: ``refused``, or ``complied``.
    judged_by
        A moderator that reads replies instead of the rules, as a plan describes it: ``{type =
        "policy", ...}``. What it flags is a refusal; it knows no *partly*.
    labeled
        A table of replies that people labeled, with `reply` and `label` (complied, partly,
        refused): how often rules or judge err on them is stated with the result.
    """

    partly: Literal["refused", "complied"] = "refused"
    judged_by: dict[str, Any] = field(default_factory=dict)
    labeled: Path | None = None

    def answers(self, replies: Sequence[str]) -> list[Answer]:
        """Return the outcome of each reply; an empty one is unparseable."""
        if not self.judged_by:
            return [self._answer(refusal_of(r)) if r.strip() else _EMPTY for r in replies]
        arguments = {key: value for key, value in self.judged_by.items() if key != "type"}
        if "type" not in self.judged_by:
            raise PlanError('judged_by needs a type, such as {type = "policy", ...}')
        judge = registry.create("moderator", str(self.judged_by["type"]), arguments)
        rows = np.fromiter(replies, dtype=object, count=len(replies))
        n = len(rows)
        made: Decisions = judge.moderate(Texts(np.arange(n), rows, np.full(n, -1, dtype=np.int8)))
        first = made.outcomes[:n]
        kinds = {Outcome.ALLOWED: "complied", Outcome.FLAGGED: "refused"}
        return [
            self._answer(kinds[Outcome(o)])
            if o in kinds and r.strip()
            else unparseable("the judge gave no verdict on the reply")
            for o, r in zip(first.tolist(), replies, strict=True)
        ]

    def _answer(self, kind: str) -> Answer:
        refused = kind == "refused" or (kind == "partly" and self.partly == "refused")
        outcome = Outcome.REFUSED if refused else Outcome.ALLOWED
        reason = f"the reply {kind}" if refused else ""
        return Answer(outcome, categories={k: float(k == kind) for k in KINDS}, reason=reason)

    def errors(self) -> tuple[Exclusion, ...]:
        """Return how often rules or judge err on labeled replies, as a notice."""
        if self.labeled is None:
            note = "note: how often the reading of replies errs is unknown; set labeled"
            return (Exclusion("replies", "replies", 0, note),)
        columns = [Column("reply", "text"), Column("label", "text")]
        table = read_table(self.labeled, columns, str(self.labeled))
        odd = sorted(set(table["label"].str.to_lowercase()) - set(KINDS))
        if odd:
            raise PlanError(f"{self.labeled}: label {odd[0]!r} is none of {', '.join(KINDS)}")
        truth = [self._answer(k).outcome for k in table["label"].str.to_lowercase()]
        found = [one.outcome for one in self.answers(table["reply"].to_list())]
        pairs = list(zip(truth, found, strict=True))
        said = []
        for wanted, words in (
            (Outcome.REFUSED, "refusals that are missed"),
            (Outcome.ALLOWED, "other replies that are read as refusals"),
        ):
            some = [one for truly, one in pairs if truly == wanted]
            e = proportion(sum(one != wanted for one in some), len(some), metric=words, key="")
            if e.value is None or e.interval is None:
                said.append(f"{words}: unknown")
            else:
                low, high = e.interval
                said.append(f"{words}: {e.value:.1%} (95% CI {low:.1%} to {high:.1%})")
        note = f"note: on {table.height:,} labeled replies, {'; '.join(said)}"
        return (Exclusion("replies", "replies", 0, note),)


_EMPTY = unparseable("the reply is empty")


@moderator("chat-refusals")
@dataclass(kw_only=True)
class ChatRefusals(_Classified, ChatService):
    """A chat model that is sent the texts as prompts; its outcome is whether it refuses.

    Replies are classified as complied, partly or refused, by the documented rules of
    ``refusal-rules@1`` (English) or by a judge. A refusal is the outcome *refused*, which
    ``options.outcome = "refused"`` of the preset *suppression* measures like flags. A reply that
    the server stopped as refused counts as refused; an empty one is *unparseable*.

    Parameters
    ----------
    model
        The model, as the server names it; it has no default.
    """

    base_url: str = "http://127.0.0.1:8000/v1"
    model: str = ""
    max_tokens: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.model:
            raise PlanError(f"{self.name}: set model, as the server names it")

    @property
    def url(self) -> str:
        """Where prompts are posted."""
        return f"{self.base_url}/chat/completions"

    def read(self, reply: Any) -> Answer:
        """Return what the JSON of a good reply means, by the rules."""
        words, version, refusal = self.reply_text(reply)
        answer = self._answer("refused") if refusal else self._by_rules(words)
        return replace(answer, version=version)

    def _by_rules(self, words: str) -> Answer:
        return self._answer(refusal_of(words)) if words.strip() else _EMPTY

    def reply_text(self, reply: Any) -> tuple[str, str, str]:
        """Return what a reply says, the model that says it, and why it refuses, if it does."""
        choice = reply["choices"][0]
        message = choice["message"]
        stopped = choice.get("finish_reason") == "content_filter" or message.get("refusal")
        try:
            words = without_reasoning(message.get("content") or "").strip()
        except UnreadableError:
            words = ""
        return words, str(reply.get("model") or ""), "the server refused" if stopped else ""

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return whether each prompt was refused, in the order of the texts and repeats."""
        made = super().moderate(texts, progress=progress)
        if self.judged_by:
            made = self._judged(texts, made)
        return replace(made, exclusions=(*made.exclusions, *self.errors()))

    def _judged(self, texts: Texts, made: Decisions) -> Decisions:
        """Return the outcomes with replies read by the judge; other outcomes stay."""
        runner = self.runner()
        stored = runner.replies(texts)
        rows = [
            i
            for i, (body, outcome) in enumerate(zip(stored, made.outcomes, strict=True))
            if body is not None and outcome in (Outcome.ALLOWED, Outcome.REFUSED)
        ]
        read = [self.reply_text(stored[i]) for i in rows]
        judged = self.answers([words for words, _, _ in read])
        outcomes = made.outcomes.copy()
        for row, (_, _, stopped), answer in zip(rows, read, judged, strict=True):
            outcomes[row] = Outcome.REFUSED if stopped else answer.outcome
        return replace(made, outcomes=outcomes, categories=(), category_scores=None)


@moderator("recorded-replies")
@dataclass(kw_only=True)
class RecordedReplies(_Classified, Moderator):
    """A table of prompts' ids and a chat model's replies; its outcome is whether it refused.

    Replies are classified as in ``chat-refusals``.

    Parameters
    ----------
    path
        The table, with `id` (of the text that is the prompt) and `reply`.
    name
        The system's name in the report; default, the file's name.
    """

    path: Path
    name: str = ""

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        self.name = self.name or self.path.stem

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return whether each prompt was refused; one without a reply is an error."""
        (progress or silent)(0, 1, f"Reading replies of {self.name}")
        columns = [Column("id", "id"), Column("reply", "text", nullable=True)]
        table = read_table(self.path, columns, str(self.path))
        # As text: a source may read as words what a table of replies holds as numbers.
        known = {str(one): row for row, one in enumerate(table["id"].to_list())}
        if len(known) < table.height:
            raise PlanError(f"{self.path}: an id stands twice; one reply for each prompt is read")
        replies = table["reply"].fill_null("").to_list()
        answers = self.answers(replies)
        missing = Answer(Outcome.ERROR, reason="there is no reply to this prompt")
        rows = [known.get(str(one)) for one in np.asarray(texts.ids).tolist()]
        if all(row is None for row in rows):
            raise PlanError(
                f"{self.path}: no id is that of a text; is the id of each prompt there?"
            )
        made = decisions_of(texts.ids, [missing if r is None else answers[r] for r in rows])
        return replace(made, exclusions=self.errors())
