"""Genre: slopes among the items of one, and what is left when each user's mix is held fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ombud.data.labels import LabelState
from ombud.errors import PlanError

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.questions.authors.creators import Creators
    from ombud.stats.statistics import Floats


def by_genre(creators: Creators, data: Dataset, genres: tuple[str, ...]) -> dict[str, Creators]:
    """Return, for each genre, the same creators with only its items known."""
    if not genres:
        return {}
    member = _member(creators, data, genres)
    return {genre: creators.where(member[:, g]) for g, genre in enumerate(genres)}


def expected_mix(creators: Creators, data: Dataset, genres: tuple[str, ...]) -> Floats:
    """Return items x identities: the mix that the genres of an item let expect.

    For each genre it is the mix of all interactions with its items of known identity; an item of
    several genres counts for each in equal parts, and one of none of them belongs to the rest.
    Each mix is drawn to that of all interactions as if by one more, so that no share is 0.

    Parameters
    ----------
    creators
        The identities.
    data
        With interactions, and with labels that have the genres.
    genres
        Their names.
    """
    assert data.interactions is not None  # creators_of has checked
    member = _member(creators, data, genres).astype(np.float64)
    member = np.column_stack([member, member.sum(axis=1) == 0])
    member /= member.sum(axis=1, keepdims=True)
    often = np.bincount(data.interactions.matrix.indices, minlength=data.interactions.n_items)
    weight = np.append(often, 0)[data.interactions.items.codes(creators.items.arrow)]
    known = np.flatnonzero(creators.codes >= 0)
    identity = sparse.csr_array(
        (weight[known].astype(np.float64), (creators.codes[known], known)),
        shape=(len(creators.names), len(creators.codes)),
    )
    read = np.asarray(identity @ member).T
    overall = read.sum(axis=0) / read.sum()
    mix = (read + overall) / (read.sum(axis=1, keepdims=True) + 1)
    found: Floats = member @ mix
    return found


def _member(creators: Creators, data: Dataset, genres: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return items x genres; what is not known to be of a genre is not of it."""
    if data.labels is None:
        raise PlanError("genres name labels of items; the data has no labels")
    missing = sorted(set(genres) - set(data.labels.names))
    if missing:
        raise PlanError(f"genres name {', '.join(missing)}, which the labels do not have")
    states = data.labels.aligned(creators.items)
    columns = [data.labels.names.index(genre) for genre in genres]
    member: NDArray[np.bool_] = states[:, columns] == LabelState.YES
    return member
