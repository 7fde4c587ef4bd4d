"""What every metric must do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions
from ombud.data.predictions import Predictions
from ombud.data.recommendations import Recommendations
from ombud.errors import OmbudError
from ombud.metrics.base import Metric, Outputs, Rows
from ombud.testing._options import check_round_trip
from ombud.worlds import NeutralRecommender, PlantedModerator, World, small_world


class MetricContract:
    """Tests that any metric must pass; subclass it and say how to make one."""

    def make(self) -> Metric:
        """Return the metric."""
        raise NotImplementedError("say how the metric is made")

    def world(self) -> World:
        """Return the world that is measured; ratings included."""
        return small_world(1, users=40, items=150, texts=120, templates=12, ratings=True)

    def data(self, world: World) -> Dataset:
        """Return what the metric is given beside the outputs; override it for held-out data."""
        return world.dataset

    def outputs(self, world: World) -> Outputs:
        """Return what is measured: lists of 20, or decisions."""
        if self.make().of == "recommender":
            users = world.interactions.users.ids
            return NeutralRecommender(world).recommend(users, world.spec.depth)
        return PlantedModerator(world, error_rate=0.05).moderate(world.texts)

    def measured(self) -> tuple[Metric, Rows]:
        """Return the metric and its rows."""
        world, metric = self.world(), self.make()
        return metric, metric.measure(self.outputs(world), self.data(world))

    def test_it_is_a_metric_that_can_be_named_and_compared(self) -> None:
        """The engine and the report find all that they need."""
        metric = self.make()
        assert isinstance(metric, Metric)
        frozen = getattr(getattr(type(metric), "__dataclass_params__", None), "frozen", False)
        assert frozen, "it must be a frozen dataclass: options do not change"
        assert metric.title, "it has no title"
        assert metric.of in {"recommender", "moderator"}
        assert metric.contrast in {"difference", "ratio"}
        assert metric.null is None or np.isfinite(metric.null)
        assert metric.depth >= 0

    def test_it_says_what_it_must(self) -> None:
        """The documentation names the unit, when it is undefined, and what it leaves out."""
        text = type(self.make()).__doc__ or ""
        for words in ("**Unit of resampling**", "**Undefined**", "**Does not capture**"):
            assert words in text, f"the docstring does not say {words}"

    def test_rows_are_whole(self) -> None:
        """One row per unit, no unit twice, all columns that the statistic reads."""
        metric, rows = self.measured()
        assert isinstance(rows, Rows)
        assert rows.unit
        assert len(rows.ids) > 0, "nothing was measured"
        assert len(set(rows.ids.tolist())) == len(rows.ids), "a unit has two rows"
        assert set(metric.statistic.columns) <= set(rows.columns)
        for values in rows.columns.values():
            assert not np.isinf(values).any(), "a measurement is infinite"
        assert rows.clusters is None or len(rows.clusters) == len(rows.ids)

    def test_it_gives_a_number(self) -> None:
        """On an ordinary world, for at least one label."""
        metric, rows = self.measured()
        assert np.isfinite(points(metric, rows)).any(), "undefined for every label"

    def test_the_order_of_the_outputs_does_not_matter(self) -> None:
        """The same units in another order give the same number."""
        world, metric = self.world(), self.make()
        outputs, data = self.outputs(world), self.data(world)
        order = np.random.default_rng(1).permutation(len(outputs))
        first = points(metric, metric.measure(outputs, data))
        second = points(metric, metric.measure(rearranged(outputs, order), data))
        np.testing.assert_allclose(first, second, rtol=1e-9)

    def test_measuring_twice_gives_the_same(self) -> None:
        """A measurement draws no random numbers of its own and changes nothing."""
        world, metric = self.world(), self.make()
        outputs, data = self.outputs(world), self.data(world)
        first, second = (metric.measure(outputs, data) for _ in range(2))
        for name, values in first.columns.items():
            assert np.array_equal(values, second.columns[name], equal_nan=True), name

    def test_only_the_first_places_count(self) -> None:
        """Places beyond `depth` change nothing."""
        world, metric = self.world(), self.make()
        outputs, data = self.outputs(world), self.data(world)
        if not isinstance(outputs, Recommendations) or metric.depth == 0:
            import pytest

            pytest.skip("it does not look at places of lists")
        deep, cut = (metric.measure(o, data) for o in (outputs, outputs.top(metric.depth)))
        for name, values in deep.columns.items():
            assert np.array_equal(values, cut.columns[name], equal_nan=True), name

    def test_rows_survive_a_file(self) -> None:
        """Saved and read again, they give the same number."""
        metric, rows = self.measured()
        again = Rows.from_frame(rows.to_frame(), rows.unit)
        assert again.labels == rows.labels
        np.testing.assert_array_equal(points(metric, again), points(metric, rows))

    def test_without_data_it_says_what_is_missing(self) -> None:
        """An error of ombud with words, never a number and never another exception."""
        world, metric = self.world(), self.make()
        try:
            rows = metric.measure(self.outputs(world), Dataset())
        except OmbudError as error:
            assert str(error)
        else:
            assert len(rows.ids) > 0, "no error, and no rows either"

    def test_a_saved_result_can_build_it(self) -> None:
        """Name and options, through JSON, give an equal metric."""
        check_round_trip("metric", self.make())


def points(metric: Metric, rows: Rows) -> NDArray[np.float64]:
    """Return the statistic of all units, for each label; NaN where it is undefined."""
    columns = metric.statistic.columns
    result = []
    for index in range(len(rows.labels)):
        values = np.stack([rows.columns[name][:, index] for name in columns], axis=1)
        values = values.astype(np.float64)
        known = ~np.isnan(values).any(axis=1)
        result.append(metric.statistic.point(values[known]) if known.any() else np.nan)
    return np.array(result, dtype=np.float64)


def rearranged(outputs: Outputs, order: NDArray[np.int64]) -> Outputs:
    """Return the same outputs, units in another order."""
    if isinstance(outputs, Recommendations):
        return outputs.for_users(outputs.users[order])
    if isinstance(outputs, Predictions):
        return Predictions(
            outputs.users[order],
            outputs.items[order],
            outputs.predicted[order],
            outputs.actual[order],
            outputs.exclusions,
        )
    parts: dict[str, Any] = {
        name: None if values is None else values[order]
        for name, values in (
            ("category_scores", outputs.category_scores),
            ("repeats", outputs.repeats),
        )
    }
    return Decisions(
        outputs.ids[order],
        outputs.outcomes[order],
        outputs.scores[order],
        outputs.categories,
        version=outputs.version,
        **parts,
    )
