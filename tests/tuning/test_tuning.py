"""Tuning: the search, its end, its memory, and what it refuses."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.data.interactions import Interactions
from ombud.data.recommendations import Recommendations
from ombud.errors import AuditedSystemError, PlanError, ResultError
from ombud.systems.base import Recommender
from ombud.tuning.search import Objective, no_longer_improves
from ombud.tuning.spaces import PUBLISHED, SPACES, Choice, Range, space_for
from ombud.tuning.tuning import tune

pytest.importorskip("optuna", reason="optuna is not installed (extra tuning)")

SPACE = {"x": {"low": -1.0, "high": 1.0}, "y": [1, 2, 3]}


def make(seed=0):
    rng = np.random.default_rng(seed)
    users, items = np.nonzero(rng.random((40, 25)) < 0.5)
    return Interactions.from_arrays(users, items, rng.integers(1, 6, len(users)))


@pytest.fixture
def bowl(monkeypatch):
    """A model that is best at x = 0.3, y = 2, and can be told to fail."""
    log = {"fits": 0, "stop_at": None, "fail_below": -2.0}

    @dataclass
    class Bowl(Recommender):
        trainable = True
        x: float = 0.0
        y: int = 1
        name: str = "bowl"
        predicts_ratings = True

        def fit(self, interactions, *, progress=None):
            if log["fits"] == log["stop_at"]:
                raise KeyboardInterrupt
            log["fits"] += 1
            if self.x < log["fail_below"]:
                raise AuditedSystemError("too far left")
            self.truth = {}
            self.items = interactions.items
            return self

        def recommend(self, users, n, exclude_seen=True):
            best = np.arange(min(n, len(self.items)), dtype=np.int32)
            return Recommendations(np.asarray(users), np.tile(best, (len(users), 1)), self.items)

        def predict(self, users, items):
            return np.full(len(users), 3 + (self.x - 0.3) ** 2 + (self.y != 2), np.float32)

    monkeypatch.setitem(registry._things["recommender"], "bowl", Bowl)
    return log


def search(data=None, **options):
    options = {"space": SPACE, "metric": "rmse", "trials": 12, "seed": 3} | options
    return tune("bowl", make() if data is None else data, **options)


def test_finds_the_bottom(bowl):
    rng = np.random.default_rng(1)
    users, items = np.nonzero(rng.random((40, 25)) < 0.5)
    flat = Interactions.from_arrays(users, items, np.full(len(users), 3.0))
    found = search(flat, trials=60, window=50)
    assert found.best["y"] == 2 and abs(found.best["x"] - 0.3) < 0.15
    assert found.value == pytest.approx((found.best["x"] - 0.3) ** 2, abs=1e-5)
    assert found.value == found.trials["value"].min()
    assert found.recommender().x == found.best["x"]


def test_same_seed_same_trials(bowl):
    one, again, other = search(), search(), search(seed=4)
    assert one.trials.drop("seconds").equals(again.trials.drop("seconds"))
    assert not one.trials.drop("seconds").equals(other.trials.drop("seconds"))


def test_goes_on_after_an_interruption_as_if_there_had_been_none(bowl, tmp_path):
    whole = search(folder=tmp_path / "whole", trials=18)
    bowl["fits"], bowl["stop_at"] = 0, 13
    with pytest.raises(KeyboardInterrupt):
        search(folder=tmp_path / "cut", trials=18)
    bowl["stop_at"] = None
    with (tmp_path / "cut" / "trials.log").open("a") as file:
        file.write('{"op_code": 5, "wor')  # a line that a kill has torn
    resumed = search(folder=tmp_path / "cut", trials=18)
    assert resumed.trials.drop("seconds").equals(whole.trials.drop("seconds"))
    assert bowl["fits"] == 18
    again = search(folder=tmp_path / "cut", trials=18)
    assert bowl["fits"] == 18 and again.best == whole.best
    saved = json.loads((tmp_path / "cut" / "tuned.json").read_text())
    assert saved["best"] == whole.best and saved["value"] == whole.value


def finished(path):
    """Return how many trials Optuna's log says ended well, read as anyone would."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return sum(json.loads(line).get("state") == 1 for line in lines)


def test_a_trial_that_was_killed_is_tried_again_with_the_same_parameters(bowl, tmp_path):
    import optuna

    bowl["stop_at"] = 4
    with pytest.raises(KeyboardInterrupt):
        search(folder=tmp_path / "a", trials=6)
    bowl["stop_at"] = None
    resumed = search(folder=tmp_path / "a", trials=6)
    # Optuna's own reader finds the killed one beside the others.
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "a" / "trials.log"))
    study = optuna.load_study(study_name=None, storage=optuna.storages.JournalStorage(backend))
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 4 + ["FAIL"] + ["COMPLETE"] * 2
    assert study.trials[4].params == study.trials[5].params
    assert study.best_params == resumed.best and study.best_value == resumed.value


