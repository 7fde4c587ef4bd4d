"""The numbers of each headline, and their n, recomputed from the raw files.

Nothing here but running the plan is ombud's: files are written and read with `csv`, and numbers are
made with plain loops.
"""

from __future__ import annotations

import math
import random
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from ombud import Audit, Plan
from ombud.report.verdict import verdicts_of

sys.path.insert(0, str(Path(__file__).parent))
import raw_files as files

K = 6


def run(folder: Path, plan: dict[str, Any]) -> Any:
    return Audit.from_plan(Plan.from_dict(plan).relative_to(folder)).run()


def headline(result: Any, **about: str) -> Any:
    """The one estimate of everyone, or of a group, with some names."""
    (found,) = result.select(**about)
    return found


def family(result: Any) -> tuple[Any, ...]:
    """The comparisons that the verdict of the result's own question is made of."""
    verdict, *_ = verdicts_of(result)
    assert verdict.name == result.plan.preset
    return tuple(verdict.family.estimates)


# --- recommenders -----------------------------------------------------------------------------


class Lists:
    """Histories, lists and labels, as the files have them."""

    def __init__(self, folder: Path, system: str, k: int = K) -> None:
        self.past: dict[str, list[str]] = defaultdict(list)
        for row in files.read(folder / "history.csv"):
            if row["item"] not in self.past[row["user"]]:  # a pair counts once
                self.past[row["user"]].append(row["item"])
        self.shown: dict[str, list[str]] = defaultdict(list)
        ranked = sorted(files.read(folder / f"{system}.csv"), key=lambda row: int(row["rank"]))
        for row in ranked:
            if int(row["rank"]) <= k and row["user"] in self.past:
                self.shown[row["user"]].append(row["item"])
        self.labels: dict[str, dict[str, bool]] = defaultdict(dict)
        for row in files.read(folder / "labels.csv"):
            self.labels[row["label"]][row["item"]] = row["present"] == "true"

    def share(self, items: list[str], label: str, unlabeled: str) -> float | None:
        """The share of items with a label: among labeled ones, or of all where unlabeled is no."""
        known = self.labels[label]
        if unlabeled == "no":
            return fmean(known.get(item, False) for item in items)
        labeled = [known[item] for item in items if item in known]
        return fmean(labeled) if labeled else None

    def sides(self, label: str, unlabeled: str) -> list[tuple[float, float]]:
        """List share and history share of every user who has both."""
        found = []
        for user, shown in self.shown.items():
            both = [self.share(items, label, unlabeled) for items in (shown, self.past[user])]
            if None not in both:
                found.append((both[0], both[1]))
        return found  # type: ignore[return-value]


def recorded(*systems: str) -> dict[str, Any]:
    return {name: {"type": "recorded", "path": f"{name}.csv"} for name in systems}


def of_lists(unlabeled: str | None = None) -> dict[str, Any]:
    data = {"interactions": "history.csv", "labels": "labels.csv", "duplicates": "last"}
    return data | ({} if unlabeled is None else {"unlabeled": unlabeled})


@pytest.mark.parametrize("unlabeled", ["no", "unknown"])
def test_plain_plan_of_lists(tmp_path: Path, unlabeled: str) -> None:
    files.recommender(tmp_path)
    plan = {
        "data": of_lists(unlabeled) | {"users": "users.csv"},
        "systems": recorded("a", "b"),
        "metrics": [{"name": "share-gap", "k": K}],
    }
    result = run(tmp_path, plan)
    for system in ("a", "b"):
        lists = Lists(tmp_path, system)
        for label in ("violence", "spiders"):
            e = headline(result, system=system, label=label, kind="level", group="")
            both = lists.sides(label, unlabeled)
            assert e.n == len(both)
            assert e.value == pytest.approx(fmean(a - b for a, b in both))
            # Whoever has no number is counted with a reason.
            lost = [x for x in result.exclusions if x.system == system and x.what == "users"]
            if unlabeled == "no":
                assert len(both) == len(lists.shown)
            assert any("no list" in x.reason for x in lost)


