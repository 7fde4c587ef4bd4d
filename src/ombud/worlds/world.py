"""A simulated world: a data set, and what is true behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels, LabelState
from ombud.data.texts import Texts
from ombud.errors import PlanError
from ombud.files import write_parquet, write_text
from ombud.rng import generator
from ombud.worlds.catalogue import Catalogue, draw_catalogue, numbered
from ombud.worlds.moderators import PlantedModerator
from ombud.worlds.pools import draw_pools, history_matrix, shuffled
from ombud.worlds.population import Population, draw_population
from ombud.worlds.recommenders import NeutralRecommender, PlantedRecommender
from ombud.worlds.spec import WorldSpec

FAMILIES: tuple[str, ...] = ("generative-ai", "traditional")

_OPENINGS = {
    "generative-ai": ("In episode {n}", "Scene {n}:", "In chapter {n}", "Synopsis {n}:"),
    "traditional": ("Comment {n}:", "Reply {n}:", "Post {n}:", "As I said in thread {n}:"),
}
_BENIGN = (
    "{who} open a small library by the river",
    "a choir of {who} sings in the old station",
    "{who} share bread with their neighbours",
    "my cousin writes a long letter about {who}",
    "the museum shows photographs of {who}",
    "{who} repair the clock of the town hall",
)
_HARMFUL = (
    "[placeholder for an attack] on {who}",
    "somebody shouts [placeholder for an attack] at {who}",
    "[placeholder for an attack], and {who} are blamed",
)
_NOBODY = "the people of the valley"


@dataclass(frozen=True, eq=False)
class TextWorld:
    """Texts and everything that is true of them."""

    texts: Texts  # Ids, texts, labels as an auditor has them (some unknown), templates, families
    groups: Grouping  # Which identities each text names: several, one or none
    # Whether each text should be flagged: what is the case, never unknown.
    harmful: NDArray[np.bool_]


def draw_texts(
    ids: Vocabulary,
    templates: int,
    identities: Mapping[str, tuple[str, ...]],
    seed: int,
    *stream: str,
) -> TextWorld:
    """Draw texts: a template, then none (15%), one (65%) or two (20%) identities named in it.

    Parameters
    ----------
    ids
        The text ids.
    templates
        How many templates there are; texts of one template are a cluster.
    identities
        The terms of each identity group.
    seed, stream
        The random stream.
    """
    rng = generator(seed, *stream, "texts")
    count, names = len(ids), sorted(identities)
    frames, family, harmful = _draw_templates(templates, rng)
    cluster = rng.integers(templates, size=count).astype(np.int32)
    named = np.minimum(np.searchsorted([0.15, 0.8], rng.random(count)), len(names))
    members = np.zeros((count, len(names)), dtype=bool)
    first = rng.integers(len(names), size=count)
    second = (first + rng.integers(1, max(len(names), 2), size=count)) % len(names)
    members[named > 0, first[named > 0]] = True
    members[named > 1, second[named > 1]] = True
    which = rng.integers(2**31, size=(count, 2)).tolist()
    texts = np.empty(count, dtype=object)
    pairs = zip(
        cluster.tolist(), named.tolist(), first.tolist(), second.tolist(), which, strict=True
    )
    for index, (frame, number, a, b, pick) in enumerate(pairs):
        text = [
            identities[names[g]][p % len(identities[names[g]])]
            for g, p in zip((a, b)[:number], pick, strict=False)
        ]
        texts[index] = frames[frame].replace("{who}", " and ".join(text) or _NOBODY)
    true_label = harmful[cluster]
    truth = np.where(rng.random(count) < 0.05, -1, true_label).astype(np.int8)
    return TextWorld(
        Texts(ids.ids, texts, truth, cluster, family[cluster]),
        Grouping(ids, tuple(f"identity={n}" for n in names), members, ("identity",) * len(names)),
        true_label,
    )


def _draw_templates(
    count: int, rng: np.random.Generator
) -> tuple[list[str], NDArray[np.object_], NDArray[np.bool_]]:
    """Return sentences with a gap for the identity, their families, and whether each is harmful."""
    family = np.array(FAMILIES, dtype=object)[np.arange(count) % len(FAMILIES)]
    harmful = rng.random(count) < 0.3
    picks = rng.integers(2**31, size=(count, 2)).tolist()
    frames = []
    for number in range(count):
        openings = _OPENINGS[str(family[number])]
        endings = _HARMFUL if harmful[number] else _BENIGN
        opening = openings[picks[number][0] % len(openings)].format(n=number + 1)
        frames.append(f"{opening} {endings[picks[number][1] % len(endings)]}.")
    return frames, family, harmful


IDENTITIES: tuple[str, ...] = ("agender", "man", "non-binary", "two-spirit", "woman")
_SHARES = (0.02, 0.5, 0.06, 0.02, 0.4)


@dataclass(frozen=True, eq=False)
class Creators:
    """Who made what, and what records say about them."""

    creators: Vocabulary  # The creator ids
    true_identity: NDArray[np.int32]  # What is the case
    # What records say: pairs of creator code and identity code. None = unknown; two different ones
    # = ambiguous.
    assertions: NDArray[np.int32]
    # Pairs of item code and creator code, first creator first; some items have no creator.
    links: NDArray[np.int32]
    vocabulary: tuple[str, ...] = IDENTITIES  # The identities behind the codes

    def resolved(self) -> NDArray[np.object_]:
        """Return, for each creator, the asserted identity, ``"unknown"`` or ``"ambiguous"``."""
        said = np.zeros((len(self.creators), len(self.vocabulary)), dtype=bool)
        said[self.assertions[:, 0], self.assertions[:, 1]] = True
        text = np.array([*self.vocabulary, "unknown", "ambiguous"], dtype=object)
        count = said.sum(axis=1)
        code = np.where(count == 1, said.argmax(axis=1), len(self.vocabulary) + (count > 1))
        return np.asarray(text[code], dtype=object)

    def of_items(self, n_items: int) -> NDArray[np.object_]:
        """Return the identity of each item's first creator; None where no record says it."""
        item, first = np.unique(self.links[:, 0], return_index=True)
        said = self.resolved()[self.links[first, 1]]
        found = np.full(n_items, None, dtype=object)
        found[item] = np.where(np.isin(said, self.vocabulary), said, None)
        return found

    def to_frame(self, items: Vocabulary) -> pl.DataFrame:
        """Return one row per item and creator: `item`, `creator`, `identity`."""
        item, creator = self.links.T
        return pl.DataFrame(
            {
                "item": items.take(item),
                "creator": self.creators.take(creator),
                "identity": self.resolved()[creator],
            }
        )


