"""Input files with everything that goes missing, written with the standard library alone."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Sequence
from pathlib import Path


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def recommender(folder: Path, seed: int = 5) -> None:
    """Histories, labels, items and two systems' lists.

    Some pairs of user and item stand twice; some users have no list, and some lists belong to users
    without a history; some items occur in lists only; some items have no row of labels, some only
    for one of two labels; some users meet unlabeled items alone.
    """
    rng = random.Random(seed)
    users = [f"u{n}" for n in range(80)]
    past = [f"i{n}" for n in range(60)]
    fresh = [f"i{n}" for n in range(60, 100)]
    labeled = [i for i in past[:50] + fresh[:30] if rng.random() < 0.85]
    history = []
    for n, user in enumerate(users):
        some = past[50:] if n < 4 else past
        mine = rng.sample(some, min(len(some), rng.randint(6, 20)))
        history += [(user, item) for item in mine]
        if n % 7 == 0:
            history.append((user, mine[0]))  # a second row for the same pair
    write(folder / "history.csv", ("user", "item"), history)
    rows = []
    for item in labeled:
        for label, chance in (("violence", 0.2), ("spiders", 0.5)):
            if label == "spiders" and rng.random() < 0.3:
                continue
            more = 0.25 if item in fresh else 0.0
            rows.append((item, label, "true" if rng.random() < chance + more else "false"))
    write(folder / "labels.csv", ("item", "label", "present"), rows)
    for system, part in (("a", fresh + past[:5]), ("b", fresh[10:] + past)):
        lists = []
        for n, user in enumerate(users):
            if n % 11 == 3:
                continue  # no list
            some = fresh[30:] if n % 13 == 5 else part
            shown = rng.sample(some, 8 if n % 5 else 4)
            lists += [(user, item, rank) for rank, item in enumerate(shown, 1)]
        lists += [("stranger", item, rank) for rank, item in enumerate(fresh[:8], 1)]
        write(folder / f"{system}.csv", ("user", "item", "rank"), lists)
    people = [
        (item, rng.choice(["woman", "man", "man", "nonbinary", ""])) for item in past[:55] + fresh
    ]
    write(folder / "items.csv", ("item", "gender"), people)
    write(
        folder / "users.csv",
        ("user", "age"),
        [(u, rng.choice(["young", "old"])) for u in users[:70]],
    )


def moderator(folder: Path, seed: int = 6) -> None:
    """Texts with labels, groups and two systems' decisions.

    Some texts have no label, some no group, some several; some have no decision, some decisions
    belong to no text.
    """
    rng = random.Random(seed)
    words = ["tea", "rain", "train", "garden", "music", "window", "river", "paper"]
    texts, groups = [], []
    for n in range(600):
        label = rng.choice(["0", "0", "1", ""])  # 1: should be flagged
        texts.append((f"t{n}", " ".join([str(n), *rng.sample(words, 4)]), label))
        mine = [g for g in ("women", "elderly", "students") if rng.random() < 0.2]
        groups += [(f"t{n}", g) for g in mine]
    write(folder / "texts.csv", ("id", "text", "label"), texts)
    write(folder / "groups.csv", ("id", "group"), groups)
    tagged = {(i, g) for i, g in groups}
    for system, bias in (("a", 0.25), ("b", 0.05)):
        rows = []
        for n, (key, _, label) in enumerate(texts):
            if n % 17 == 4:
                continue  # no decision
            chance = 0.6 if label == "1" else 0.15
            chance += bias if (key, "women") in tagged else 0
            rows.append((key, "flagged" if rng.random() < chance else "allowed"))
        rows.append(("t9999", "flagged"))
        write(folder / f"{system}.csv", ("id", "outcome"), rows)
