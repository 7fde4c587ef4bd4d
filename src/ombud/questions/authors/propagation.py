"""RQ4: how the balance of profiles shows in lists, by the propagation model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ombud.audits.analysis import Analysis, AnalysisResult, Context
from ombud.data.exclusions import Exclusion
from ombud.errors import DataError, PlanError
from ombud.questions.authors.creators import (
    Creators,
    by_genre,
    creators_of,
    expected_mix,
    lists_in,
    profile_users,
)
from ombud.questions.authors.model.fits import (
    ProfileFit,
    PropagationFit,
    fit_propagation,
    placebo_codes,
)
from ombud.questions.authors.model.identities import fit_identities
from ombud.questions.authors.model.priors import Priors
from ombud.questions.authors.options import PropagationOptions
from ombud.registry import analysis
from ombud.rng import generator
from ombud.stats.estimate import Estimate, ReasonCode
from ombud.stats.statistics import Floats

if TYPE_CHECKING:
    from ombud.data.dataset import Dataset
    from ombud.data.recommendations import Recommendations
    from ombud.metrics.engine.estimator import Settings


MIX = "genre mix held fixed"
"""Where each profile and list is set against what its genres let expect."""

PLACEBO = "placebo"
"""The label of what is found for the parity of a hash of the item id."""

_GRID = np.round(np.arange(0.02, 0.99, 0.04), 2)


@dataclass(frozen=True, eq=False)
class _Counts:
    """Profiles and lists of the sampled users."""

    profiles: Floats
    lists: Floats
    systems: tuple[str, ...]
    expected: Floats | None = None
    list_expected: Floats | None = None


@analysis("creator-propagation")
class CreatorPropagation(PropagationOptions, Analysis):
    """Slope, intercept and residual spread of each system's lists on users' profiles.

    The model is that of `ombud.questions.authors.model`; all systems are fitted together. With more
    than two identities each is set against all others (``splits = "rest"``), or split off one after
    the other (``nested``, one joint model). A slope is undefined when users do not differ
    measurably, and a fit that did not converge gives no numbers. A system whose lists hardly ever
    hold both identities is fitted alone or has its own reason, so that it does not affect others.

    - **Unit**: the user.
    - **Undefined**: without spread between users, without convergence, with too little data.
    - **Does not capture**: why lists vary with profiles; curved relations; what is not known.

    References
    ----------
    Ekstrand and Kluver (2021), Exploring author gender in book rating and recommendation, UMUAI.
    """

    def analyze(self, context: Context) -> AnalysisResult:
        """Return the parameters of every fit, and what figures are drawn from."""
        data, outputs, settings = context.data, context.outputs, context.settings
        creators = creators_of(data, self.attribute, self.registered_name)
        lists = lists_in(outputs, self.registered_name)
        if len(creators.names) < 2:
            raise PlanError(
                f"{self.registered_name}: all known items have the one identity "
                f"{creators.names[0]!r}; there is nothing to compare"
            )
        # What is fitted, by where: whose identities, of how many known items or more, against what.
        wanted: dict[str, tuple[Creators, int, Floats | None]] = {"": (creators, self.least, None)}
        if self.placebo:
            wanted[PLACEBO] = (_placebo(creators, settings.seed), self.least, None)
        if self.genres:
            expected = expected_mix(creators, data, self.genres)
            wanted[MIX] = (creators, self.least, expected)
        # A profile has fewer items of one genre: two are enough to say something.
        wanted |= {g: (some, 2, None) for g, some in by_genre(creators, data, self.genres).items()}
        fits: dict[tuple[str, str], PropagationFit] = {}
        estimates: list[Estimate] = []
        exclusions: list[Exclusion] = []
        for number, (within, (whose, least, against)) in enumerate(wanted.items()):
            context.progress(number, len(wanted), f"fitting {within or 'all items'}")
            more, told, left = self._fitted(
                whose, data, lists, settings, within, least=least, expected=against
            )
            fits |= more
            estimates += told
            exclusions += [] if within else left
        rng = generator(settings.seed, self.registered_name, "new users")
        drawn = _drawn({who: fit for (where, who), fit in fits.items() if not where}, rng)
        return AnalysisResult(
            tuple(estimates),
            {
                "creator-propagation-fits": _diagnostics(fits),
                "creator-propagation-curves": _curves(fits),
                "creator-propagation-points": _points(fits),
                **({"creator-propagation-users": _users(fits)} if self.points else {}),
                "creator-propagation-densities": _densities(drawn),
                "creator-propagation-predicted": _predicted(drawn),
            },
            tuple(exclusions),
        )

    def _fitted(
        self,
        creators: Creators,
        data: Dataset,
        lists: Mapping[str, Recommendations],
        settings: Settings,
        within: str,
        *,
        least: int,
        expected: Floats | None,
    ) -> tuple[dict[tuple[str, str], PropagationFit], list[Estimate], list[Exclusion]]:
        counts, empty = _counted(creators, data, lists, self.k, least, expected)
        rng = generator(settings.seed, self.registered_name, within)
        priors = Priors(residual_rate=self.residual_rate)
        fits: dict[tuple[str, str], PropagationFit] = {}
        estimates: list[Estimate] = []

        def undefined(reason: str, code: ReasonCode) -> Estimate:
            e = Estimate.undefined(
                reason_code=code,
                metric="slope", key="propagation/slope", reason=reason, n=len(counts.profiles),
                label=creators.chief, unit="user",
            )  # fmt: skip
            return _within(e, within)

        reason = _too_little(counts)
        if reason:
            return {}, [undefined(reason, "too-few-units")], []
        try:
            if len(creators.names) == 2:
                g = creators.index(creators.chief)
                fit = fit_propagation(
                    counts.profiles[:, g], counts.profiles.sum(axis=1),
                    counts.lists[:, :, g], counts.lists.sum(axis=2), counts.systems,
                    offset=_odds(counts.expected, g), list_offset=_odds(counts.list_expected, g),
                    priors=priors, rng=rng,
                )  # fmt: skip
                fits[within, creators.chief] = fit
                estimates += _told(fit, creators.chief, within)
            else:
                many = fit_identities(
                    counts.profiles, counts.lists, creators.names, counts.systems,
                    splits=self.splits, expected=counts.expected,
                    list_expected=counts.list_expected, priors=priors, rng=rng,
                )  # fmt: skip
                for split in many.splits:
                    if split.fit is None:
                        estimates += split.estimates()
                        continue
                    fits[within, split.identity] = split.fit
                    among = {"among": list(split.against)}
                    estimates += [
                        e.replace(details={**e.details, **among})
                        for e in _told(split.fit, split.identity, within)
                    ]
        except (DataError, ArithmeticError, np.linalg.LinAlgError) as error:
            # A fit that cannot be made must not end the audit.
            return {}, [undefined(f"the fit failed: {error}", "not-estimable")], []
        exclusions = [
            Exclusion(
                "propagation", "lists", len(counts.profiles), "no known item in any of them",
                system=system,
            )
            for system in empty
        ]  # fmt: skip
        estimates = [_within(e, within) for e in estimates]
        return fits, estimates, exclusions


def _told(fit: PropagationFit, identity: str, within: str) -> list[Estimate]:
    """Return both fits' parameters; systems are compared for the attribute itself alone."""
    found = [*fit.profile.estimates(), *fit.estimates()]
    found += [] if within else fit.differences()
    return [e.replace(label=identity) for e in found]