@pytest.mark.parametrize("unlabeled", ["no", "unknown"])
def test_preset_warnings(tmp_path: Path, unlabeled: str) -> None:
    files.recommender(tmp_path)
    plan = {
        "preset": "warnings",
        "data": of_lists(unlabeled),
        "systems": recorded("a"),
        "options": {"k": K},
    }
    result = run(tmp_path, plan)
    lists = Lists(tmp_path, "a")
    labels = ("spiders", "violence")
    by_user: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for label in labels:
        for user, shown in lists.shown.items():
            both = [lists.share(items, label, unlabeled) for items in (shown, lists.past[user])]
            if None not in both:
                by_user[user].append((both[0], both[1]))  # type: ignore[arg-type]
    means = [(fmean(a for a, _ in some), fmean(b for _, b in some)) for some in by_user.values()]
    (e,) = [one for one in family(result) if not one.label and not one.group]
    assert e.n == len(means)
    assert e.value == pytest.approx(fmean(a for a, _ in means) / fmean(b for _, b in means) - 1)
    # The paper's own number: unlabeled items as no, and an imaginary item where a history has none.
    paper = "user amplification@6 (unlabeled as no)"
    (p,) = result.select(metric=paper, kind="level", group="")
    values = []
    for user, shown in lists.shown.items():
        ratios = []
        for label in labels:
            there, past = (lists.share(i, label, "no") for i in (shown, lists.past[user]))
            assert there is not None and past is not None
            ratios.append(there / (past or 1 / (len(lists.past[user]) + 1)) - 1)
        values.append(fmean(ratios))
    assert p.n == len(values)
    assert p.value == pytest.approx(fmean(values))


def test_preset_authors(tmp_path: Path) -> None:
    files.recommender(tmp_path)
    least = 2
    plan = {
        "preset": "authors",
        "data": {"interactions": "history.csv", "items": "items.csv", "duplicates": "last"},
        "systems": recorded("a"),
        "options": {"k": K, "least": least, "accuracy_users": 0, "attribute": "gender"},
        "analyses": [{"name": "creator-lists", "attribute": "gender", "k": K, "least": least}],
    }
    result = run(tmp_path, plan)
    lists = Lists(tmp_path, "a")
    gender = {row["item"]: row["gender"] for row in files.read(tmp_path / "items.csv")}
    told = {e.label.split("=")[-1]: e for e in family(result)}
    assert set(told) == {"woman", "man", "nonbinary"}
    for value, e in told.items():
        gaps = []
        for user, past in lists.past.items():
            known = [gender[i] for i in past if gender.get(i)]
            shown = [gender[i] for i in lists.shown.get(user, []) if gender.get(i)]
            if len(known) >= least and shown:
                gaps.append(shown.count(value) / len(shown) - known.count(value) / len(known))
        assert e.n == len(gaps)
        assert e.value == pytest.approx(fmean(gaps))


# --- moderators -------------------------------------------------------------------------------


class Texts:
    """Labels, groups and decisions, as the files have them."""

    def __init__(self, folder: Path, system: str) -> None:
        self.label = {row["id"]: row["label"] for row in files.read(folder / "texts.csv")}
        self.groups: dict[str, set[str]] = defaultdict(set)
        for row in files.read(folder / "groups.csv"):
            self.groups[row["group"]].add(row["id"])
        self.flagged = {
            row["id"]: row["outcome"] == "flagged"
            for row in files.read(folder / f"{system}.csv")
            if row["id"] in self.label
        }

    def flags(self, label: str, group: str | None = None) -> list[bool]:
        """The decisions on texts with a label, all or those of a group."""
        return [
            flag
            for key, flag in self.flagged.items()
            if self.label[key] == label and (group is None or key in self.groups[group])
        ]


def of_texts() -> dict[str, Any]:
    return {"texts": "texts.csv", "text_groups": "groups.csv"}


def test_plain_plan_of_decisions(tmp_path: Path) -> None:
    files.moderator(tmp_path)
    plan = {
        "data": of_texts(),
        "systems": recorded("a", "b"),
        "metrics": [{"name": "false-positive-rate"}, {"name": "detection-recall"}],
    }
    result = run(tmp_path, plan)
    for system in ("a", "b"):
        texts = Texts(tmp_path, system)
        for key, label in (("false-positive-rate", "0"), ("detection-recall", "1")):
            for group in (None, "women", "elderly", "students"):
                e = headline(result, key=key, system=system, kind="level", group=group or "")
                flags = texts.flags(label, group)
                assert e.n == len(flags)
                assert e.value == pytest.approx(fmean(flags))


