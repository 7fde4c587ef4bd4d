"""A simulated world: a data set, and what is true behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.files import write_parquet
from ombud.rng import generator
from ombud.worlds.catalogue import Catalogue, draw_catalogue, numbered
from ombud.worlds.creators import Creators, draw_creators
from ombud.worlds.pools import draw_pools, history_matrix, shuffled
from ombud.worlds.population import Population, draw_population
from ombud.worlds.spec import WorldSpec
from ombud.worlds.texts import TextWorld, draw_texts

if TYPE_CHECKING:
    from ombud.worlds.moderators import PlantedModerator
    from ombud.worlds.recommenders import NeutralRecommender

__all__ = ["World", "WorldTruth", "build_world", "card_of"]


@dataclass(frozen=True, eq=False)
class WorldTruth:
    """What is the case in a world, beyond what its data set shows.

    Parameters
    ----------
    population
        Users' tastes, activity and attributes.
    catalogue
        Items' popularity, factors and true labels.
    pools
        Users x places: the items each user would meet, in uniformly random order, -1 beyond the
        end. The first `population.activity` of them are the history, the rest the reserve.
        None in a world too large for pools.
    creators
        Who made the items; None in a large world.
    texts
        The texts and whether each should be flagged; None in a large world.
    """

    population: Population
    catalogue: Catalogue
    pools: NDArray[np.int32] | None = None
    creators: Creators | None = None
    texts: TextWorld | None = None


@dataclass(frozen=True, eq=False)
class World:
    """A data set with known truth.

    Parameters
    ----------
    spec
        Sizes and planted effects.
    seed
        The seed; the same spec and seed give the same world, bit for bit.
    dataset
        What an audit is given.
    truth
        What an audit should find out, or cannot know.
    """

    spec: WorldSpec
    seed: int
    dataset: Dataset
    truth: WorldTruth

    @property
    def interactions(self) -> Interactions:
        """The users' histories."""
        if self.dataset.interactions is None:
            raise PlanError(f"world {self.spec.name!r} has no interactions")
        return self.dataset.interactions

    @property
    def texts(self) -> Texts:
        """The texts."""
        if self.dataset.texts is None:
            raise PlanError(f"world {self.spec.name!r} has no texts")
        return self.dataset.texts

    @property
    def user_groups(self) -> Grouping:
        """The groups of users."""
        return self.truth.population.groups

    def recommenders(self) -> tuple[NeutralRecommender, ...]:
        """Return a recommender without effect and one for each planted amplification."""
        from ombud.worlds.recommenders import NeutralRecommender, PlantedRecommender

        return (
            NeutralRecommender(self),
            *(
                PlantedRecommender(self, plant.label, plant.amplify, name=name)
                for name, plant in self.spec.amplifications.items()
            ),
        )

    def moderators(self) -> tuple[PlantedModerator, ...]:
        """Return a moderator without effect and one for each planted suppression."""
        from ombud.worlds.moderators import PlantedModerator

        return (
            PlantedModerator(self, name="neutral"),
            *(
                PlantedModerator(self, suppress=suppress, name=name)
                for name, suppress in self.spec.suppressions.items()
            ),
        )

    def redraw(self, *names: str, users: int | None = None) -> World:
        """Return the world as it might have been: the same people and items, new histories.

        Given the pools, histories are drawn again, so the truth of a planted system is the same
        in both worlds, and repeating this shows how an estimate varies.

        Parameters
        ----------
        names
            What the redraw is for; the same names give the same world.
        users
            If given, also draw this many people, with replacement, under new ids. This world is
            then the *population* of the new one: its expected means are what an interval made by
            resampling users should cover.
        """
        if self.truth.pools is None:
            raise PlanError(f"world {self.spec.name!r} has no pools to redraw from")
        rng = generator(self.seed, self.spec.name, "redraw", *names)
        pools, people, spec = self.truth.pools, self.truth.population, self.spec
        if users is not None:
            rows = rng.integers(len(people.users), size=users)
            ids = numbered("user", users)
            old = people.groups
            groups = Grouping(ids, old.names, old.members[rows], old.attributes)
            people = Population(ids, people.tastes[rows], people.activity[rows], groups)
            pools, spec = pools[rows], replace(spec, users=users)
        pools = shuffled(pools, rng)
        interactions = _interactions(people, self.truth.catalogue, pools, spec.ratings, rng)
        seed = int(rng.integers(2**62))
        dataset = replace(self.dataset, interactions=interactions, users=people.groups)
        truth = replace(self.truth, population=people, pools=pools)
        return World(spec, seed, dataset, truth)

    def write(self, folder: Path | str, n: int | None = None) -> dict[str, Path]:
        """Write the world as the files a user would have, planted systems' answers included.

        Parameters
        ----------
        folder
            Where to; it is made if need be.
        n
            The length of the lists; default, the depth of the world.

        Returns
        -------
        The files by name: ``interactions``, ``labels`` (votes), ``users``, ``texts``,
        ``text_groups`` (one row per text and identity), ``creators``, and
        ``recommendations/NAME`` and ``decisions/NAME`` for each system.
        """
        if self.truth.texts is None or self.truth.creators is None:
            raise PlanError("only interactions can be written; use write_interactions")
        catalogue, groups = self.truth.catalogue, self.truth.texts.groups
        text, identity = np.nonzero(groups.members)
        frames = {
            "interactions": self.interactions.to_frame(),
            "labels": catalogue.votes.to_frame().drop("state"),
            "users": _attributes(self.user_groups),
            "texts": self.texts.to_frame(),
            "text_groups": pl.DataFrame(
                {"id": groups.units.take(text), "group": [groups.names[i] for i in identity]}
            ),
            "creators": self.truth.creators.to_frame(catalogue.items),
        }
        users = self.interactions.users.ids
        for system in self.recommenders():
            lists = system.recommend(users, n or self.spec.depth)
            frames[f"recommendations/{system.name}"] = lists.to_frame()
        for moderator in self.moderators():
            frames[f"decisions/{moderator.name}"] = moderator.moderate(self.texts).to_frame()
        written = {name: Path(folder) / f"{name}.parquet" for name in frames}
        for name, frame in frames.items():
            write_parquet(written[name], frame)
        return written

    def __repr__(self) -> str:
        return f"World({self.spec.name!r}, seed={self.seed}, {self.interactions!r})"