def _within(e: Estimate, within: str) -> Estimate:
    """Mark what was found for the placebo, or with regard to genre."""
    if not within:
        return e
    if within == MIX:
        return e.replace(key=e.key.replace("propagation/", "propagation-mix/"))
    if within == PLACEBO:
        return e.replace(label=PLACEBO, key=e.key.replace("propagation/", "propagation-placebo/"))
    details = {**e.details, "genre": within, "fit": e.group}
    key = e.key.replace("propagation/", "propagation-genre/")
    return e.replace(group=within, key=key, details=details)


def _counted(
    creators: Creators,
    data: Dataset,
    lists: Mapping[str, Recommendations],
    k: int,
    least: int,
    expected: Floats | None = None,
) -> tuple[_Counts, list[str]]:
    assert data.interactions is not None  # creators_of has checked
    users = np.asarray(next(iter(lists.values())).users)
    profiles = creators.in_profiles(data.interactions, users)
    sample = profile_users(data, users) & (profiles.sum(axis=1) >= least)
    found = {
        system: creators.in_lists(some.for_users(users[sample]), k)
        for system, some in lists.items()
    }
    used = {system: counts for system, counts in found.items() if counts.sum()}
    shape = (int(sample.sum()), 0, len(creators.names))
    stacked = np.stack(list(used.values()), axis=1) if used else np.zeros(shape)
    without = [s for s in found if s not in used]
    if expected is None:
        return _Counts(profiles[sample], stacked, tuple(used)), without
    own = creators.in_profiles(data.interactions, users[sample], expected)
    theirs = [
        creators.mix_in_lists(lists[system].for_users(users[sample]), k, expected)
        for system in used
    ]
    mixes = np.stack(theirs, axis=1) if theirs else np.zeros(shape)
    return _Counts(profiles[sample], stacked, tuple(used), own, mixes), without


