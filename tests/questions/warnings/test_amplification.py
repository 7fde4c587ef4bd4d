from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud.data.dataset import Dataset
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError
from ombud.metrics.engine.estimate import estimate_metric
from ombud.metrics.engine.estimator import Settings
from ombud.questions.warnings.amplification.metric import Amplification, UserAmplification
from ombud.registry import create
from ombud.worlds import WorldSpec, build_world
from ombud.worlds.recommenders import PlantedRecommender
from ombud.worlds.spec import Amplification as Planted

YES, NO, DISPUTED, UNKNOWN = 1, 0, -1, -2


def made(
    history: dict[str, dict[str, float]],
    lists: dict[str, list[str]],
    states: dict[str, dict[str, int]],
    explicit: bool = True,
) -> tuple[Dataset, Recommendations]:
    met = [(u, i, r) for u, items in history.items() for i, r in items.items()]
    users, items, ratings = zip(*met, strict=True)
    interactions = Interactions.from_arrays(users, items, ratings if explicit else None)
    rows = [(i, w, s) for i, labels in states.items() for w, s in labels.items()]
    item, label, state = zip(*rows, strict=True)
    labels = Labels.from_states({"item": item, "label": label, "state": state})
    shown = [(u, i) for u, shown in lists.items() for i in shown]
    user, listed = zip(*shown, strict=True)
    return Dataset(interactions, labels), Recommendations.from_frame({"user": user, "item": listed})


@pytest.fixture
def example() -> tuple[Dataset, Recommendations]:
    """Two users, two labels; every number below is worked by hand."""
    return made(
        {
            # 75th percentile of 5 5 4 3 1 is 5: a and b are relevant.
            "ann": {"a": 5, "b": 5, "c": 4, "d": 3, "e": 1},
            # All ratings tie: all four are relevant.
            "bob": {"a": 3, "c": 3, "d": 3, "e": 3},
        },
        {"ann": ["c", "f", "g", "h"], "bob": ["b", "f", "g", "h"]},
        {
            "a": {"blood": YES, "spiders": NO},
            "b": {"blood": NO, "spiders": NO},
            "c": {"blood": YES, "spiders": NO},
            "d": {"blood": NO, "spiders": YES},
            "f": {"blood": YES, "spiders": YES},
            "g": {"blood": UNKNOWN, "spiders": YES},
            "h": {"blood": DISPUTED, "spiders": NO},
        },
    )


def values(metric: Any, example: tuple[Dataset, Recommendations]) -> list[list[float]]:
    data, lists = example
    return metric.measure(lists, data).columns["value"].round(6).tolist()


def test_hand_worked(example: tuple[Dataset, Recommendations]) -> None:
    # ann, blood: 2/4 in the list, 1/2 in a, b. spiders: 2/4, none in 2: 1/3 with the imaginary.
    # bob, blood: 1/4 in the list, 2/4 in a, c, d, e. spiders: 2/4, 1/4.
    assert values(Amplification(k=4), example) == [[0.0, 0.5], [-0.5, 1.0]]
    assert values(UserAmplification(k=4), example) == [[0.25], [0.25]]


def test_smoothing_and_forms(example: tuple[Dataset, Recommendations]) -> None:
    dropped = values(Amplification(k=4, smoothing="drop"), example)
    assert dropped[0][0] == 0.0 and np.isnan(dropped[0][1]) and dropped[1] == [-0.5, 1.0]
    # (2.5 / 5) / (0.5 / 3) - 1 = 2 for ann and spiders.
    assert values(Amplification(k=4, smoothing="additive"), example)[0] == [0.0, 2.0]
    logs = values(Amplification(k=4, form="log-ratio"), example)
    assert logs == [[0.0, round(np.log(1.5), 6)], [round(np.log(0.5), 6), round(np.log(2), 6)]]
    data, lists = example
    raw = Amplification(k=4, form="ratio-of-means").measure(lists, data).columns
    assert raw["list"].tolist() == [[0.5, 0.5], [0.25, 0.5]]
    assert raw["history"].tolist() == [[0.5, 0.0], [0.5, 0.25]]


