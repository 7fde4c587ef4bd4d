"""How profiles propagate into lists: the model of Ekstrand and Kluver (2021), fitted exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._importance import draw
from ombud.questions.authors.model._kernel import Exhausted, Work
from ombud.questions.authors.model.posterior import Diagnostics, NotConvergedError, Posterior
from ombud.questions.authors.model.predictive import Misfit, Predictive, measure_misfit, predict
from ombud.questions.authors.model.priors import Priors
from ombud.stats.estimate import Estimate
from ombud.stats.statistics import Floats

SPREAD_FLOOR = 0.05
"""A standard deviation of log odds whose interval reaches below this is not told from 0."""

# Evaluations of integrands that a fit may spend: a constant, and so many for each list of up to two
# systems, or of more: each of these must also have enough for a fit of its own, if the joint one
# fails. For 300 users and 2 systems these are about 15 CPU seconds.
_EVALUATIONS, _EVALUATIONS_PER_LIST = 5e7, (1.4e5, 2.2e5)
# The share of them for the joint fit of two, and of more or when others are fitted apart anyway.
_JOINT_SHARE, _JOINT_BESIDE_OTHERS = 0.75, 0.6
# Fewer profiles or lists with both identities than this do not tell how wide log odds spread.
_FEWEST_MIXED = 5
# A system with both identities in a smaller share of its lists is fitted apart: than this, or than
# this times the share of the system that has most. It would make the joint fit too costly.
_MIXED_SHARE, _MIXED_BESIDE_OTHERS = 0.3, 0.5
# What a failed fit says of its data: a standard deviation of log odds above this is wide, and one
# whose interval has ends this many times apart is uncertain.
_WIDE, _UNCERTAIN = 4.0, 10.0

# Lists of two systems that differ by less than this times what chance gives are copies and are
# fitted apart, if there are so many; below the third number a note says how alike they are.
_COPIES, _FEWEST_COPIES, _ALIKE = 0.5, 20, 1.1

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

    @property
    def spread_reason(self) -> str:
        """Why no slope can be identified; empty when one can."""
        return self.reason or _no_spread(self.posterior)

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
    apart
        Fits of systems that could not be fitted with the others, one system each; each has
        numbers or its own reason.
    apart_because
        For a fit of one system apart from others: why.
    order
        Names of all systems, in the order of the data.
    """

    profile: ProfileFit
    apart: tuple[PropagationFit, ...] = ()
    apart_because: str = ""
    order: tuple[str, ...] = ()

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of all systems, those fitted apart included."""
        return self.order or self.counts.names

    @property
    def parts(self) -> tuple[PropagationFit, ...]:
        """The joint fit and the fits apart, as far as they have systems."""
        return tuple(fit for fit in (self, *self.apart) if fit.counts.systems)

    def part(self, system: str) -> PropagationFit:
        """Return the fit that a system belongs to: this one or one of those apart."""
        for fit in self.parts:
            if system in fit.counts.names:
                return fit
        raise ValueError(f"no system is named {system!r}; there are {', '.join(self.systems)}")

    def misfit(self, system: str) -> Misfit | None:
        """How far a system's lists are from what is predicted; None without an answer."""
        return next((m for m in self.part(system).misfits if m.system == system), None)

    def estimates(self) -> list[Estimate]:
        """Return all parameters with 95% intervals.

        For each system the slope s, the intercept b, the balance for an even profile
        logistic(b), and the residual standard deviation. A slope, and what depends on it, is
        undefined when users do not differ measurably. The note of a slope has what the misfit
        says, and `details` has the misfit and P(s > 1).
        """
        found = _profile_estimates(self, "joint fit", self.misfits[0] if self.misfits else None)
        for system in self.systems:
            found += self.part(system)._system_estimates(system)
        return found

    def _system_estimates(self, system: str) -> list[Estimate]:
        """Return slope, intercept, balance for an even profile and residual of one system."""
        a = self.counts.names.index(system)
        n = int((self.counts.list_known[:, a] > 0).sum())
        about: dict[str, Any] = {"system": system, "why_not": self.spread_reason}
        if self.drawn is None or self.reason:
            names = ("slope", "intercept", "balance-for-an-even-profile", "residual-sd")
            return [self._estimate(name, None, n, **about) for name in names]
        misfit = self.misfit(system)
        assert misfit is not None
        slope, intercept = self.drawn.slope[:, a], self.drawn.intercept[:, a]
        notes = [misfit.words, self.apart_because]
        for b, other in enumerate(self.counts.names):
            how = f"have more in common with those of {other} than profiles explain"
            if alike := b != a and _likeness(self.counts, a, b) < _ALIKE:
                how = f"differ from those of {other} by no more than chance"
            if alike or other in misfit.shared:
                notes.append(
                    f"its lists {how}: what they share beyond profiles counts as evidence about "
                    "users, and moves the slope"
                )
        alone = self.profile.posterior
        spread = self.drawn.average(self.drawn.spread)
        if self.counts.systems > 1 and spread < alone.interval(alone.spread, 0.9)[0]:
            notes.append(
                f"users differ less in this fit (sigma {spread:.2g}) than in profiles alone "
                f"({alone.average(alone.spread):.2g}), as if lists had more in common than "
                "profiles explain, which moves the slope"
            )
        about["note"] = "; ".join(filter(None, notes))
        about["details"] = {"misfit": misfit.to_dict()}
        above = about["details"] | {"above_one": self.drawn.average(slope > 1)}
        return [
            self._estimate("slope", slope, n, **about | {"details": above}),
            self._estimate("intercept", intercept, n, **about),
            self._estimate("balance-for-an-even-profile", expit(intercept), n, **about),
            self._residual(system, self.drawn.residual[:, a], n),
        ]

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
        for one, other in combinations(self.systems, 2):
            fits = self.part(one), self.part(other)
            a, b = fits[0].counts.names.index(one), fits[1].counts.names.index(other)
            there = [fit.counts.list_known[:, i] > 0 for fit, i in zip(fits, (a, b), strict=True)]
            reason = fits[0].spread_reason or fits[1].spread_reason
            if not reason and fits[0] is not fits[1]:
                # Draws of two fits are no joint draws: how they vary together is not known.
                reason = fits[0].apart_because or fits[1].apart_because
            for name in ("slope", "intercept"):
                values = None
                if not reason and fits[0].drawn is not None:
                    both = getattr(fits[0].drawn, name)
                    values = both[:, a] - both[:, b]
                found.append(
                    self._estimate(
                        f"{name}-difference",
                        values,
                        int((there[0] & there[1]).sum()),
                        kind="gap",
                        null=0.0,
                        system=one,
                        against=other,
                        why_not=reason,
                    )
                )
        return found

    def curve(self, system: str, shares: ArrayLike, level: float = 0.95) -> Floats:
        """Return the smoothed list share for profile shares: mean, lower and upper end.

        `shares` are those in profiles, above 0 and below 1; `level` is that of the band.

        Returns
        -------
        3 x shares.
        """
        fit = self.part(system)
        if fit.spread_reason:
            raise NotConvergedError(fit.spread_reason)
        wanted = np.asarray(shares, dtype=np.float64)
        if not np.all((wanted > 0) & (wanted < 1)):
            raise ValueError("shares must be above 0 and below 1")
        a = fit.counts.names.index(system)
        odds = np.log(wanted / (1 - wanted))
        posterior = fit.posterior
        found = np.empty((3, len(wanted)))
        for i, t in enumerate(odds):
            x = posterior.intercept[:, a] + posterior.slope[:, a] * t
            found[:, i] = posterior.average(expit(x)), *expit(posterior.interval(x, level))
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
        How many draws from the posterior; up to 24 times as many where few are effective.
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
    return _profile_fit(counts, priors, draws, rng, Work(_budget(counts)))


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
    budget: float | None = None,
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

    Each system has numbers or its own reason. If few lists of a system hold both identities, or
    they are almost those of another system, the system is fitted apart from the others, and so is
    a system that prevents the joint fit.

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
        How many draws from the posterior; up to 24 times as many where few are effective.
    budget
        The largest number of evaluations of integrands, for all fits together; one that needs more
        is refused. Default: 50 million and, for each user and system, 140,000 with up to two
        systems and 220,000 with more.
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
    work = Work(_budget(counts) if budget is None else budget)
    profile = _profile_fit(counts, priors, draws, rng, work.part(0.5))
    if profile.spread_reason:
        # Without spread the slopes run away along a ridge: there is nothing to be drawn.
        return PropagationFit(counts, priors, None, None, (), profile.spread_reason, profile)

    def fit(systems: list[int], part: Work, because: str = "") -> PropagationFit:
        some = counts.only(systems)
        drawn, diagnostics, reason = _draws(some, priors, draws, rng, part)
        misfits = measure_misfit(some, drawn, _REPLICATES, rng) if drawn and not reason else ()
        return PropagationFit(
            some, priors, drawn, diagnostics, misfits, reason, profile, apart_because=because
        )

    refused, sparse = _list_reasons(counts)
    together = [a for a in range(counts.systems) if a not in refused and a not in sparse]
    if not together and len(sparse) == 1:
        together, sparse = [*sparse], {}
    alone = {}
    for a, why in refused.items():
        alone[a] = PropagationFit(counts.only([a]), priors, None, None, (), why, profile)
    reason = "; ".join(f"{counts.names[a]}: {why}" for a, why in (refused | sparse).items())
    joint = PropagationFit(counts.only([]), priors, None, None, (), reason, profile)
    if together:
        few = _JOINT_SHARE if len(together) > 1 else 1.0
        many = sparse or len(together) > 2
        joint = fit(together, work.part(_JOINT_BESIDE_OTHERS if many else few))
    if joint.reason and len(together) > 1:
        # One of them may be what prevents the fit: it must not take the others with it.
        because = f"fitted apart from other systems, because the joint fit failed: {joint.reason}"
        singles = {}
        # A second joint fit, without those that fail, takes about as much as one or two alone.
        after = len(sparse) + (2 if len(together) > 2 else 0)
        for done, a in enumerate(together):
            singles[a] = fit([a], work.part(1 / (len(together) - done + after)), because)
        good = [a for a in together if not singles[a].reason]
        if 1 < len(good) < len(together):
            again = fit(good, work.part(1 / (1 + len(sparse))))
            if not again.reason:
                joint, singles = again, {a: singles[a] for a in together if a not in good}
        if joint.reason:
            joint = replace(joint, counts=counts.only([]), drawn=None, misfits=())
        alone |= singles
    for left, (a, why) in enumerate(sparse.items()):
        alone[a] = fit([a], work.part(1 / (len(sparse) - left)), f"fitted apart: {why}")
    return replace(joint, apart=tuple(alone[a] for a in sorted(alone)), order=counts.names)


