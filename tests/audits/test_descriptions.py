"""What a report says a metric is: each of its forms has words of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from ombud import registry
from ombud.audits.backends.base import metric_info
from ombud.errors import OmbudError

# What an option of this name makes of a number, a description that leaves it open does not tell.
STATISTICS = {"median": "median", "ratio-of-means": "mean share", "log-ratio": "logarithm"}


def variants(name: str) -> Iterator[Any]:
    """Yield a metric as it is, and with each value of each option that has a few."""
    factory = registry.get("metric", name)
    hints = get_type_hints(factory)
    plain = made(factory)
    if plain is not None:
        yield plain
    for option in fields(factory):  # type: ignore[arg-type]
        if get_origin(hints[option.name]) is Literal:
            for value in get_args(hints[option.name]):
                metric = made(factory, **{option.name: value})
                if metric is not None and value != option.default:
                    yield metric


def made(factory: Any, **options: Any) -> Any:
    try:
        return factory(**options)
    except (OmbudError, ValueError, TypeError):  # a form that needs another option as well
        return None


@pytest.mark.parametrize("name", registry.names("metric"))
def test_every_form_of_a_metric_has_a_description_of_its_own(name: str) -> None:
    told: dict[str, str] = {}
    for metric in variants(name):
        info = metric_info(metric, "user")
        assert info.summary.endswith("."), info.summary
        assert info.summary not in told, f"{info.key} and {told[info.summary]}: {info.summary}"
        told[info.summary] = info.key


@pytest.mark.parametrize("name", ["amplification", "amplification-user"])
@pytest.mark.parametrize("form", STATISTICS)
def test_no_other_form_is_called_the_mean_over_users(name: str, form: str) -> None:
    mean = metric_info(registry.create("metric", name), "user")
    assert "It is the mean over users." in mean.summary
    info = metric_info(registry.create("metric", name, {"form": form}), "user")
    assert STATISTICS[form] in info.summary
    for text in (info.summary, info.reading):
        assert "is the mean over users." not in text and "averaged over users" not in text
