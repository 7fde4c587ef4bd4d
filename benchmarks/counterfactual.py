"""Counterfactual audits: reach against cvxpy, all single edits, and what a black box attains.

`reach_vs_cvxpy`: the same stochastic reachability problems (the design of Curmei, Dean & Recht
2021), solved by ombud all together and by cvxpy with CLARABEL one by one; equal optimum to 1e-6.
`single_edit_ms`: exact reach of all items of one person by any single edit, in CPU ms per target,
factor model of MovieLens-1M size. `black_box_*`: questions per target, and the share of what the
white box reaches, at three budgets.
`ease_update_vs_retrain`, `itemknn_update_vs_copy`: how many times the CPU time of one exact single
edit training again (EASE), or training a copy for one history (item-kNN), takes.
`update_growth_*`: CPU ms per edit of exact updates, by items, users, and targets.
`preset_small_cpu_min`: reach of the default preset with EASE and item-kNN on MovieLens-small, 100
users and 50 targets, all values (needs OMBUD_REALDATA); `preset_small_ends_cpu_min`: lowest and
highest values only.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from _isolated import finish, main_of_case, measure

SEED = 7


def data(options: Mapping[str, Any]) -> Any:
    """Interactions of MovieLens-1M size with ratings 1 to 5, or a share of them."""
    from ombud.data.interactions import Interactions
    from ombud.registry import create

    world = create("world", "ml-1m-size", {"seed": SEED})
    made = world.interactions
    users = int(made.n_users * options.get("share", 1.0))
    rows = np.repeat(np.arange(made.n_users), np.diff(made.matrix.indptr))
    kept = rows < users
    ratings = np.clip(np.ceil(made.matrix.data[kept]), 1, 5)
    return Interactions.from_arrays(
        rows[kept], made.matrix.indices[kept], ratings, rating_scale=(1.0, 5.0)
    )


def factor_model(made: Any, factors: int = 32) -> Any:
    from ombud.systems.recommenders import ExplicitALS

    return ExplicitALS(factors=factors, iterations=8, regularization=0.1, threads=1).fit(made)


def problems(options: Mapping[str, Any]) -> Any:
    """The affine scores of some users and their goals."""
    from ombud.probes.affine import affine_scores
    from ombud.probes.edits import History
    from ombud.probes.models import open_box

    made = data(options)
    box = open_box(factor_model(made))
    rng = np.random.default_rng(SEED)
    for user in rng.choice(made.n_users, options["users"], replace=False):
        history = History.of_user(made, int(user))
        chosen = np.sort(rng.choice(history.items, options["actions"], replace=False))
        scores = affine_scores(box, history, chosen.astype(np.int32), 1.0, 5.0)
        goals = rng.choice(len(scores.candidates), options["goals"], replace=False)
        yield scores, goals


def reach_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.probes.affine import most_probable

    cpu, count, found, gap = 0.0, 0, [], 0.0
    for scores, goals in problems(options):
        started = time.process_time()
        solved = most_probable(scores, goals, options["beta"], start=scores.today)
        cpu += time.process_time() - started
        count += len(goals)
        found += solved.log_probability[: options["peer_goals"]].tolist()
        gap = max(gap, float(solved.gap.max()))
    return {"cpu": cpu, "each": cpu / count, "found": found, "gap": gap, "problems": count}


def reach_cvxpy(options: Mapping[str, Any]) -> dict[str, Any]:
    import cvxpy

    cpu, found, beta = 0.0, [], options["beta"]
    for scores, goals in problems(options):
        for goal in goals[: options["peer_goals"]]:
            started = time.process_time()
            values = cvxpy.Variable(scores.slope.shape[1])
            loss = cvxpy.log_sum_exp(beta * (scores.slope @ values + scores.intercept))
            loss -= beta * (scores.slope[goal] @ values + scores.intercept[goal])
            problem = cvxpy.Problem(cvxpy.Minimize(loss), [values >= 1, values <= 5])
            problem.solve(solver="CLARABEL")
            cpu += time.process_time() - started
            found.append(-float(problem.value))
    return {"cpu": cpu, "each": cpu / len(found), "found": found}


def single_edits(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.probes.edits import EditSpace
    from ombud.probes.models import open_box
    from ombud.probes.reachability import single_reach

    made = data(options)
    box = open_box(factor_model(made, options["factors"]))
    rng = np.random.default_rng(SEED)
    users = rng.choice(made.n_users, options["users"] + 1, replace=False)
    cpu, targets, edits, reached = 0.0, 0, 0, 0
    for number, user in enumerate(users):
        space = EditSpace.of_user(made, made.users.ids[user], budget=1)
        started = time.process_time()
        found = single_reach(box, space, k=10, beta=4.0)
        spent = time.process_time() - started
        if number == 0:
            continue  # kernels are compiled
        cpu += spent
        targets += made.n_items - len(space.history)
        edits += found.edits
        reached += int((found.margin >= 0).sum())
    return {
        "cpu": cpu,
        "each_ms": 1e3 * cpu / targets,
        "users": options["users"],
        "edits": edits / options["users"],
        "reached": reached / targets,
    }


def beams(options: Mapping[str, Any]) -> dict[str, Any]:
    """CPU ms per target of the beam with its bounds, by budget, and what it decides."""
    from ombud.probes import EditSpace, Reachability

    made = data(options)
    model = factor_model(made)
    rng = np.random.default_rng(SEED)
    result: dict[str, Any] = {}
    user = int(rng.integers(made.n_users))
    targets = [int(t) for t in rng.choice(made.n_items, options["targets"], replace=False)]
    for budget in (1, 2, 3, 5):
        space = EditSpace.of_user(made, made.users.ids[user], budget=budget, values=(1.0, 5.0))
        started = time.process_time()
        found = Reachability(k=10).of(model, space, targets, own=user)
        result[f"ms_{budget}"] = 1e3 * (time.process_time() - started) / len(targets)
        result[f"reached_{budget}"] = float(np.mean([r.reachable is True for r in found]))
        result[f"undecided_{budget}"] = float(np.mean([r.reachable is None for r in found]))
    return result


def growth(options: Mapping[str, Any]) -> dict[str, Any]:
    """CPU ms per target of all single edits, by number of items and length of the history."""
    from ombud.data.interactions import Interactions
    from ombud.probes.edits import EditSpace, History
    from ombud.probes.models import open_box
    from ombud.probes.reachability import single_reach

    result: dict[str, Any] = {}
    rng = np.random.default_rng(SEED)
    for n_items in options["items"]:
        users = np.repeat(np.arange(400), 60)
        items = np.concatenate([rng.choice(n_items, 60, replace=False) for _ in range(400)])
        users = np.concatenate([users, np.zeros(n_items, np.int64) + 400])
        items = np.concatenate([items, np.arange(n_items)])  # every item is known
        ratings = rng.integers(1, 6, len(users)).astype(float)
        made = Interactions.from_arrays(users, items, ratings, rating_scale=(1.0, 5.0))
        box = open_box(factor_model(made))
        for length in options["lengths"]:
            chosen = rng.choice(n_items, length, replace=False)
            history = History.of(chosen, rng.integers(1, 6, length))
            space = EditSpace(history=history, n_items=n_items, budget=1, values=(1.0, 5.0))
            single_reach(box, space, k=10, beta=4.0)  # compiled
            started = time.process_time()
            single_reach(box, space, k=10, beta=4.0)
            spent = time.process_time() - started
            result[f"items_{n_items}_history_{length}"] = 1e3 * spent / (n_items - length)
    return result


def black_box(options: Mapping[str, Any]) -> dict[str, Any]:
    """Share of the white box's reach that lists of 100 attain, at some queries per user."""
    from ombud.probes import BlackBoxReachability, EditSpace, Reachability
    from ombud.probes.blackbox.questions import Questions
    from ombud.probes.blackbox.surrogate import AnswerModel, item_features
    from ombud.probes.blackbox.systems import AskedModel

    made = data(options)
    model = factor_model(made)
    features = item_features(made)
    rng = np.random.default_rng(SEED)
    result: dict[str, Any] = {}
    cases = []
    short = np.flatnonzero(np.diff(made.matrix.indptr) <= 60)
    for user in rng.choice(short, options["users"], replace=False):
        space = EditSpace.of_user(
            made, made.users.ids[user], budget=options["budget"], values=(1.0, 5.0)
        )
        # Targets near the list, where reach is neither certain nor hopeless.
        near = model.recommend_for(space.history.row(made.n_items), 200).items[0]
        targets = [int(t) for t in rng.choice(near[10:], options["targets"], replace=False)]
        white = Reachability(k=10).of(model, space, targets)
        cases.append((space, targets, [r.reachable is True for r in white]))
    total = sum(sum(reached) for _, _, reached in cases)
    for queries in options["queries"]:
        for name, guide in (("", AnswerModel(features)), ("_unguided", None)):
            hits, sent, count, beyond = 0, 0, 0, 0
            for space, targets, reached in cases:
                questions = Questions(AskedModel(model), made.items, 100, limit=queries)
                probe = BlackBoxReachability(k=10, queries=queries)
                answers = probe.of(questions, space, targets, surrogate=guide)
                for found, there in zip(answers, reached, strict=True):
                    hits += int(found.shown and there)
                    beyond += int(found.shown and not there)
                sent += questions.spent
                count += len(targets)
            result[f"share_{queries}{name}"] = hits / max(total, 1)
            result[f"asked_{queries}{name}"] = sent / len(cases)
            result[f"beyond_{queries}{name}"] = beyond / count
    result["white"] = total / sum(len(targets) for _, targets, _ in cases)
    return result