def test_preset_suppression(tmp_path: Path) -> None:
    files.moderator(tmp_path)
    plan = {"preset": "suppression", "data": of_texts(), "systems": recorded("a")}
    plan["options"] = {"scores": False}
    result = run(tmp_path, plan)
    texts = Texts(tmp_path, "a")
    whole = texts.flags("0")
    told = {e.group: e for e in family(result)}
    assert set(told) == {"women", "elderly", "students"}
    for group, e in told.items():
        flags = texts.flags("0", group)
        assert e.value == pytest.approx(fmean(flags) / fmean(whole))
        assert (e.details["events"], e.details["texts"]) == (sum(flags), len(flags))
        assert (e.details["other_events"], e.details["other_texts"]) == (sum(whole), len(whole))


def test_preset_delicate(tmp_path: Path) -> None:
    files.moderator(tmp_path)
    plan = {"preset": "delicate", "data": of_texts(), "systems": recorded("a")}
    result = run(tmp_path, plan)
    texts = Texts(tmp_path, "a")
    found = texts.flags("1")
    e = headline(result, key="detection-recall", system="a", kind="level", group="")
    assert (e.value, e.n) == (pytest.approx(fmean(found)), len(found))
    compared = family(result)
    told = {one.group: one for one in compared if one.group in texts.groups}
    assert set(told) == {"women", "elderly", "students"}
    for group, one in told.items():
        inside = texts.flags("1", group)
        outside = [f for f, i in _with_ids(texts) if i not in texts.groups[group]]
        assert one.value == pytest.approx(fmean(inside) - fmean(outside))
        assert one.n == len(inside) + len(outside)
    for one in compared:  # topics and lengths that every text has, or none
        assert one.group in told or one.value is None


def _with_ids(texts: Texts) -> list[tuple[bool, str]]:
    return [(flag, key) for key, flag in texts.flagged.items() if texts.label[key] == "1"]


# --- real data --------------------------------------------------------------------------------


@pytest.mark.realdata
@pytest.mark.parametrize("unlabeled", ["no", "unknown"])
def test_movielens_with_keywords(tmp_path: Path, realdata: Path, unlabeled: str) -> None:
    """Lists of the most rated unseen films; labels are keywords, of half the films at random."""
    ratings = files.read(realdata / "movielens-small" / "ratings.csv")
    links = {r["movieId"]: r["tmdbId"] for r in files.read(realdata / "movielens-small/links.csv")}
    words = {r["id"]: r["keywords"] for r in files.read(realdata / "tmdb-keywords/keywords.csv")}
    past: dict[str, list[str]] = defaultdict(list)
    count: dict[str, int] = defaultdict(int)
    for row in ratings:
        past[row["userId"]].append(row["movieId"])
        count[row["movieId"]] += 1
    files.write(
        tmp_path / "history.csv",
        ("user", "item"),
        [(u, i) for u, items in past.items() for i in items],
    )
    looked_at = [i for i in count if words.get(links.get(i, ""), "[]") != "[]" and int(i) % 2]
    rows = [
        (i, label, "true" if f"'{label}'" in words[links[i]] else "false")
        for i in looked_at
        for label in ("violence", "murder")
    ]
    files.write(tmp_path / "labels.csv", ("item", "label", "present"), rows)
    popular = sorted(count, key=lambda i: (-count[i], int(i)))
    shown = []
    for user, items in past.items():
        seen = set(items)
        top = [i for i in popular[: len(seen) + K] if i not in seen][:K]
        shown += [(user, item, rank) for rank, item in enumerate(top, 1)]
    files.write(tmp_path / "a.csv", ("user", "item", "rank"), shown)
    plan = {
        "data": of_lists(unlabeled),
        "systems": recorded("a"),
        "metrics": [{"name": "share-gap", "k": K}],
        "statistics": {"replicates": 200},
    }
    result = run(tmp_path, plan)
    lists = Lists(tmp_path, "a")
    for label in ("violence", "murder"):
        e = headline(result, system="a", label=label, kind="level", group="")
        both = lists.sides(label, unlabeled)
        assert e.n == len(both)
        assert e.value == pytest.approx(fmean(a - b for a, b in both))


