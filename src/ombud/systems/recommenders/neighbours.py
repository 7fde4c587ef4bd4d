"""What item-kNN and user-kNN share: centred ratings, lengths of vectors, arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.systems.recommenders.model import Model, Scores, check_rules

NONE = np.empty(0, np.float32)
"""Stands for values that are all one."""


def means(codes: NDArray[Any], values: Scores, count: int) -> Scores:
    """Return the mean value of each code; 0 for a code without values."""
    sums = np.bincount(codes, weights=values, minlength=count)
    heads = np.bincount(codes, minlength=count)
    return np.divide(sums, heads, out=np.zeros(count), where=heads > 0).astype(np.float32)


def inverse_lengths(codes: NDArray[Any], values: Scores, count: int) -> Scores:
    """Return one over the Euclidean length of each code's vector; 0 for a vector of zeros."""
    weights = None if values is NONE else values.astype(np.float64) ** 2
    squares = np.bincount(codes, weights=weights, minlength=count)
    # Deviations that cancel leave rounding dust, which must not be blown up to a direction.
    heads = np.maximum(np.bincount(codes, minlength=count), 1)
    real = squares > 1e-10 * heads
    lengths = np.sqrt(squares, where=real, out=np.ones(count))
    return np.where(real, 1.0 / lengths, 0.0).astype(np.float32)


@dataclass(frozen=True)
class Vectors:
    """A users x items matrix by row and by column, 32 bits.

    ``values`` and ``column_values`` are empty when all are one.
    """

    indptr: NDArray[Any]
    indices: NDArray[np.int32]
    values: Scores
    starts: NDArray[Any]
    users: NDArray[np.int32]
    column_values: Scores

    @classmethod
    def of(cls, interactions: Interactions, values: Scores) -> Vectors:
        """Return the vectors of interactions, with their values replaced."""
        matrix = interactions.matrix
        weighted = values is not NONE
        data = values if weighted else np.ones(len(matrix.indices), np.int8)
        shape = matrix.shape
        columns = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=shape).tocsc()
        by_column = columns.data if weighted else NONE
        return cls(
            matrix.indptr, matrix.indices, values, columns.indptr, columns.indices, by_column
        )


class NeighbourModel(Model):
    """Arguments and values that both neighbour models share."""

    neighbours: int | None
    min_neighbours: int
    min_similarity: float

    def _check_arguments(self) -> None:
        self.predicts_ratings = not self.ignore_ratings
        few = self.neighbours is None or self.neighbours >= self.min_neighbours
        check_rules(
            self,
            min_neighbours=(self.min_neighbours >= 1, "at least 1"),
            neighbours=(few, f"at least min_neighbours, {self.min_neighbours}"),
            min_similarity=(0 < self.min_similarity <= 1, "above 0 and at most 1"),
        )

    @staticmethod
    def _plain_values(interactions: Interactions) -> Scores:
        """Return the values of implicit feedback; `NONE` when they are all the same."""
        data = interactions.matrix.data
        return NONE if data.min() == data.max() else data