def _budget(counts: Counts) -> float:
    each = _EVALUATIONS_PER_LIST[counts.systems > 2]
    return _EVALUATIONS + each * len(counts.count) * max(1, counts.systems)


def _list_reasons(counts: Counts) -> tuple[dict[int, str], dict[int, str]]:
    """Return why systems have no slope, and why others are better fitted apart."""
    refused, sparse = {}, {}
    k, r = counts.list_count, counts.list_known
    shares = ((k > 0) & (k < r)).sum(axis=0) / np.maximum((r > 0).sum(axis=0), 1)
    fewest = max(_MIXED_SHARE, _MIXED_BESIDE_OTHERS * shares.max())
    for a in range(counts.systems):
        k, r = counts.list_count[:, a], counts.list_known[:, a]
        lists, mixed = int((r > 0).sum()), int(((k > 0) & (k < r)).sum())
        if not lists:
            refused[a] = "no list holds an item of known identity"
        elif not (k > 0).any() or not (k < r).any():
            refused[a] = "all lists hold one identity only"
        elif not mixed:
            refused[a] = (
                f"none of the {lists} lists holds both identities, so the data determine the ratio "
                "of the slope to the residual spread, but not the slope"
            )
        elif mixed < _FEWEST_MIXED:
            refused[a] = (
                f"lists with both identities: {mixed} of {lists}; at least {_FEWEST_MIXED} are "
                "needed to estimate a slope"
            )
        elif mixed < fewest * lists:
            sparse[a] = f"only {mixed} of the {lists} lists hold both identities"
        for b in range(a if a not in refused and lists >= _FEWEST_COPIES else 0):
            if b not in refused | sparse and _likeness(counts, a, b) < _COPIES:
                sparse[a] = (
                    f"its lists are almost those of {counts.names[b]}, and the joint fit would "
                    "take them as independent"
                )
    return refused, sparse


