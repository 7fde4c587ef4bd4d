"""A Hugging Face text classifier as a moderator."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import PlanError, require
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator, cut_texts, scored
from ombud.systems.saved_outputs import combined, decide_by_labels


@moderator("huggingface")
@dataclass(kw_only=True)
class HuggingFaceModerator(LocalModerator):
    """A text-classification pipeline of the package ``transformers``.

    Weights are read from safetensors only and no code of the model's repository is run: a plan
    may name any model. Texts are cut at the model's longest input, and counted.

    Parameters
    ----------
    model
        A folder, or a name on the hub.
    revision
        Commit of a model on the hub, in hexadecimal digits; needed, because a branch moves, and so
        would the audit. A model in a folder has none.
    flagged
        Labels that mean flagged.
    combine
        How the scores of several such labels make one: ``sum`` for a model whose scores add up to
        1 over all labels, ``max`` for a multi-label model; ``auto`` looks at the scores.
    threshold
        Flag when the score reaches it. By default a model that chooses one label flags a text
        when that label is flagged; a multi-label model states scores and no decision.
    batch
        Texts in one pass.
    name
        The system's name in the report; default, the model's name.
    """

    model: str = ""
    revision: str = ""
    flagged: list[str]
    former_threshold: ClassVar[float | None] = 0.5

    combine: Literal["auto", "sum", "max"] = "auto"
    threshold: float | None = None
    batch: int = 32
    name: str = ""

    def __post_init__(self) -> None:
        self.name = self.name or self.model.rstrip("/").rpartition("/")[2] or "huggingface"
        self._pipeline: Callable[..., Any] | None = None

    @classmethod
    def from_pipeline(
        cls,
        pipeline: Callable[..., Any],
        *,
        flagged: list[str],
        threshold: float | None = None,
        name: str = "huggingface",
    ) -> HuggingFaceModerator:
        """Wrap a text-classification pipeline that is already in memory."""
        system = cls(flagged=flagged, threshold=threshold, name=name)
        system._pipeline = pipeline
        return system

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        if self._pipeline is None:
            self._pipeline = self._load()
        given = (
            self._pipeline(texts, top_k=None, truncation=True, batch_size=self.batch)
            if texts
            else []
        )
        tables = [{entry["label"]: float(entry["score"]) for entry in row} for row in given]
        labels = tuple(sorted({label for table in tables for label in table}))
        if tables and (unknown := sorted(set(self.flagged) - set(labels))):
            raise PlanError(
                f"{self.name} has no label {', '.join(unknown)}; its labels are {', '.join(labels)}"
            )
        columns = {
            label: np.array([t.get(label, np.nan) for t in tables], dtype=np.float32)
            for label in labels
        }
        scores = np.zeros(len(texts), dtype=np.float32)
        if tables:
            matrix = np.column_stack([columns[label] for label in labels])
            chosen = [labels.index(label) for label in self.flagged]
            scores = combined(matrix, chosen, self.combine)
        made = scored(ids, scores, self.threshold, columns, self._version)
        if self.threshold is None and tables:
            made = replace(made, outcomes=decide_by_labels(matrix, chosen))
        tokenizer = getattr(self._pipeline, "tokenizer", None)
        most = int(getattr(tokenizer, "model_max_length", 0) or 0)
        return replace(made, exclusions=cut_texts(self.name, tokenizer, texts, most))

    @property
    def _version(self) -> str:
        """The model and its commit, as far as they are known: a branch is none."""
        config = getattr(getattr(self._pipeline, "model", None), "config", None)
        commit = getattr(config, "_commit_hash", None) or (self.revision if self.model else "")
        model = self.model or getattr(config, "_name_or_path", "") or self.name
        return f"{model}@{commit}" if commit else str(model)

    def _load(self) -> Callable[..., Any]:
        if not self.model:
            raise PlanError(f"{self.name}: name a model, or use from_pipeline")
        in_folder = Path(self.model).is_dir()
        if not in_folder and not re.fullmatch(r"[0-9a-f]{7,40}", self.revision):
            raise PlanError(
                f"{self.name}: revision is {self.revision!r}; name a commit of {self.model} (its "
                "page on the hub lists them under 'Files'), because a branch moves"
            )
        require("transformers", "huggingface")
        from transformers import pipeline

        loaded: Callable[..., Any] = pipeline(
            "text-classification",
            model=self.model,
            revision=self.revision or None,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
        return loaded
