"""A transformer fine-tuned as a detector; training goes on where it was stopped."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ombud.errors import DataError, PlanError, require
from ombud.files import read_json, write_json
from ombud.rng import generator
from ombud.systems.base import Progress
from ombud.systems.detectors.base import Detector, Scores, windowed
from ombud.systems.detectors.heads import Head
from ombud.systems.moderators.answers import without_surrogates
from ombud.text.dedup import content_keys

_PART = "checkpoint"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a transformer is fine-tuned; the defaults are the paper's (for RoBERTa-base)."""

    updates: int = 2_000  # Steps of the optimiser
    batch: int = 256  # texts of one step
    # Texts in memory at a time; gradients of a batch are added up, so this changes memory and not
    # the result (but for rounding).
    at_once: int = 16
    # Of AdamW.
    learning_rate: float = 5e-5
    weight_decay: float = 0.01
    length: int = 512  # Tokens after which a training text is cut, and the window of scoring
    save_every: int = 100  # Steps between two checkpoints
    seed: int = 0  # of the order of texts and of dropout

    def __post_init__(self) -> None:
        for name in ("updates", "batch", "at_once", "length", "save_every"):
            if getattr(self, name) < 1:
                raise PlanError(f"{name} is {getattr(self, name)}; it must be 1 or more")