def test_survives_kill_9(tmp_path):
    script = textwrap.dedent(
        """
        import sys, numpy as np
        from ombud.tuning.tuning import tune
        from ombud.data.interactions import Interactions
        rng = np.random.default_rng(0)
        users, items = np.nonzero(rng.random((40, 25)) < 0.5)
        data = Interactions.from_arrays(users, items, rng.integers(1, 6, len(users)))
        found = tune("popular", data, metric="recall@5", trials=int(sys.argv[2]), window=10_000,
                     folder=sys.argv[1])
        print(len(found.trials))
        """
    )
    path = tmp_path / "search" / "trials.log"
    command = [sys.executable, "-c", script, str(tmp_path / "search")]
    environment = os.environ | {"OMBUD_PLUGINS": "none"}
    with subprocess.Popen([*command, "100000"], env=environment) as running:
        deadline = time.monotonic() + 600
        while finished(path) < 3:
            assert time.monotonic() < deadline and running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
    kept = finished(path)
    done = subprocess.run(
        [*command, str(kept + 2)], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(kept + 2)]
    assert "Trial" not in done.stderr  # Optuna is silent
    assert finished(path) == kept + 2


def test_another_search_in_the_folder_is_refused(bowl, tmp_path):
    search(folder=tmp_path / "a", trials=2)
    with pytest.raises(ResultError, match=r"another search \(different: metric\)"):
        search(folder=tmp_path / "a", metric="mae")
    with pytest.raises(ResultError, match=r"different: data"):
        search(make(9), folder=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("x")
    with pytest.raises(ResultError, match="holds no search"):
        search(folder=tmp_path / "b")
    log = tmp_path / "a" / "trials.log"
    lines = log.read_text().count("\n")
    log.write_text(log.read_text() + "garbage\n")
    with pytest.raises(ResultError, match=f"line {lines + 1} is not a step of a trial"):
        search(folder=tmp_path / "a")
    log.write_text('{"op_code": 99}\n{}\n')
    with pytest.raises(ResultError, match="is not the log of a search"):
        search(folder=tmp_path / "a")


def test_two_searches_at_once_are_refused(bowl, tmp_path):
    pytest.importorskip("fcntl", reason="no file locks on this system")

    def inner(done, total, note):
        with pytest.raises(ResultError, match="another search is running"):
            search(folder=tmp_path / "a")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(folder=tmp_path / "a", progress=inner)
    assert len(search(folder=tmp_path / "a", trials=2).trials) == 2


def test_failed_trials_are_kept_with_their_reason(bowl):
    bowl["fail_below"] = 0.0
    found = search(trials=15)
    failed = found.trials.filter(found.trials["value"].is_null())
    assert 0 < len(failed) < 15
    assert set(failed["reason"]) == {"AuditedSystemError: too far left"}
    assert found.best["x"] >= 0


def test_only_failures_end_the_search_with_the_reason(bowl):
    bowl["fail_below"] = 2.0
    with pytest.raises(AuditedSystemError, match="first 5 trials of bowl all failed.*too far left"):
        search()
    with pytest.raises(AuditedSystemError, match="does not take z"):
        search(space={"z": [1, 2]})


def test_progress_and_budgets(bowl):
    seen = []
    found = search(progress=lambda *step: seen.append(step), trials=4)
    assert [step[:2] for step in seen] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert seen[-1][2].startswith("trial 3: rmse ") and ", best " in seen[-1][2]
    assert found.stopped_because == "the budget of 4 trials is used up"
    short = search(seconds=1e-9)
    assert len(short.trials) == 1 and "seconds" in short.stopped_because


def test_stops_when_the_best_five_no_longer_improve(bowl):
    found = search(trials=200, window=10)
    assert "best five improved by less than 1.0% over the last 10" in found.stopped_because
    values = found.trials["value"].to_list()
    rule = {"lower_is_better": True, "window": 10, "tolerance": 0.01}
    assert no_longer_improves(values, **rule)
    assert not any(no_longer_improves(values[:n], **rule) for n in range(len(values)))


def test_the_rule_by_hand():
    # Best five of the first 5: mean 3; of all 7: (1 + 1 + 2 + 3 + 1) / 5 = 1.6.
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 1.0]
    rule = {"lower_is_better": True, "window": 2}
    assert not no_longer_improves(values, tolerance=0.46, **rule)
    assert no_longer_improves(values, tolerance=0.47, **rule)
    assert not no_longer_improves(values[:6], tolerance=0.9, **rule)
    up = [-v for v in values]
    assert not no_longer_improves(up, lower_is_better=False, window=2, tolerance=0.46)