def build_world(spec: WorldSpec, seed: int = 0) -> World:
    """Draw a world; each part has its own random stream.

    Parameters
    ----------
    spec
        Its sizes and planted effects.
    seed
        Zero or more.
    """
    stream = spec.name
    longest = max(spec.min_history, int(0.65 * spec.items) - spec.reserve)
    users, items = numbered("user", spec.users), numbered("item", spec.items)
    catalogue = draw_catalogue(items, spec.labels, spec.factors, seed, stream)
    bounds = (spec.min_history, longest)
    people = draw_population(users, spec.factors, spec.mean_history, bounds, seed, stream)
    weights = _weights(people, catalogue)
    rng = generator(seed, stream, "pools")
    pools = shuffled(draw_pools(weights, people.activity + spec.reserve, rng), rng)
    creators = draw_creators(numbered("creator", spec.creators), spec.items, seed, stream)
    texts = draw_texts(numbered("text", spec.texts), spec.templates, spec.identities, seed, stream)
    rng = generator(seed, stream, "ratings")
    dataset = Dataset(
        interactions=_interactions(people, catalogue, pools, spec.ratings, rng),
        labels=catalogue.votes,
        texts=texts.texts,
        users=people.groups,
        text_groups=texts.groups,
        card=card_of(spec, seed),
    )
    return World(spec, seed, dataset, WorldTruth(people, catalogue, pools, creators, texts))


def _weights(people: Population, catalogue: Catalogue) -> NDArray[np.float32]:
    """Return users x items: popularity times exp(liking)."""
    scale = np.float32(0.7 / np.sqrt(people.tastes.shape[1] / 6))
    # einsum, because threads of a matrix product cost more than they save at this size.
    liking = np.einsum("uf,if->ui", people.tastes * scale, catalogue.factors)
    weights = np.exp(liking) * catalogue.popularity.astype(np.float32)
    # A weight of zero would make the race undefined.
    return np.asarray(np.maximum(weights, np.float32(1e-30)), dtype=np.float32)


def card_of(spec: WorldSpec, seed: int) -> Card:
    """Return the card of a simulated data set."""
    return Card(
        name=f"world-{spec.name}",
        title=f"Simulated world {spec.name!r}, seed {seed}",
        source="Simulated by ombud; no real person, work or text is in it.",
        licence="none needed",
        known_harms="None: identities are placeholders and no attack is spelled out.",
        unknowns="Items without votes are unknown, never 'no'; some attributes are missing.",
        facts={"users": spec.users, "items": spec.items, "labels": len(spec.labels)},
    )


def _interactions(
    people: Population,
    catalogue: Catalogue,
    pools: NDArray[np.int32],
    ratings: bool,
    rng: np.random.Generator,
) -> Interactions:
    matrix = history_matrix(pools, people.activity, len(catalogue.items))
    if not ratings:
        return Interactions(people.users, catalogue.items, matrix, explicit=False)
    rows = np.repeat(np.arange(len(people.users)), people.activity)
    liking = np.einsum("ef,ef->e", people.tastes[rows], catalogue.factors[matrix.indices])
    noise = rng.standard_normal(len(rows), dtype=np.float32)
    stars = 3.4 + 0.3 * liking + 0.7 * noise
    matrix.data = np.clip(np.rint(2 * stars) / 2, 0.5, 5).astype(np.float32)
    return Interactions(people.users, catalogue.items, matrix, True, (0.5, 5.0))


def _attributes(groups: Grouping) -> pl.DataFrame:
    """Return one column per attribute, null where unknown, as `Grouping.from_frame` reads."""
    columns: dict[str, Vocabulary | NDArray[np.object_]] = {"user": groups.units.ids}
    for attribute in dict.fromkeys(groups.attributes):
        places = [i for i, name in enumerate(groups.attributes) if name == attribute]
        text = np.array([*(groups.names[i].split("=", 1)[1] for i in places), None], dtype=object)
        inside = groups.members[:, places]
        code = np.where(inside.any(axis=1), inside.argmax(axis=1), len(places))
        columns[attribute] = text[code]
    return pl.DataFrame(columns)
