"""Texts that name identities, with true labels, made from templates of two families.

Nothing hateful is generated: the identities are placeholders, and where a text *should* be
flagged, the words ``[placeholder for an attack]`` stand for what a real one would say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.texts import Texts
from ombud.rng import generator

__all__ = ["FAMILIES", "TextWorld", "draw_texts"]

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
    """Texts and everything that is true of them.

    Parameters
    ----------
    texts
        Ids, texts, labels as an auditor has them (some unknown), templates, families.
    groups
        Which identities each text names: several, one or none.
    harmful
        Whether each text should be flagged: what is the case, never unknown.
    """

    texts: Texts
    groups: Grouping
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
