"""EASE: scores are linear in every entry of the history, and training again is a formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from ombud.data.interactions import Interactions
from ombud.probes.edits import EditSpace, History, Singles, rows_of
from ombud.probes.influence import (
    Influence,
    count_changes,
    history_of,
    rows_before,
    stacked_after,
    swap_of_row,
)
from ombud.probes.models.base import PROMISING, Array, Block, NoBounds, SingleEdits, top_sum
from ombud.systems.recommenders.ease import EASE, inverse_in_place

if TYPE_CHECKING:
    from ombud.probes.others import UserSwap

Floats = NDArray[np.float64]

_ALL = 3_000_000
"""Up to so many scores, all edits are evaluated; beyond, a bound says which ones need be."""
_PORTION = 8


class LinearBox:
    """The white box of EASE: an edit of item i by d adds ``d B_i`` to all scores."""

    affine = True

    def __init__(self, model: EASE) -> None:
        self.model = model
        self.weights = model.weights
        self.known = model._state.known

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        rows = rows_of(histories, len(self.known)).astype(np.float64)
        out: Array = np.asarray(rows @ self.weights, np.float64)
        out[:, ~self.known] = np.nan
        out[[not self.known[h.items].any() for h in histories]] = np.nan
        return out

    def _change(self, singles: Singles) -> NDArray[np.float32]:
        return np.nan_to_num(singles.after) - np.nan_to_num(singles.before)

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        now = (history.values.astype(np.float64) @ self.weights[history.items]).astype(np.float32)
        now[~self.known] = np.nan
        change, known = self._change(singles), self.known[history.items]
        # Taking back the last known item, or adding only unknown ones, leaves nothing to go by.
        left = known.sum() - (np.isnan(singles.after) & self.known[singles.items]).astype(int)
        left += np.isnan(singles.before) & self.known[singles.items]
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            block = self.weights[singles.items[part]] * change[part, None]
            block += now
            block[left[part] <= 0] = np.nan
            yield part, block

    def gains(self, history: History, singles: Singles, direction: Array) -> Array | None:
        """Return what each single edit adds to a weighted sum of scores."""
        effect = self.weights @ np.where(self.known, direction, 0.0)
        return np.asarray(self._change(singles) * effect[singles.items], np.float64)

    def gap_bounds(self, space: EditSpace, target: int, rivals: NDArray[np.int64]) -> Array | None:
        """Return what ``score(target) - score(rival)`` cannot exceed; edits add up."""
        if not self.known[target]:
            return None
        history = space.history
        now = history.values.astype(np.float64) @ self.weights[history.items]
        singles = space.singles(shown=np.arange(space.n_items, dtype=np.int32))
        change = self._change(singles).astype(np.float64)
        up, down = np.zeros(space.n_items), np.zeros(space.n_items)
        np.maximum.at(up, singles.items, change)
        np.minimum.at(down, singles.items, change)
        apart = self.weights[:, [target]].astype(np.float64) - self.weights[:, rivals]
        gain = np.maximum(apart * up[:, None], apart * down[:, None])
        found: Array = now[target] - now[rivals] + top_sum(gain, space.budget)
        return found


_LAST: dict[float, tuple[ReferenceType[Interactions], Floats]] = {}
"""The last inverse, by the regularization, with the data it is of: several probes need it."""


def inverse_of(model: EASE) -> Floats:
    """Return the inverse that training EASE makes and does not store."""
    known = _LAST.get(model.regularization)
    if known is not None and known[0]() is model.interactions:
        return known[1]
    _LAST.clear()
    matrix = model.interactions.matrix.astype(np.float64)
    gram = np.asfortranarray((matrix.T @ matrix).toarray())
    gram[np.diag_indices_from(gram)] += model.regularization
    found = np.ascontiguousarray(inverse_in_place(gram))
    _LAST[model.regularization] = (ref(model.interactions), found)
    return found


def without_dust(scores: Floats) -> Floats:
    """Return scores with 0 for what is 0 but for rounding, as items without a link have.

    Training, which meets no such rounding, gives them equal scores and ranks the lower id first.
    """
    with np.errstate(invalid="ignore"):
        largest = np.nanmax(np.abs(scores), initial=0.0)
        return np.where(np.abs(scores) < 1e-12 * largest, 0.0, scores)


class EaseInfluence(Influence):
    r"""EASE after swaps, by the Woodbury identity.

    With U the changed histories as columns and S their signs (-1 before, +1 after),
    :math:`P' = P - P U (S + U^\top P U)^{-1} U^\top P`; a target's scores need only
    :math:`x_j^\top P'` and the diagonal of :math:`P'`.
    """

    exact = True

    def __init__(self, model: EASE) -> None:
        self.data = model.interactions
        self.inverse = inverse_of(model)
        self.counts = np.bincount(self.data.matrix.indices, minlength=self.data.n_items)

    def today(self, target: int) -> Floats:
        """Return the target's scores as they are."""
        own, product = self.own(target)
        scores = own - product / np.diag(self.inverse)
        scores[self.counts == 0] = np.nan
        return without_dust(np.where(own.any(), scores, np.nan))

    def own(self, target: int) -> tuple[Floats, Floats]:
        """Return the target's history x, and x'P."""
        items, values = history_of(self.data, target)
        own = np.zeros(self.data.n_items)
        own[items] = values
        return own, values @ self.inverse[items]

    def prepare(self, swaps: Sequence[UserSwap]) -> _PreparedEase:
        """Return the images P U of the changed histories, and the inner inverses."""
        before = rows_before(self.data, swaps).astype(np.float64)
        after = stacked_after(swaps, self.data.n_items).astype(np.float64)
        which = swap_of_row(swaps)
        images = np.concatenate([before @ self.inverse, after @ self.inverse])
        inner = []
        for number in range(len(swaps)):
            rows = np.flatnonzero(which == number)
            both = np.concatenate([rows, len(which) + rows])
            columns = np.concatenate([before[rows].toarray(), after[rows].toarray()])
            signs = np.repeat([-1.0, 1.0], len(rows))
            inner.append((both, np.linalg.inv(np.diag(signs) + columns @ images[both].T)))
        counts, _ = count_changes(self.data, swaps)
        return _PreparedEase(self, images, inner, self.counts + counts > 0)


