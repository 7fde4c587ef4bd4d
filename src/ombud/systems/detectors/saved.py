"""Saved detectors: read from a folder, and as a moderator of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ombud.data.decisions import Decisions
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.registry import moderator
from ombud.systems.base import Moderator, Progress
from ombud.systems.detectors.base import Detector, read_description
from ombud.systems.detectors.embeddings import EmbeddingDetector
from ombud.systems.detectors.ngrams import NgramDetector
from ombud.systems.detectors.transformer import TransformerDetector

_KINDS: dict[str, type[Detector]] = {
    cls.kind: cls for cls in (NgramDetector, EmbeddingDetector, TransformerDetector)
}


def load_detector(folder: str | Path) -> Detector:
    """Read a detector of any kind from the folder in which it was saved.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    DataError
        If the folder holds no detector, or a damaged one.
    """
    path = Path(folder)
    kind = read_description(path)["kind"]
    if kind not in _KINDS:
        raise DataError(str(path), [f"kind {kind!r} is not one of {', '.join(_KINDS)}"])
    return _KINDS[kind].load(path)


@moderator("detector")
@dataclass(kw_only=True)
class SavedDetector(Moderator):
    """A detector saved by ombud: n-grams, embeddings or a transformer.

    Parameters
    ----------
    path
        The folder of the detector.
    name
        The system's name in the report; default, the detector's own.
    """

    path: Path
    name: str = ""

    def __post_init__(self) -> None:
        self.path = Path(self.path)
        self.name = self.name or self.path.name
        self._detector: Detector | None = None

    @property
    def detector(self) -> Detector:
        """The detector itself, read when it is first needed."""
        if self._detector is None:
            self._detector = load_detector(self.path)
        return self._detector

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return one outcome a text, in the order of the texts."""
        return self.detector.moderate(texts)


def detector_in(system: object) -> Detector | None:
    """Return the detector behind a system of an audit; None where it is something else."""
    if isinstance(system, SavedDetector):
        return system.detector
    return system if isinstance(system, Detector) else None
