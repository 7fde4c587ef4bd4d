"""A counterfactual analysis that was killed goes on, asks nothing again, and ends the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from two_tastes import plan_of

from ombud.audits import Audit, Result
from ombud.errors import ResultError
from ombud.probes import DriftIn, Escape, Reachability
from ombud.probes.attainable import Attainable
from ombud.probes.retraining import Retraining
from ombud.questions.counterfactual.checkpoint import FILE, Checkpoint

SYSTEMS = {"EASE": {"type": "ease", "regularization": 5.0}}
FEW = {
    "users": 5, "targets": 10, "at_risk": 4, "looked_at": 10, "moved": 3, "random_treatments": 2,
    "noise_runs": 1, "retrained": 1, "people": 1, "tries": 5, "retrained_users": 5,
    "sets": ["dark"], "black_box": ["EASE"], "queries": 400,
}  # fmt: skip

KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from ombud.audits import Audit
from ombud.questions.counterfactual import checkpoint
from test_resume import the_plan

plain, seen = checkpoint.Checkpoint.__call__, [0]

def call(self, key, find):
    if json_name(self, key) not in self.known:
        def found():
            value = find()
            seen[0] += 1
            if seen[0] == {after}:
                # In the middle of a unit: it was found, but not kept; half a line is written.
                with self.path.open("a") as file:
                    file.write('["half')
                os.kill(os.getpid(), signal.SIGKILL)
            return value
        return plain(self, key, found)
    return plain(self, key, find)

def json_name(self, key):
    import json
    return json.dumps([*self.prefix, *key])

checkpoint.Checkpoint.__call__ = call
Audit.from_plan(the_plan(Path({world!r}))).run(Path({folder!r}))
"""


def the_plan(world: Path) -> Any:
    return plan_of(world, SYSTEMS, **FEW)


def kill_after(units: int, world: Path, folder: Path) -> None:
    here = str(Path(__file__).parent)
    code = KILLED.format(here=here, after=units, world=str(world), folder=str(folder))
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ}, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()


def plain(result: Result) -> tuple[list[Any], dict[str, Any]]:
    estimates = [e.to_dict() for e in result.estimates]
    for e in estimates:
        # A question under way at a kill is asked once more, and counted.
        e["details"].pop("queries", None)
        e["note"] = e["note"].split("; ")[0]
    tables = {name: frame.to_dicts() for name, frame in result.tables.items()}
    tables["counterfactual-cost"] = [
        row for row in tables["counterfactual-cost"] if row["part"] != "reach through lists alone"
    ]
    return estimates, tables


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked of the probes from now on: probe, policy or label, and the person."""
    calls: list[tuple[Any, ...]] = []

    def noted(kind: type, name: str, mark: Any) -> None:
        original = getattr(kind, name)

        def call(self: Any, *args: Any, **options: Any) -> Any:
            calls.append((kind.__name__, mark(self, args), options.get("own")))
            return original(self, *args, **options)

        monkeypatch.setattr(kind, name, call)

    noted(Reachability, "of", lambda self, args: (self.policy, repr(args[2])))
    noted(Attainable, "of", lambda self, args: "attainable")
    noted(Escape, "of", lambda self, args: "escape")
    noted(DriftIn, "of", lambda self, args: "drift-in")
    noted(Retraining, "_trained_for", lambda self, args: (args[0].kind, args[0].rows))
    noted(Retraining, "_noise", lambda self, args: args)
    return calls


@pytest.mark.parametrize(
    "units", [3, pytest.param(14, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.slow)]
)
def test_a_killed_analysis_goes_on(world: Path, tmp_path: Path, asked: Any, units: int) -> None:
    whole = Audit.from_plan(the_plan(world)).run(tmp_path / "whole")
    every = list(asked)
    assert len(every) == len(set(every))  # nothing is asked twice even so
    kill_after(units, world, tmp_path / "killed")
    lines = (tmp_path / "killed" / FILE).read_text().splitlines()
    assert lines[-1] == '["half' and len(lines) >= 2
    done = [json.loads(json.loads(line)[0]) for line in lines[1:-1]]
    asked.clear()
    again = Audit.from_plan(the_plan(world)).run(tmp_path / "killed")
    assert plain(again) == plain(whole)
    assert len(asked) == len(set(asked))
    # What was kept is not asked: each person or training kept is one call fewer.
    spared = sum(bool({"user", "swap", "noise"} & set(map(str, key))) for key in done)
    assert spared > 0 and set(asked) < set(every) and len(asked) == len(every) - spared
    asked.clear()
    once_more = Audit.from_plan(the_plan(world)).run(tmp_path / "killed")
    assert not asked and plain(once_more) == plain(whole)


def test_what_is_kept_is_as_found_and_a_damaged_file_is_said(tmp_path: Path) -> None:
    kept = Checkpoint.in_folder(tmp_path).within("EASE", 1)
    first = kept(("a", 2), lambda: {"x": (0.1, float("nan"))})
    again = Checkpoint.in_folder(tmp_path).within("EASE", 1)(("a", 2), lambda: 1 / 0)
    assert repr(again) == repr(first) == repr({"x": [0.1, float("nan")]})
    path = tmp_path / FILE
    path.write_text(path.read_text() + "no json\n")
    with pytest.raises(ResultError, match="Delete it"):
        Checkpoint.in_folder(tmp_path)
    path.write_text("another version\n")
    assert Checkpoint.in_folder(tmp_path).known == {}