@dataclass(frozen=True, eq=False)
class _PreparedEase:
    influence: EaseInfluence
    images: Floats
    inner: list[tuple[NDArray[np.int64], Floats]]
    known: NDArray[np.bool_]

    def scores(self, target: int) -> Floats:
        own, product = self.influence.own(target)
        diagonal = np.diag(self.influence.inverse)
        out = np.full(self.known.shape, np.nan)
        for number, (rows, middle) in enumerate(self.inner):
            images = self.images[rows]
            turned = middle @ images
            changed = product - (images @ own) @ turned
            scale = diagonal - np.einsum("mi,mi->i", images, turned)
            known = self.known[number]
            if own[known].any():
                out[number, known] = without_dust((own - changed / scale)[known])
        return out


class EaseUpdate:
    r"""EASE trained on the data with a person's history replaced: exact scores by rank-one updates.

    Without the person's row, :math:`G = P + \alpha p p^\top` with :math:`p = P x_0` and
    :math:`\alpha = 1 / (1 - x_0^\top p)`. A history x put in its place gives, with
    :math:`y = G x`, :math:`c = 1 + x^\top y` and :math:`D = diag(G)`, the scores
    :math:`x_i - y_i / (c D_i - y_i^2)`: y is linear in the edits. Made once for all people.
    """

    close = True

    def __init__(self, model: EASE) -> None:
        self.data = model.interactions
        self.inverse = inverse_of(model)
        self.diagonal = np.diag(self.inverse).copy()
        self.counts = np.bincount(self.data.matrix.indices, minlength=self.data.n_items)

    def box(self, own: int) -> RetrainedEase:
        """Return the scores after edits of one person's history, the model trained again."""
        return RetrainedEase(self, own)

    def single_edits(
        self,
        space: EditSpace,
        own: int,
        targets: NDArray[np.int64],
        *,
        k: int,
        beta: float,
        shown: NDArray[np.int32] | None = None,
        every: bool | None = None,
    ) -> SingleEdits:
        """Evaluate single edits for some targets.

        `every` says whether the probabilities of all edits are computed, or only of those that a
        bound does not exclude; by default it depends on how many there are.
        """
        singles = space.singles(shown=shown)
        if every is None:
            every = len(singles) * space.n_items <= _ALL
        return _EaseEdits(self.box(own), space, singles, targets, k, beta).settled(every)