@pytest.mark.realdata
def test_stormfront_by_words(tmp_path: Path, realdata: Path) -> None:
    """Sentences with labels; groups by one word, decisions by the length of the sentence."""
    texts, groups, decisions = [], [], []
    for n, row in enumerate(files.read(realdata / "stormfront" / "stormfront_sentences.csv")):
        text = row["text"].strip()
        if n % 5 or not text:
            continue
        label = {"hate": "1", "noHate": "0"}.get(row["label"], "")
        texts.append((row["file_id"], text, label))
        for word in ("women", "school"):
            if f" {word} " in text:
                groups.append((row["file_id"], word))
        decisions.append((row["file_id"], "flagged" if len(text) > 120 else "allowed"))
    files.write(tmp_path / "texts.csv", ("id", "text", "label"), texts)
    files.write(tmp_path / "groups.csv", ("id", "group"), groups)
    files.write(tmp_path / "a.csv", ("id", "outcome"), decisions)
    plan = {
        "data": of_texts(),
        "systems": recorded("a"),
        "metrics": [{"name": "false-positive-rate"}],
        "statistics": {"replicates": 200},
    }
    result = run(tmp_path, plan)
    found = Texts(tmp_path, "a")
    for group in (None, "women", "school"):
        e = headline(result, key="false-positive-rate", kind="level", group=group or "")
        flags = found.flags("0", group)
        assert e.n == len(flags)
        if e.value is not None:
            assert math.isclose(e.value, fmean(flags))


def test_preset_counterfactual(tmp_path: Path) -> None:
    """What one edit can bring into the list of EASE, by trying every edit."""
    import numpy as np

    users, items, k, ridge = 36, 20, 3, 4.0
    rng = random.Random(8)
    plays = [
        (f"u{u:02d}", f"i{i:02d}")
        for i in range(items)
        # Every item has another number of users, so that popularity has no ties.
        for u in rng.sample(range(users), i + 2)
    ]
    files.write(tmp_path / "plays.csv", ("user", "item"), [*plays, plays[0]])
    plan = {
        "preset": "counterfactual",
        "data": {"interactions": "plays.csv", "duplicates": "last"},
        "systems": {"EASE": {"type": "ease", "regularization": ridge}},
        "options": {"parts": ["reach"], "k": k, "users": 500, "targets": 500, "budget": 1,
                    "people": 0, "retrained": 0, "frozen": True},
        "statistics": {"replicates": 100},
    }  # fmt: skip
    result = run(tmp_path, plan)
    names = sorted({row["user"] for row in files.read(tmp_path / "plays.csv")})
    history = np.zeros((len(names), items))
    for row in files.read(tmp_path / "plays.csv"):
        history[names.index(row["user"]), int(row["item"][1:])] = 1
    inverse = np.linalg.inv(history.T @ history + ridge * np.eye(items))
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0)

    def shown(mine: np.ndarray) -> set[int]:
        scores = np.where(mine > 0, -np.inf, mine @ weights)
        return set(np.argsort(-scores, kind="stable")[:k].tolist()) if mine.any() else set()

    reached: dict[bool, list[bool]] = {False: [], True: []}
    for mine in history:
        found = set(shown(mine))
        for item in range(items):
            edited = mine.copy()
            edited[item] = 1 - edited[item]
            # Who adds an item has seen it, and it is no longer brought in.
            found |= shown(edited)
        for target in np.flatnonzero(mine == 0).tolist():
            reached[target >= items // 2].append(target in found)
    (e,) = result.select(key="reach/popularity-gap")
    less, more = (fmean(reached[popular]) for popular in (False, True))
    assert e.details["less_popular"] == pytest.approx(less)
    assert e.details["more_popular"] == pytest.approx(more)
    assert e.value == pytest.approx(less - more)
    assert 0 < less < 1
