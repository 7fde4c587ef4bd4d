"""The classifier of the package ``hatesonar``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import PlanError, require
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator, in_chunks, package_version, scored

CLASSES = ("hate_speech", "offensive_language", "neither")


@moderator("hatesonar")
@dataclass(kw_only=True)
class HateSonar(LocalModerator):
    """A linear model on words, trained on the tweets of Davidson et al. (2017), as an ONNX file.

    Do not audit it on those tweets.

    Parameters
    ----------
    flagged
        Which of its classes mean flagged: ``hate_speech``, ``offensive_language``. The score of
        a text is the sum of theirs.
    threshold
        Flag when the score reaches it.
    name
        The system's name in the report.
    """

    flagged: list[str] = field(default_factory=lambda: ["hate_speech", "offensive_language"])
    threshold: float = 0.5
    name: str = "hatesonar"

    def __post_init__(self) -> None:
        unknown = sorted(set(self.flagged) - set(CLASSES))
        if unknown or not self.flagged:
            raise PlanError(
                f"{self.name}: flagged is {self.flagged}; it must be some of {', '.join(CLASSES)}"
            )
        self._session: Any = None

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        if self._session is None:
            self._session = _open_session()
        result = in_chunks(self._score, texts, width=len(CLASSES))
        columns = {name: result[:, at] for at, name in enumerate(CLASSES)}
        total: NDArray[np.float32] = np.sum([columns[name] for name in self.flagged], axis=0)
        return scored(ids, total, self.threshold, columns, package_version("hatesonar"))

    def _score(self, texts: list[str]) -> NDArray[Any]:
        _, tables = self._session.run(None, {"text": np.array(texts, dtype=object)})
        return np.array([[table[at] for at in range(len(CLASSES))] for table in tables])


def _open_session() -> Any:
    # The model lower-cases in the locale en_US.UTF-8, which many machines and most containers do
    # not have. Its words are ASCII only, so the locale "C", which every machine has, gives the
    # same tokens.
    for module in ("hatesonar", "onnx", "onnxruntime"):
        require(module, "moderators")
    import hatesonar
    import onnx
    import onnxruntime

    model = onnx.load(Path(hatesonar.__file__).parent / "model" / "model.onnx")
    for node in model.graph.node:
        if node.op_type == "StringNormalizer":
            kept = [a for a in node.attribute if a.name != "locale"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("locale", "C")])
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
