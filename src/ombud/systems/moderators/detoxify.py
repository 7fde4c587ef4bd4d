"""The classifiers of the package ``detoxify``, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import PlanError, require
from ombud.files import hash_file
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator, cut_texts, package_version, scored

_LONGEST = 512


@moderator("detoxify")
@dataclass(kw_only=True)
class Detoxify(LocalModerator):
    """Detoxify: a probability for each class of toxicity, on this machine.

    Its weights are a pickle, which can run code: the file is downloaded once, and its SHA-256 is
    compared with the digits in its published name before it is opened. Texts are cut at 512 tokens,
    and counted. Do not audit a variant on the Jigsaw texts that it was trained on.

    Parameters
    ----------
    variant
        ``original``, ``unbiased`` or ``multilingual`` (seven languages), or a ``-small`` one.
    flagged
        The class that decides; several flag with the largest of their probabilities.
    threshold
        Flag when the score reaches it; None for scores without decisions.
    checkpoint
        A file of weights instead; then `sha256` is needed.
    sha256
        The digits with which the SHA-256 of the checkpoint begins, eight or more.
    config_path
        A folder with the configuration and tokenizer, to load without the network.
    batch
        Texts in one pass.
    name
        The system's name in the report.
    """

    variant: Literal["original", "unbiased", "multilingual", "original-small", "unbiased-small"] = (
        "unbiased"
    )
    flagged: tuple[str, ...] = ("toxicity",)
    threshold: float | None = None
    checkpoint: Path | None = None
    sha256: str = ""
    config_path: Path | None = None
    batch: int = 32
    name: str = "detoxify"

    def __post_init__(self) -> None:
        if self.checkpoint is not None and len(self.sha256) < 8:
            raise PlanError(f"{self.name}: a checkpoint needs sha256, eight digits or more")
        if not self.flagged:
            raise PlanError(f"{self.name}: flagged is empty; name a class, such as 'toxicity'")
        self._model: Any = None
        self._digits = self.sha256

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        if self._model is None:
            self._model = self._load()
        found: dict[str, list[float]] = {}
        for at in range(0, len(texts), self.batch):
            part = texts[at : at + self.batch]
            for name, values in self._model.predict(part).items():
                # One text gives a number in place of a list.
                given: Sequence[float] = [values] if isinstance(values, float) else values
                found.setdefault(name, []).extend(given)
        unknown = sorted(set(self.flagged) - set(found))
        if texts and unknown:
            known = ", ".join(found)
            raise PlanError(f"{self.name} has no class {', '.join(unknown)}; it has {known}")
        columns = {name: np.array(values, dtype=np.float32) for name, values in found.items()}
        scores = np.zeros(len(texts), dtype=np.float32)
        if texts:
            scores = np.max([columns[name] for name in self.flagged], axis=0)
        version = f"{package_version('detoxify')} {self.variant} {self._digits}".strip()
        made = scored(ids, scores, self.threshold, columns, version)
        tokenizer = getattr(self._model, "tokenizer", None)
        return replace(made, exclusions=cut_texts(self.name, tokenizer, texts, _LONGEST))

    def _load(self) -> Any:
        require("detoxify", "detoxify")
        import detoxify

        file = self.checkpoint or self._published(detoxify.detoxify.MODEL_URLS[self.variant])
        if not Path(file).is_file():
            raise PlanError(f"{self.name}: there is no checkpoint {file}")
        if not hash_file(Path(file)).removeprefix("sha256:").startswith(self._digits.lower()):
            raise PlanError(
                f"{self.name}: the SHA-256 of {Path(file).name} does not begin with "
                f"{self._digits}; it is another file, and was not opened"
            )
        config = None if self.config_path is None else str(self.config_path)
        return detoxify.Detoxify(
            model_type=self.variant, checkpoint=str(file), huggingface_config_path=config
        )

    def _published(self, url: str) -> Path:
        """Return the published weights, downloaded once; their name ends with their digits."""
        import torch

        name = url.rpartition("/")[2]
        self._digits = name.removesuffix(".ckpt").rpartition("-")[2]
        file = Path(torch.hub.get_dir()) / "checkpoints" / name
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(file), hash_prefix=self._digits)
        return file