def _profile_reason(counts: Counts) -> str:
    """Return why profiles do not tell how users differ; empty when they may."""
    y, n = counts.count, counts.known
    users, mixed = int((n > 0).sum()), int(((y > 0) & (y < n)).sum())
    if not (y > 0).any() or not (y < n).any():
        return "all profiles hold one identity only"
    if not mixed:
        return (
            f"no user has both identities in their profile ({users} users), so the spread between "
            "users cannot be estimated"
        )
    if mixed < _FEWEST_MIXED:
        return (
            f"only {mixed} of {users} users have both identities in their profile; at least "
            f"{_FEWEST_MIXED} are needed"
        )
    return ""


def _profile_fit(
    counts: Counts, priors: Priors, draws: int, rng: np.random.Generator, work: Work
) -> ProfileFit:
    alone = Counts.check(counts.count, counts.known, offset=counts.offset)
    reason = _profile_reason(alone)
    if reason:
        return ProfileFit(alone, priors, None, None, (), reason)
    drawn, diagnostics, reason = _draws(alone.profiles(), priors, draws, rng, work)
    misfits = measure_misfit(alone, drawn, _REPLICATES, rng) if drawn and not reason else ()
    return ProfileFit(alone, priors, drawn, diagnostics, misfits, reason)


def _draws(
    counts: Counts, priors: Priors, draws: int, rng: np.random.Generator, work: Work
) -> tuple[Posterior | None, Diagnostics | None, str]:
    try:
        drawn, mode = draw(counts, priors, draws, rng, work)
    except Exhausted:
        return None, None, _failure(counts, "there are no draws", work)
    if drawn is None:
        return None, None, _failure(counts, "the highest point of the posterior was not found")
    posterior = Posterior.of(drawn, counts.names)
    diagnostics = Diagnostics.of(drawn, posterior, mode.reached)
    if diagnostics.converged:
        return posterior, diagnostics, ""
    spent = work if drawn.stopped else None
    reason = _failure(counts, "; ".join(diagnostics.problems), spent, posterior)
    return posterior, diagnostics, reason


