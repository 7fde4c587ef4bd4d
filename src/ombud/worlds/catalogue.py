"""A long-tailed catalogue whose labels go with taste and with popularity."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ombud.data.ids import Vocabulary
from ombud.data.labels import Labels, LabelState
from ombud.rng import generator

_THRESHOLD = 0.75


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Items and everything that is true of them."""

    items: Vocabulary  # The item ids
    # Each item's weight for a user without taste; the weights sum to 1.
    popularity: NDArray[np.float64]
    factors: NDArray[np.float32]  # Items x dimensions of taste
    true_labels: NDArray[np.bool_]  # Items x labels: what is the case, whether or not anyone voted
    votes: Labels  # The labels as votes show them: some unknown, some disputed
    applied: Labels  # The same labels as a single careful, incomplete tagger applied them


@lru_cache(maxsize=64)
def numbered(prefix: str, count: int) -> Vocabulary:
    """Return ids such as ``user-0007``, in order."""
    width = len(str(count))
    return Vocabulary([f"{prefix}-{i:0{width}d}" for i in range(1, count + 1)])


def draw_popularity(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return long-tailed weights that sum to 1: a Zipf-Mandelbrot law with noise, shuffled."""
    ranks = rng.permutation(count) + 1.0 + 0.004 * count
    weights = ranks**-0.9 * np.exp(0.3 * rng.standard_normal(count))
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def draw_catalogue(
    items: Vocabulary, names: tuple[str, ...], factors: int, seed: int, *stream: str
) -> Catalogue:
    """Draw a catalogue.

    `names` are the labels; `factors` is how many dimensions taste has.
    """
    rng = generator(seed, *stream, "catalogue")
    popularity = draw_popularity(len(items), rng)
    places = rng.standard_normal((len(items), factors), dtype=np.float32)
    truth, votes, applied = draw_labels(items, names, popularity, places, seed, *stream)
    return Catalogue(items, popularity, places, truth, votes, applied)


def draw_labels(
    items: Vocabulary,
    names: tuple[str, ...],
    popularity: NDArray[np.float64],
    factors: NDArray[np.float32],
    seed: int,
    *stream: str,
) -> tuple[NDArray[np.bool_], Labels, Labels]:
    """Draw true labels, then what voters and a tagger make of them.

    An item has label w with probability ``sigmoid(a_w + 1.2 d_w.factors + c_w z)``: d_w is a
    direction of taste, z the standardised log-popularity, and c_w runs from -0.8 to 0.8 over
    the labels. Items nobody voted on are mostly unpopular ones, so *unknown* goes with
    popularity too.

    Returns
    -------
    The truth (items x labels), the labels by votes, and the labels as applied.
    """
    rng = generator(seed, *stream, "labels")
    shape = (len(items), len(names))
    z = np.log(popularity)
    z = (z - z.mean()) / max(float(z.std()), 1e-9)
    directions = rng.standard_normal((factors.shape[1], len(names)))
    directions /= np.linalg.norm(directions, axis=0)
    # Not by seed: a label is as common, and as tied to popularity, in every world of its kind.
    fixed = generator(0, "labels", *names)
    prevalence = fixed.permutation(np.linspace(0.05, 0.16, len(names)))
    slopes = fixed.permutation(np.linspace(-0.8, 0.8, len(names))) if len(names) > 1 else 0.8
    logits = np.log(prevalence / (1 - prevalence)) + 1.2 * (factors @ directions)
    truth = rng.random(shape) < _sigmoid(logits + slopes * z[:, None])

    met = rng.random(len(items)) < _sigmoid(2.0 + z)
    turnout = 2 + rng.poisson(8 * np.exp(0.5 * z)[:, None], shape)
    total = (turnout * met[:, None] * (rng.random(shape) > 0.02)).astype(np.int32)
    chance = np.where(rng.random(shape) < 0.03, 0.5, np.where(truth, 0.96, 0.04))
    yes = rng.binomial(total, chance).astype(np.int32)
    votes = _from_counts(items, names, yes, total - yes)

    looked_at = rng.random(len(items)) < _sigmoid(1.7 + 0.5 * z)
    states = np.full(shape, LabelState.UNKNOWN, dtype=np.int8)
    states[looked_at] = np.where(
        truth & (rng.random(shape) < 0.92), np.int8(LabelState.YES), np.int8(LabelState.NO)
    )[looked_at]
    applied = Labels(items, names, states, rule="as applied; unlabeled counts as unknown")
    return truth, votes, applied


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(1 / (1 + np.exp(-values)), dtype=np.float64)


def _from_counts(
    items: Vocabulary, names: tuple[str, ...], yes: NDArray[np.int32], no: NDArray[np.int32]
) -> Labels:
    """Do what `Labels.from_votes` does, without a table: many small worlds are drawn."""
    total = yes + no
    states = np.full(yes.shape, LabelState.DISPUTED, dtype=np.int8)
    states[total == 0] = LabelState.UNKNOWN
    states[(total > 0) & (no >= _THRESHOLD * total)] = LabelState.NO
    states[(total > 0) & (yes >= _THRESHOLD * total)] = LabelState.YES
    rule = f"yes or no when at least {_THRESHOLD:.0%} of votes agree"
    return Labels(items, names, states, yes, no, rule)