class RetrainedEase(NoBounds):
    """The scores of EASE after edits of one person's history, trained again.

    `own` is the person's row; -1 is nobody, whose history is added.
    """

    def __init__(self, form: EaseUpdate, own: int) -> None:
        self.inverse, self.n_items = form.inverse, form.data.n_items
        mine = History.of([], []) if own < 0 else History.of_user(form.data, own)
        values = mine.values.astype(np.float64)
        self.image: Array = values @ self.inverse[mine.items]
        self.alpha = float(1 / (1 - values @ self.image[mine.items]))
        self.diagonal = form.diagonal + self.alpha * self.image**2
        self.others = form.counts > 0
        self.others[mine.items] = form.counts[mine.items] > 1

    def _image(self, history: History) -> tuple[Array, float]:
        """Return y and c of a history."""
        values = history.values.astype(np.float64)
        y: Array = values @ self.inverse[history.items]
        y += self.alpha * float(values @ self.image[history.items]) * self.image
        return y, float(1 + values @ y[history.items])

    def row(self, item: int) -> Array:
        """Return one row of the inverse without the person."""
        found: Array = self.inverse[item] + self.alpha * self.image[item] * self.image
        return found

    def scores(self, histories: Sequence[History]) -> Array:
        """Return the scores of all items for each history; NaN where there is none."""
        out = np.full((len(histories), self.n_items), np.nan)
        for row, history in enumerate(histories):
            if len(history):
                y, c = self._image(history)
                out[row] = np.where(self.others, -y / (c * self.diagonal - y * y), np.nan)
                y, own = y[history.items], history.items
                out[row, own] = history.values - y / (c * self.diagonal[own] - y * y)
                out[row] = without_dust(out[row])
        return out

    def blocks(self, history: History, singles: Singles, rows: int) -> Iterator[Block]:
        """Yield the scores of all items after each single edit."""
        y, c = self._image(history)
        now = np.zeros(self.n_items)
        now[history.items] = history.values
        step = (np.nan_to_num(singles.after) - np.nan_to_num(singles.before)).astype(np.float64)
        left = len(history) - np.isnan(singles.after) + np.isnan(singles.before)
        for start in range(0, len(singles), rows):
            part = slice(start, min(start + rows, len(singles)))
            items, d = singles.items[part], step[part]
            line = np.arange(len(items))
            rows_of_edits = self.inverse[items] + np.outer(
                self.alpha * self.image[items], self.image
            )
            square = c + 2 * d * y[items] + d * d * rows_of_edits[line, items]
            after = y + d[:, None] * rows_of_edits
            out = np.tile(now, (len(items), 1))
            out[line, items] = np.nan_to_num(singles.after[part])
            known = self.others | (out > 0)
            out -= after / (square[:, None] * self.diagonal - after**2)
            out[~known] = np.nan
            out[left[part] <= 0] = np.nan
            yield part, out.astype(np.float32)


