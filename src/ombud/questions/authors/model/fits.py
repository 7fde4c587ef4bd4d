"""How profiles propagate into lists: the model of Ekstrand and Kluver (2021), fitted exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._importance import draw
from ombud.questions.authors.model.posterior import Diagnostics, NotConvergedError, Posterior
from ombud.questions.authors.model.predictive import Misfit, Predictive, measure_misfit, predict
from ombud.questions.authors.model.priors import Priors
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

SPREAD_FLOOR = 0.05
"""A standard deviation of log odds whose interval reaches below this is not told from 0."""

_METHOD = "posterior, collapsed importance sampling"
_REPLICATES = 500


@dataclass(frozen=True, slots=True)
class _Fit:
    counts: Counts
    priors: Priors
    drawn: Posterior | None
    diagnostics: Diagnostics | None
    misfits: tuple[Misfit, ...]
    reason: str

    @property
    def posterior(self) -> Posterior:
        """The draws; an error when there are none that can be trusted."""
        if self.drawn is None or self.reason:
            raise NotConvergedError(self.reason or "there are no draws")
        return self.drawn

    def predict(self, draws: int = 10_000, *, rng: np.random.Generator | None = None) -> Predictive:
        """Return draws for new users; see `Predictive`."""
        return predict(
            self.counts, self.posterior, draws, np.random.default_rng(0) if rng is None else rng
        )

    def _estimate(self, name: str, values: Floats | None, n: int, **about: Any) -> Estimate:
        about = {"key": f"propagation/{name}", "unit": "user"} | about
        metric = about.pop("metric", name.replace("-", " "))
        reason = about.pop("why_not", "") or self.reason
        if values is None or reason:
            about = {key: value for key, value in about.items() if key != "null"}
            return Estimate.undefined(
                reason_code="not-estimable", metric=metric, reason=reason, n=n, **about
            )
        posterior = self.posterior
        return Estimate(
            metric=metric,
            value=posterior.average(values),
            interval=posterior.interval(values),
            method=_METHOD,
            n=n,
            **about,
        )


@dataclass(frozen=True, slots=True)
class ProfileFit(_Fit):
    """The posterior of mu and sigma from profiles alone.

    Parameters
    ----------
    counts
        The profiles.
    priors
        The priors.
    drawn
        Draws, trusted or not; `posterior` gives them only when they are.
    diagnostics
        How far they can be trusted.
    misfits
        Of the profiles.
    reason
        Why there is no answer; empty when there is one.
    """

    @property
    def misfit(self) -> Misfit | None:
        """How far the profiles are from what is predicted; None without an answer."""
        return self.misfits[0] if self.misfits else None

    @property
    def spread_reason(self) -> str:
        """Why no slope can be identified; empty when one can."""
        return self.reason or _no_spread(self.posterior)

    def estimates(self) -> list[Estimate]:
        """Return mu, sigma and the share of an average profile, with 95% intervals."""
        return _profile_estimates(self, "profile fit", self.misfit)


@dataclass(frozen=True, slots=True)
class PropagationFit(_Fit):
    """The joint posterior of profiles and of the lists of all systems.

    Parameters
    ----------
    counts
        Profiles and lists.
    priors
        The priors.
    drawn
        Draws, trusted or not; `posterior` gives them only when they are. None when there was
        nothing to fit because users do not differ.
    diagnostics
        How far they can be trusted; None without draws.
    misfits
        Of the profiles, then of each system.
    reason
        Why there is no answer; empty when there is one.
    profile
        The fit to profiles alone, to be shown beside this one.
    """

    profile: ProfileFit

    def misfit(self, system: str) -> Misfit | None:
        """How far a system's lists are from what is predicted; None without an answer."""
        return next((one for one in self.misfits if one.system == system), None)

    @property
    def spread_reason(self) -> str:
        """Why no slope can be identified; empty when one can."""
        return self.reason or _no_spread(self.posterior)

    def estimates(self) -> list[Estimate]:
        """Return all parameters with 95% intervals.

        For each system the slope s, the intercept b, the balance for an even profile
        logistic(b), and the residual standard deviation. A slope, and what depends on it, is
        undefined when users do not differ measurably. The note of a slope has what the misfit
        says, and `details` has the misfit and P(s > 1).
        """
        found = _profile_estimates(self, "joint fit", self.misfits[0] if self.misfits else None)
        there = (self.counts.list_known > 0).sum(axis=0)
        draws = None if self.drawn is None or self.reason else self.drawn
        for a, system in enumerate(self.counts.names):
            n = int(there[a])
            about: dict[str, Any] = {"system": system, "why_not": self.spread_reason}
            slope = intercept = residual = None
            if draws is not None:
                misfit = self.misfit(system)
                assert misfit is not None
                slope, intercept, residual = (
                    draws.slope[:, a],
                    draws.intercept[:, a],
                    draws.residual[:, a],
                )
                about["note"] = misfit.words
                about["details"] = {"misfit": misfit.to_dict()}
                above = {"above_one": draws.average(slope > 1)}
                found.append(
                    self._estimate(
                        "slope", slope, n, **about | {"details": about["details"] | above}
                    )
                )
                even = 1 / (1 + np.exp(-intercept))
                found.append(self._estimate("intercept", intercept, n, **about))
                found.append(self._estimate("balance-for-an-even-profile", even, n, **about))
                found.append(self._residual(system, residual, n))
            else:
                for name in ("slope", "intercept", "balance-for-an-even-profile"):
                    found.append(self._estimate(name, None, n, **about))
                found.append(self._estimate("residual-sd", None, n, system=system))
        return found

    def _residual(self, system: str, values: Floats, n: int) -> Estimate:
        """Return the residual standard deviation, and whether it can be told from 0."""
        low, high = self.posterior.interval(values)
        at_zero = low < SPREAD_FLOOR
        note = f"cannot be told from 0; below {high:.2g} with 97.5% probability" if at_zero else ""
        return self._estimate(
            "residual-sd", values, n, system=system, note=note, details={"at_zero": at_zero}
        )

    def differences(self) -> list[Estimate]:
        """Return the differences of slopes and of intercepts between every two systems."""
        found = []
        there = self.counts.list_known > 0
        draws = None if self.drawn is None or self.reason else self.drawn
        for a, b in combinations(range(self.counts.systems), 2):
            n = int((there[:, a] & there[:, b]).sum())
            for name in ("slope", "intercept"):
                values = None
                if draws is not None:
                    both = getattr(draws, name)
                    values = both[:, a] - both[:, b]
                found.append(
                    self._estimate(
                        f"{name}-difference",
                        values,
                        n,
                        kind="gap",
                        null=0.0,
                        system=self.counts.names[a],
                        against=self.counts.names[b],
                        why_not=self.spread_reason,
                    )
                )
        return found

    def curve(self, system: str, shares: ArrayLike, level: float = 0.95) -> Floats:
        """Return the smoothed list share for profile shares: mean, lower and upper end.

        Parameters
        ----------
        system
            Its name.
        shares
            Shares in profiles, above 0 and below 1.
        level
            Of the band.

        Returns
        -------
        3 x shares.
        """
        if self.spread_reason:
            raise NotConvergedError(self.spread_reason)
        wanted = np.asarray(shares, dtype=np.float64)
        if not np.all((wanted > 0) & (wanted < 1)):
            raise ValueError("shares must be above 0 and below 1")
        a = self.counts.names.index(system)
        odds = np.log(wanted / (1 - wanted))
        posterior = self.posterior
        found = np.empty((3, len(wanted)))
        for i, t in enumerate(odds):
            x = posterior.intercept[:, a] + posterior.slope[:, a] * t
            found[:, i] = (
                posterior.average(1 / (1 + np.exp(-x))),
                *(1 / (1 + np.exp(-np.array(posterior.interval(x, level))))),
            )
        return found


