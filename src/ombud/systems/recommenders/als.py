"""Matrix factorisation by alternating least squares, for ratings and for implicit feedback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.interactions import Interactions
from ombud.registry import recommender
from ombud.rng import generator
from ombud.systems.base import Progress
from ombud.systems.recommenders.factors import (
    Compressed,
    FactorModel,
    Factors,
    compressed,
    transposed,
)
from ombud.systems.recommenders.model import Scores, check_rules
from ombud.systems.recommenders.ridge import Solver, solve_rows


def _ticker(progress: Progress, done: float, total: int) -> Callable[[float], None]:
    """Return a callback that reports parts of a half-iteration, in hundredths."""

    def tick(share: float) -> None:
        progress(int(100 * (done + share / 2)), 100 * total, "hundredths of an iteration")

    return tick


class _AlternatingModel(FactorModel):
    """What both kinds share: rules, random factors to start from, users and items in turn."""

    factors: int
    iterations: int
    regularization: float
    solver: Solver
    cg_steps: int
    seed: int

    def _check_shared(self, **own: tuple[bool, str]) -> None:
        check_rules(
            self,
            **own,
            factors=(self.factors >= 1, "at least 1"),
            iterations=(self.iterations >= 1, "at least 1"),
            regularization=(self.regularization > 0, "positive, or a system may have no solution"),
            solver=(self.solver in {"cg", "cholesky"}, "'cg' or 'cholesky'"),
            cg_steps=(self.cg_steps >= 1, "at least 1"),
        )

    def _alternate(
        self, start: Factors, sides: tuple[Compressed, Compressed], passes: int,
        progress: Progress, **penalty: Any,
    ) -> None:  # fmt: skip
        """Solve for all users, then for all items, and again; factors are changed in place."""
        progress(0, 100 * passes, "hundredths of an iteration")
        both = (start.users, start.items)
        for half in range(2 * passes):
            rows, target, fixed = sides[half % 2], both[half % 2], both[1 - half % 2]
            solve_rows(
                *rows, fixed, out=target, solver=self.solver, steps=self.cg_steps,
                threads=self.threads, tick=_ticker(progress, half / 2, passes), **penalty,
            )  # fmt: skip


@recommender("implicit-als")
@dataclass
class ImplicitALS(_AlternatingModel):
    """Factorise what people have and have not, with more confidence in what they have.

    Minimises ``sum_ui c_ui (h_ui - x_u . y_i)^2 + regularization (|X|^2 + |Y|^2)`` where h is 1
    for an interaction and 0 otherwise, and ``c = 1 + alpha value`` (Hu, Koren & Volinsky 2008,
    "Collaborative filtering for implicit feedback datasets"). Ratings, where there are any, are
    the values. The result is the same to the bit for any number of threads. A new history is
    folded in exactly: the solution of its least-squares problem with the items fixed.

    Parameters
    ----------
    factors, iterations, regularization
        Size, length and strength of the training.
    alpha
        Confidence per unit of value. ``implicit`` writes ``c = alpha value``: its 40 is 39 here.
    solver
        ``"cg"``, a few steps of conjugate gradients from the last solution (Takacs, Pilaszy &
        Tikk 2011), or ``"cholesky"``, exact and several times slower.
    cg_steps
        Steps per row and iteration.
    seed
        Fixes the factors before training.
    ignore_ratings
        Whether ratings, where there are any, are left aside: every interaction counts 1.
    threads
        How many threads to use; None for all.
    """

    factors: int = 64
    iterations: int = 15
    regularization: float = 0.05
    alpha: float = 40.0
    solver: Solver = "cg"
    cg_steps: int = 3
    seed: int = 0
    ignore_ratings: bool = False
    threads: int | None = None

    predicts_ratings = False

    def _check_arguments(self) -> None:
        self._check_shared(alpha=(self.alpha > 0, "positive"))

    def _train(self, interactions: Interactions, progress: Progress) -> Factors:
        rng = generator(self.seed, "implicit-als")
        users = rng.random((interactions.n_users, self.factors), dtype=np.float32)
        items = rng.random((interactions.n_items, self.factors), dtype=np.float32)
        users *= np.float32(0.01)
        items *= np.float32(0.01)
        return self._improve(interactions, Factors(users, items), self.iterations, progress)

    def _improve(
        self, interactions: Interactions, start: Factors, passes: int, progress: Progress
    ) -> Factors:
        sides = (compressed(interactions), transposed(interactions.matrix))
        self._alternate(start, sides, passes, progress, ridge=self.regularization, alpha=self.alpha)
        return Factors(start.users, start.items).check(self.name)

    def _fold(self, histories: sparse.csr_array) -> tuple[Scores, Scores | None]:
        solved = solve_rows(
            histories.indptr, histories.indices, histories.data, self._fitted.items,
            ridge=self.regularization, alpha=self.alpha, threads=self.threads,
        )  # fmt: skip
        return solved, None


@recommender("explicit-als")
@dataclass
class ExplicitALS(_AlternatingModel):
    """Predict a rating as ``mean + b_u + b_i + p_u . q_i``, by alternating least squares.

    Biases are damped means, items first, then users of what the items leave; the factors fit the
    rest, with a penalty of ``regularization`` times the number of ratings of the user or item
    (Zhou et al. 2008, "Large-scale parallel collaborative filtering for the Netflix prize"; as in
    LensKit's ``BiasedMFScorer``). The result is the same to the bit for any number of threads. A
    new history is folded in exactly: its damped bias, then its least-squares problem with the
    items fixed.

    Parameters
    ----------
    factors, iterations, regularization
        Size, length and strength of the training.
    damping
        How many average ratings each user and item is given before its bias is taken.
    solver, cg_steps, seed, threads
        As in `ImplicitALS`.
    """

    factors: int = 64
    iterations: int = 15
    regularization: float = 0.05
    damping: float = 5.0
    solver: Solver = "cg"
    cg_steps: int = 3
    seed: int = 0
    threads: int | None = None

    needs_ratings = True

    def _check_arguments(self) -> None:
        self._check_shared(damping=(self.damping >= 0, "zero or more"))

    def _train(self, interactions: Interactions, progress: Progress) -> Factors:
        rng = generator(self.seed, "explicit-als")
        users = rng.standard_normal((interactions.n_users, self.factors), dtype=np.float32)
        items = rng.standard_normal((interactions.n_items, self.factors), dtype=np.float32)
        users *= np.float32(0.1)
        items *= np.float32(0.1)
        return self._improve(interactions, Factors(users, items), self.iterations, progress)

    def _improve(
        self, interactions: Interactions, start: Factors, passes: int, progress: Progress
    ) -> Factors:
        indptr, indices, ratings = compressed(interactions)
        mean = float(ratings.mean(dtype=np.float64))
        item_bias = self._damped(indices, ratings - np.float32(mean), interactions.n_items)
        rest = (ratings - np.float32(mean)) - item_bias[indices]
        user_bias = self._row_bias(indptr, rest)
        rest -= np.repeat(user_bias, np.diff(indptr))
        matrix = sparse.csr_array((rest, indices, indptr), shape=interactions.matrix.shape)
        sides = ((indptr, indices, rest), transposed(matrix))
        self._alternate(start, sides, passes, progress, ridge_per_entry=self.regularization)
        return Factors(start.users, start.items, user_bias, item_bias, mean).check(self.name)

    def _damped(self, codes: NDArray[Any], values: Scores, count: int) -> Scores:
        sums = np.bincount(codes, weights=values, minlength=count)
        heads = np.bincount(codes, minlength=count) + self.damping
        mean = np.divide(sums, heads, out=np.zeros(count), where=heads > 0)
        return np.asarray(mean, dtype=np.float32)

    def _row_bias(self, indptr: NDArray[Any], rest: Scores) -> Scores:
        rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))
        return self._damped(rows, rest, len(indptr) - 1)

    def _fold(self, histories: sparse.csr_array) -> tuple[Scores, Scores | None]:
        rest = histories.data - self._offset[histories.indices]
        bias = self._row_bias(histories.indptr, rest)
        rest -= np.repeat(bias, np.diff(histories.indptr))
        solved = solve_rows(
            histories.indptr, histories.indices, rest, self._fitted.items,
            ridge_per_entry=self.regularization, threads=self.threads,
        )  # fmt: skip
        return solved, bias