def _too_little(counts: _Counts) -> str:
    users = len(counts.profiles)
    if users < 20:
        return f"not enough data: {users} users; 20 are needed"
    if not counts.systems:
        return "not enough data: no list holds an item of known identity"
    if (counts.profiles.sum(axis=0) > 0).sum() < 2:
        return "not enough data: all profiles hold one identity only"
    return ""


def _placebo(creators: Creators, seed: int) -> Creators:
    """Return an attribute that nobody's taste depends on, known for the same items."""
    parity = placebo_codes(creators.items.ids.tolist(), seed).astype(np.int64)
    codes = np.where(creators.codes >= 0, parity, -1)
    return Creators(PLACEBO, ("even", "odd"), creators.items, codes, creators.status)


def _odds(mix: Floats | None, g: int) -> Floats | None:
    """Return the log odds of one of two identities; where nothing is known they are not used."""
    if mix is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.log(mix[..., g]) - np.log(mix[..., 1 - g])
    return found


def _diagnostics(fits: Mapping[tuple[str, str], PropagationFit]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for (within, identity), joint in fits.items():
        named: list[tuple[str, ProfileFit | PropagationFit]] = [
            ("profile fit", joint.profile), ("joint fit", joint),
        ]  # fmt: skip
        named += [(f"fit of {fit.counts.names[0]} alone", fit) for fit in joint.apart]
        for name, fit in named:
            row: dict[str, Any] = {"fit": name, "within": within, "identity": identity}
            told = fit.diagnostics
            rows.append(
                row
                | {
                    "users": int((fit.counts.known > 0).sum()),
                    "refused": fit.reason,
                    "draws": None if told is None else told.draws,
                    "khat": None if told is None else float(told.khat),
                    "smallest_ess": None if told is None else float(min(told.ess.values())),
                    "smallest_tail_ess": (
                        None if told is None else float(min(told.tail_ess.values()))
                    ),
                    "largest_rhat": None if told is None else float(max(told.rhat.values())),
                    "error_nats": None if told is None else float(told.error),
                }
            )
    return pl.DataFrame(rows, schema=_FITS)


_FITS = {
    "fit": pl.String, "within": pl.String, "identity": pl.String, "users": pl.Int64,
    "refused": pl.String, "draws": pl.Int64, "khat": pl.Float64, "smallest_ess": pl.Float64,
    "smallest_tail_ess": pl.Float64, "largest_rhat": pl.Float64, "error_nats": pl.Float64,
}  # fmt: skip


def _parts(
    fits: Mapping[tuple[str, str], PropagationFit],
) -> Iterator[tuple[str, str, PropagationFit]]:
    """Return every joint fit, followed by the fits of systems that were fitted alone."""
    for (within, identity), fit in fits.items():
        for part in fit.parts:
            yield within, identity, part


def _curves(fits: Mapping[tuple[str, str], PropagationFit]) -> pl.DataFrame:
    """Return the smoothed list share for profile shares, with its band."""
    rows = []
    for within, identity, fit in _parts(fits):
        # With offsets there is no one curve: it depends on the genres of the list.
        if fit.spread_reason or within == MIX:
            continue
        for system in fit.counts.names:
            mean, low, high = fit.curve(system, _GRID)
            for x, *y in zip(_GRID, mean, low, high, strict=True):
                rows.append((within, identity, system, float(x), *map(float, y)))
    names = ["within", "identity", "system", "profile"]
    schema = dict.fromkeys(names[:3], pl.String) | dict.fromkeys(
        ["profile", "mean", "low", "high"], pl.Float64
    )
    return pl.DataFrame(rows, schema=schema, orient="row")


def _points(fits: Mapping[tuple[str, str], PropagationFit]) -> pl.DataFrame:
    """Return the mean list share of users by their profile share, in steps of a tenth.

    Not user by user: a result may be published, and a profile can identify a person.
    """
    rows = []
    for within, identity, fit in _parts(fits):
        counts = fit.counts
        share = counts.count / np.maximum(counts.known, 1)
        step = np.minimum((share * 10).astype(np.int64), 9)
        for a, system in enumerate(counts.names):
            there = (counts.list_known[:, a] > 0) & (counts.known > 0)
            own = counts.list_count[there, a] / counts.list_known[there, a]
            users = np.bincount(step[there], minlength=10)
            x = np.bincount(step[there], weights=share[there], minlength=10)
            y = np.bincount(step[there], weights=own, minlength=10)
            for b in np.flatnonzero(users >= 5):
                mean = float(x[b] / users[b]), float(y[b] / users[b])
                rows.append((within, identity, system, *mean, int(users[b])))
    schema: dict[str, Any] = dict.fromkeys(["within", "identity", "system"], pl.String)
    schema |= dict.fromkeys(["profile", "list"], pl.Float64) | {"users": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _users(fits: Mapping[tuple[str, str], PropagationFit]) -> pl.DataFrame:
    """Return the share of every user's profile and list, y / n, in no order of users."""
    frames = []
    for within, identity, fit in _parts(fits):
        counts = fit.counts
        for a, system in enumerate(counts.names):
            there = (counts.list_known[:, a] > 0) & (counts.known > 0)
            frame = pl.DataFrame(
                {
                    "profile": counts.count[there] / counts.known[there],
                    "list": counts.list_count[there, a] / counts.list_known[there, a],
                }
            ).sort("profile", "list")
            names = {"within": within, "identity": identity, "system": system}
            frames.append(frame.with_columns(**{k: pl.lit(v) for k, v in names.items()}))
    schema: dict[str, Any] = dict.fromkeys(["profile", "list"], pl.Float64)
    schema |= dict.fromkeys(["within", "identity", "system"], pl.String)
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


@dataclass(frozen=True, eq=False)
class _Shares:
    """Shares of one identity: observed ones, and those of new users."""

    identity: str
    system: str
    observed: Floats
    smoothed: Floats
    predicted: Floats

    def kinds(self) -> dict[str, Floats]:
        return {
            "observed": self.observed, "smoothed": self.smoothed, "predicted": self.predicted,
        }  # fmt: skip


def _drawn(fits: Mapping[str, PropagationFit], rng: np.random.Generator) -> list[_Shares]:
    """Return observed and predicted shares of profiles, then of each system's lists.

    Profiles are predicted by the profile fit, lists by the joint one, as in the study.
    """
    found = []
    for identity, fit in fits.items():
        counts = fit.counts
        if not fit.profile.reason:
            there = counts.known > 0
            new = fit.profile.predict(rng=rng)
            seen = counts.count[there] / counts.known[there]
            found.append(_Shares(identity, "", seen, new.profile_smoothed, new.profile_predicted))
        for part in fit.parts:
            if part.reason:
                continue
            new, counts = part.predict(rng=rng), part.counts
            for a, system in enumerate(counts.names):
                there = counts.list_known[:, a] > 0
                seen = counts.list_count[there, a] / counts.list_known[there, a]
                drawn = new.smoothed[:, a], new.predicted[:, a]
                found.append(_Shares(identity, system, seen, *drawn))
    return found


def _predicted(drawn: Sequence[_Shares]) -> pl.DataFrame:
    """Return mean and standard deviation of shares, observed and of new users."""
    rows = [
        (one.identity, one.system, kind, float(shares.mean()), float(shares.std(ddof=1)))
        for one in drawn
        for kind, shares in one.kinds().items()
    ]
    schema: dict[str, Any] = dict.fromkeys(["identity", "system", "kind"], pl.String)
    return pl.DataFrame(
        rows, schema=schema | dict.fromkeys(["mean", "sd"], pl.Float64), orient="row"
    )


def _densities(drawn: Sequence[_Shares]) -> pl.DataFrame:
    """Return densities of shares, observed and of new users, in steps of 0.02."""
    steps = np.round(np.linspace(0, 1, 51), 2)
    rows = [
        (one.identity, one.system, kind, float(x), float(y))
        for one in drawn
        for kind, shares in one.kinds().items()
        for x, y in zip(steps, density_inside(shares, steps), strict=True)
    ]
    schema: dict[str, Any] = dict.fromkeys(["identity", "system", "kind"], pl.String)
    return pl.DataFrame(
        rows, schema=schema | dict.fromkeys(["share", "density"], pl.Float64), orient="row"
    )


def density_inside(shares: Floats, steps: Floats) -> Floats:
    """Return the density of shares: Gaussian kernels of half Scott's width, kept inside 0 to 1.

    What a kernel has beyond an end is reflected there, so that the density integrates to 1.

    Examples
    --------
    >>> steps = np.linspace(0, 1, 101)
    >>> found = density_inside(np.random.default_rng(1).random(5000), steps)
    >>> bool(np.all(np.abs(found - 1) < 0.2))
    True
    """
    width = 0.5 * float(shares.std(ddof=1)) * len(shares) ** -0.2
    if not width > 0:
        return np.zeros(len(steps))
    values, often = np.unique(shares, return_counts=True)
    found: Floats = np.zeros(len(steps))
    for mirrored in (values, -values, 2 - values):
        z = (steps[:, None] - mirrored) / width
        found += np.exp(-0.5 * z * z) @ often
    found /= len(shares) * width * np.sqrt(2 * np.pi)
    return found
