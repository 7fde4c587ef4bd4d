"""What a trained recommender shows to one person after edits, frozen or trained again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.errors import PlanError
from ombud.probes.distances import first_lists, probabilities
from ombud.probes.edits import Edit, Edits, EditSpace, History, rows_of
from ombud.probes.recipe import Outcome, Policy
from ombud.systems.recommenders.model import Model
from ombud.systems.recommenders.user_knn import UserKNN

_PORTION = 64


def score_histories(model: Model, rows: sparse.csr_array, own: int = -1) -> NDArray[np.float32]:
    """Return the scores that a trained model gives to all items for new histories.

    `own` is the person's row among the model's users, or -1: a model of neighbouring users must not
    find the person's old history as a neighbour of the new one.
    """
    if own >= 0 and isinstance(model, UserKNN):
        me = np.full(rows.shape[0], own, np.int32)
        return model._near(model._checked(rows), me, rows.shape[1], False)
    return model.scores_for(rows)


class _Asked:
    """What both outcomes are asked with."""

    def __init__(
        self,
        model: Model,
        history: History,
        k: int,
        *,
        beta: float | None = None,
        own: int = -1,
        exclude_seen: bool = True,
    ) -> None:
        if k < 1:
            raise PlanError(f"k is {k}; a list has at least one place")
        if beta is not None and not beta > 0:
            raise PlanError(f"beta is {beta}; it must be positive")
        self.model, self.history, self.k, self.beta = model, history, k, beta
        self.own, self.exclude_seen = own, exclude_seen
        self.queries = 0


class FrozenOutcome(_Asked):
    """The lists of a trained model for edited histories, the model staying as it is.

    Parameters
    ----------
    model
        A trained model that folds in.
    history
        The history that is edited.
    k
        Length of the list.
    beta
        None: the list is shown as it is. Otherwise the first item is drawn with probability
        proportional to ``exp(beta score)`` among all items that are not seen.
    own
        The person's row among the model's users; -1 for somebody the model was not trained on.
    exclude_seen
        Whether items of the edited history are left out.
    """

    policy: Policy = "frozen"

    def after(self, treatments: Sequence[Edits]) -> list[Outcome]:
        """Return what is shown after each treatment."""
        return self.of([self.history.after(edits) for edits in treatments])

    def of(self, histories: Sequence[History]) -> list[Outcome]:
        """Return what is shown for each of some histories."""
        found: list[Outcome] = []
        n_items = self.model.interactions.n_items
        for start in range(0, len(histories), _PORTION):
            rows = rows_of(histories[start : start + _PORTION], n_items)
            self.queries += rows.shape[0]
            found += self._shown(rows)
        return found

    def _shown(self, rows: sparse.csr_array) -> list[Outcome]:
        scores = score_histories(self.model, rows, self.own)
        checked = self.model._checked(rows)
        if self.own >= 0 and isinstance(self.model, UserKNN):
            seen = checked if self.exclude_seen else None
            items, _ = self.model._select(scores.copy(), seen, self.k)
        else:
            items = self.model.recommend_for(rows, self.k, self.exclude_seen).items
        if self.beta is None:
            return [Outcome(row) for row in items]
        if self.exclude_seen:
            where = np.repeat(np.arange(rows.shape[0]), np.diff(checked.indptr))
            scores[where, checked.indices] = np.nan
        chances = probabilities(scores, self.beta, nothing=0.0)
        return [Outcome(i, p) for i, p in zip(items, chances, strict=True)]


def edited_interactions(
    interactions: Interactions, row: int, history: History
) -> tuple[Interactions, int]:
    """Return the interactions with one user's history replaced, or added when row is -1.

    The number of users stays the same when somebody's history is replaced. The row of the person
    comes second.
    """
    matrix = interactions.matrix
    new = history.row(interactions.n_items)
    users = interactions.users
    if row < 0:
        ids = users.ids.tolist()
        last: Any = ids[-1] + "~" if ids and isinstance(ids[-1], str) else (max(ids) + 1)
        users, row = Vocabulary([*ids, last]), len(ids)
        stacked = sparse.vstack([matrix, new], format="csr")
    else:
        stacked = sparse.vstack([matrix[:row], new, matrix[row + 1 :]], format="csr")
    result: Any = sparse.csr_array(stacked)
    result.indices = result.indices.astype(np.int32, copy=False)
    result.indptr = result.indptr.astype(matrix.indptr.dtype, copy=False)
    result.has_sorted_indices = True
    return (
        Interactions(
            users, interactions.items, result, interactions.explicit, interactions.rating_scale
        ),
        row,
    )


class RetrainedOutcome(_Asked):
    """The lists of a model that is trained again on the data with the edited history.

    The same arguments and the same seeds are used with and without edits. With several seeds, the
    outcome is the mean over the trainings, which are its draws.

    The model is copied, never changed. `own` is the row of the edited history; -1 adds the person
    to the data. `k`, `beta` and `exclude_seen` are as in `FrozenOutcome`.

    Parameters
    ----------
    seeds
        Seeds of training; none for the model's own.
    baselines
        Models trained on the data as they are, by seed: made when first needed, and the same for
        all people.
    """

    policy: Policy = "retrained"

    def __init__(
        self,
        model: Model,
        interactions: Interactions,
        history: History,
        k: int,
        *,
        seeds: Sequence[int] = (),
        baselines: dict[int | None, Model] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, history, k, **options)
        self.interactions, self.seeds = interactions, tuple(seeds) or (None,)
        self.baselines = {} if baselines is None else baselines

    def after(self, treatments: Sequence[Edits]) -> list[Outcome]:
        """Return what is shown after each treatment; the model is trained for each."""
        return [self._shown(self.history.after(edits)) for edits in treatments]

    def _shown(self, history: History) -> Outcome:
        data, row, same = self.interactions, self.own, False
        if self.own >= 0:
            mine = History.of_user(data, self.own)
            same = np.array_equal(mine.items, history.items)
            same = same and np.array_equal(mine.values, history.values)
        if not same:
            data, row = edited_interactions(data, self.own, history)
        draws = [self._drawn(self._trained(data, seed, same), row, history) for seed in self.seeds]
        if len(draws) == 1:
            return draws[0]
        chances = [d.probabilities for d in draws if d.probabilities is not None]
        mean = np.mean(chances, axis=0) if chances else None
        return Outcome(draws[0].items, mean, tuple(draws))

    def _trained(self, data: Interactions, seed: int | None, same: bool) -> Model:
        if same and seed in self.baselines:
            return self.baselines[seed]
        self.queries += 1
        fresh: Any = replace(self.model, **({} if seed is None else {"seed": seed}))  # type: ignore[type-var]
        trained: Model = fresh.fit(data)
        if same:
            self.baselines[seed] = trained
        return trained

    def _drawn(self, trained: Model, row: int, history: History) -> Outcome:
        data = trained.interactions
        user = data.users.ids[[row]]
        items = trained.recommend(user, self.k, self.exclude_seen).items[0]
        if self.beta is None:
            return Outcome(items)
        scores = trained.score(user, data.items.ids)[0]
        if self.exclude_seen:
            scores[history.items] = np.nan
        return Outcome(items, probabilities(scores, self.beta, nothing=0.0))


class UpdatedOutcome(_Asked):
    """The same by an exact update of the model instead of training.

    `box` gives the scores of the retrained model.
    """

    policy: Policy = "retrained"

    def __init__(self, box: Any, model: Model, history: History, k: int, **options: Any) -> None:
        super().__init__(model, history, k, **options)
        self.box = box

    def after(self, treatments: Sequence[Edits]) -> list[Outcome]:
        """Return what is shown after each treatment."""
        return [self._shown(self.history.after(edits)) for edits in treatments]

    def _shown(self, history: History) -> Outcome:
        scores = self.box.scores([history])[0]
        if self.exclude_seen:
            scores[history.items] = np.nan
        items = first_lists(scores[None], self.k)[0]
        if self.beta is None:
            return Outcome(items)
        return Outcome(items, probabilities(scores, self.beta, nothing=0.0))


def retrained_outcome(
    model: Model, closed: Any, interactions: Interactions, history: History, k: int, own: int
) -> RetrainedOutcome | UpdatedOutcome:
    """Return the outcome of a retrained model: by its closed form, or by training."""
    if closed is None:
        return RetrainedOutcome(model, interactions, history, k, own=own)
    return UpdatedOutcome(closed.box(own), model, history, k, own=own)


@dataclass(frozen=True)
class InTopK:
    """1 when any of some items stands in the first k places, else 0."""

    targets: tuple[int, ...]
    k: int
    seeks: Literal["greatest", "least"] = "greatest"
    name: str = "in the list"

    def value(self, before: Outcome, after: Outcome) -> float:
        """Return 1 or 0; of several trainings, the share."""
        if after.draws:
            return float(np.mean([self.value(before, one) for one in after.draws]))
        return float(np.isin(after.items[: self.k], self.targets).any())


@dataclass(frozen=True)
class ProbabilityOf:
    """The probability that one of some items is drawn."""

    targets: tuple[int, ...]
    seeks: Literal["greatest", "least"] = "greatest"
    name: str = "probability"

    def value(self, before: Outcome, after: Outcome) -> float:
        """Return the sum of the items' probabilities."""
        if after.probabilities is None:
            raise PlanError("probabilities are not known here; give a beta, or ask for the top k")
        return float(after.probabilities[list(self.targets)].sum())


def realistic_faults(outcome: Any, space: EditSpace, edits: Sequence[Edit]) -> list[str]:
    """Return which additions were not shown when they were made, edit after edit."""
    if space.realistic is None:
        return []
    said = []
    for place, edit in enumerate(edits):
        if edit.kind == "add":
            shown = outcome.after([tuple(edits[:place])])[0].items[: space.realistic]
            if edit.item not in shown:
                said.append(f"item {edit.item} was not shown when it was rated")
    return said