def fit_profiles(
    count: ArrayLike,
    known: ArrayLike,
    *,
    offset: ArrayLike | None = None,
    priors: Priors | None = None,
    draws: int = 4096,
    rng: np.random.Generator | None = None,
) -> ProfileFit:
    r"""Fit the distribution of profile balance over users.

    .. math:: y_u \sim Binomial(n_u, \theta_u), \quad logit \theta_u \sim Normal(\mu, \sigma)

    Parameters
    ----------
    count
        For each user, items of the identity in the profile.
    known
        For each user, items of known identity in the profile.
    offset
        For each user, log odds expected for other reasons, to which theirs are added; default, 0.
    priors
        Default: Normal(0, 10) for mu, Exponential(0.1) for sigma.
    draws
        How many draws from the posterior; up to eight times as many where few are effective.
    rng
        Source of randomness.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> theta = 1 / (1 + np.exp(-rng.normal(-0.5, 1.0, 300)))
    >>> fit = fit_profiles(rng.binomial(20, theta), np.full(300, 20))
    >>> mu, sigma, _ = fit.estimates()
    >>> mu.interval[0] < -0.5 < mu.interval[1], sigma.interval[0] < 1 < sigma.interval[1]
    (True, True)
    """
    priors = Priors() if priors is None else priors
    rng = np.random.default_rng(0) if rng is None else rng
    counts = Counts.check(count, known, offset=offset)
    return _profile_fit(counts, priors, draws, rng)