def test_log_ratio_smooths_an_empty_list(example: tuple[Dataset, Recommendations]) -> None:
    # bob's first place, b, has no blood: one imaginary item makes 1/2, over 2/4.
    assert values(Amplification(k=1, form="log-ratio"), example)[1][0] == 0.0


def test_unknowns(example: tuple[Dataset, Recommendations]) -> None:
    # blood in ann's list c f g h: yes yes unknown disputed; her history is known.
    blood = {u: values(Amplification(k=4, unknown=u), example)[0][0] for u in ("yes", "exclude")}
    assert blood == {"yes": 1.0, "exclude": 1.0}
    # bob: list b f g h is no yes ? ?; history a c d e is yes yes no unknown.
    bob = {
        u: values(Amplification(k=4, unknown=u), example)[1][0]
        for u in ("no", "yes", "exclude", "lowest", "highest")
    }
    assert bob == {
        "no": -0.5,
        "yes": 0.0,
        "exclude": round(0.5 / (2 / 3) - 1, 6),
        "lowest": round(0.25 / 0.75 - 1, 6),
        "highest": 0.5,
    }


def test_exposure(example: tuple[Dataset, Recommendations]) -> None:
    d = 1 / np.log2([2, 3, 4, 5])
    found = values(Amplification(k=4, weighting="exposure"), example)
    assert found[0][0] == round(float((d[0] + d[1]) / d.sum() / 0.5 - 1), 6)


def test_notes_count_what_smoothing_touched(example: tuple[Dataset, Recommendations]) -> None:
    data, lists = example
    notes = Amplification(k=5).measure(lists, data).notes
    assert "added to 1 of 2 histories" in notes["spiders"]
    assert "added to 0 of 2 histories" in notes["blood"]
    assert "2 lists are shorter than 5" in notes["blood"]
    note = UserAmplification(k=4).measure(lists, data).notes[""]
    assert "added to 1 of 4 histories of user-label pairs (25%)" in note
    assert (
        "no smoothing" in Amplification(form="ratio-of-means").measure(lists, data).notes["blood"]
    )


def test_history_all_and_implicit(example: tuple[Dataset, Recommendations]) -> None:
    # ann's whole history a b c d e has blood in 2 of 5; her list in 2 of 4.
    assert values(Amplification(k=4, history="all"), example)[0][0] == 0.25
    data, lists = example
    assert data.interactions is not None
    frame = data.interactions.to_frame().drop("rating")
    implicit = replace(data, interactions=Interactions.from_frame(frame))
    assert values(Amplification(k=4), (implicit, lists))[0][0] == 0.25


def test_users_left_out_are_counted(example: tuple[Dataset, Recommendations]) -> None:
    data, lists = example
    more = Recommendations(
        np.array(["ann", "bob", "eve", "bob2"]),
        np.vstack([lists.items, lists.items[:1], np.full((1, 4), -1, np.int32)]),
        lists.catalogue,
    )
    rows = Amplification(k=4).measure(more, data)
    assert rows.ids.tolist() == ["ann", "bob"]
    assert {(e.count, e.reason) for e in rows.exclusions} == {
        (1, "no list was recommended"),
        (1, "a list, but no history to compare it with"),
    }


def random_case(rng: np.random.Generator, explicit: bool) -> tuple[Dataset, Recommendations]:
    users, items, labels = 12, 30, 4
    history = {
        f"u{u}": {
            f"i{i}": float(rng.integers(1, 6))
            for i in rng.choice(items, rng.integers(1, 14), replace=False)
        }
        for u in range(users)
    }
    lists = {
        f"u{u}": [f"i{i}" for i in rng.choice(items + 3, rng.integers(1, 9), replace=False)]
        for u in range(users)
    }
    # The last three items have no labels at all.
    states = {
        f"i{i}": {f"w{w}": int(rng.integers(-2, 2)) for w in range(labels)} for i in range(items)
    }
    return made(history, lists, states, explicit)


