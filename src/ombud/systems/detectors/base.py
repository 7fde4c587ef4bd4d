"""What all detectors share: deciding, calibrating, being a moderator, being saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ombud.data.decisions import Decisions, Outcome
from ombud.errors import DataError, PlanError, ResultError
from ombud.files import read_json, write_folder, write_json
from ombud.systems.base import Progress
from ombud.systems.detectors.heads import Calibration, Head, Rule, best_threshold, fit_calibration
from ombud.systems.moderators.local import LocalModerator
from ombud.text.dedup import content_keys
from ombud.text.windows import join_windows

_FORMAT = 1
_FILE = "detector.json"
_CHUNK = 8192


@dataclass(frozen=True)
class Scores:
    """What a detector says about texts."""

    # Texts x outputs of the model; of windows the mean, where a text has several.
    outputs: NDArray[np.float64]
    windows: NDArray[np.int64]  # in how many windows each text was read; 1 where it was read whole
    # Scores of the first window alone, as published detectors do; equal where `windows` is 1.
    cut: NDArray[np.float64]
    highest: NDArray[np.float64]  # the highest score of any window


@dataclass(kw_only=True)
class Detector(LocalModerator):
    """A model that says how delicate a text is; a moderator like any other.

    Parameters
    ----------
    head
        What its outputs mean.
    rule
        How it decides.
    threshold
        For the rule ``"threshold"``; strictly above it a text is delicate.
    calibrated
        Where the threshold comes from, in words; empty when it was given.
    long_texts
        What counts for a text of several windows: their ``"mean"``, their ``"max"``, or ``"cut"``
        (the first window alone).
    facts
        How it was made: sizes, settings, digests.
    name
        The system's name in the report.
    calibration
        Makes probabilities of scores; None leaves the scores of the head as they are.
    """

    kind: ClassVar[str]

    head: Head = field(default_factory=Head)
    rule: Rule = "threshold"
    threshold: float = 0.5
    calibrated: str = ""
    long_texts: str = "max"
    facts: dict[str, Any] = field(default_factory=dict, repr=False)
    name: str = ""
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        self.name = self.name or self.kind
        if self.rule not in ("threshold", "argmax"):
            raise PlanError(f"rule {self.rule!r} is not one of threshold, argmax")
        if self.long_texts not in ("mean", "max", "cut"):
            raise PlanError(f"long_texts {self.long_texts!r} is not one of mean, max, cut")

    @property
    def window(self) -> int:
        """The most tokens that are read at once; 0 where a text of any length is read whole."""
        return 0

    @abstractmethod
    def outputs(self, texts: Sequence[str]) -> Scores:
        """Return the outputs of the model for some texts."""

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write the weights into a folder."""

    @classmethod
    @abstractmethod
    def _read(cls, folder: Path, content: dict[str, Any], common: dict[str, Any]) -> Self:
        """Read the weights from a folder."""

    def score(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> tuple[NDArray[np.float64], Scores]:
        """Return the probability that each text is delicate, and all that stands behind it."""
        parts: list[Scores] = []
        for at in range(0, len(texts), _CHUNK):
            parts.append(self.outputs(texts[at : at + _CHUNK]))
            if progress is not None:
                progress(min(at + _CHUNK, len(texts)), len(texts), self.name)
        if not parts:
            parts = [_no_scores(self.head.outputs)]
        scores = Scores(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("outputs", "windows", "cut", "highest")
            )
        )
        return self.of_windows(scores), scores

    def of_windows(self, scores: Scores, how: str = "") -> NDArray[np.float64]:
        """Return one score a text from its windows; by default as `long_texts` says."""
        how = how or self.long_texts
        if how == "cut":
            found = scores.cut
        else:
            found = scores.highest if how == "max" else self.head.score(scores.outputs)
        return found if self.calibration is None else self.calibration.apply(found)

    def flags(self, scores: Scores) -> NDArray[np.bool_]:
        """Return which texts are delicate by the rule of this detector."""
        if self.rule == "argmax":
            return self.head.decide(scores.outputs, "argmax", self.threshold)
        return np.asarray(self.of_windows(scores) > self.threshold)

    def decide(self, ids: NDArray[Any], texts: list[str]) -> Decisions:
        """Return one outcome for each text."""
        score, scores = self.score(texts)
        flagged = self.flags(scores)
        outcomes = np.where(
            np.isnan(score),
            np.int8(Outcome.ERROR),
            np.where(flagged, np.int8(Outcome.FLAGGED), np.int8(Outcome.ALLOWED)),
        ).astype(np.int8)
        chances = self.head.probabilities(scores.outputs)
        names = tuple(f"risk {k}" for k in range(self.head.classes)) if chances is not None else ()
        matrix = chances.astype(np.float32) if chances is not None else None
        return Decisions(
            ids, outcomes, score.astype(np.float32), names, matrix, version=self.version
        )

    @property
    def version(self) -> str:
        """What answered: kind, head, rule and threshold."""
        rule = f"> {self.threshold:.8g}" if self.rule == "threshold" else "argmax"
        return f"{self.kind} {self.head.kind} ({rule})"

    def calibrate(
        self,
        texts: Sequence[str],
        ratings: Sequence[int] | NDArray[Any],
        *,
        probabilities: Literal["platt", "isotonic", "none"] = "none",
    ) -> Self:
        """Set the threshold to the one with the best F1 on validation texts.

        Parameters
        ----------
        texts, ratings
            Texts that were not trained on (checked where it is known) and will not be tested on.
        probabilities
            How scores become probabilities, fitted on the same texts; ``"none"`` leaves them.

        Raises
        ------
        PlanError
            If some of the texts were trained on.
        """
        keys = content_keys(list(texts))
        seen = self.facts.get("training keys")
        if seen is not None:
            again = int(np.isin(keys, np.asarray(seen, dtype=np.uint64)).sum())
            if again:
                raise PlanError(
                    f"{again:,} of {len(keys):,} validation texts stand in the training texts "
                    "too; take them out of one of the two"
                )
        truth = np.asarray(ratings, dtype=np.int64) >= self.head.cut
        self.calibration = None
        score, scores = self.score(texts)
        if probabilities != "none":
            self.calibration = fit_calibration(score, truth, probabilities)
            score = self.of_windows(scores)
        self.threshold, f1 = best_threshold(score, truth)
        self.calibrated = f"best F1 on {len(keys):,} validation texts"
        self.facts["validation F1"] = f1
        self.facts["validation keys"] = keys
        return self

    def seen(self, texts: Sequence[str]) -> dict[str, int]:
        """Count how many texts were trained or calibrated on, as far as the detector knows.

        A test on such texts is no test: reports mark it with #.
        """
        keys = content_keys(list(texts))
        return {
            part: int(np.isin(keys, np.asarray(self.facts[f"{part} keys"], np.uint64)).sum())
            for part in ("training", "validation")
            if f"{part} keys" in self.facts
        }

    def save(self, folder: str | Path) -> Path:
        """Write the detector to a folder: weights as npz or safetensors, the rest as JSON.

        The folder must be new or empty. It appears when it is complete: a full disk or a kill
        leaves nothing behind that looks like a detector. No pickle is written or ever read.
        """
        path = Path(folder)
        if path.exists() and any(path.iterdir()):
            raise PlanError(f"{path} is not empty; save a detector into a new folder")
        write_folder(path, self._write_all)
        return path

    def _write_all(self, path: Path) -> None:
        self._write(path)
        arrays = {
            name: np.asarray(self.facts[f"{name} keys"], dtype=np.uint64)
            for name in ("training", "validation")
            if f"{name} keys" in self.facts
        }
        if arrays:
            np.savez(path / "seen.npz", allow_pickle=False, **arrays)
        facts = {name: value for name, value in self.facts.items() if not name.endswith(" keys")}
        write_json(
            path / _FILE,
            {
                "format": _FORMAT,
                "kind": self.kind,
                "head": asdict(self.head),
                "rule": self.rule,
                "threshold": self.threshold,
                "calibrated": self.calibrated,
                "long_texts": self.long_texts,
                "name": self.name,
                "calibration": asdict(self.calibration) if self.calibration else None,
                "facts": facts,
                "model": self._settings(),
            },
        )

    def _settings(self) -> dict[str, Any]:
        """Return what a kind of detector must remember beside its weights."""
        return {}

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a detector of this kind from a folder."""
        path = Path(folder)
        content = read_description(path)
        if content["kind"] != cls.kind:
            raise DataError(
                str(path), [f"it holds a detector of kind {content['kind']!r}, not {cls.kind!r}"]
            )
        try:
            common = {
                "head": Head(**content["head"]),
                "rule": content["rule"],
                "threshold": float(content["threshold"]),
                "calibrated": str(content["calibrated"]),
                "long_texts": content["long_texts"],
                "name": content["name"],
                "facts": dict(content["facts"]) | _keys(path),
            }
            if curve := content.get("calibration"):
                common["calibration"] = Calibration(**curve)
            return cls._read(path, dict(content["model"]), common)
        except Exception as fault:  # of numpy, zipfile, zlib and the model itself
            reason = str(fault) or type(fault).__name__
            raise DataError(str(path), [f"the detector is damaged: {reason}"]) from None


def _keys(folder: Path) -> dict[str, NDArray[np.uint64]]:
    file = folder / "seen.npz"
    if not file.is_file():
        return {}
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {f"{name} keys": arrays[name] for name in arrays.files}
    except Exception as fault:  # of numpy, zipfile and zlib
        raise DataError(str(file), [f"it is damaged: {fault}"]) from None


def read_description(folder: Path) -> dict[str, Any]:
    """Return the description of a saved detector, or say why the folder holds none."""
    if not folder.is_dir():
        raise DataError(str(folder), ["there is no such folder"])
    if not (folder / _FILE).is_file():
        raise DataError(
            str(folder), [f"it holds no detector: there is no {_FILE} (or saving was interrupted)"]
        )
    try:
        content = read_json(folder / _FILE)
    except ResultError as fault:
        raise DataError(str(folder), [str(fault)]) from None
    missing = [
        name
        for name in ("format", "kind", "head", "rule", "threshold", "facts", "model")
        if name not in content
    ]
    if missing:
        raise DataError(str(folder), [f"{_FILE} lacks {', '.join(missing)}"])
    if content["format"] != _FORMAT:
        raise DataError(
            str(folder),
            [f"{_FILE} has format {content['format']!r}; this version of ombud reads {_FORMAT}"],
        )
    return content


def whole(head: Head, outputs: NDArray[Any]) -> Scores:
    """Return the scores of texts that were read whole."""
    values = np.asarray(outputs, dtype=np.float64)
    score = head.score(values)
    return Scores(values, np.ones(len(values), dtype=np.int64), score, score)


def windowed(head: Head, values: NDArray[Any], owner: NDArray[np.int64], texts: int) -> Scores:
    """Return the scores of texts from the outputs of their windows."""
    if not texts:
        return _no_scores(head.outputs)
    score = head.score(values)
    return Scores(
        join_windows(values, owner, "mean", texts),
        np.bincount(owner, minlength=texts).astype(np.int64),
        join_windows(score, owner, "first", texts),
        join_windows(score, owner, "max", texts),
    )


def _no_scores(outputs: int) -> Scores:
    none = np.empty(0)
    return Scores(np.empty((0, outputs)), np.empty(0, dtype=np.int64), none, none)