@given(st.lists(st.floats(0.1, 10), min_size=8, max_size=30), st.integers(1, 3))
def test_worse_trials_never_look_like_improvement(values, window):
    worse = [*values, *[max(values) + 1] * window]
    assert no_longer_improves(worse, lower_is_better=True, window=window, tolerance=0.01)


@pytest.mark.parametrize(
    ("metric", "lower"), [("rmse", True), ("mae", True), ("recall@50", False), ("mrr", False)]
)
def test_objectives(bowl, metric, lower):
    assert Objective(metric).lower_is_better is lower
    found = search(metric=metric, trials=3)
    assert np.isfinite(found.value)
    best = found.trials["value"].min() if lower else found.trials["value"].max()
    assert found.value == best


@pytest.mark.parametrize("metric", ["rmse@5", "auc", "recall@0", "Recall@5", "", "recall@"])
def test_unknown_objectives_are_refused(metric):
    with pytest.raises(PlanError, match="was expected"):
        Objective(metric)


def test_declining_to_predict_does_not_pay(monkeypatch):
    from ombud.data.splits import per_user

    class Shy:
        name = "shy"
        predicts_ratings = True

        def predict(self, users, items):
            return np.full(len(users), np.nan, np.float32)

    parts = per_user(make())
    value = Objective("rmse").measure(Shy(), parts, parts.test.users.ids)
    mean = parts.train.matrix.data.mean()
    assert value == pytest.approx(np.sqrt(np.mean((parts.test.matrix.data - mean) ** 2)), rel=1e-6)


def test_lists_only_models_cannot_be_tuned_on_ratings(bowl, monkeypatch):
    monkeypatch.setattr(registry._things["recommender"]["bowl"], "predicts_ratings", False)
    with pytest.raises(PlanError, match="predicts no ratings"):
        search()


@pytest.fixture
def asked(bowl, monkeypatch):
    users_asked = []
    kind = registry._things["recommender"]["bowl"]
    plain = kind.recommend

    def spy(self, users, n, exclude_seen=True):
        users_asked.append(np.asarray(users).tolist())
        return plain(self, users, n, exclude_seen)

    monkeypatch.setattr(kind, "recommend", spy)
    return users_asked


def test_a_sample_of_users_is_measured(asked):
    search(metric="recall@5", users=7, trials=2)
    assert [len(users) for users in asked] == [7, 7] and asked[0] == asked[1]


def test_users_kept_apart_are_not_measured(asked):
    search(metric="recall@5", trials=1)
    apart = asked[0][::2]
    search(metric="recall@5", trials=1, apart=apart)
    assert sorted(asked[1]) == sorted(set(asked[0]) - set(apart))
    with pytest.raises(PlanError, match="nobody is left"):
        search(metric="recall@5", trials=1, apart=asked[0])


def test_spaces():
    data = make()
    cut = space_for("svd", None, data)
    assert cut["factors"] == Range(8, 25, True) and cut["epochs"] == SPACES["svd"]["epochs"]
    tiny = Interactions.from_arrays([1, 2], [1, 2], [1.0, 2.0])
    assert space_for("svd", None, tiny)["factors"] == Choice((2,))
    assert space_for("any", {"a": [1], "b": {"low": 1, "high": 2}})["b"] == Range(1, 2)
    with pytest.raises(PlanError, match="no default search space"):
        space_for("recorded")
    bad = {"a": {"low": 2, "high": 1}, "b": {"lo": 1}, "c": 5, "d": [], "e": {"low": 1}}
    with pytest.raises(PlanError) as caught:
        space_for("svd", bad | {"f": {"low": 0, "high": 1, "log": True}})
    for name in "abcdef":
        assert f"{name}: " in str(caught.value)
    with pytest.raises(PlanError, match="empty"):
        space_for("svd", {})


def test_every_default_space_fits_its_model():
    for name, space in (*SPACES.items(), *PUBLISHED.items()):
        low = {k: p.values[0] if isinstance(p, Choice) else p.low for k, p in space.items()}
        high = {k: p.values[-1] if isinstance(p, Choice) else p.high for k, p in space.items()}
        for parameters in (low, high):
            made = registry.create("recommender", name, parameters)
            assert all(getattr(made, k) == v for k, v in parameters.items())


def test_bad_arguments_are_refused(bowl):
    with pytest.raises(PlanError, match="must be positive"):
        search(trials=0)
    with pytest.raises(PlanError, match="x: in the search space and fixed"):
        search(fixed={"x": 1.0})
    with pytest.raises(PlanError, match="no split is called"):
        search(holdout={"method": "none"})
    assert search(space={"x": SPACE["x"]}, fixed={"y": 2}, trials=2).best["y"] == 2


def test_optunas_logging_is_left_as_it_was(bowl):
    import optuna

    before = optuna.logging.get_verbosity()
    search(trials=2)
    assert optuna.logging.get_verbosity() == before == logging.INFO