def by_loop(asked: Amplification, data: Dataset, lists: Recommendations) -> dict[Any, float]:
    """The definition again, one user, label and item at a time."""
    assert data.interactions is not None and data.labels is not None
    state = {(row["item"], row["label"]): row["state"] for row in data.labels.to_frame().to_dicts()}
    met: dict[str, list[tuple[str, float]]] = {}
    for row in data.interactions.to_frame().to_dicts():
        met.setdefault(row["user"], []).append((row["item"], row.get("rating", 1.0)))
    shown: dict[str, list[str]] = {}
    for row in lists.to_frame().sort("user", "rank").to_dicts():
        shown.setdefault(row["user"], []).append(row["item"])
    found = {}
    for user, label in product(met, data.labels.names):
        mine = shown[user][: asked.k]
        ratings = [r for _, r in met[user]]
        bar = np.quantile(ratings, 0.75) if asked.history == "relevant" else -np.inf
        past = [i for i, r in met[user] if r >= bar - 1e-9]

        def share(items: list[str], side: str, label: str = label) -> tuple[float, float, float]:
            carrying = weight = count = 0.0
            for place, item in enumerate(items):
                d = 1 / np.log2(place + 2) if asked.weighting == "exposure" else 1.0
                d = d if side == "list" else 1.0
                s = state.get((item, label), UNKNOWN)
                if s < 0:
                    if asked.unknown == "exclude":
                        continue
                    bound = "highest" if side == "list" else "lowest"
                    s = int(asked.unknown in {"yes", bound})
                carrying, weight, count = carrying + d * s, weight + d, count + 1
            return carrying, weight, count

        def smooth(c: float, w: float, n: float, extra: float) -> float:
            if n == 0:
                return float("nan")
            if asked.smoothing == "additive":
                return (c / w * n + 0.5) / (n + 1)
            if c == 0:
                return float("nan") if asked.smoothing == "drop" else extra / (w + extra)
            return c / w

        lc, lw, ln = share(mine, "list")
        extra = 1 / np.log2(len(mine) + 2) if asked.weighting == "exposure" else 1.0
        bottom = smooth(*share(past, "history"), 1.0)
        plain = asked.form != "log-ratio" and asked.smoothing != "additive"
        top = (lc / lw if ln else float("nan")) if plain else smooth(lc, lw, ln, extra)
        ratio = top / bottom
        found[user, label] = np.log(ratio) if asked.form == "log-ratio" else ratio - 1
    return found


@pytest.mark.parametrize("unknown", ["no", "exclude", "yes", "lowest", "highest"])
@pytest.mark.parametrize("smoothing", ["imaginary-item", "drop", "additive"])
def test_equals_a_loop_over_users(smoothing: Any, unknown: Any, rng: np.random.Generator) -> None:
    for explicit, form, weighting in product(
        (True, False), ("mean", "log-ratio"), ("share", "exposure")
    ):
        data, lists = random_case(rng, explicit)
        asked = Amplification(
            k=6,
            smoothing=smoothing,
            unknown=unknown,
            form=form,
            weighting=weighting,  # type: ignore[arg-type]
        )
        rows = asked.measure(lists, data)
        slow = by_loop(asked, data, lists)
        for (r, user), (c, label) in product(enumerate(rows.ids), enumerate(rows.labels)):
            assert rows.columns["value"][r, c] == pytest.approx(
                slow[user, label], nan_ok=True, rel=1e-5
            )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["share", "exposure"]))
def test_properties(seed: int, weighting: Any) -> None:
    data, lists = random_case(np.random.default_rng(seed), True)

    def of(unknown: Any) -> Any:
        asked = Amplification(k=5, unknown=unknown, weighting=weighting)
        return asked.measure(lists, data).columns["value"]

    low, high = of("lowest"), of("highest")
    assert np.all(low >= -1)
    for unknown in ("no", "yes"):
        assert np.all(low <= of(unknown) + 1e-9) and np.all(of(unknown) <= high + 1e-9)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_list_equal_to_the_history_is_not_amplified(seed: int) -> None:
    data, _ = random_case(np.random.default_rng(seed), False)
    assert data.interactions is not None
    lists = Recommendations.from_frame(data.interactions.to_frame())
    found = Amplification(smoothing="drop").measure(lists, data).columns["value"]
    assert np.all(np.abs(found[~np.isnan(found)]) < 1e-12)


