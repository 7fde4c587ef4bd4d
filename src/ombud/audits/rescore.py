"""Measure again from stored outputs, without asking any system."""

from __future__ import annotations

from collections.abc import Mapping
from math import isclose
from pathlib import Path
from typing import Any

from ombud.audits.audit import Audit
from ombud.audits.collect import SystemOutputs
from ombud.audits.integrity import check_provenance, read_integrity
from ombud.audits.plan import Plan
from ombud.audits.provenance import input_hashes
from ombud.audits.repeats import REPEATS
from ombud.audits.result import Result
from ombud.audits.run_folder import read_outputs, read_predictions
from ombud.data.recommendations import Recommendations
from ombud.errors import PlanError, ResultError
from ombud.files import read_json
from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.recorded import RecordedDecisions, RecordedRecommendations


def rescore(
    folder: Path | str,
    *,
    plan: Plan | None = None,
    into: Path | str | None = None,
    progress: Progress | None = None,
) -> Result:
    """Compute the metrics of a result again.

    An audit in blocks stores no copy of what was recorded: it is made again from the files, which
    must be those of then.

    Parameters
    ----------
    folder
        A result folder, finished or with all its outputs stored.
    plan
        Take metrics, groups and statistics from this plan; default, the result's own. Data, its
        split, the seed, the engine and what was declared beforehand stay those of the result.
    into
        Write the new result to this folder; default, in memory only.
    progress
        Called with (done, total, note) during long work.
    """
    folder = Path(folder)
    stored = Plan.load(folder / "plan.toml")
    asked = stored
    if plan is not None:
        if plan.expect and plan.expect != stored.expect:
            raise PlanError(
                "the plan has another [expect] than the result, and what is expected is declared "
                "before systems are asked; judge a result by later limits with: "
                "ombud check RESULT --gate FILE"
            )
        fixed = ("data", "systems", "split", "seed", "repeat", "about", "expect", "engine")
        kept = {name: getattr(stored, name) for name in fixed}
        asked = plan.model_copy(update=kept)
    _check_unchanged(folder, stored)
    if stored.engine.type != "memory":
        return Audit.from_plan(asked).run(into, progress)
    answers = _answers(folder, tuple(stored.systems))
    systems: dict[str, Recommender | Moderator] = {
        name: RecordedRecommendations.from_frame(answer.outputs, name)
        if isinstance(answer.outputs, Recommendations)
        else RecordedDecisions.from_frame(answer.outputs, name)
        for name, answer in answers.items()
    }
    audit = Audit.from_plan(asked, systems)
    repeats = [
        _answers(folder / REPEATS / str(number), tuple(stored.systems))
        for number in range(2, stored.repeat + 1)
    ]
    return audit.run(into, progress, answers=answers, repeats=repeats)


def _check_unchanged(folder: Path, stored: Plan) -> None:
    """Refuse data files that are not what they were when the systems were asked."""
    # What an audit in blocks measures are the recorded files themselves.
    measured = ("data.",) if stored.engine.type == "memory" else ("data.", "systems.")
    before = read_json(folder / "run.json").get("files", {})
    if not isinstance(before, dict):
        raise ResultError(f"{folder / 'run.json'} is damaged: files must name files")
    after = input_hashes(stored)
    changed = [
        index
        for index, digest in before.items()
        if index.startswith(measured) and after.get(index) != digest
    ]
    if changed:
        raise ResultError(
            f"files have changed or gone since {folder} was made: {', '.join(changed)}; "
            "the stored answers belong to the old ones. Run the audit again: ombud run PLAN"
        )
    if not (folder / "provenance.json").exists():
        return  # it was never finished, and nothing is recorded
    provenance = read_json(folder / "provenance.json")
    check_provenance(folder / "provenance.json", provenance)
    answered = ("outputs/", "predictions/", f"{REPEATS}/")
    kept = [n for n in provenance.get("files", {}) if n.startswith(answered)]
    edited = read_integrity(folder, provenance, kept).changed
    if edited:
        raise ResultError(
            f"stored answers of {folder} were edited after the audit: {', '.join(edited[:3])}; "
            "measuring them would give numbers that no system gave. ombud verify says what changed"
        )


def _answers(folder: Path, systems: tuple[str, ...]) -> dict[str, SystemOutputs]:
    result: dict[str, SystemOutputs] = {}
    for name in systems:
        outputs = read_outputs(folder, name)
        if outputs is not None:
            result[name] = SystemOutputs(outputs, read_predictions(folder, name))
    if not result:
        raise ResultError(f"{folder} holds no outputs; run the audit first: ombud run PLAN")
    return result


def recompute(folder: Path | str, progress: Progress | None = None) -> tuple[str, ...]:
    """Measure the stored outputs again, and name the estimates that come out otherwise.

    Parameters
    ----------
    folder
        A finished result whose data can be reached.
    progress
        Called with (done, total, note) during long work.

    Returns
    -------
    The stored estimates that are not those computed now, each on one line; empty when all agree
    to nine digits.
    """
    stored = Result.load(folder)
    again = rescore(folder, progress=progress)
    result = []
    for number in range(max(len(stored.estimates), len(again.estimates))):
        pair = [
            all_[number] if number < len(all_) else None
            for all_ in (stored.estimates, again.estimates)
        ]
        if None in pair or not _agree(*(e.to_dict() for e in pair if e is not None)):
            result.append(str(pair[0] or pair[1]))
    return tuple(result)


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_agree(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other or isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)
