"""The fits: against NUTS, planted slopes, no spread, refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ombud.errors import DataError, PlanError
from ombud.questions.authors.model.fits import (
    PropagationFit,
    fit_profiles,
    fit_propagation,
    placebo_codes,
)
from ombud.questions.authors.model.identities import fit_identities
from ombud.questions.authors.model.posterior import Diagnostics, Drawn, NotConvergedError, Posterior
from ombud.questions.authors.model.priors import Priors

Make = Callable[..., Any]
REFERENCE = Path(__file__).parents[3] / "reference" / "propagation"
SHORT = {"mean": "mu", "spread": "sigma", "intercept": "b", "slope": "s", "residual": "v"}


@pytest.fixture(scope="module")
def fit(made: Make) -> PropagationFit:
    counts = made(np.random.default_rng(5), 500)
    return fit_propagation(**counts, systems=["one", "two"])


@pytest.mark.parametrize("case", sorted(path.stem for path in REFERENCE.glob("*.json")))
def test_equal_to_nuts_on_the_full_model(case: str) -> None:
    stored = json.loads((REFERENCE / f"{case}.json").read_text())
    counts = {name: np.array(values) for name, values in stored["counts"].items()}
    systems = counts["list_known"].shape[1] if counts["list_known"].ndim == 2 else 0
    if systems:
        posterior = fit_propagation(**counts, systems=[str(a) for a in range(systems)]).posterior
    else:
        posterior = fit_profiles(counts["count"], counts["known"]).posterior
    for name, values in posterior.columns().items():
        kind, _, system = name.partition("[")
        theirs = stored["parameters"][SHORT[kind] + (f"[{system}" if system else "")]
        # NUTS has an error of its own, most of all in the sds of slow parameters.
        noise = 4 / np.sqrt(theirs["ess"])
        assert abs(posterior.average(values) - theirs["mean"]) < (0.1 + noise) * theirs["sd"], name
        assert posterior.sd(values) == pytest.approx(theirs["sd"], rel=0.05 + noise), name
        low, high = posterior.quantiles(values, np.array([0.05, 0.95]))
        assert abs(low - theirs["q05"]) < (0.15 + noise) * theirs["sd"], name
        assert abs(high - theirs["q95"]) < (0.15 + noise) * theirs["sd"], name


@pytest.mark.parametrize(
    "changes",
    [
        {"s": (0.0, -0.6)},
        {"users": 60},
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"v": (0.02, 0.5)}, marks=pytest.mark.slow),
        pytest.param({"middle": 300.0, "sigma": 0.3}, marks=pytest.mark.slow),
    ],
    ids=["none and negative", "few users", "plain", "almost no residual", "long profiles"],
)
def test_planted_parameters_are_recovered(made: Make, changes: dict[str, Any]) -> None:
    planted: dict[str, tuple[float, ...]] = {"b": (-0.2, 0.1), "s": (0.5, 1.1), "v": (0.5, 0.5)} | {
        key: value for key, value in changes.items() if key in {"b", "s", "v"}
    }
    fit = fit_propagation(
        **made(np.random.default_rng(11), **{"users": 250, **changes}), systems=["one", "two"]
    )
    assert fit.diagnostics is not None and fit.diagnostics.converged, fit.reason
    posterior = fit.posterior
    for name, values in (("b", "intercept"), ("s", "slope"), ("v", "residual")):
        for a, true in enumerate(planted[name]):
            draws = getattr(posterior, values)[:, a]
            away = abs(posterior.average(draws) - true) / posterior.sd(draws)
            assert away < 3.5, (values, a, away)


@pytest.mark.slow
@pytest.mark.parametrize(("systems", "users"), [(6, 100), (20, 800)])
def test_many_systems(made: Make, rng: np.random.Generator, systems: int, users: int) -> None:
    slopes = np.linspace(0.1, 1.2, systems)
    counts = made(rng, users, b=(0.1,) * systems, s=tuple(slopes), v=(0.4,) * systems)
    fit = fit_propagation(**counts, systems=[f"s{a}" for a in range(systems)])
    assert fit.diagnostics is not None and fit.diagnostics.converged, fit.reason
    z = [
        (fit.posterior.average(d) - true) / fit.posterior.sd(d)
        for d, true in zip(fit.posterior.slope.T, slopes, strict=True)
    ]
    assert np.abs(z).max() < 4.5 and 0.3 < np.std(z) < 2.2


def test_a_spread_that_is_almost_none_converges() -> None:
    rng = np.random.default_rng(0)
    count = np.minimum(rng.geometric(0.05, 5000) + 4, 200)
    taste = rng.normal(0.1, 0.06, 5000)
    fit = fit_profiles(rng.binomial(count, 1 / (1 + np.exp(-taste))), count)
    assert fit.diagnostics is not None and fit.diagnostics.converged, fit.reason
    assert fit.diagnostics.khat < 0.3


def test_wide_tastes_are_integrated_closely_enough() -> None:
    rng = np.random.default_rng(3)
    users, slope = 250, 1.7
    taste = rng.normal(-0.7, 2.5, users)
    count = rng.integers(5, 60, users)
    own = rng.binomial(count, 1 / (1 + np.exp(-taste)))
    lists = np.full((users, 1), 50)
    odds = 0.2 + slope * taste[:, None] + rng.normal(0, 0.6, (users, 1))
    shown = rng.binomial(lists, 1 / (1 + np.exp(-odds)))
    fit = fit_propagation(own, count, shown, lists, ["a"], draws=512)
    assert fit.diagnostics is not None and fit.diagnostics.converged, fit.reason
    assert fit.diagnostics.error < 0.05
    found = fit.posterior.slope[:, 0]
    assert abs(fit.posterior.average(found) - slope) < 4 * fit.posterior.sd(found)


def test_estimates_have_keys_intervals_and_derived_quantities(fit: PropagationFit) -> None:
    found = {(e.key, e.system): e for e in fit.estimates()}
    assert len(found) == 3 + 4 * 2
    slope = found["propagation/slope", "two"]
    assert slope.value is not None and slope.interval is not None
    assert slope.n == 500 and slope.unit == "user"
    above = fit.posterior.average(fit.posterior.slope[:, 1] > 1)
    assert slope.details["above_one"] == pytest.approx(above)
    even = found["propagation/balance-for-an-even-profile", "one"]
    intercept = found["propagation/intercept", "one"]
    assert even.value == pytest.approx(1 / (1 + np.exp(-intercept.value)), abs=1e-3)
    gaps = {(e.key, e.system, e.against): e for e in fit.differences()}
    gap = gaps["propagation/slope-difference", "one", "two"]
    expected = found["propagation/slope", "one"].value - slope.value  # type: ignore[operator]
    assert gap.value == pytest.approx(expected)
    assert gap.excludes_null
    alone = {e.key: e for e in fit.profile.estimates()}
    assert alone["propagation/spread"].group == "profile fit"


def test_predictions_follow_the_model(fit: PropagationFit, rng: np.random.Generator) -> None:
    new = fit.predict(20_000, rng=rng)
    assert new.smoothed.shape == (20_000, 2)
    assert np.all((new.predicted >= 0) & (new.predicted <= 1))
    observed = fit.counts.list_count.sum(axis=0) / fit.counts.list_known.sum(axis=0)
    assert new.predicted.mean(axis=0) == pytest.approx(observed, abs=0.03)
    assert np.all(new.predicted.std(axis=0) > new.smoothed.std(axis=0))
    curve = fit.curve("two", [0.2, 0.5, 0.8])
    assert np.all(np.diff(curve[0]) > 0)
    assert np.all((curve[1] < curve[0]) & (curve[0] < curve[2]))


def test_data_of_the_model_fit_and_two_peaks_do_not(made: Make, rng: np.random.Generator) -> None:
    counts = made(rng, 120)
    peaks = rng.random(120) < 0.5
    size = counts["list_known"][:, 1]
    counts["list_count"][:, 1] = np.where(peaks, size, rng.binomial(size, 0.3))
    fit = fit_propagation(**counts, systems=["line", "peaks"], draws=512)
    line, peak = fit.misfit("line"), fit.misfit("peaks")
    assert line is not None and line.describes and not line.words
    assert peak is not None and peak.p_value < 0.01
    assert peak.at_one > peak.predicted_at_one
    slopes = {e.system: e for e in fit.estimates() if e.key == "propagation/slope"}
    assert slopes["peaks"].note.startswith("a line does not describe these lists")
    assert not slopes["line"].note


def test_without_spread_there_is_no_slope(made: Make, rng: np.random.Generator) -> None:
    fit = fit_propagation(**made(rng, 800, sigma=0.0), systems=["one", "two"])
    slopes = [e for e in fit.estimates() if e.key == "propagation/slope"]
    assert all(not e.is_defined for e in slopes)
    assert "users do not differ measurably" in slopes[0].reason
    spread = next(e for e in fit.profile.estimates() if e.key == "propagation/spread")
    assert spread.interval is not None and spread.interval[0] < 0.05
    assert all(not e.is_defined for e in fit.differences())
    with pytest.raises(NotConvergedError):
        fit.curve("one", [0.5])


def test_a_placebo_attribute_has_no_spread(rng: np.random.Generator) -> None:
    codes = placebo_codes(range(5_000))
    assert abs(codes.mean() - 0.5) < 0.05
    assert not np.array_equal(codes, placebo_codes(range(5_000), seed=1))
    profiles = rng.integers(0, 5_000, (700, 25))
    lists = rng.integers(0, 5_000, (700, 1, 50))
    fit = fit_propagation(
        codes[profiles].sum(axis=1),
        np.full(700, 25),
        codes[lists].sum(axis=2),
        np.full((700, 1), 50),
        ["random"],
    )
    assert "users do not differ measurably" in fit.reason


def test_residual_that_cannot_be_told_from_zero_says_so(
    made: Make, rng: np.random.Generator
) -> None:
    fit = fit_propagation(**made(rng, 500, v=(0.0, 0.5)), systems=["exact", "noisy"])
    found = {e.system: e for e in fit.estimates() if e.key == "propagation/residual-sd"}
    assert found["exact"].details["at_zero"] and "cannot be told from 0" in found["exact"].note
    assert not found["noisy"].details["at_zero"]


def test_draws_that_did_not_converge_are_refused(fit: PropagationFit) -> None:
    assert fit.drawn is not None
    points = np.concatenate(
        [
            fit.drawn.mean[:, None],
            np.log(fit.drawn.spread)[:, None],
            fit.drawn.intercept,
            fit.drawn.slope,
            np.log(fit.drawn.residual),
        ],
        axis=1,
    )
    heavy = np.full(len(points), 1e-6)
    heavy[:3] = 1
    bad = Drawn(points, heavy / heavy.sum(), fit.drawn.sets, 1.2, 0.5, 0.9, 4)
    found = Diagnostics.of(bad, Posterior.of(bad, fit.counts.names), at_mode=False)
    assert not found.converged
    assert len(found.problems) == 5
    refused = replace(fit, diagnostics=found, reason="did not converge: " + found.problems[0])
    with pytest.raises(NotConvergedError, match="did not converge"):
        _ = refused.posterior
    assert all(not e.is_defined for e in refused.estimates())
    json.dumps(found.to_dict())


def test_the_same_generator_gives_the_same_draws(made: Make, fit: PropagationFit) -> None:
    counts = made(np.random.default_rng(5), 500)
    again = fit_propagation(**counts, systems=["one", "two"])
    assert np.array_equal(again.posterior.slope, fit.posterior.slope)


@pytest.mark.slow
def test_users_without_a_list_and_priors_count(made: Make, rng: np.random.Generator) -> None:
    counts = made(rng, 150)
    counts["list_known"][:50, 0] = counts["list_count"][:50, 0] = 0
    fit = fit_propagation(**counts, systems=["a", "b"])
    slopes = {e.system: e.n for e in fit.estimates() if e.key == "propagation/slope"}
    assert slopes == {"a": 100, "b": 150}
    tight = fit_propagation(**counts, systems=["a", "b"], priors=Priors(slope_sd=0.01))
    assert np.all(np.abs(tight.posterior.slope).mean(axis=0) < 0.2)
    with pytest.raises(PlanError, match="slope_sd"):
        Priors(slope_sd=0)


def test_three_identities_by_nested_splits(rng: np.random.Generator) -> None:
    users = 500
    t = rng.normal([0.2, -0.5], [1.0, 0.8], (users, 2))
    lists = np.array([0.1, -0.2]) + np.array([0.9, 0.4]) * t + 0.3 * rng.normal(size=t.shape)

    def mix(x: np.ndarray) -> np.ndarray:
        first, second = (1 / (1 + np.exp(-x[:, i])) for i in range(2))
        return np.stack([first, (1 - first) * second, (1 - first) * (1 - second)], axis=1)

    counts = np.stack([rng.multinomial(40, p) for p in mix(t)])
    listed = np.stack([rng.multinomial(50, p) for p in mix(lists)])[:, None]
    # The third is the second most frequent here, so the order of the splits is found, not given.
    fit = fit_identities(counts, listed, ["a", "b", "c"], ["s"])
    assert fit.identities == ("a", "c", "b")
    first, second = fit.splits
    assert first.fit is not None and second.fit is not None
    assert first.against == ("c", "b") and second.against == ("b",)
    # c against b is the mirror of b against c: the same slope.
    for split, true in ((first, 0.9), (second, 0.4)):
        assert split.fit is not None
        low, high = split.fit.posterior.interval(split.fit.posterior.slope[:, 0], 0.999)
        assert low < true < high
    assert {e.label for e in fit.estimates()} == {"a", "c"}


@pytest.mark.slow
def test_two_identities_are_the_binomial_model(made: Make) -> None:
    counts = made(np.random.default_rng(8), 200)
    y = np.stack([counts["count"], counts["known"] - counts["count"]], axis=1)
    k = np.stack([counts["list_count"], counts["list_known"] - counts["list_count"]], axis=2)
    order = ("x", "y") if y.sum(axis=0)[0] >= y.sum(axis=0)[1] else ("y", "x")
    many = fit_identities(y, k, ["x", "y"], ["p", "q"], rng=np.random.default_rng(1))
    one = fit_propagation(
        y[:, 0] if order[0] == "x" else y[:, 1],
        counts["known"],
        k[:, :, 0] if order[0] == "x" else k[:, :, 1],
        counts["list_known"],
        ["p", "q"],
        rng=np.random.default_rng(1),
    )
    assert many.splits[0].fit is not None
    assert np.array_equal(many.splits[0].fit.posterior.slope, one.posterior.slope)


def test_an_identity_with_few_items_is_not_enough_data(rng: np.random.Generator) -> None:
    counts = rng.multinomial(30, [0.6, 0.4, 0.0], 200)
    counts[:3, 2] = 2
    listed = rng.multinomial(30, [0.6, 0.3, 0.1], (200, 1))
    fit = fit_identities(counts, listed, ["a", "b", "rare"], ["s"], splits="rest")
    rare = fit.splits[2]
    assert rare.fit is None and "not enough data" in rare.reason
    assert not rare.estimates()[0].is_defined
    with pytest.raises(DataError, match="shapes are"):
        fit_identities(counts, listed[:, 0], ["a", "b", "rare"], ["s"])


@pytest.mark.slow
def test_what_is_expected_for_other_reasons_is_taken_out(rng: np.random.Generator) -> None:
    # What is expected drives both profiles and lists; what goes beyond it has a slope of 0.4.
    users, share = 350, lambda x: 1 / (1 + np.exp(-x))
    genre, own = rng.normal(0, 1.2, users), rng.normal(0, 0.8, users)
    known, lists = np.full(users, 40), np.full((users, 1), 45)
    y = rng.binomial(known, share(genre + own))
    k = rng.binomial(45, share(genre + 0.4 * own + rng.normal(0, 0.2, users)))[:, None]
    about = {"systems": ["a"], "draws": 2048}
    plain = fit_propagation(y, known, k, lists, rng=np.random.default_rng(1), **about)
    fixed = fit_propagation(
        y, known, k, lists, rng=np.random.default_rng(1),
        offset=genre, list_offset=genre[:, None], **about,
    )  # fmt: skip
    slopes = [next(e for e in f.estimates() if e.metric == "slope") for f in (plain, fixed)]
    assert slopes[0].interval is not None and slopes[1].interval is not None
    assert slopes[0].interval[0] > 0.55
    assert slopes[1].interval[0] < 0.4 < slopes[1].interval[1] < 0.55
    assert fixed.posterior.average(fixed.posterior.spread) == pytest.approx(0.8, abs=0.15)
    # Predictions hold the offsets of observed users, so they are as spread as what was seen.
    new = fixed.predict(4000, rng=rng)
    assert new.profile_predicted.std() == pytest.approx((y / known).std(), abs=0.03)
    assert new.predicted.std() == pytest.approx((k / lists).std(), abs=0.03)
    assert all(one.describes for one in fixed.misfits)
    # The same by expected mixes, for any number of identities.
    mix = np.stack([share(genre), share(-genre)], axis=1)
    many = fit_identities(
        np.stack([y, known - y], axis=1), np.stack([k, lists - k], axis=2), ["x", "y"], ["a"],
        expected=mix, list_expected=mix[:, None], draws=2048, rng=np.random.default_rng(1),
    )  # fmt: skip
    (split,) = many.splits
    sign = 1 if split.identity == "x" else -1
    assert split.fit is not None
    found = split.fit.posterior
    assert found.average(found.slope[:, 0]) == pytest.approx(slopes[1].value, abs=0.01)
    middle = sign * fixed.posterior.average(fixed.posterior.mean)
    assert found.average(found.mean) == pytest.approx(middle, abs=0.01)
