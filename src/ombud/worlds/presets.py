"""Worlds with names: small for tests, one for the demo, and two for benchmarks."""

from __future__ import annotations

from ombud.registry import world
from ombud.worlds.large import draw_large
from ombud.worlds.spec import Amplification, WorldSpec
from ombud.worlds.world import World, build_world

_LABELS: tuple[str, ...] = (
    "animal death",
    "blood and gore",
    "car accidents",
    "clowns",
    "drowning",
    "flashing lights",
    "hospital scenes",
    "jump scares",
    "needles",
    "sad endings",
    "spiders",
    "violence",
)
"""Warnings as a viewer would word them."""

_READERS_LABELS = tuple(
    {"flashing lights": "fires", "jump scares": "heights"}.get(name, name) for name in _LABELS
)


@world("small")
def small_world(
    seed: int = 0,
    *,
    users: int = 300,
    items: int = 300,
    texts: int = 600,
    templates: int = 60,
    ratings: bool = False,
) -> World:
    """A world for tests: 300 users, 300 items, 5 labels, 600 texts, in milliseconds.

    Its planted systems raise *violence* by half for everyone (``amplifying``) and flag harmless
    texts that name islanders 2.5 times as often (``suppressing``).

    Parameters
    ----------
    seed
        Zero or more.
    users, items, texts, templates
        How many there are.
    ratings
        Whether histories have ratings.
    """
    spec = WorldSpec(
        "small",
        users=users,
        items=items,
        texts=texts,
        templates=templates,
        ratings=ratings,
        amplifications={"amplifying": Amplification("violence", 1.5)},
        suppressions={"suppressing": {"islanders": 2.5}},
    )
    return build_world(spec, seed)


@world("demo")
def demo_world(seed: int = 0, *, ratings: bool = False) -> World:
    """The demo's world, a platform of stories: 2,000 users, 1,500 items, 12 labels, 3,000 texts.

    Planted: ``more-violence`` raises *violence* by half for everyone,
    ``more-animal-death-for-18-24`` raises *animal death* by 80% for users of that age only,
    ``fewer-women`` lowers the share of stories by women by 30%; the moderator ``suppressing`` flags
    harmless texts that name islanders 2.5 times as often, and ``missing`` finds 30% fewer of the
    harmful texts that name night workers. Everything else has no effect.

    Parameters
    ----------
    seed
        Zero or more.
    ratings
        Whether histories have ratings.
    """
    spec = WorldSpec(
        "demo",
        users=2000,
        items=1500,
        labels=_READERS_LABELS,
        depth=50,
        reserve=120,
        mean_history=60.0,
        min_history=10,
        factors=8,
        creators=500,
        texts=3000,
        templates=200,
        ratings=ratings,
        amplifications={
            "more-violence": Amplification("violence", 1.5),
            "more-animal-death-for-18-24": Amplification("animal death", {"age=18-24": 1.8}),
            "fewer-women": Amplification("woman", 0.7),
        },
        suppressions={"suppressing": {"islanders": 2.5}},
        misses={"missing": {"night workers": 0.7}},
    )
    return build_world(spec, seed)


@world("large")
def large_world(
    seed: int = 0,
    *,
    interactions: int = 20_000_000,
    users: int = 140_000,
    items: int = 30_000,
    labels: int = 12,
    ratings: bool = False,
) -> World:
    """Tens of millions of interactions in seconds: interactions and labels, nothing planted.

    Parameters
    ----------
    seed
        Zero or more.
    interactions, users, items, labels
        How many there are, exactly.
    ratings
        Whether histories have ratings.
    """
    names = _LABELS[:labels] + tuple(f"label {i}" for i in range(len(_LABELS), labels))
    spec = WorldSpec(
        "large", users=users, items=items, labels=names, depth=1, reserve=1, ratings=ratings
    )
    return draw_large(spec, interactions, seed)


@world("ml-1m-size")
def ml1m_world(seed: int = 0, *, ratings: bool = True) -> World:
    """A simulated world of MovieLens 1M's size: 6,040 users, 3,706 items, 1,000,209 ratings.

    Parameters
    ----------
    seed
        Zero or more.
    ratings
        Whether histories have ratings.
    """
    return large_world(seed, interactions=1_000_209, users=6040, items=3706, ratings=ratings)