def _likeness(counts: Counts, a: int, b: int) -> float:
    """Return squared differences of shares between two systems' lists, over those of chance.

    Lists that are drawn independently from the same share of an identity give about 1.
    """
    r, k = counts.list_known[:, [a, b]], counts.list_count[:, [a, b]]
    both = (r > 0).all(axis=1)
    r, k = r[both], k[both]
    share = k.sum(axis=1) / r.sum(axis=1)
    chance = float((share * (1 - share) * (1 / r).sum(axis=1)).sum())
    return float((np.diff(k / r, axis=1) ** 2).sum()) / chance if chance > 0 else np.inf


def _failure(
    counts: Counts, problem: str, spent: Work | None = None, drawn: Posterior | None = None
) -> str:
    """Return why there is no answer: the budget if it was `spent`, and what the data are like."""
    users = int(counts.times[counts.known > 0].sum())
    facts = [f"{users} users"]
    for what, k, r in (
        ("profiles", counts.count[:, None], counts.known[:, None]),
        ("lists", counts.list_count, counts.list_known),
    ):
        times = np.broadcast_to(counts.times[:, None], k.shape)
        there, mixed = int(times[r > 0].sum()), int(times[(k > 0) & (k < r)].sum())
        if there:
            only, items = "only " * (2 * mixed < there), (times * r).sum() / there
            facts.append(f"{only}{mixed} of {there} {what} hold both identities")
            facts.append(f"{what} hold {items:.1f} items of known identity on average")
    if drawn is not None:
        sds = {"users' log odds": drawn.spread}
        sds |= {f"the residuals of {n}": drawn.residual[:, a] for a, n in enumerate(drawn.names)}
        for what, values in sds.items():
            low, high = drawn.interval(values)
            if low > _WIDE or high > _UNCERTAIN * low:
                how = "wide" if low > _WIDE else "uncertain"
                facts.append(f"the standard deviation of {what} is {how} ({low:.2g} to {high:.2g})")
    if spent is None:
        return "; ".join([*facts, f"the fit did not converge: {problem}"])
    while spent.parent is not None:
        spent = spent.parent
    return (
        f"the budget of {spent.limit / 1e6:.3g} million evaluations of integrands was spent before "
        "the fit converged (the argument `budget` of fit_propagation raises it); these data make "
        f"it costly: {'; '.join(facts)} ({problem})"
    )


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
    values: list[Floats | None] = [None, None, None]
    if fit.drawn is not None and not fit.reason:
        mean = fit.drawn.mean
        values = [mean, fit.drawn.spread, 1 / (1 + np.exp(-mean))]
    about: dict[str, Any] = {"group": which}
    if misfit is not None:
        about |= {"note": misfit.words, "details": {"misfit": misfit.to_dict()}}
    names = ("mean-log-odds", "spread", "share-of-an-average-profile")
    return [fit._estimate(name, v, n, **about) for name, v in zip(names, values, strict=True)]


# A placebo attribute: what the model says when there is nothing to find.


def placebo_codes(items: Iterable[object], seed: int = 0) -> NDArray[np.int8]:
    """Return 0 or 1 for each item: the parity of a hash of its id.

    An item keeps its code whatever else is in the data; another seed gives another placebo.

    Ids count as they print.

    Examples
    --------
    >>> placebo_codes(["a", "b", "c", "d", "e"]).tolist() == placebo_codes("abcde").tolist()
    True
    """
    key = f"ombud placebo {seed}".encode()
    found = [blake2b(str(item).encode(), digest_size=1, key=key).digest()[0] & 1 for item in items]
    return np.array(found, dtype=np.int8)
