"""The published figures of ML-DDD and AO3, to lay beside a full build."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

from ombud.data.card_facts import Facts
from ombud.taxonomy.resources import parse_commented_csv

Name = Literal["AO3", "ML-DDD"]

_FULL = 0.5


@cache
def _rows() -> tuple[tuple[str, str, str], ...]:
    name = "published-warnings.csv"
    text = files("ombud.data.sources").joinpath("files", name).read_text(encoding="utf-8")
    _, rows = parse_commented_csv(text, name, ("dataset", "figure", "value"))
    return tuple((row["dataset"], row["figure"], row["value"]) for _, row in rows)


def published_figures(dataset: Name) -> dict[str, int | float]:
    """Return the published figures of one data set by name.

    Examples
    --------
    >>> published_figures("AO3")["works"]
    306111
    """
    result = {figure: value for name, figure, value in _rows() if name == dataset}
    return {key: float(text) if "." in text else int(text) for key, text in result.items()}


def beside_published(facts: Facts, dataset: Name) -> Facts:
    """Return the published figures as facts of their own, when a build is large enough to compare.

    `dataset` is which data set it should be.

    Returns
    -------
    dict
        ``published NAME`` for every figure that was built, and ``differs NAME`` (built minus
        published) where the two differ in the digits that were printed. Empty when the build has
        less than half of the published interactions: it is a sample then, and its figures mean
        something else.
    """
    published = published_figures(dataset)
    built = facts["interactions"]
    if not isinstance(built, int) or built < _FULL * published["interactions"]:
        return {}
    result: Facts = {}
    for name, value in published.items():
        here = facts.get(name)
        if isinstance(here, int | float):
            result[f"published {name}"] = value
            digits = len(repr(value).partition(".")[2]) if isinstance(value, float) else 0
            if abs(here - value) > max(0.5000001 * 10.0**-digits, 1e-9 * abs(value)):
                result[f"differs {name}"] = here - value
    return result