def draw_creators(creators: Vocabulary, n_items: int, seed: int, *stream: str) -> Creators:
    """Draw creators and link them to items; a few creators made many of the items.

    Parameters
    ----------
    creators
        The creator ids.
    n_items
        How many items there are.
    seed, stream
        The random stream.
    """
    rng = generator(seed, *stream, "creators")
    count = len(creators)
    truth = np.searchsorted(np.cumsum(_SHARES)[:-1], rng.random(count)).astype(np.int32)
    state = rng.random(count)
    asserted = np.flatnonzero(state > 0.2).astype(np.int32)
    doubted = np.flatnonzero(state > 0.93).astype(np.int32)
    other = (truth[doubted] + rng.integers(1, len(IDENTITIES), len(doubted))) % len(IDENTITIES)
    assertions = np.stack(
        [np.concatenate([asserted, doubted]), np.concatenate([truth[asserted], other])], axis=1
    ).astype(np.int32)
    # One creator for most items, two for some, none (a missing record) for few.
    number = np.searchsorted([0.05, 0.85], rng.random(n_items))
    made = np.repeat(np.arange(n_items), number)
    who = np.minimum((count * rng.random(len(made)) ** 2).astype(np.int64), count - 1)
    # The same creator twice on one item is one link; the first place is kept.
    _, first = np.unique(made * count + who, return_index=True)
    first.sort()
    links = np.stack([made[first], who[first]], axis=1).astype(np.int32)
    return Creators(creators, truth, assertions, links)


