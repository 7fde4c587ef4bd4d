"""The truth of planted moderators against repetition."""

from __future__ import annotations

import numpy as np
import pytest

from ombud.data.decisions import Outcome
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.systems.base import Moderator
from ombud.worlds import PlantedModerator, World, large_world, small_world

REPEATS = 400
SUPPRESS = {"islanders": 2.5, "twins": 0.5, "identity=beekeepers": 12.0}


@pytest.fixture(scope="module")
def world() -> World:
    return small_world(4)


@pytest.mark.simulation
@pytest.mark.parametrize("correlation", [0.0, 0.5])
@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_the_truth_is_what_repetition_shows(world: World, correlation: float, lost: float) -> None:
    truth = None
    rates, overall, caught, medians, undecided = [], [], [], [], []
    negative = world.texts.truth == 0
    assert world.dataset.text_groups is not None
    members = world.dataset.text_groups.members & negative[:, None]
    for number in range(REPEATS):
        system = PlantedModerator(
            world,
            suppress=SUPPRESS,
            cluster_correlation=correlation,
            error_rate=lost,
            refusal_rate=lost / 2,
            name=str(number),
        )
        truth = system.truth()
        found = system.moderate(world.texts)
        decided, flagged = found.decided, found.outcomes == Outcome.FLAGGED
        assert ((found.scores >= 0.5) == flagged)[decided].all()
        assert np.isnan(found.scores[~decided]).all()
        rates.append([flagged[column & decided].mean() for column in members.T])
        overall.append(flagged[negative & decided].mean())
        caught.append(flagged[(world.texts.truth == 1) & decided].mean())
        medians.append(np.median(found.scores[negative & decided]))
        undecided.append([np.mean(found.outcomes == o) for o in (Outcome.ERROR, Outcome.REFUSED)])
    assert truth is not None

    def z(values: object, expected: object) -> np.ndarray:
        values = np.asarray(values)
        error = np.maximum(values.std(axis=0, ddof=1) / np.sqrt(REPEATS), 1e-12)
        return np.abs(values.mean(axis=0) - expected) / error

    assert (z(rates, truth.false_positive_rate) < 4.5).all()
    assert z(overall, truth.overall) < 4.5
    assert z(caught, truth.true_positive_rate) < 4.5
    assert (z(undecided, [lost, lost / 2]) < 4.5).all()
    # The median of a sample is biased by order 1/n; the texts are many.
    assert np.mean(medians) == pytest.approx(truth.overall_median_score, abs=0.01)
    independent = np.sqrt(truth.overall * (1 - truth.overall) / negative.sum())
    assert (np.std(overall) > 1.12 * independent) == (correlation > 0)


def test_overlaps_and_the_cap_by_hand(world: World) -> None:
    system = PlantedModerator(world, 0.1, 0.8, {"islanders": 2.5, "beekeepers": 12.0}, cap=0.9)
    groups = world.dataset.text_groups
    assert groups is not None
    islanders, beekeepers = (
        groups.members[:, groups.names.index(f"identity={n}")] for n in ("islanders", "beekeepers")
    )
    texts = world.truth.texts
    assert texts is not None
    harmless = ~texts.harmful
    assert set(system.probability[texts.harmful]) == {0.8}
    assert set(system.probability[harmless & islanders & ~beekeepers]) == {0.25}
    assert set(system.probability[harmless & ~islanders & ~beekeepers]) == {0.1}
    assert set(system.probability[harmless & beekeepers]) == {0.9}
    truth = system.truth()
    place = groups.names.index("identity=twins")
    named = groups.members[:, place] & (world.texts.truth == 0)
    assert truth.support[place] == named.sum()
    assert truth.false_positive_rate[place] == pytest.approx(system.probability[named].mean())
    assert truth.suppression[place] == pytest.approx(
        system.probability[named].mean() / system.probability[world.texts.truth == 0].mean()
    )
    assert truth.to_frame().height == len(groups.names)


def test_without_suppression_all_groups_are_alike(world: World) -> None:
    truth = PlantedModerator(world).truth()
    assert truth.suppression == pytest.approx(np.ones(len(truth.groups)))


def test_it_answers_in_the_order_asked_and_knows_only_its_world(world: World) -> None:
    system = world.moderators()[1]
    assert isinstance(system, Moderator)
    texts = world.texts
    order = np.array([5, 2, 9])
    whole = system.moderate(texts)
    part = system.moderate(Texts(texts.ids[order], texts.texts[order], texts.truth[order]))
    assert part.ids.tolist() == texts.ids[order].tolist()
    assert part.outcomes.tolist() == whole.outcomes[order].tolist()
    stranger = Texts(np.array(["x"], object), np.array(["hello"], object), np.zeros(1, np.int8))
    assert system.moderate(stranger).outcomes.tolist() == [Outcome.ERROR]


def test_impossible_rates_are_refused_all_at_once(world: World) -> None:
    with pytest.raises(PlanError, match=r"base_fpr is 2.*twins: -1"):
        PlantedModerator(world, 2.0, suppress={"twins": -1})
    with pytest.raises(PlanError, match="not a group"):
        PlantedModerator(world, suppress={"dragons": 2})
    with pytest.raises(PlanError, match="no texts"):
        PlantedModerator(large_world(0, interactions=2000, users=100, items=300, labels=3))


@pytest.mark.parametrize(("p", "expected"), [(0.0, 0.25), (0.5, 0.5), (1.0, 0.75)])
def test_the_median_score_by_hand(world: World, p: float, expected: float) -> None:
    truth = PlantedModerator(world, p, cap=1.0).truth()
    assert truth.overall_median_score == pytest.approx(expected)
