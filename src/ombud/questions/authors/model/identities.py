"""More than two identities: a multinomial model by nested splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ombud.errors import DataError
from ombud.questions.authors.model.fits import PropagationFit, fit_propagation
from ombud.questions.authors.model.posterior import NotConvergedError
from ombud.questions.authors.model.priors import Priors
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

Splits = Literal["nested", "rest"]
"""Each identity against those after it, or each against all others."""

_FEWEST_ITEMS = 50
_FEWEST_USERS = 20


@dataclass(frozen=True, slots=True)
class Split:
    """One identity against others."""

    identity: str  # Whose share it is
    against: tuple[str, ...]  # Among these and the identity itself
    fit: PropagationFit | None  # The joint fit; None when there is not enough data
    reason: str  # Why there is no fit; empty when there is one

    def estimates(self) -> list[Estimate]:
        """Return the estimates of the fit, with the identity as their label."""
        about = {"label": self.identity}
        if self.fit is not None:
            against = list(self.against)
            return [
                e.replace(**about, details={**e.details, "among": against})
                for e in self.fit.estimates()
            ]
        return [
            Estimate.undefined(
                reason_code="too-few-units",
                metric="slope",
                key="propagation/slope",
                reason=self.reason,
                n=0,
                unit="user",
                **about,
            )
        ]


@dataclass(frozen=True, slots=True)
class IdentityFit:
    """The fits of all splits."""

    splits: tuple[Split, ...]  # In order
    identities: tuple[str, ...]  # In the order of the splits
    kind: Splits  # How they were split

    def estimates(self) -> list[Estimate]:
        """Return the estimates of every split."""
        return [estimate for split in self.splits for estimate in split.estimates()]

    def predict_mix(
        self, draws: int = 10_000, *, rng: np.random.Generator | None = None
    ) -> tuple[Floats, Floats]:
        """Return smoothed mixes of new users' profiles and lists (nested splits only).

        Returns
        -------
        Draws x identities, and draws x systems x identities; each mix sums to 1.
        """
        if self.kind != "nested":
            raise ValueError("mixes need nested splits; shares against the rest need not sum to 1")
        rng = np.random.default_rng(0) if rng is None else rng
        profile, lists = [], []
        left, left_lists = np.ones(draws), np.ones((draws, 1))
        for split in self.splits:
            if split.fit is None:
                raise NotConvergedError(f"{split.identity}: {split.reason}")
            if split.fit.apart:
                names = ", ".join(name for fit in split.fit.apart for name in fit.counts.names)
                raise NotConvergedError(f"{split.identity}: no joint fit with {names}")
            found = split.fit.predict(draws, rng=rng)
            profile.append(left * found.profile_smoothed)
            lists.append(left_lists * found.smoothed)
            left = left * (1 - found.profile_smoothed)
            left_lists = left_lists * (1 - found.smoothed)
        return (
            np.stack([*profile, left], axis=-1),
            np.stack([*lists, left_lists], axis=-1),
        )


def fit_identities(
    counts: ArrayLike,
    list_counts: ArrayLike,
    identities: Sequence[str],
    systems: Sequence[str],
    *,
    splits: Splits = "nested",
    expected: ArrayLike | None = None,
    list_expected: ArrayLike | None = None,
    priors: Priors | None = None,
    draws: int = 4096,
    rng: np.random.Generator | None = None,
) -> IdentityFit:
    r"""Fit propagation for any number of identities.

    A multinomial likelihood is the product of binomial ones along nested splits: the first
    identity against all others, the second against those left, and so on. With normal log odds
    at every split, independent between splits, the model factors and each part is fitted exactly.
    It is a multinomial logit-normal model whose covariance is diagonal in the log odds of the
    splits: how one identity's share in profiles goes with *another's* share in lists is not a
    parameter. Identities are split off from the most to the least frequent in profiles.

    ``splits="rest"`` instead gives each identity's share against all others, one by one: easier to
    read, but the answers overlap and are no joint model. With two identities both are the same.

    Parameters
    ----------
    counts
        Users x identities: items in profiles.
    list_counts
        Users x systems x identities: items in lists.
    identities, systems
        Their names.
    splits
        ``nested`` or ``rest``.
    expected, list_expected
        Mixes that are expected of profiles and lists for other reasons, shaped as the counts; the
        slopes are then those of what goes beyond them. Default: none.
    priors, draws, rng
        As in `fit_propagation`.

    Notes
    -----
    An identity with fewer than 50 items in all profiles, or in profiles of fewer than 20 users,
    is *not enough data*; it is never merged into another.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    y, k = np.asarray(counts), np.asarray(list_counts)
    names = tuple(identities)
    faults = []
    if y.ndim != 2 or k.ndim != 3 or len(y) != len(k) or y.shape[-1] != k.shape[-1]:
        faults.append(
            f"shapes are {y.shape} and {k.shape}; users x identities and users x systems "
            "x identities expected"
        )
    elif y.shape[1] != len(names) or len(set(names)) != len(names) or len(names) < 2:
        faults.append(
            f"{len(set(names))} different names for {y.shape[1]} identities, of at least 2"
        )
    if splits not in {"nested", "rest"}:
        faults.append(f"splits is {splits!r}; nested or rest")
    if faults:
        raise DataError("counts for the propagation model", faults)
    mixes = [None if e is None else np.asarray(e, float) for e in (expected, list_expected)]
    for e, shaped in zip(mixes, (y, k), strict=True):
        if e is not None and e.shape != shaped.shape:
            raise DataError(
                "counts for the propagation model",
                [f"expected mixes have shape {e.shape}; {shaped.shape} expected"],
            )
    order = np.argsort(-y.sum(axis=0), kind="stable")
    names, y, k = tuple(names[i] for i in order), y[:, order], k[:, :, order]
    first, second = (None if e is None else e[..., order] for e in mixes)
    last = len(names) - 1 if splits == "nested" or len(names) == 2 else len(names)
    found = []
    for g in range(last):
        others = [h for h in range(len(names)) if h > g or (splits == "rest" and h != g)]
        among = [g, *others]
        reason = _too_few(y[:, g], y[:, others].sum(axis=1))
        lists = k[:, :, among].sum(axis=2)
        fit = None
        if not reason:
            whole = y[:, among].sum(axis=1)
            fit = fit_propagation(
                y[:, g], whole, k[:, :, g], lists, systems,
                offset=_odds(first, g, others), list_offset=_odds(second, g, others),
                priors=priors, draws=draws, rng=rng,
            )  # fmt: skip
        found.append(Split(names[g], tuple(names[h] for h in others), fit, reason))
    return IdentityFit(tuple(found), names, splits)


def _odds(mix: Floats | None, g: int, others: list[int]) -> Floats | None:
    """Return the log odds of one identity against others in expected mixes."""
    if mix is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.log(mix[..., g]) - np.log(mix[..., others].sum(axis=-1))
    return found


def _too_few(one: Floats, others: Floats) -> str:
    for who, items in (("the identity", one), ("the others", others)):
        if items.sum() < _FEWEST_ITEMS or (items > 0).sum() < _FEWEST_USERS:
            return (
                f"not enough data: {who} has {int(items.sum())} items in the profiles of "
                f"{int((items > 0).sum())} users; {_FEWEST_ITEMS} and {_FEWEST_USERS} are needed"
            )
    return ""