@dataclass(frozen=True, eq=False)
class WorldTruth:
    """What is the case in a world, beyond what its data set shows."""

    population: Population  # Users' tastes, activity and attributes
    catalogue: Catalogue  # Items' popularity, factors and true labels
    # Users x places: the items each user would meet, in uniformly random order, -1 beyond the end.
    # The first `population.activity` of them are the history, the rest the reserve. None in a world
    # too large for pools.
    pools: NDArray[np.int32] | None = None
    creators: Creators | None = None  # Who made the items; None in a large world
    # The texts and whether each should be flagged; None in a large world.
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
        """Return a recommender without effect and one for each planted amplification.

        Where one is about an identity of creators, that identity is a further label of all: each
        changes its own label and leaves the others as they are.
        """
        plants = self.spec.amplifications
        identities = {plant.label for plant in plants.values()} - set(self.spec.labels)
        labels = self._with_identities(sorted(identities)) if identities else None
        return (
            NeutralRecommender(self),
            *(
                PlantedRecommender(self, plant.label, plant.amplify, name=name, labels=labels)
                for name, plant in plants.items()
            ),
        )

    def _with_identities(self, identities: Sequence[str]) -> Labels:
        votes, creators = self.truth.catalogue.votes, self.truth.creators
        if creators is None:
            raise PlanError(f"world {self.spec.name!r} has no creators")
        made = creators.of_items(len(votes.items))
        states = np.full((len(made), len(identities)), LabelState.NO, dtype=np.int8)
        for place, identity in enumerate(identities):
            states[made == identity, place] = LabelState.YES
        states[[one is None for one in made]] = LabelState.UNKNOWN
        names = (*votes.names, *identities)
        return Labels(votes.items, names, np.hstack([votes.states, states]))

    def moderators(self) -> tuple[PlantedModerator, ...]:
        """Return a moderator without effect and one for each planted suppression."""
        return (
            PlantedModerator(self, name="neutral"),
            *(
                PlantedModerator(self, suppress=suppress, name=name)
                for name, suppress in self.spec.suppressions.items()
            ),
            *(
                PlantedModerator(self, miss=miss, name=name)
                for name, miss in self.spec.misses.items()
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

    def write(
        self, folder: Path | str, n: int | None = None, suffix: str = ".parquet"
    ) -> dict[str, Path]:
        """Write the world as the files a user would have, planted systems' answers included.

        Parameters
        ----------
        folder
            Where to; it is made if need be.
        n
            The length of the lists; default, the depth of the world.
        suffix
            ``.parquet`` or ``.csv``.

        Returns
        -------
        The files by name: ``interactions``, ``labels`` (votes), ``users``, ``items`` (the gender of
        the first creator, where it is known), ``texts``, ``text_groups`` (one row per text and
        identity), ``creators``, and ``recommendations/NAME`` and ``decisions/NAME`` for each
        system.
        """
        if self.truth.texts is None or self.truth.creators is None:
            raise PlanError("only interactions can be written; use write_interactions")
        catalogue, groups = self.truth.catalogue, self.truth.texts.groups
        text, identity = np.nonzero(groups.members)
        frames = {
            "interactions": self.interactions.to_frame(),
            "labels": catalogue.votes.to_frame().drop("state"),
            "users": _attributes(self.user_groups),
            "items": pl.DataFrame(
                {
                    "item": catalogue.items.ids,
                    "gender": self.truth.creators.of_items(len(catalogue.items)).tolist(),
                }
            ),
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
        written = {name: Path(folder) / f"{name}{suffix}" for name in frames}
        for name, frame in frames.items():
            if suffix == ".csv":
                write_text(written[name], frame.write_csv())
            else:
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
    columns: dict[str, Any] = {"user": groups.units.ids}
    for attribute in dict.fromkeys(groups.attributes):
        places = [i for i, name in enumerate(groups.attributes) if name == attribute]
        text = np.array([*(groups.names[i].split("=", 1)[1] for i in places), None], dtype=object)
        inside = groups.members[:, places]
        code = np.where(inside.any(axis=1), inside.argmax(axis=1), len(places))
        # Without a type, a column whose first value is missing would hold Python objects.
        columns[attribute] = pl.Series(text[code].tolist(), dtype=pl.String)
    return pl.DataFrame(columns)