@dataclass(kw_only=True)
class TransformerDetector(Detector):
    """A sequence classifier of the package ``transformers``.

    Weights are read from safetensors only and no code of a checkpoint is run. Texts longer than
    the window are read in windows that overlap by half; see `Detector.long_texts`.

    Parameters
    ----------
    base
        The checkpoint to begin with: a folder, or a name on the hub.
    revision
        Commit of that checkpoint.
    recipe
        How to train.
    """

    kind: ClassVar[str] = "transformer"

    base: str = ""
    revision: str = "main"
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._model: Any = None
        self._tokenizer: Any = None

    def _open(
        self, source: str, *, local: bool, revision: str | None = None, new_head: bool = False
    ) -> None:
        require("torch", "huggingface")
        require("transformers", "huggingface")
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        options: dict[str, Any] = {"local_files_only": local, "trust_remote_code": False}
        if revision is not None and not local:
            options["revision"] = revision
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(source, **options)
            self._model = AutoModelForSequenceClassification.from_pretrained(
                source,
                use_safetensors=True,
                num_labels=self.head.outputs,
                ignore_mismatched_sizes=new_head,
                **options,
            )
        except (OSError, ValueError, RuntimeError) as fault:
            first = str(fault).splitlines()[0] if str(fault) else type(fault).__name__
            raise DataError(source, [f"no model can be read from there: {first}"]) from None

    def fit(
        self,
        texts: Sequence[str],
        ratings: Sequence[int] | NDArray[Any],
        *,
        folder: str | Path,
        progress: Progress | None = None,
    ) -> Self:
        """Fine-tune on texts and their classes.

        Every `Recipe.save_every` steps, weights and the state of the optimiser are written to
        ``checkpoint`` in the folder, whole or not at all; called again with the same texts and
        recipe, training goes on from there as if it had not stopped.

        Parameters
        ----------
        texts, ratings
            One entry each.
        folder
            Keeps the checkpoint.
        progress
            Called with the steps done.

        Raises
        ------
        PlanError
            If the checkpoint there belongs to other texts or another recipe.
        """
        texts, classes = list(texts), np.asarray(ratings, dtype=np.int64)
        if len(texts) != len(classes) or not len(texts):
            raise PlanError(f"{len(texts)} texts and {len(classes)} ratings; expected as many")
        local = Path(self.base).is_dir()
        if not self.base:
            raise PlanError("name the checkpoint to begin with: base")
        import torch

        # The head's weights are new and must not depend on what ran before.
        torch.manual_seed(self.recipe.seed)
        self._open(self.base, local=local, revision=self.revision, new_head=True)
        _Training(self, texts, classes, Path(folder)).run(progress)
        self.facts |= {
            "training texts": len(texts),
            "class counts": np.bincount(classes, minlength=self.head.classes).tolist(),
            "training keys": content_keys(texts),
            "base": Path(self.base).name if local else f"{self.base}@{self.revision}",
        }
        return self

    def outputs(self, texts: Sequence[str]) -> Scores:
        """Return the outputs of the model, in windows where a text is long."""
        if self._model is None:
            raise PlanError(f"{self.name} was not trained yet: call fit, or load a saved one")
        import torch

        rows, owner = self._windows(texts)
        values = np.empty((len(rows), self.head.outputs), dtype=np.float64)
        order = np.argsort([len(row) for row in rows], kind="stable")
        self._model.eval()
        for at in range(0, len(order), self.recipe.at_once):
            chosen = order[at : at + self.recipe.at_once]
            with torch.inference_mode():
                logits = self._model(**self._batch([rows[i] for i in chosen])).logits
            values[chosen] = logits.double().numpy()
        return windowed(self.head, values, owner, len(texts))

    @property
    def window(self) -> int:
        """The most tokens, with those that begin and end a text, that are read at once."""
        most = int(getattr(self._tokenizer, "model_max_length", self.recipe.length))
        return min(self.recipe.length, most)

    def _windows(self, texts: Sequence[str]) -> tuple[list[list[int]], NDArray[np.int64]]:
        size = self.window
        if not len(texts):
            return [], np.empty(0, dtype=np.int64)
        special = self._tokenizer.num_special_tokens_to_add()
        found = self._tokenizer(
            [without_surrogates(text) for text in texts],
            truncation=True,
            max_length=size,
            stride=max(0, (size - special) // 2),
            return_overflowing_tokens=True,
            return_attention_mask=False,
        )
        owner = np.asarray(found["overflow_to_sample_mapping"], dtype=np.int64)
        return list(found["input_ids"]), owner

    def _batch(self, rows: Sequence[Sequence[int]]) -> dict[str, Any]:
        import torch

        width = max(1, max(map(len, rows)))
        pad = self._tokenizer.pad_token_id or 0
        ids = [[*row, *[pad] * (width - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    def _settings(self) -> dict[str, Any]:
        cut = self.head.cut
        mapping = {str(k): "delicate" if k >= cut else "not" for k in range(self.head.classes)}
        return {"recipe": asdict(self.recipe), "optimizer": "AdamW", "classes": mapping}

    def _write(self, folder: Path) -> None:
        if self._model is None:
            raise PlanError(f"{self.name} was not trained yet; there is nothing to save")
        self._model.save_pretrained(folder, safe_serialization=True)
        self._tokenizer.save_pretrained(folder)

    @classmethod
    def _read(cls, folder: Path, content: dict[str, Any], common: dict[str, Any]) -> Self:
        found = cls(**common, base=str(folder), recipe=Recipe(**content["recipe"]))
        found._open(str(folder), local=True)
        if found._model.config.num_labels != found.head.outputs:
            raise ValueError("the model has another number of outputs than its head")
        return found


class _Training:
    """One training: the order of texts, the steps, and the checkpoint."""

    def __init__(
        self,
        detector: TransformerDetector,
        texts: list[str],
        classes: NDArray[np.int64],
        folder: Path,
    ) -> None:
        import torch

        self.detector, self.recipe, self.folder = detector, detector.recipe, folder
        self.model = detector._model
        self.rows = [
            row[: detector.window]
            for row in detector._tokenizer(
                [without_surrogates(text) for text in texts],
                truncation=True,
                max_length=detector.window,
            )["input_ids"]
        ]
        self.targets = torch.tensor(detector.head.targets(classes))
        self.optimiser: Any = torch.optim.AdamW(
            self.model.parameters(),
            lr=self.recipe.learning_rate,
            weight_decay=self.recipe.weight_decay,
        )
        about = [asdict(self.recipe), asdict(detector.head), detector.base, detector.revision]
        keys = content_keys(texts).tobytes() + classes.tobytes()
        self.digest = sha256(json.dumps(about, sort_keys=True).encode() + keys).hexdigest()

    def run(self, progress: Progress | None) -> None:
        import torch

        done = self._resume()
        self.model.train()
        total = self.recipe.updates
        losses: list[tuple[int, float]] = []
        for step in range(done, total):
            # Dropout depends on the step alone, so a resumed training equals one that went through.
            torch.manual_seed(self.recipe.seed * 1_000_003 + step)
            loss = self._step(step)
            if step in (done, total - 1) or (step + 1) % self.recipe.save_every == 0:
                losses.append((step + 1, loss))
            if (step + 1) % self.recipe.save_every == 0 and step + 1 < total:
                self._save(step + 1)
            if progress is not None:
                progress(step + 1, total, "fine-tuning")
        self.model.eval()
        if done < total:
            self._save(total)
            self.detector.facts["losses"] = losses

    def _order(self, step: int) -> NDArray[np.int64]:
        """Return the texts of a step; every epoch goes through all in an order of its own."""
        n, batch = len(self.rows), min(self.recipe.batch, len(self.rows))
        first = step * batch
        parts = []
        while batch:
            epoch, at = divmod(first, n)
            order = generator(self.recipe.seed, "epoch", str(epoch)).permutation(n)
            part = order[at : at + batch]
            parts.append(part)
            first, batch = first + len(part), batch - len(part)
        return np.concatenate(parts)

    def _step(self, step: int) -> float:
        import torch

        chosen, total = self._order(step), 0.0
        self.optimiser.zero_grad()
        for at in range(0, len(chosen), self.recipe.at_once):
            part = chosen[at : at + self.recipe.at_once]
            logits = self.model(**self.detector._batch([self.rows[i] for i in part])).logits
            targets = self.targets[torch.as_tensor(part)]
            loss = _loss(self.detector.head, logits, targets) * (len(part) / len(chosen))
            loss.backward()
            total += float(loss)
        self.optimiser.step()
        return total

    def _save(self, step: int) -> None:
        from safetensors.torch import save_file

        fresh = self.folder / f".{_PART}.part"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        weights = {name: tensor.contiguous() for name, tensor in self.model.state_dict().items()}
        save_file(_unshared(weights), str(fresh / "model.safetensors"))
        state = {}
        for index, values in self.optimiser.state_dict()["state"].items():
            for name, value in values.items():
                state[f"{index}.{name}"] = value.contiguous()
        save_file(state, str(fresh / "optimiser.safetensors"))
        write_json(fresh / "state.json", {"step": step, "digest": self.digest})
        for file in fresh.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())
        target, old = self.folder / _PART, self.folder / f".{_PART}.old"
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.replace(old)
        fresh.replace(target)
        shutil.rmtree(old, ignore_errors=True)

    def _resume(self) -> int:
        """Read the checkpoint, if there is one, and return its step."""
        import torch
        from safetensors.torch import load_file

        target, old = self.folder / _PART, self.folder / f".{_PART}.old"
        if not target.exists() and old.exists():
            old.replace(target)  # killed between two renames
        if not (target / "state.json").is_file():
            return 0
        state = read_json(target / "state.json")
        if state.get("digest") != self.digest:
            raise PlanError(
                f"the checkpoint in {target} belongs to other texts or another recipe; "
                "choose another folder, or delete it"
            )
        weights = load_file(str(target / "model.safetensors"))
        self.model.load_state_dict(weights, strict=False)
        self.model.tie_weights()
        loaded = load_file(str(target / "optimiser.safetensors"))
        content: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in loaded.items():
            index, _, part = name.partition(".")
            content.setdefault(int(index), {})[part] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": content, "param_groups": groups})
        return int(state["step"])


def _unshared(weights: dict[str, Any]) -> dict[str, Any]:
    """Leave out tensors that share their memory with an earlier one; they are tied on reading."""
    seen: set[int] = set()
    kept = {}
    for name, tensor in weights.items():
        if tensor.data_ptr() not in seen or not tensor.numel():
            kept[name] = tensor
        seen.add(tensor.data_ptr())
    return kept


def _loss(head: Head, logits: Any, targets: Any) -> Any:
    from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

    if head.kind == "multiclass":
        return cross_entropy(logits, targets)
    values = targets.float().reshape(logits.shape)
    return binary_cross_entropy_with_logits(logits, values)
