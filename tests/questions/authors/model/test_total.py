"""Every system has numbers or its own reason: polarized lists, budgets, failed fits."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ombud.questions.authors.model import _expansion, _kernel, _tables, fits
from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._importance import _check, _Proposal, _refitted, _Straight
from ombud.questions.authors.model._kernel import Exhausted, Nodes, Work
from ombud.questions.authors.model._target import find_mode, starting_point
from ombud.questions.authors.model.fits import PropagationFit, fit_propagation
from ombud.questions.authors.model.priors import Priors

Make = Callable[..., Any]


def polarized(made: Make, mixed: int, users: int = 80, seed: int = 3) -> dict[str, Any]:
    """Two ordinary systems, and one whose lists hold one identity each, but for a few."""
    rng = np.random.default_rng(seed)
    counts = made(rng, users, b=(-0.2, 0.0, 0.1), s=(0.5, 1.0, 1.1), v=(0.5, 0.5, 0.5))
    share = counts["count"] / counts["known"] + rng.normal(0, 0.1, users)
    size = counts["list_known"][:, 1]
    counts["list_count"][:, 1] = np.where(share > np.median(share), size, 0)
    counts["list_count"][:mixed, 1] = size[:mixed] // 3
    return dict(counts)


def without(counts: dict[str, Any], system: int) -> dict[str, Any]:
    return counts | {
        name: np.delete(counts[name], system, axis=1) for name in ("list_count", "list_known")
    }


def slopes(fit: PropagationFit) -> dict[str, Any]:
    return {e.system: e for e in fit.estimates() if e.key == "propagation/slope"}


@pytest.mark.parametrize("mixed", [0, pytest.param(6, marks=pytest.mark.slow), 32])
def test_a_polarized_system_does_not_touch_the_others(made: Make, mixed: int) -> None:
    counts = polarized(made, mixed)
    rng = np.random.default_rng
    fit = fit_propagation(**counts, systems=["a", "polar", "c"], rng=rng(1))
    plain = fit_propagation(**without(counts, 1), systems=["a", "c"], rng=rng(1))
    found, alone = slopes(fit), slopes(plain)
    assert list(found) == ["a", "polar", "c"]
    for system in ("a", "c"):
        assert found[system].value == alone[system].value
        assert found[system].interval == alone[system].interval
    polar = found["polar"]
    if mixed:
        note = f"fitted apart: only {mixed} of the 80 lists hold both identities"
        assert note in polar.note if polar.is_defined else f"only {mixed} of" in polar.reason
    else:
        assert polar.reason.startswith("none of the 80 lists holds both identities")
    gaps = {(e.system, e.against): e for e in fit.differences() if "slope" in e.key}
    assert gaps["a", "c"].is_defined
    assert not gaps["a", "polar"].is_defined and "both identities" in gaps["a", "polar"].reason
    assert fit.part("polar") is not fit and fit.part("c") is fit
    assert fit.predict(50).smoothed.shape == (50, 2)
    with pytest.raises(ValueError, match="no system is named 'd'"):
        fit.part("d")


@pytest.mark.slow
@pytest.mark.simulation
@pytest.mark.parametrize("number", range(20))
def test_other_systems_keep_their_slopes_beside_a_nearly_polarized_one(
    made: Make, number: int
) -> None:
    # From no mixed list at all, which is refused, to almost half, which is still fitted apart.
    rng = np.random.default_rng([27, number])
    users = int(rng.integers(100, 601))
    counts = polarized(made, int(users * rng.choice([0, 0.04, 0.12, 0.25, 0.45])), users, number)
    names = ["a", "polar", "c"]
    fit = fit_propagation(**counts, systems=names, rng=np.random.default_rng(1))
    plain = fit_propagation(**without(counts, 1), systems=["a", "c"], rng=np.random.default_rng(1))
    found, alone = slopes(fit), slopes(plain)
    for system in ("a", "c"):
        assert found[system].value == pytest.approx(alone[system].value, abs=0.1)
        assert found[system].interval == pytest.approx(alone[system].interval, abs=0.15)
    assert found["polar"].is_defined or "both identities" in found["polar"].reason


def test_reasons_are_those_of_the_data(made: Make) -> None:
    counts = polarized(made, 0)
    whole = {"systems": ["a", "b", "c"], "budget": 1.0}
    # A budget of one evaluation: these reasons need no fit at all.
    pure = counts | {"count": np.where(counts["count"] * 2 > counts["known"], counts["known"], 0)}
    assert "no user has both identities" in fit_propagation(**pure, **whole).reason
    some = {name: values[:4] for name, values in counts.items()}
    assert "of 4 users have both identities" in fit_propagation(**some, **whole).reason
    nobody = counts | {"count": np.zeros_like(counts["count"])}
    assert fit_propagation(**nobody, **whole).reason == "all profiles hold one identity only"
    # Each system for itself; the profiles are fitted.
    lists = counts["list_count"].copy()
    known = counts["list_known"].copy()
    lists[:, 0], known[:, 0], lists[:, 2] = 0, 0, known[:, 2]
    fit = fit_propagation(
        counts["count"], counts["known"], lists, known, ["empty", "polar", "full"]
    )
    reasons = {system: e.reason for system, e in slopes(fit).items()}
    assert reasons["empty"] == "no list holds an item of known identity"
    assert "the ratio of the slope to the residual spread" in reasons["polar"]
    assert reasons["full"] == "all lists hold one identity only"
    assert "polar: none of the 80 lists" in fit.reason
    assert all(e.is_defined for e in fit.profile.estimates())
    assert not any(e.is_defined for e in fit.differences())


@pytest.mark.parametrize("budget", [1e3, 1e6, 4e6])
def test_no_more_is_evaluated_than_the_budget(
    made: Make, monkeypatch: pytest.MonkeyPatch, budget: float
) -> None:
    made_of = _kernel.list_integral
    spent = [0]

    def counted(k: Any, r: Any, middle: Any, v: Any, count: int, *rest: Any, **more: Any) -> Any:
        spent[0] += np.broadcast(k, middle, v).size * count
        return made_of(k, r, middle, v, count, *rest, **more)

    monkeypatch.setattr(_kernel, "list_integral", counted)
    monkeypatch.setattr(_expansion, "list_integral", counted)
    monkeypatch.setattr(_tables, "list_integral", counted)
    counts = polarized(made, 6, users=60)
    fit = fit_propagation(**counts, systems=["a", "polar", "c"], budget=budget)
    assert spent[0] <= budget
    for e in slopes(fit).values():
        assert e.is_defined or e.reason
    if budget < 2e6:
        assert "budget" in fit.reason
        assert all("budget" in e.reason for e in slopes(fit).values())


@pytest.mark.parametrize("seed", range(40))
def test_nothing_raises_and_every_number_or_its_reason_is_there(seed: int) -> None:
    rng = np.random.default_rng(seed)
    users, systems = int(rng.integers(1, 40)), int(rng.integers(1, 4))

    def some(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        known = rng.integers(0, rng.choice([2, 5, 60]), shape)
        share = rng.choice([0.0, 0.01, 0.5, 1.0], shape[-1:] if len(shape) > 1 else ())
        pure = rng.random(shape) < rng.choice([0.0, 0.9, 1.0])
        count = rng.binomial(known, share)
        return np.where(pure, np.where(rng.random(shape) < 0.5, known, 0), count), known

    count, known = some((users,))
    known[0] = max(known[0], 1)
    lists, size = some((users, systems))
    names = [str(a) for a in range(systems)]
    fit = fit_propagation(count, known, lists, size, names, budget=3e5)
    found = [*fit.estimates(), *fit.differences(), *fit.profile.estimates()]
    assert len(found) == 6 + 4 * systems + systems * (systems - 1)
    for e in found:
        assert e.is_defined or e.reason
        # What the data lack comes first, or how many users there were.
        assert e.is_defined or not e.reason.startswith("the fit did not converge")


def test_a_system_with_lists_of_users_without_a_profile_has_a_starting_point(made: Make) -> None:
    counts = made(np.random.default_rng(5), 30)
    counts["known"][:10] = counts["count"][:10] = 0
    counts["list_known"][10:, 1] = counts["list_count"][10:, 1] = 0
    assert np.isfinite(starting_point(Counts.check(**counts))).all()


def test_a_part_of_a_budget_charges_the_whole() -> None:
    whole = Work(100)
    part = whole.part(0.5)
    part.spend(30)
    assert (part.left, whole.left) == (20, 70)
    with pytest.raises(Exhausted):
        part.spend(21)
    assert whole.left == 70


@pytest.mark.slow
def test_a_system_that_prevents_the_joint_fit_is_found(
    made: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = fits._draws

    def failing(counts: Any, *rest: Any) -> Any:
        return (None, None, "cannot be") if "bad" in counts.names else draws(counts, *rest)

    monkeypatch.setattr(fits, "_draws", failing)
    counts = made(np.random.default_rng(4), 50, b=(0.0,) * 3, s=(0.5, 0.9, 1.1), v=(0.5,) * 3)
    fit = fit_propagation(**counts, systems=["a", "bad", "c"])
    found = slopes(fit)
    assert found["bad"].reason == "cannot be"
    assert found["a"].is_defined and found["c"].is_defined
    assert not fit.reason and fit.counts.names == ("a", "c")
    # Without any joint fit each system still has its own.
    monkeypatch.setattr(
        fits, "_draws", lambda c, *r: (None, None, "no") if c.systems > 1 else draws(c, *r)
    )
    fit = fit_propagation(**counts, systems=["a", "bad", "c"])
    assert all(e.is_defined and "joint fit failed" in e.note for e in slopes(fit).values())
    assert fit.reason == "no" and not fit.counts.systems
    assert fit.curve("a", [0.2, 0.8]).shape == (3, 2)


def test_the_check_sees_points_whose_weight_an_error_took_away() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((400, 2))
    exact = np.zeros(400)
    lost = points[:, 0] > 0.5

    def values(at: np.ndarray, *_: Any) -> np.ndarray:
        # Integrals that miss the peaks in a third of the posterior.
        return np.where(at[:, 0] > 0.5, -40.0, 0.0)

    target: Any = SimpleNamespace(
        nodes=Nodes(),
        values=values,
        integrals=lambda at, *_: np.zeros(len(at)),
        some_users=lambda _: (target, 1.0),
    )
    nobody: Any = None
    faulty = np.where(lost, exact - 40, exact)
    assert _check(target, points, faulty, nobody, 0, rng)[0] > 10
    # Nor does it pass points that lost all of their weight.
    target.values = lambda at, *_: np.where(at[:, 0] > 0.5, -np.inf, 0.0)
    gone = np.where(lost, -np.inf, 0.0)
    assert _check(target, points, gone, nobody, 0, rng)[0] == np.inf
    target.values = lambda at, *_: np.zeros(len(at))
    assert _check(target, points, exact, nobody, 0, rng) == (0.0, 0.0)


def test_copies_of_a_system_do_not_move_its_slope(made: Make) -> None:
    counts = made(np.random.default_rng(3), 60, b=(0.0, 0.0), s=(0.6, 0.6), v=(0.8, 0.8))
    # The first system, and one with its lists, of which some have one item more or less.
    for name in ("list_count", "list_known"):
        counts[name][:, 1] = counts[name][:, 0]
    counts["list_count"][::5, 1] = np.maximum(counts["list_count"][::5, 0] - 1, 0)
    rng = np.random.default_rng
    found = slopes(fit_propagation(**counts, systems=["a", "copy"], rng=rng(1)))
    alone = slopes(fit_propagation(**without(counts, 1), systems=["a"], rng=rng(1)))
    assert found["a"].value == alone["a"].value and not found["a"].note
    assert "its lists are almost those of a" in found["copy"].note
    assert fits._likeness(Counts.check(**counts), 0, 1) < 0.1


@pytest.mark.parametrize("common", [0.0, 0.8])
def test_lists_that_share_more_than_profiles_explain_are_noted(made: Make, common: float) -> None:
    # Both systems deviate from the line for the same users; their lists are no copies.
    rng = np.random.default_rng(8)
    counts = made(rng, 150)
    t, one = rng.normal(-0.3, 1.2, 150), rng.standard_normal(150)
    two = common * one + np.sqrt(1 - common**2) * rng.standard_normal(150)
    x = 0.8 * t[:, None] + 0.8 * np.stack([one, two], axis=1)
    counts["count"] = rng.binomial(counts["known"], 1 / (1 + np.exp(-t)))
    counts["list_count"] = rng.binomial(counts["list_known"], 1 / (1 + np.exp(-x)))
    found = slopes(fit_propagation(**counts, systems=["a", "b"]))
    note = "its lists have more in common with those of b than profiles explain"
    assert (note in found["a"].note) == (common > 0)
    assert fits._likeness(Counts.check(**counts), 0, 1) > 1.1


@pytest.mark.parametrize("common", [0.0, 0.9])
def test_shared_deviations_beside_short_profiles_are_noted(common: float) -> None:
    # Profiles of one to five items do not show them; that users would have to differ less does.
    rng = np.random.default_rng(5)
    t, shared = rng.normal(-0.3, 1.2, 200), rng.standard_normal((200, 1))
    own = np.sqrt(common) * shared + np.sqrt(1 - common) * rng.standard_normal((200, 2))
    known, size = rng.integers(1, 6, 200), np.full((200, 2), 32)
    count = rng.binomial(known, 1 / (1 + np.exp(-t)))
    lists = rng.binomial(size, 1 / (1 + np.exp(-(0.7 * t[:, None] + 0.8 * own))))
    fit = fit_propagation(count, known, lists, size, ["a", "b"])
    for e in slopes(fit).values():
        assert ("users differ less in this fit" in e.note) == (common > 0)
    # A system that is fitted alone has no such note.
    alone = slopes(fit_propagation(count, known, lists[:, :1], size[:, :1], ["a"]))["a"]
    assert "users differ" not in alone.note
    assert alone.value == pytest.approx(0.7, abs=0.3)


@pytest.mark.slow
def test_one_costly_system_among_many_leaves_the_others_enough_of_the_budget(made: Make) -> None:
    rng = np.random.default_rng(7)
    s, v = tuple(np.linspace(-1, 2, 8)), (0.05, 0.5, 1.0, 2.0, 0.5, 0.5, 3.0, 0.01)
    counts = made(rng, 40, b=(0.0,) * 8, s=s, v=v)
    found = slopes(
        fit_propagation(**counts, systems=list("abcdefgh"), rng=np.random.default_rng(1))
    )
    assert all(e.is_defined for system, e in found.items() if system != "g")
    assert found["g"].is_defined or "hold both identities" in found["g"].reason


def test_a_spent_budget_is_named_with_how_to_raise_it(made: Make) -> None:
    counts = made(np.random.default_rng(4), 30)
    fit = fit_propagation(**counts, systems=["a", "b"], budget=2e5)
    for e in slopes(fit).values():
        assert e.reason.startswith("the budget of 0.2 million evaluations")
        assert "`budget` of fit_propagation raises it" in e.reason and "30 users" in e.reason


def test_a_failed_fit_describes_its_data_above_every_limit(made: Make) -> None:
    counts = Counts.check(**made(np.random.default_rng(4), 30))
    reason = fits._failure(counts, "heavy tail")
    assert reason.startswith("30 users; 29 of 30 profiles hold both identities; profiles hold 21.7")
    assert reason.endswith("identity on average; the fit did not converge: heavy tail")
    short = {"count": [0, 1, 1, 0], "known": [1, 2, 1, 1]}
    reason = fits._failure(Counts.check(**short), "x")
    assert "only 1 of 4 profiles hold both identities; profiles hold 1.2 items" in reason


@pytest.mark.parametrize("seed", range(6, 9))
def test_draws_are_added_until_every_check_passes(made: Make, seed: int) -> None:
    # The weights of few users are soon even enough, but not yet those of each parameter.
    counts = made(np.random.default_rng([11, seed]), 6 + seed % 5)
    fit = fit_propagation(**counts, systems=["a", "b"])
    for e in slopes(fit).values():
        assert "did not converge" not in e.reason + e.note


def test_the_mode_of_a_rare_identity_is_found_along_a_bent_ridge() -> None:
    rng = np.random.default_rng(6)
    t = rng.normal(-4.5, 1, 100)
    known = rng.integers(1, 6, 100)
    x = 0.1 + t[:, None] * [0.6, 1.0] + rng.normal(0, 0.5, (100, 2))
    size = np.full(x.shape, 50)
    lists = rng.binomial(size, 1 / (1 + np.exp(-x)))
    counts = Counts.check(rng.binomial(known, 1 / (1 + np.exp(-t))), known, lists, size)
    assert find_mode(counts, Priors(), Nodes(7, 5), Work(1e8)).reached


def test_kernels_have_the_density_they_are_drawn_from_and_the_moments_of_the_draws() -> None:
    rng = np.random.default_rng(2)
    straight = _Straight(0.0, np.empty(0), np.empty(0), np.empty(0), 0.01)
    # Bent: the mean falls as the spread grows.
    drawn = rng.standard_normal((3000, 2))
    drawn[:, 0] -= drawn[:, 1] ** 2
    kernels = _refitted(straight, drawn, np.full(3000, 1 / 3000), rng)
    one = _refitted(straight, drawn, np.full(3000, 1 / 3000), None)
    assert isinstance(kernels, _Proposal) and len(kernels.shifts) > 1
    points = kernels.draw(20_000, rng)
    ratio = np.exp(one.log_density(points) - kernels.log_density(points))
    assert ratio.mean() == pytest.approx(1, abs=0.05)
    assert points.mean(axis=0) == pytest.approx(drawn.mean(axis=0), abs=0.5)
    # Closer to the draws than one bell.
    assert kernels.log_density(drawn).mean() > one.log_density(drawn).mean() + 0.05
