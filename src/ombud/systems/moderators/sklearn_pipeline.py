"""A scikit-learn pipeline as a moderator, never by unpickling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions
from ombud.errors import PlanError, require
from ombud.registry import moderator
from ombud.systems.moderators.local import LocalModerator, in_chunks, scored


@moderator("sklearn")
@dataclass(kw_only=True)
class SklearnModerator(LocalModerator):
    """A fitted text classifier of scikit-learn.

    From a file only in the `skops <https://skops.readthedocs.io>`_ format, which holds no code:
    a pickle or joblib file can run anything when it is opened, so those are refused. A pipeline
    in memory goes in with `from_pipeline`.

    Parameters
    ----------
    path
        A ``.skops`` file.
    flagged
        The class that means flagged; None for the last of the pipeline's classes.
    threshold
        Flag when the probability of that class reaches it. For a pipeline without probabilities
        it applies to the decision function, whose natural threshold is 0.
    name
        The system's name in the report; default, the file's name.
    """

    path: Path | None = None
    flagged: str | int | bool | None = None
    threshold: float = 0.5
    name: str = ""

    def __post_init__(self) -> None:
        self._pipeline: Any = None
        if self.path is not None:
            self.path = Path(self.path)
            self.name = self.name or self.path.stem
            if self.path.suffix != ".skops":
                raise PlanError(
                    f"{self.path.name} is not a .skops file. Pickle and joblib files can run code "
                    "when opened, so ombud does not open them; save the pipeline with "
                    "skops.io.dump(pipeline, 'model.skops'), or use SklearnModerator.from_pipeline"
                )
        self.name = self.name or "sklearn"

    @classmethod
    def from_pipeline(
        cls,
        pipeline: Any,
        *,
        flagged: str | int | bool | None = None,
        threshold: float = 0.5,
        name: str = "sklearn",
    ) -> SklearnModerator:
        """Wrap a fitted pipeline that takes a list of texts."""
        system = cls(flagged=flagged, threshold=threshold, name=name)
        system._pipeline = pipeline
        return system

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        if self._pipeline is None:
            self._pipeline = self._load()
        scores = in_chunks(self._score, texts)
        return scored(ids, scores, self.threshold)

    def _load(self) -> Any:
        if self.path is None:
            raise PlanError(f"{self.name}: give the path of a .skops file, or use from_pipeline")
        if not self.path.is_file():
            raise PlanError(f"{self.name}: there is no file {self.path}")
        if not is_zipfile(self.path):
            raise PlanError(f"{self.path.name} is damaged, or is no skops file: it is no archive")
        require("skops", "moderators")
        from skops.io import get_untrusted_types, load

        try:
            unknown = get_untrusted_types(file=self.path)
            pipeline = None if unknown else load(self.path)
        except Exception as error:  # what a damaged file meets in skops can be anything
            raise PlanError(
                f"{self.path.name} is damaged, or is no skops file: {type(error).__name__}: {error}"
            ) from None
        if unknown:
            raise PlanError(
                f"{self.path.name} holds types that skops does not trust ({', '.join(unknown)}); "
                "load it yourself and use SklearnModerator.from_pipeline"
            )
        return pipeline

    def _score(self, texts: list[str]) -> NDArray[Any]:
        classes = list(self._pipeline.classes_)
        wanted = classes[-1] if self.flagged is None else self.flagged
        if wanted not in classes:
            raise PlanError(f"{self.name}: no class {wanted!r}; the classes are {classes}")
        column = classes.index(wanted)
        if hasattr(self._pipeline, "predict_proba"):
            return np.asarray(self._pipeline.predict_proba(texts))[:, column]
        values = np.asarray(self._pipeline.decision_function(texts))
        if values.ndim == 1:
            return values if column == 1 else -values
        return values[:, column]