def test_faults() -> None:
    data, lists = made({"u": {"a": 1.0}}, {"u": ["b"]}, {"a": {"w": YES}})
    with pytest.raises(PlanError, match="no labels"):
        Amplification().measure(lists, replace(data, labels=None))
    with pytest.raises(PlanError, match="needs labels with votes"):
        Amplification(votes="probability").measure(lists, data)
    with pytest.raises(PlanError, match="k is 0"):
        Amplification(k=0)


def test_registered_with_its_options() -> None:
    made = create("metric", "amplification", {"k": 20, "form": "median", "unknown": "highest"})
    assert made.title == "amplification@20 (median, unknown highest)"
    plain = create("metric", "amplification-user")
    assert plain.title == "user amplification@100 (unlabeled as no)"
    assert create("metric", "amplification", {"unknown": "exclude"}).title == "amplification@100"


def test_every_form_has_an_interval_by_group_and_corrected() -> None:
    world = build_world(WorldSpec("forms", users=200, labels=("a", "b", "c")), seed=3)
    (neutral, *_) = world.recommenders()
    users = world.interactions.users.ids
    lists = neutral.recommend(users, 20)
    for form in ("mean", "median", "ratio-of-means", "log-ratio"):
        asked = Amplification(k=20, form=form)  # type: ignore[arg-type]
        rows = {"neutral": asked.measure(lists, world.dataset)}
        found = estimate_metric(asked, rows, world.user_groups, Settings(replicates=300))
        overall = [e for e in found if not e.group]
        assert [e.label for e in overall] == ["a", "b", "c"]
        assert all(e.interval is not None and e.p_adjusted is not None for e in overall)
        assert {e.kind for e in found if e.against} == {"gap"}


@pytest.mark.simulation
def test_planted_amplification_is_recovered_with_nominal_coverage() -> None:
    spec = WorldSpec(
        "planted amplification",
        users=400,
        items=400,
        labels=("violence", "spiders"),
        amplifications={"amplifying": Planted("violence", 1.5)},
    )
    population = build_world(spec, seed=7)
    system = PlantedRecommender(population, "violence", 1.5)
    truth = system.truth("no").ratio_of_means() - 1
    assert truth[system.labels.names.index("violence")] > 0.3
    asked = Amplification(k=20, form="ratio-of-means", history="all")
    runs, covered = 120, np.zeros(2)
    for run in range(runs):
        world = population.redraw(f"run {run}", users=250)
        lists = PlantedRecommender(world, "violence", 1.5).recommend(
            world.interactions.users.ids, 20
        )
        rows = {"planted": asked.measure(lists, world.dataset)}
        found = estimate_metric(asked, rows, None, Settings(replicates=400, seed=run))
        for w, e in enumerate(found):
            assert e.interval is not None
            covered[w] += e.interval[0] <= truth[w] <= e.interval[1]
    # 95% of 120 runs, two and a half binomial standard errors to each side (2.4 runs each).
    assert np.all(covered >= 108), covered


@pytest.mark.parametrize("length", [40, 300, 70_000])
def test_long_lists_and_histories_are_counted_without_overflow(
    length: int, rng: np.random.Generator
) -> None:
    # Counts are added two labels at a time, in bytes while a list has fewer than 256 items.
    items = np.arange(length)
    states = rng.random((length, 11)) < np.linspace(0, 1, 11)
    at = np.nonzero(states)
    labels = Labels.from_applied({"item": at[0], "label": [f"w{w:02}" for w in at[1]]})
    users = np.repeat([0, 1], [length, 3])
    histories = Interactions.from_arrays(users, np.concatenate([items, items[:3]]))
    lists = Recommendations(
        np.arange(2),
        np.stack([items, np.where(items < 2, items, -1)]).astype(np.int32),
        labels.items,
    )
    assert len(labels.items) == length
    rows = Amplification(k=length, form="ratio-of-means", unknown="no").measure(
        lists, Dataset(histories, labels)
    )
    want = [states[:, 1:].mean(axis=0), states[:2, 1:].mean(axis=0)]
    assert np.array_equal(rows.columns["list"], want)
    assert np.array_equal(rows.columns["history"], [want[0], states[:3, 1:].mean(axis=0)])
