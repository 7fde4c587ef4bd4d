"""How far raters agree: everything the dashboard shows."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.app.settings import ProjectSettings
from ombud.app.tables import rating_matrix, ratings_table, texts_table
from ombud.questions.delicate.ratings import (
    DELICATE_FROM,
    HIGHEST_RISK,
    against_others,
    risk_agreement,
)
from ombud.rng import generator
from ombud.stats.agreement import alpha_estimate
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import proportion

PUBLISHED_ALPHA = 0.65
"""The alpha of the paper, which does not say which of them it is."""

_NO_TOPIC = "no topic"


@dataclass(frozen=True, slots=True)
class RaterFacts:
    """What one rater did in the main round: counts, and the median time with a text."""

    name: str
    risks: tuple[int, ...]
    cannot: int
    skipped: int
    seconds: float | None
    against_others: tuple[Estimate, ...]
    repeats: tuple[Estimate, ...]


@dataclass(frozen=True)
class Agreement:
    """Agreement of the main round."""

    overall: tuple[Estimate, ...]  # The alphas
    # The alphas of each topic; a text counts in each of its topics.
    by_topic: dict[str, tuple[Estimate, ...]]
    topics_from: str  # Where topics come from: given with the texts, or marked by raters
    # What each rater did, and the alphas of their ratings against everybody else's.
    raters: tuple[RaterFacts, ...]
    repeats: tuple[Estimate, ...]  # Self-agreement of all raters on texts seen twice
    # How many stand behind it.
    texts: int
    ratings: int


def measure_agreement(
    db: sqlite3.Connection, settings: ProjectSettings, *, replicates: int = 1000
) -> Agreement:
    """Return the agreement of the main round, with intervals resampled over texts."""
    texts = texts_table(db).filter(pl.col("round") == "main")
    ratings = ratings_table(db).filter(pl.col("round") == "main")
    names = texts["id"].to_list()
    raters = ratings["rater"].unique(maintain_order=True).sort().to_list()
    matrix = rating_matrix(ratings, names, raters)
    member, topics_from = _topics(texts, ratings, settings)
    estimates = risk_agreement(
        matrix, rng=generator(settings.seed, "agreement"), groups=member, replicates=replicates
    )
    by_topic: dict[str, list[Estimate]] = {}
    for estimate in estimates:
        by_topic.setdefault(estimate.group, []).append(estimate)
    overall = tuple(by_topic.pop(""))
    facts = tuple(
        _facts(ratings, matrix, at, name, settings, replicates) for at, name in enumerate(raters)
    )
    return Agreement(
        overall=overall,
        by_topic={topic: tuple(some) for topic, some in by_topic.items()},
        topics_from=topics_from,
        raters=facts,
        repeats=_repeats(ratings, "", settings),
        texts=int((~np.isnan(matrix)).any(axis=1).sum()) if matrix.size else 0,
        ratings=int((~np.isnan(matrix)).sum()),
    )


def _topics(
    texts: pl.DataFrame, ratings: pl.DataFrame, settings: ProjectSettings
) -> tuple[dict[str, NDArray[np.bool_]], str]:
    """Return which texts carry which topic, and where that comes from."""
    given = texts["topics"].to_list()
    source = "given with the texts"
    if not any(given):
        source = "marked by at least two raters"
        marked = (
            ratings.filter(~pl.col("repeat"))
            .explode("topics", empty_as_null=True, keep_nulls=True)
            .drop_nulls("topics")
            .group_by("id", "topics")
            .len()
            .filter(pl.col("len") >= min(2, settings.raters_per_text))
        )
        by_text: dict[str, list[str]] = {}
        for name, topic, _ in marked.iter_rows():
            by_text.setdefault(name, []).append(topic)
        given = [by_text.get(name, []) for name in texts["id"].to_list()]
    if not any(given):
        return {}, "no text carries a topic"
    member = {
        topic.title: np.array([topic.id in some for some in given], dtype=np.bool_)
        for topic in settings.topics
    }
    member = {title: some for title, some in member.items() if some.any()}
    without = np.array([not some for some in given], dtype=np.bool_)
    return (member | {_NO_TOPIC: without}) if without.any() else member, source


def _facts(
    ratings: pl.DataFrame,
    matrix: NDArray[np.float64],
    at: int,
    name: str,
    settings: ProjectSettings,
    replicates: int,
) -> RaterFacts:
    own = ratings.filter(pl.col("rater") == name, ~pl.col("repeat"))
    counts = own["risk"].value_counts()
    found = dict(zip(counts["risk"].to_list(), counts["count"].to_list(), strict=True))
    seconds = own.filter(~pl.col("skipped"))["seconds"].median()
    others = against_others(
        matrix,
        at,
        rng=generator(settings.seed, "agreement", "rater", name),
        replicates=replicates,
        group=name,
    )
    return RaterFacts(
        name=name,
        risks=tuple(int(found.get(r, 0)) for r in range(HIGHEST_RISK + 1)),
        cannot=own.filter(pl.col("answer") == "cannot be judged").height,
        skipped=own.filter(pl.col("skipped")).height,
        seconds=float(seconds) if isinstance(seconds, int | float) else None,
        against_others=tuple(others),
        repeats=_repeats(ratings, name, settings),
    )


def _repeats(ratings: pl.DataFrame, rater: str, settings: ProjectSettings) -> tuple[Estimate, ...]:
    """Return self-agreement: shares of equal answers, and the ordinal alpha of the pairs."""
    some = ratings.filter(pl.col("risk").is_not_null())
    if rater:
        some = some.filter(pl.col("rater") == rater)
    keys = ["id", "rater"]
    first = some.filter(~pl.col("repeat")).select(*keys, "risk")
    second = some.filter(pl.col("repeat")).select(*keys, pl.col("risk").alias("second"))
    pairs = first.join(second, on=keys, how="inner").sort(keys)
    a, b = pairs["risk"].to_numpy(), pairs["second"].to_numpy()
    n = len(a)
    about: dict[str, Any] = {"unit": "text", "group": rater}
    same = {
        "same answer in step I": (a > 0) == (b > 0),
        "same side of risk 3": (a >= DELICATE_FROM) == (b >= DELICATE_FROM),
        "same rating": a == b,
    }
    shares = [proportion(int(s.sum()), n, metric=name, **about) for name, s in same.items()]
    alpha = alpha_estimate(
        np.column_stack([a, b]).astype(np.float64),
        "ordinal",
        metric="ordinal alpha with oneself",
        rng=generator(settings.seed, "agreement", "repeats", rater),
        replicates=1000,
        **about,
    )
    return (*shares, alpha)


def data_version(db: sqlite3.Connection) -> str:
    """Return what changes whenever ratings, texts or settings do: a key for a cache."""
    row = db.execute(
        "SELECT (SELECT count(*) FROM assignments WHERE state IN ('done', 'skipped')), "
        "(SELECT max(ended) FROM assignments), (SELECT count(*) FROM changes), "
        "(SELECT count(*) FROM texts), (SELECT value FROM meta WHERE key = 'settings')"
    ).fetchone()
    return json.dumps(list(row))