def fit_propagation(
    count: ArrayLike,
    known: ArrayLike,
    list_count: ArrayLike,
    list_known: ArrayLike,
    systems: Sequence[str],
    *,
    offset: ArrayLike | None = None,
    list_offset: ArrayLike | None = None,
    priors: Priors | None = None,
    draws: int = 4096,
    rng: np.random.Generator | None = None,
) -> PropagationFit:
    r"""Fit how the balance of profiles propagates into the lists of all systems at once.

    .. math::
        y_u \sim Binomial(n_u, \theta_u), \quad logit \theta_u \sim Normal(\mu, \sigma)

        \bar y_{ua} \sim Binomial(\bar n_{ua}, \bar\theta_{ua}), \quad
        logit \bar\theta_{ua} \sim Normal(b_a + s_a logit \theta_u, \sigma_a)

    The latent log odds are integrated out by quadrature; what is left has 2 + 3 parameters for
    each system and is drawn by importance sampling. The numerical error is measured and stands in
    the diagnostics. Users are the independent units. The slope is undefined when users do not
    differ measurably. It says how lists vary with profiles, not why.

    Parameters
    ----------
    count, known
        For each user, items of the identity, and of known identity, in the profile.
    list_count, list_known
        The same for lists: users x systems. A list without a known item has 0 and 0.
    systems
        Their names.
    offset, list_offset
        For each user, and for users x systems, log odds expected for other reasons, such as the
        genres that a profile or a list holds; theta and the share in a list are logistic of
        the sum. The slope is then that of what goes beyond them. Default: 0.
    priors
        Default: Normal(0, 10) for mu, b and s, Exponential(0.1) for all standard deviations.
    draws
        How many draws from the posterior; up to eight times as many where few are effective.
    rng
        Source of randomness.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> odds = rng.normal(-0.5, 1.0, 400)
    >>> share = lambda x: 1 / (1 + np.exp(-x))
    >>> fit = fit_propagation(
    ...     rng.binomial(30, share(odds)), np.full(400, 30),
    ...     rng.binomial(50, share(0.2 + 0.7 * odds))[:, None], np.full((400, 1), 50), ["kNN"])
    >>> fit.diagnostics.converged
    True
    >>> slope = next(e for e in fit.estimates() if e.key == "propagation/slope")
    >>> slope.interval[0] < 0.7 < slope.interval[1]
    True
    """
    priors = Priors() if priors is None else priors
    rng = np.random.default_rng(0) if rng is None else rng
    counts = Counts.check(count, known, list_count, list_known, systems, offset, list_offset)
    if not counts.systems:
        raise ValueError("there is no system; fit_profiles fits profiles alone")
    profile = _profile_fit(counts, priors, draws, rng)
    if profile.spread_reason:
        # Without spread the slopes run away along a ridge: there is nothing to be drawn.
        return PropagationFit(counts, priors, None, None, (), profile.spread_reason, profile)
    drawn, diagnostics, reason = _draws(counts, priors, draws, rng)
    misfits = () if reason else measure_misfit(counts, drawn, _REPLICATES, rng)
    return PropagationFit(counts, priors, drawn, diagnostics, misfits, reason, profile)


def _profile_fit(
    counts: Counts, priors: Priors, draws: int, rng: np.random.Generator
) -> ProfileFit:
    alone = Counts.check(counts.count, counts.known, offset=counts.offset)
    drawn, diagnostics, reason = _draws(alone.profiles(), priors, draws, rng)
    misfits = () if reason else measure_misfit(alone, drawn, _REPLICATES, rng)
    return ProfileFit(alone, priors, drawn, diagnostics, misfits, reason)


def _draws(
    counts: Counts, priors: Priors, draws: int, rng: np.random.Generator
) -> tuple[Posterior, Diagnostics, str]:
    drawn, mode = draw(counts, priors, draws, rng)
    posterior = Posterior.of(drawn, counts.names)
    diagnostics = Diagnostics.of(drawn, posterior, mode.reached)
    reason = "" if diagnostics.converged else "did not converge: " + "; ".join(diagnostics.problems)
    return posterior, diagnostics, reason


def _no_spread(posterior: Posterior) -> str:
    low, high = posterior.interval(posterior.spread)
    if low >= SPREAD_FLOOR:
        return ""
    return (
        f"users do not differ measurably (the 95% interval of sigma, {low:.2g} to {high:.2g}, "
        f"reaches below {SPREAD_FLOOR}), so a slope is not identified"
    )


def _profile_estimates(fit: _Fit, which: str, misfit: Misfit | None) -> list[Estimate]:
    n = int((fit.counts.known > 0).sum())
    values = (
        [None, None, None]
        if fit.drawn is None or fit.reason
        else [
            fit.drawn.mean,
            fit.drawn.spread,
            1 / (1 + np.exp(-fit.drawn.mean)),
        ]
    )
    about: dict[str, Any] = {"group": which}
    if misfit is not None:
        about |= {"note": misfit.words, "details": {"misfit": misfit.to_dict()}}
    names = ("mean-log-odds", "spread", "share-of-an-average-profile")
    return [fit._estimate(name, v, n, **about) for name, v in zip(names, values, strict=True)]