class _EaseEdits:
    r"""The single edits of one person, and the bound that says which must be evaluated.

    The log of a sum of exponentials is convex, so that for a target k
    :math:`\log P_k \le \beta s_k - lse(\beta s^0) - \beta \pi (s - s^0)` with today's
    probabilities :math:`\pi`: first-order influence bounds it from above. The score of k is exact;
    :math:`\pi s` is bounded from below by Taylor's formula in :math:`z = y / \sqrt c`, whose second
    derivative is taken at the far end of the interval that Cauchy-Schwarz permits. This takes three
    sums per edited item. Edits are evaluated from the largest bound on, until the best value is at
    least the next bound: the result is the optimum over all of them.
    """

    def __init__(
        self,
        box: RetrainedEase,
        space: EditSpace,
        singles: Singles,
        targets: NDArray[np.int64],
        k: int,
        beta: float,
    ) -> None:
        self.box, self.singles, self.targets, self.k, self.beta = box, singles, targets, k, beta
        history = space.history
        self.y, self.c = box._image(history)
        self.rated = np.zeros(space.n_items, bool)
        self.rated[history.items] = True
        self.open = box.others & ~self.rated & (len(history) > 0)
        self.items = singles.items.astype(np.int64)
        after = np.nan_to_num(singles.after).astype(np.float64)
        self.steps = after - np.nan_to_num(singles.before)
        self.removed = np.isnan(singles.after)
        self.emptied = self.removed & (len(history) == 1)
        self.gone = self.rated[self.items] & self.removed & box.others[self.items]
        self.scores = np.where(
            box.others & ~self.rated, -self.y / (self.c * box.diagonal - self.y**2), -np.inf
        )

    def _run(self, which: NDArray[np.int64], beta: float, k: int) -> tuple[Array, Array]:
        """Return log-sums and margins of some edits, evaluated in full."""
        return self._kernel(
            self.items[which], self.steps[which], self.removed[which], self.emptied[which], beta, k
        )

    def _kernel(
        self,
        items: NDArray[np.int64],
        steps: Array,
        removed: NDArray[np.bool_],
        emptied: NDArray[np.bool_],
        beta: float,
        k: int,
    ) -> tuple[Array, Array]:
        from ombud.probes import _kernels

        box = self.box
        log_sum, margin = np.empty(len(items)), np.empty((len(items), len(self.targets)))
        hidden = np.where(box.others & ~self.rated, 0.0, -np.inf)
        _kernels.linear_singles(
            box.inverse, box.image, box.alpha, self.y, box.diagonal, self.c, hidden, box.others,
            items, steps, removed, emptied, beta, k, self.targets, log_sum, margin,
        )  # fmt: skip
        return log_sum, margin

    def settled(self, every: bool) -> SingleEdits:
        """Return the best edit of each target, by probability and by margin."""
        targets, beta = self.targets, self.beta
        # No edit is a step of 0 of the first item, which stays where it is.
        nobody = np.array([not self.rated.any()])
        first = np.zeros(1, np.int64)
        log_now, margin_now = self._kernel(
            first, np.zeros(1), ~self.rated[:1], nobody, beta, self.k
        )
        log_sum, margin = self._run(np.arange(len(self.items)), beta if every else 0.0, self.k)
        margins = np.concatenate([margin_now, margin])
        if not beta > 0:
            return SingleEdits.of(self.singles, np.full(margins.shape, -np.inf), margins)
        after = self._after(targets)
        today = np.where(self.open[targets], beta * self.scores[targets] - log_now[0], -np.inf)
        if every:
            chances = np.concatenate([today[None], beta * after - log_sum[:, None]])
            return SingleEdits.of(self.singles, chances, margins)
        bounds = self._bounds(float(log_now[0]))
        best, edit = today.copy(), np.full(len(targets), -1)
        promising = np.full((len(targets), PROMISING), -1)
        known: dict[int, float] = {}
        for place in range(len(targets)):
            score = beta * after[:, place]
            order = np.flatnonzero(np.isfinite(score))
            bound = np.full(len(score), -np.inf)
            bound[order] = score[order] - np.maximum(bounds[order], score[order])
            order = order[np.argsort(-bound[order], kind="stable")]
            promising[place, : len(order[:PROMISING])] = order[:PROMISING]
            at = 0
            while at < len(order) and bound[order[at]] > best[place] + 1e-9:
                some = order[at : at + _PORTION].tolist()
                new = np.array([e for e in some if e not in known], np.int64)
                known.update(zip(new.tolist(), self._run(new, beta, 0)[0].tolist(), strict=True))
                for e in some:
                    if float(score[e]) - known[e] > best[place]:
                        best[place], edit[place] = float(score[e]) - known[e], e
                at += len(some)
        arg, line = margins.argmax(axis=0), np.arange(len(targets))
        return SingleEdits(
            self.singles, today, best, edit, margins[0], margins[arg, line], arg - 1, promising,
            len(known),
        )  # fmt: skip

    def _after(self, targets: NDArray[np.int64]) -> Array:
        """Return the targets' scores after each edit, edits x targets; -inf where not listed."""
        box, items, d = self.box, self.items, self.steps
        own = box.inverse[items[:, None], items[:, None]][:, 0] + box.alpha * box.image[items] ** 2
        square = self.c + 2 * d * self.y[items] + d * d * own
        out = np.empty((len(items), len(targets)))
        for place, target in enumerate(targets.tolist()):
            y = self.y[target] + d * box.row(target)[items]
            score = -y / (square * box.diagonal[target] - y**2)
            mine = items == target
            listed = mine & self.gone if self.rated[target] else ~mine & box.others[target]
            out[:, place] = np.where(listed & ~self.emptied, score, -np.inf)
        return out

    def _bounds(self, log_now: float) -> Array:
        """Return what the log-sum of each edit is not below."""
        from ombud.probes import _kernels

        box, beta, items, delta = self.box, self.beta, self.items, self.steps
        if not self.open.any():
            return self._run(np.arange(len(items)), beta, 0)[0]
        diagonal, root = box.diagonal, np.sqrt(self.c)
        own = diagonal[items]
        square = self.c + 2 * delta * self.y[items] + delta**2 * own
        shrink = np.sqrt(self.c / square)
        z = self.y / root
        far = np.abs(delta * np.sqrt(own)).max() * np.sqrt(diagonal) / root
        far = np.maximum(shrink.max() * (np.abs(z) + far), np.abs(z))
        if (far > 0.99 * np.sqrt(diagonal)).any():
            return self._run(np.arange(len(items)), beta, 0)[0]
        chance = np.where(self.open, np.exp(beta * self.scores - log_now), 0.0)
        curve = far * (3 * diagonal + far**2) / (diagonal - far**2) ** 3
        slope = -(diagonal + z**2) / (diagonal - z**2) ** 2
        level = -z / (diagonal - z**2)
        wanted = np.zeros(len(z), bool)
        wanted[items] = True
        sums = np.zeros((3, len(z)))
        _kernels.influence_sums(
            box.inverse, box.image, box.alpha, chance * slope, chance * curve * z, chance * curve,
            wanted, sums,
        )  # fmt: skip
        a, b, c = sums[:, items]
        e = shrink * delta / root
        move = shrink - 1
        low = chance @ level + move * (chance @ (slope * z)) + e * a
        low -= move**2 * (chance @ (curve * z**2)) + 2 * move * e * b + e**2 * c
        low *= shrink / root
        # What an edit adds leaves the sum, exactly; what it takes back enters it.
        gone = np.where(~self.rated[items], chance[items], 0.0)
        y = self.y[items] + delta * own
        end = y / np.sqrt(square)
        tangent = level[items] + slope[items] * (end - z[items])
        tangent -= curve[items] * (end - z[items]) ** 2
        tangent *= shrink / root
        base = np.where(np.isfinite(self.scores), self.scores, 0.0)
        stay = np.maximum(1 - gone, 1e-300)
        rest = low - gone * tangent - (chance @ base - gone * base[items])
        found: Array = log_now + np.log(stay) + beta * rest / stay
        back = beta * -y / (square * own - y**2)
        # Where next to nothing stays, rounding decides what does.
        found[stay < 1e-6] = -np.inf
        found = np.where(self.gone, np.logaddexp(found, back), found)
        found[self.emptied] = np.inf
        return found
