"""ML-DDD: MovieLens ratings joined to the votes of Does the Dog Die."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from ombud.data.card import Card
from ombud.data.card_facts import filter_facts, history_facts, label_facts
from ombud.data.dataset import Dataset, read_folder
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Vocabulary
from ombud.data.labels import Labels, vote_states
from ombud.data.sources._build import Filter, filtered_interactions, history_matrix
from ombud.data.sources.ddd_answers import answers_of_csv, answers_of_json, json_lines
from ombud.data.sources.ddd_api import cached_answers
from ombud.data.sources.ddd_votes import Votes, match_answers, read_dictionary
from ombud.data.sources.movielens import (
    CITATION,
    LICENCE,
    MovieLensFiles,
    locate,
    open_ratings,
    read_links,
)
from ombud.data.sources.published_figures import beside_published
from ombud.data.tables import TableOptions
from ombud.errors import DataError, PlanError
from ombud.files import hash_file
from ombud.registry import source
from ombud.taxonomy import load_taxonomy

_UNKNOWN = (
    "A pair of a movie and a warning without votes is unknown, never 'no'; a pair on which votes "
    "disagree is disputed. Every metric says how it counts both."
)
_HARMS = (
    "Names of warnings describe distressing content. Pseudonyms hide who rated only from those "
    "who do not know the ratings: a history is nearly unique."
)


def read_votes(path: str | Path, files: MovieLensFiles) -> Votes:
    """Read votes in any of the forms they come in.

    Parameters
    ----------
    path
        ``.pkl``, the published dictionary; ``.sqlite``, the replies that `ombud.data.sources.
        ddd_api` keeps; ``.jsonl``, one answer of ``/media/ID`` a line; ``.csv``, one row for each
        title and topic.
    files
        The MovieLens edition whose links give answers to movies; the dictionary needs none.
    """
    index = Path(path)
    if not index.is_file():
        raise DataError("votes", [f"there is no file {index}"])
    readers: dict[str, Callable[[], Votes]] = {
        ".pkl": lambda: read_dictionary(index),
        ".pickle": lambda: read_dictionary(index),
        ".sqlite": lambda: match_answers(cached_answers(index), read_links(files)),
        ".jsonl": lambda: match_answers(
            answers_of_json(json_lines(index), index.name), read_links(files)
        ),
        ".csv": lambda: match_answers(answers_of_csv(index), read_links(files)),
    }
    read = readers.get(index.suffix.lower())
    if read is None:
        known = ", ".join(readers)
        raise DataError(index.name, [f"votes in a {index.suffix!r} file are not read; use {known}"])
    return read()


def build_ml_ddd(
    movielens: str | Path,
    votes: str | Path,
    *,
    threshold: float = 0.75,
    strict: bool = False,
    keep: Filter | None = None,
    scratch: Path | None = None,
    rng: np.random.Generator | None = None,
) -> Dataset:
    """Build ML-DDD from the published files.

    Movies without an entry in the votes go; then users and movies with few ratings go, to the
    fixed point; then users get pseudonyms in a random order.

    Parameters
    ----------
    movielens
        The MovieLens archive or folder.
    votes
        The votes, see `read_votes`.
    threshold, strict
        A warning is a clear yes or no when at least this share of votes agree; `strict`: more than
        this share. The paper says at least; its published code is strict.
    keep
        How to filter; default, at least 3 interactions to the fixed point.
    scratch
        Where large temporary files go.
    rng
        For tests; by default nobody can repeat the pseudonyms.
    """
    if not 0.5 < threshold <= 1:
        raise PlanError(f"threshold is {threshold}; it must be above 0.5 and at most 1")
    asked = keep or Filter()
    with locate(movielens, scratch=scratch) as files:
        cast = read_votes(votes, files)
        with open_ratings(files, scratch=scratch) as columns:
            people, users = columns.encode("user")
            movies, items = columns.encode("item")
            ratings = columns.column("rating").to_numpy()
        low, high = files.rating_scale
        outside = int(np.count_nonzero((ratings < low) | (ratings > high) | np.isnan(ratings)))
        if outside:
            fault = f"{outside:,} ratings are not from {low} to {high}"
            raise DataError(files.ratings.name, [fault])
        hashes = files.hashes | {Path(votes).name: hash_file(Path(votes))}
        scale, name = files.rating_scale, files.ratings.name
    shape = (len(people), len(movies))
    del people
    matrix, merged = history_matrix(users, items, ratings, shape, name)
    del users, items, ratings
    voted = Vocabulary(pa.array(cast.items))
    rows = voted.codes(movies.arrow)
    interactions, core = filtered_interactions(
        matrix,
        movies,
        asked,
        permitted=rows >= 0,
        outside="nobody voted on them: they are not in the votes",
        rating_scale=scale,
        merged=merged,
        rng=rng,
    )
    del matrix
    rows = voted.codes(interactions.items.arrow)
    states, rule = vote_states(cast.yes[rows], cast.no[rows], threshold, strict)
    unrated = len(voted) - int(np.count_nonzero(voted.codes(movies.arrow) >= 0))
    exclusions = cast.exclusions
    if unrated:
        reason = "they have votes but no rating"
        exclusions += (Exclusion("votes", "movies", unrated, reason, len(voted)),)
    labels = Labels(
        interactions.items, cast.names, states, cast.yes[rows], cast.no[rows], rule, exclusions
    )
    facts = history_facts(interactions, "movie") | label_facts(labels) | filter_facts(core)
    facts |= {"threshold": threshold, "threshold_rule": "more than" if strict else "at least"}
    taxonomy = load_taxonomy("warnings-ddd@1")
    at_source = taxonomy.published or len(taxonomy.ids)
    facts["labels_at_the_source"] = at_source
    facts["rule_of_published_totals"] = "more than 75% of votes, 3 filter passes (--published)"
    lost = at_source - len(labels.names)
    refused = (
        f"{lost} of {at_source} published labels not stored: the published "
        "labels, clear_yes, clear_no, unclear, no_votes and warning_density count them",
    )
    card = Card(
        name="ml-ddd",
        title="ML-DDD: MovieLens ratings with Does the Dog Die warnings",
        source="MovieLens (GroupLens) and Does the Dog Die, joined as by Kovacs, Kazemian, Chee "
        "and Dean (huggingface.co/datasets/sdeangroup/NavigatingSensitivity)",
        licence=f"Ratings: {LICENCE}. Votes: the terms of Does the Dog Die.",
        citation="Amelia Kovacs, Kimia Kazemian, Jerry Chee and Sarah Dean, Datasets for "
        f"Navigating Sensitive Topics in Recommendation Systems. {CITATION}",
        known_harms=_HARMS,
        unknowns=f"{_UNKNOWN} Rule: {rule}.",
        hashes=hashes,
        facts=facts | beside_published(facts, "ML-DDD"),
        dropped=(
            *(str(e) for e in (*interactions.exclusions, *labels.exclusions)),
            *(refused if lost > 0 else ()),
        ),
    )
    return Dataset(interactions=interactions, labels=labels, card=card)


@source("ml-ddd")
def ml_ddd(path: str | Path) -> Dataset:
    """ML-DDD, built before with ``ombud data build ml-ddd``: ratings and voted warnings.

    Ratings from 0.5 to 5; for each movie and warning the votes, and a state by the rule that the
    card names. Pseudonyms were drawn once, at the build, so that every reading is the same.

    Licence: GroupLens terms for ratings, the terms of Does the Dog Die for votes. Known harms:
    names of warnings describe distressing content; histories are nearly unique.

    Parameters
    ----------
    path
        The folder that the build wrote.
    """
    return read_folder(path, "ml-ddd", TableOptions(rating_scale=(0.5, 5.0)))
