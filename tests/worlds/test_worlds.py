"""What a world is made of: sizes, tails, ties, unknowns, and one seed for all of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ombud import registry
from ombud.data import Grouping, Interactions, Labels, LabelState, Texts
from ombud.errors import PlanError
from ombud.systems import RecordedDecisions, RecordedRecommendations
from ombud.worlds import NeutralRecommender, World, WorldSpec, build_world, demo_world, small_world
from ombud.worlds.catalogue import draw_labels, draw_popularity, numbered
from ombud.worlds.pools import draw_pools
from ombud.worlds.truth import find_group, probability_none


def parts(world: World) -> dict[str, np.ndarray]:
    truth = world.truth
    assert truth.pools is not None
    assert truth.creators is not None
    assert truth.texts is not None
    assert truth.catalogue.votes.yes is not None
    lists = [s.recommend(truth.population.users.ids, 10).items for s in world.recommenders()]
    return {
        "history": world.interactions.matrix.indices,
        "ratings": world.interactions.matrix.data,
        "pools": truth.pools,
        "tastes": truth.population.tastes,
        "groups": truth.population.groups.members,
        "popularity": truth.catalogue.popularity,
        "votes": truth.catalogue.votes.yes,
        "applied": truth.catalogue.applied.states,
        "links": truth.creators.links,
        "assertions": truth.creators.assertions,
        "texts": truth.texts.texts.texts,
        "text groups": truth.texts.groups.members,
        "lists": np.stack(lists),
        "decisions": np.stack([m.moderate(world.texts).outcomes for m in world.moderators()]),
    }


def test_one_seed_gives_one_world_bit_for_bit() -> None:
    first, second = parts(small_world(7, ratings=True)), parts(small_world(7, ratings=True))
    for name, values in first.items():
        assert np.array_equal(values, second[name]), name


def test_another_seed_changes_every_part() -> None:
    first, second = parts(small_world(7, ratings=True)), parts(small_world(8, ratings=True))
    for name, values in first.items():
        assert not np.array_equal(values, second[name]), name


def test_parts_have_streams_of_their_own() -> None:
    before, after = small_world(7), small_world(7, texts=90, templates=9)
    assert (before.interactions.matrix != after.interactions.matrix).nnz == 0
    users = before.interactions.users.ids
    lists = {n: NeutralRecommender(before, n).recommend(users, 10).items for n in ("a", "b")}
    assert not np.array_equal(lists["a"], lists["b"])


@given(
    users=st.integers(1, 30),
    items=st.integers(40, 120),
    labels=st.integers(1, 4),
    depth=st.integers(1, 15),
    spare=st.integers(0, 10),
    texts=st.integers(1, 20),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=40, deadline=None)
def test_every_size_gives_a_whole_world(
    users: int, items: int, labels: int, depth: int, spare: int, texts: int, seed: int
) -> None:
    spec = WorldSpec(
        "any",
        users=users,
        items=items,
        labels=tuple(f"label {i}" for i in range(labels)),
        depth=depth,
        reserve=depth + spare,
        texts=texts,
        templates=3,
        creators=4,
    )
    world = build_world(spec, seed)
    table, pools = world.interactions, world.truth.pools
    assert pools is not None
    assert table.matrix.shape == (users, items)
    lengths = np.diff(table.matrix.indptr)
    assert (lengths == world.truth.population.activity).all()
    assert (lengths >= spec.min_history).all()
    assert table.matrix.has_canonical_format
    for row, length in zip(pools, lengths, strict=True):
        pool = row[row >= 0]
        assert len(set(pool.tolist())) == len(pool) == length + spec.reserve
    lists = NeutralRecommender(world).recommend(table.users.ids, depth).items
    assert (lists >= 0).all()
    for user, row in enumerate(lists):
        assert len(set(row.tolist())) == depth
        assert not set(row.tolist()) & set(
            table.matrix.indices[table.matrix.indptr[user] : table.matrix.indptr[user + 1]].tolist()
        )
    assert len(world.texts) == texts
    # Some users' attributes are unknown on purpose; nothing else is left out.
    assert {e.where for e in world.dataset.exclusions} <= {"groups"}
    truth = NeutralRecommender(world).truth("no")
    assert (truth.mean_gap() == 0).all()


def test_a_spec_that_cannot_be_built_says_everything_that_is_wrong() -> None:
    with pytest.raises(PlanError, match=r"users is 0.*none twice.*reserve is 5"):
        WorldSpec("bad", users=0, labels=("a", "a"), reserve=5)
    with pytest.raises(PlanError, match="cannot hold"):
        WorldSpec("bad", items=40)


def test_pools_follow_the_weights(rng: np.random.Generator) -> None:
    weights = np.array([4.0, 3.0, 2.0, 1.0], dtype=np.float32)
    many = draw_pools(np.tile(weights, (40_000, 1)), np.full(40_000, 2), rng)
    first = np.bincount(many[:, 0], minlength=4) / len(many)
    assert first == pytest.approx(weights / 10, abs=0.012)
    # Second item 1 after first item 0: 0.4 x 3 / 6.
    pair = np.mean((many[:, 0] == 0) & (many[:, 1] == 1))
    assert pair == pytest.approx(0.2, abs=0.01)


def test_the_chance_of_drawing_none_by_enumeration() -> None:
    from itertools import combinations

    for size, without, drawn in ((6, 4, 2), (6, 1, 2), (5, 5, 3), (7, 6, 4)):
        draws = list(combinations(range(size), drawn))
        expected = sum(max(draw) < without for draw in draws) / len(draws)
        found = probability_none(np.array([size]), np.array([without]), np.array([drawn]))
        assert found[0] == pytest.approx(expected)


def test_labels_go_with_popularity_and_taste_and_some_are_unknown() -> None:
    items, names = numbered("item", 20_000), tuple("abcde")
    rng = np.random.default_rng(1)
    popularity = draw_popularity(len(items), rng)
    factors = rng.standard_normal((len(items), 4)).astype(np.float32)
    truth, votes, applied = draw_labels(items, names, popularity, factors, 0, "test")
    log = np.log(popularity)
    shift = np.array([log[truth[:, w]].mean() - log[~truth[:, w]].mean() for w in range(5)])
    assert shift.max() > 0.3
    assert shift.min() < -0.3
    for label in range(5):
        with_label = factors[truth[:, label]].mean(axis=0)
        assert np.linalg.norm(with_label) > 0.4
    for labels in (votes, applied):
        unknown = labels.states == LabelState.UNKNOWN
        assert 0.1 < unknown.mean() < 0.4
        half = log > np.median(log)
        assert unknown[half].mean() < unknown[~half].mean() - 0.05
        known = labels.known
        assert np.mean((labels.states == LabelState.YES)[known] == truth[known]) > 0.95
    assert 0.01 < np.mean(votes.states == LabelState.DISPUTED) < 0.1


def test_states_are_those_that_the_public_readers_would_give() -> None:
    catalogue = small_world(3).truth.catalogue
    votes, applied = catalogue.votes, catalogue.applied
    read = Labels.from_votes(votes.to_frame().drop("state"))
    assert (read.names, read.rule) == (votes.names, votes.rule)
    assert np.array_equal(read.aligned(votes.items), votes.states)
    frame = applied.to_frame().rename({"state": "present"})
    assert np.array_equal(Labels.from_applied(frame).aligned(applied.items), applied.states)


def test_activity_and_popularity_have_long_tails() -> None:
    world = demo_world(1)
    activity = np.diff(world.interactions.matrix.indptr)
    popularity = np.bincount(world.interactions.matrix.indices, minlength=1500)
    for values in (activity, popularity):
        assert values.mean() > 1.2 * np.median(values)
        assert np.quantile(values, 0.99) > 4 * np.median(values)


def test_attributes_are_sometimes_unknown() -> None:
    groups = demo_world(1).user_groups
    for attribute in ("age", "gender"):
        places = [i for i, name in enumerate(groups.attributes) if name == attribute]
        inside = groups.members[:, places].sum(axis=1)
        assert inside.max() == 1
        assert 0.03 < np.mean(inside == 0) < 0.2


def test_creators_have_an_open_vocabulary_with_unknown_and_ambiguous() -> None:
    world = demo_world(1)
    creators = world.truth.creators
    assert creators is not None
    found = set(creators.resolved())
    assert {"unknown", "ambiguous", "woman", "man", "non-binary"} <= found
    right = creators.resolved() == np.array(creators.vocabulary)[creators.true_identity]
    assert 0.6 < right.mean() < 0.9
    frame = creators.to_frame(world.interactions.items)
    per_item = frame.group_by("item").len()["len"]
    assert per_item.max() == 2
    assert per_item.len() < world.interactions.n_items
    assert not frame.select("item", "creator").is_duplicated().any()


def test_texts_name_identities_and_share_templates() -> None:
    world = small_world(3)
    texts, groups, truth = world.texts, world.dataset.text_groups, world.truth.texts
    assert groups is not None
    assert truth is not None
    assert texts.clusters is not None
    assert texts.families is not None
    named = groups.members.sum(axis=1)
    assert set(named.tolist()) == {0, 1, 2}
    for place, name in enumerate(world.spec.identities):
        spelled = np.array(
            [any(term in text for term in world.spec.identities[name]) for text in texts.texts]
        )
        assert (spelled == groups.members[:, place]).all()
    assert set(texts.truth.tolist()) == {-1, 0, 1}
    known = texts.truth >= 0
    assert (texts.truth[known] == truth.harmful[known]).all()
    placeholder = np.array(["[placeholder for an attack]" in text for text in texts.texts])
    assert (placeholder == truth.harmful).all()
    for values in (truth.harmful, texts.families):
        assert (
            pl.DataFrame({"c": texts.clusters, "v": values.tolist()}).group_by("c").n_unique()["v"]
            == 1
        ).all()
    assert set(texts.families) == {"generative-ai", "traditional"}


def test_ratings_are_half_stars_and_go_with_taste() -> None:
    table = small_world(1, ratings=True).interactions
    assert table.explicit
    assert set((table.matrix.data * 2) % 1) == {0.0}
    assert table.matrix.data.min() >= 0.5
    assert table.matrix.data.max() <= 5


def test_a_redraw_keeps_people_and_pools_but_not_histories() -> None:
    world = small_world(1)
    again = world.redraw("a")
    pools, new = world.truth.pools, again.truth.pools
    assert pools is not None
    assert new is not None
    assert np.array_equal(np.sort(pools, axis=1), np.sort(new, axis=1))
    assert (world.interactions.matrix != again.interactions.matrix).nnz > 0
    assert (world.redraw("a").interactions.matrix != again.interactions.matrix).nnz == 0
    drawn = world.redraw("a", users=40)
    assert drawn.interactions.n_users == 40
    assert len(drawn.user_groups.units) == 40


def test_a_written_world_reads_back(tmp_path: Path) -> None:
    world = small_world(2)
    files = world.write(tmp_path / "new", n=10)
    table = Interactions.from_frame(files["interactions"])
    assert len(table) == len(world.interactions)
    assert world.dataset.labels is not None
    labels = Labels.from_votes(files["labels"])
    assert np.array_equal(labels.aligned(world.interactions.items), world.dataset.labels.states)
    groups = Grouping.from_frame(files["users"], by=["age", "gender"])
    assert groups.names == world.user_groups.names
    assert np.array_equal(groups.members, world.user_groups.members)
    assert Texts.from_frame(files["texts"]).truth.tolist() == world.texts.truth.tolist()
    users = world.interactions.users.ids
    for system in world.recommenders():
        read = RecordedRecommendations(files[f"recommendations/{system.name}"])
        assert read.recommend(users, 10).to_frame().equals(system.recommend(users, 10).to_frame())
    for moderator in world.moderators():
        recorded = RecordedDecisions(files[f"decisions/{moderator.name}"]).moderate(world.texts)
        assert np.array_equal(recorded.outcomes, moderator.moderate(world.texts).outcomes)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_demo_plants_what_it_says(seed: int) -> None:
    world = demo_world(seed)
    neutral, violence, young, women = world.recommenders()
    labels = (*world.spec.labels, "woman")
    assert (neutral.truth().mean_gap() == 0).all()
    for system, label, factor in ((violence, "violence", 1.5), (women, "woman", 0.7)):
        ratio = system.truth().ratio_of_means()
        assert ratio[labels.index(label)] == pytest.approx(factor, abs=0.03)
        others = np.array([name != label for name in labels])
        assert ratio[others] == pytest.approx(np.ones(len(labels) - 1))
    place = labels.index("animal death")
    assert young.truth().ratio_of_means("18-24")[place] == pytest.approx(1.8, abs=0.08)
    assert young.truth().ratio_of_means("35-49")[place] == pytest.approx(1.0)
    suppression = world.moderators()[1].truth().to_frame()
    worst = suppression.sort("suppression").tail(1)
    assert worst["group"].item() == "identity=islanders"
    assert worst["suppression"].item() > 1.7
    missing, truth = world.moderators()[2], world.truth.texts
    assert truth is not None
    night = find_group(truth.groups, "night workers")
    rates = [missing.probability[truth.harmful & some].mean() for some in (night, ~night)]
    assert rates == pytest.approx([0.7 * 0.85, 0.85])
    assert missing.truth().overall == pytest.approx(0.1)


def test_a_first_user_without_attributes_can_be_written(tmp_path: Path) -> None:
    seed = next(
        s for s in range(40) if not small_world(s, users=20, texts=60).user_groups.members[0].any()
    )
    small_world(seed, users=20, texts=60).write(tmp_path, n=5, suffix=".csv")
    assert pl.read_csv(tmp_path / "users.csv")["age"][0] is None


def test_the_table_of_items_has_the_first_creator_where_known(tmp_path: Path) -> None:
    world = small_world(2)
    files = world.write(tmp_path, n=5, suffix=".csv")
    items, creators = pl.read_csv(files["items"]), pl.read_csv(files["creators"])
    first = creators.unique("item", keep="first", maintain_order=True)
    joined = items.join(first, on="item", how="left")
    unknown = joined["identity"].is_in(["unknown", "ambiguous"]).fill_null(True)
    assert (joined["gender"].is_null() == unknown).all() and 0 < unknown.sum() < len(items)
    assert (joined.filter(~unknown)["gender"] == joined.filter(~unknown)["identity"]).all()


def test_worlds_are_registered() -> None:
    assert {"demo", "large", "ml-1m-size", "small"} <= set(registry.names("world"))
    world = registry.create("world", "small", {"seed": 3, "users": 20})
    assert world.interactions.n_users == 20
    assert replace(world.spec, users=300) == small_world(3).spec