def rated(users: int, items: int, each: int) -> Any:
    """Random ratings: some for each user, every item rated at least once."""
    from ombud.data.interactions import Interactions

    rng = np.random.default_rng(SEED)
    rows = np.repeat(np.arange(users), each)
    chance = 1.0 / (10 + np.arange(items))
    chance /= chance.sum()
    codes = np.concatenate([rng.choice(items, each, False, chance) for _ in range(users)])
    rows = np.concatenate([rows, rng.integers(users, size=items)])
    codes = np.concatenate([codes, np.arange(items)])
    cells = np.unique(rows * items + codes)
    stars = rng.integers(1, 6, len(cells)).astype(float)
    return Interactions.from_arrays(cells // items, cells % items, stars, rating_scale=(1.0, 5.0))


def updates(options: Mapping[str, Any]) -> dict[str, Any]:
    """Exact single edits after retraining against training, and what their cost grows with."""
    from ombud.probes.edits import EditSpace
    from ombud.probes.models import closed_form
    from ombud.probes.models.base import TrainedBox
    from ombud.systems.recommenders import EASE, ItemKNN

    result: dict[str, Any] = {}
    rng = np.random.default_rng(SEED)

    def each(form: Any, made: Any, targets: int) -> float:
        codes = np.sort(rng.choice(made.n_items, targets, replace=False))
        space = EditSpace.of_user(made, made.users.ids[3], budget=1)
        form.single_edits(space, 3, codes[:1], k=10, beta=4.0)  # compiled
        started = time.process_time()
        found = form.single_edits(space, 3, codes, k=10, beta=4.0)
        return (time.process_time() - started) / len(found.singles)

    made = rated(600, options["items"], 80)
    ease, near = EASE(threads=1).fit(made), ItemKNN(threads=1).fit(made)
    for name, model, other in (
        ("ease_update_vs_retrain", ease, TrainedBox(ease, 3)),
        ("itemknn_update_vs_copy", near, closed_form(near).box(3)),
    ):
        space = EditSpace.of_user(made, made.users.ids[3], budget=1)
        history = space.history.after((space.singles().edit(0),))
        other.scores([history])
        started = time.process_time()
        other.scores([history])
        whole = time.process_time() - started
        one = each(closed_form(model), made, 50)
        result[name], result[f"{name}_ms"] = whole / one, 1e3 * one
    for users, items, targets in (
        (600, 500, 50),
        (600, 2000, 50),
        (2400, 500, 50),
        (600, 500, 400),
    ):
        made = rated(users, items, 80)
        for name, kind in (("ease", EASE), ("itemknn", ItemKNN)):
            form = closed_form(kind(threads=1).fit(made))
            key = f"growth_{name}_users_{users}_items_{items}_targets_{targets}"
            result[key] = 1e3 * each(form, made, targets)
    return result


def preset(options: Mapping[str, Any]) -> dict[str, Any]:
    """CPU minutes of the default preset with EASE and item-kNN on MovieLens-small."""
    import tempfile

    from ombud.audits import Audit, Plan

    plan = Plan.from_dict(
        {
            "preset": "counterfactual",
            "seed": 1,
            "sample": 200,
            "data": {
                "source": "movielens-tmdb",
                "options": {
                    "path": str(Path(os.environ["OMBUD_REALDATA"]) / "movielens-small"),
                    "keywords": str(Path(os.environ["OMBUD_REALDATA"]) / "tmdb-keywords"),
                    "unlabeled": "no-if-any-keyword",
                },
            },
            "systems": {"Item kNN": {"type": "item-knn"}, "EASE": {"type": "ease"}},
            "options": {"values": options["values"], "parts": ["reach"]},
        }
    )
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        Audit.from_plan(plan).run(Path(folder) / "run")
    return {"minutes": (time.process_time() - started) / 60}


CASES = {
    "updates": updates,
    "preset": preset,
    "reach_ombud": reach_ombud,
    "reach_cvxpy": reach_cvxpy,
    "single_edits": single_edits,
    "beams": beams,
    "growth": growth,
    "black_box": black_box,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about two minutes")
    quick = parser.parse_args().quick
    figures: dict[str, float] = {}
    exact = measure(__file__, "updates", {"items": 1000 if quick else 3000})
    named = {k: v for k, v in exact.items() if k not in {"cpu", "mib"}}
    figures |= {k if "_vs_" in k else f"update_{k}": v for k, v in named.items()}
    if os.environ.get("OMBUD_REALDATA") and not quick:
        for values, key in (("ends", "preset_small_ends_cpu_min"), ("all", "preset_small_cpu_min")):
            figures[key] = measure(__file__, "preset", {"values": values})["minutes"]
    reach = {"users": 2, "goals": 500, "peer_goals": 2 if quick else 5, "beta": 4.0, "actions": 10}
    if quick:
        reach |= {"share": 0.3}
    ours = measure(__file__, "reach_ombud", reach)
    theirs = measure(__file__, "reach_cvxpy", reach)
    n = reach["peer_goals"]
    same = [ours["found"][i] for i in range(len(ours["found"]))]
    apart = float(np.abs(np.array(same) - theirs["found"]).max())
    figures["reach_vs_cvxpy"] = theirs["each"] / ours["each"]
    figures["reach_ms"] = 1e3 * ours["each"]
    figures["reach_ms_cvxpy"] = 1e3 * theirs["each"]
    figures["reach_apart_1e6"] = 1e6 * apart
    figures["reach_mib"], figures["reach_mib_cvxpy"] = ours["mib"], theirs["mib"]
    print(
        f"  reach: {figures['reach_vs_cvxpy']:.0f} times the CPU time of ombud for cvxpy "
        f"({ours['problems']} problems, {n} per user by cvxpy), optima apart by {apart:.1e}"
    )
    single = measure(__file__, "single_edits", {"users": 2 if quick else 5, "factors": 64})
    figures["single_edit_ms"] = single["each_ms"]
    figures["single_edit_edits"], figures["single_edit_mib"] = single["edits"], single["mib"]
    # From the users measured: 1,000 users, all their items, on two cores.
    figures["single_edit_1000_users_minutes"] = single["cpu"] / single["users"] * 1000 / 2 / 60
    print(f"  single edits: {single['each_ms']:.3f} CPU ms per target")
    sizes = {"items": [500, 1000, 2000, 4000], "lengths": [20, 200]}
    grown = measure(__file__, "growth", sizes)
    figures |= {f"growth_{k}": v for k, v in grown.items() if k not in {"cpu", "mib"}}
    beam = measure(__file__, "beams", {"targets": 6 if quick else 20, "share": 0.3 if quick else 1})
    figures |= {f"beam_{k}": v for k, v in beam.items() if k not in {"cpu", "mib"}}
    box = {
        "users": 1 if quick else 2, "targets": 4 if quick else 6, "budget": 3,
        "queries": [100, 1000] if quick else [100, 1000, 10000], "share": 0.3 if quick else 1.0,
    }  # fmt: skip
    black = measure(__file__, "black_box", box)
    figures |= {f"black_box_{k}": v for k, v in black.items() if k not in {"cpu", "mib"}}
    if find_spec("_counterfactual_stability") is not None:
        module = import_module("_counterfactual_stability")
        figures |= dict(module.figures(quick))
    finish("counterfactual", figures)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if "--case" in sys.argv[1:2]:
        main_of_case(CASES)
    else:
        main()
