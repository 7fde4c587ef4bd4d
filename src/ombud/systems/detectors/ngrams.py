"""A linear detector on word and character n-grams: nothing to download, and fast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.errors import PlanError
from ombud.systems.base import Progress
from ombud.systems.detectors.base import Detector, Scores, whole
from ombud.systems.detectors.heads import Head, LinearHead, fit_linear
from ombud.systems.moderators.answers import without_surrogates
from ombud.text.dedup import content_keys

_BLOCK_CHARACTERS = 2_000_000


@cache
def _kinds() -> NDArray[np.int8]:
    """Return 1 for every character that a word may hold, 2 for white space."""
    table = np.zeros(0x110000, dtype=np.int8)
    for code in range(0x110000):
        char = chr(code)
        if char.isalnum() or char == "_":
            table[code] = 1
        elif char.isspace():
            table[code] = 2
    return table


@dataclass(frozen=True)
class _Block:
    # What every kernel takes first: characters and their kinds, where each text begins and ends,
    # and how long n-grams are (words; characters from, to).
    given: tuple[Any, ...]
    longest: int
    room: int


def _blocks(
    texts: Sequence[str], words: int, low: int, high: int
) -> Iterator[tuple[slice, _Block]]:
    start, size = 0, 0
    for index in range(len(texts) + 1):
        full = index == len(texts) or (size and size + len(texts[index]) > _BLOCK_CHARACTERS)
        if full and index > start:
            yield slice(start, index), _block(texts[start:index], words, low, high)
            start, size = index, 0
        if index < len(texts):
            size += len(texts[index])


def _block(texts: Sequence[str], words: int, low: int, high: int) -> _Block:
    parts = [text.lower() for text in texts]
    joined = "\0".join(parts)
    try:
        packed = joined.encode("utf-32-le")
    except UnicodeEncodeError:
        parts = [without_surrogates(part) for part in parts]
        packed = "\0".join(parts).encode("utf-32-le")
    codes = np.frombuffer(packed, dtype=np.uint32)
    sizes = np.fromiter(map(len, parts), dtype=np.int64, count=len(parts))
    ends = np.cumsum(sizes + 1) - 1
    # Each character begins at most one n-gram of each length, and each run adds two places.
    most = (sizes + 2) * (high - low + 1) * 2 + (sizes + 1) * words + 8
    given = (codes, _kinds()[codes], ends - sizes, ends, words, low, high)
    return _Block(given, int(most.max()), int(most.sum()))


@dataclass(kw_only=True)
class NgramDetector(Detector):
    """Logistic regression on tf-idf weights of word and character n-grams.

    The features are those of scikit-learn's ``TfidfVectorizer`` for words (runs of two or more
    letters, 1 to `words` of them) and for characters inside words (``char_wb``, `low` to `high`
    of them), with sublinear counts, each normed to length 1; features are kept as 64-bit hashes.
    The outputs equal those of that pipeline, computed without a matrix.

    Parameters
    ----------
    words
        The most words of an n-gram.
    low, high
        Characters of an n-gram.
    min_texts
        In how many training texts an n-gram must stand.
    strength
        Inverse of the L2 penalty.
    seed
        Of the solver.
    balanced
        Whether each class counts alike in training, however rare it is.
    """

    kind: ClassVar[str] = "ngrams"

    words: int = 2
    low: int = 3
    high: int = 5
    min_texts: int = 2
    strength: float = 4.0
    seed: int = 0
    balanced: bool = False
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64), repr=False)
    idf: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32), repr=False)
    weights: NDArray[np.float32] = field(
        default_factory=lambda: np.empty((0, 0), np.float32), repr=False
    )
    intercept: NDArray[np.float32] = field(
        default_factory=lambda: np.empty(0, np.float32), repr=False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (1 <= self.words <= 2 and 1 <= self.low <= self.high <= 8):
            raise PlanError("n-grams have 1 or 2 words, and from 1 to 8 characters")
        self._table: tuple[NDArray[np.uint64], NDArray[np.int32]] | None = None

    def fit(
        self,
        texts: Sequence[str],
        ratings: Sequence[int] | NDArray[Any],
        *,
        progress: Progress | None = None,
    ) -> Self:
        """Learn from texts and their classes (0 to classes - 1).

        Parameters
        ----------
        texts, ratings
            One entry each.
        progress
            Called after each step.
        """
        texts, classes = list(texts), np.asarray(ratings, dtype=np.int64)
        if len(texts) != len(classes) or not len(texts):
            raise PlanError(f"{len(texts)} texts and {len(classes)} ratings; expected as many")
        features = self.learn_features(texts, progress=progress)
        fitted = fit_linear(
            features,
            classes,
            self.head,
            strength=self.strength,
            seed=self.seed,
            balanced=self.balanced,
        )
        self.set_weights(fitted)
        self.facts |= {
            "training texts": len(texts),
            "features": len(self.hashes),
            "class counts": np.bincount(classes, minlength=self.head.classes).tolist(),
            "training keys": content_keys(texts),
        }
        if progress is not None:
            progress(2 * len(texts), 2 * len(texts), "fitted")
        return self

    def set_weights(self, fitted: LinearHead) -> None:
        """Use weights that were fitted to the features."""
        self.weights, self.intercept = fitted.weights, fitted.intercept

    def learn_features(
        self, texts: Sequence[str], *, progress: Progress | None = None
    ) -> sparse.csr_matrix:
        """Choose the n-grams by some texts and return their features."""
        from ombud.systems.detectors._ngram_kernels import emit

        known, counts = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        for part, block in _blocks(texts, self.words, self.low, self.high):
            found, _ = emit(*block.given, block.room)
            hashes, times = np.unique(found, return_counts=True)
            both, index = np.unique(np.concatenate((known, hashes)), return_inverse=True)
            total = np.zeros(len(both), dtype=np.int64)
            np.add.at(total, index, np.concatenate((counts, times)))
            known, counts = both, total
            if progress is not None:
                progress(part.stop, 2 * len(texts), "n-grams")
        keep = counts >= self.min_texts
        if not keep.any():
            raise PlanError(f"no n-gram stands in {self.min_texts} training texts")
        self.hashes = known[keep]
        self.idf = (np.log((1 + len(texts)) / (1 + counts[keep])) + 1).astype(np.float32)
        self._table = None
        # In double precision, or the solver stops early.
        return self.features(texts).astype(np.float64)

    def _look_up(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        from ombud.systems.detectors._ngram_kernels import build_table

        if not len(self.hashes):
            raise PlanError(f"{self.name} was not trained yet: call fit, or load a saved one")
        if self._table is None:
            self._table = build_table(self.hashes)
        return self._table

    def features(self, texts: Sequence[str]) -> sparse.csr_matrix:
        """Return the weighted features, texts x features."""
        from ombud.systems.detectors._ngram_kernels import count_features

        table, slots = self._look_up()
        parts = []
        for _, block in _blocks(texts, self.words, self.low, self.high):
            values, features, sizes = count_features(
                *block.given, block.longest, table, slots, self.idf, block.room
            )
            edges = np.concatenate(([0], np.cumsum(sizes)))
            shape = (len(sizes), len(self.hashes))
            parts.append(sparse.csr_matrix((values, features, edges), shape=shape))
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def outputs(self, texts: Sequence[str]) -> Scores:
        """Return the outputs of the model; texts of any length are read whole."""
        from ombud.systems.detectors._ngram_kernels import score_texts

        table, slots = self._look_up()
        found = np.empty((len(texts), len(self.intercept)), dtype=np.float64)
        for part, block in _blocks(texts, self.words, self.low, self.high):
            found[part] = score_texts(
                *block.given, block.longest, table, slots, self.idf, self.weights, self.intercept
            )
        return whole(self.head, found)

    def _settings(self) -> dict[str, Any]:
        names = ("words", "low", "high", "min_texts", "strength", "seed", "balanced")
        return {name: getattr(self, name) for name in names}

    def _write(self, folder: Path) -> None:
        np.savez(
            folder / "weights.npz",
            allow_pickle=False,
            hashes=self.hashes,
            idf=self.idf,
            weights=self.weights,
            intercept=self.intercept,
        )

    @classmethod
    def _read(cls, folder: Path, content: dict[str, Any], common: dict[str, Any]) -> Self:
        with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
            found = {name: arrays[name] for name in ("hashes", "idf", "weights", "intercept")}
        head: Head = common["head"]
        size = len(found["hashes"])
        shapes = {"idf": (size,), "weights": (size, head.outputs), "intercept": (head.outputs,)}
        for name, shape in ({"hashes": (size,)} | shapes).items():
            if found[name].shape != shape:
                raise ValueError(f"{name} has shape {found[name].shape}; expected {shape}")
        checked = {name: found[name].astype(np.float32) for name in shapes}
        return cls(**common, **content, hashes=found["hashes"].astype(np.uint64), **checked)
