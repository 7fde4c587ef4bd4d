"""Systems that state scores and no decision: what is measured, and what a gate says."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Gate, Plan, Result
from ombud.audits.plan import ExpectPlan
from ombud.data.dataset import Dataset
from ombud.data.decisions import NO_DECISIONS, Decisions, Outcome
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, PlanError
from ombud.metrics import FalsePositiveRate, MedianScore
from ombud.questions.delicate.metrics import Precision
from ombud.questions.suppression.changes import Drift, Migration
from ombud.questions.suppression.metrics import DecisionInstability, Suppression
from ombud.systems import Moderator, RecordedDecisions
from ombud.systems.own import read_decisions

STUB = Path(__file__).parents[1] / "systems" / "moderators" / "stub_service.py"
N = 60
SCORED = int(Outcome.SCORED)


def texts() -> Texts:
    words = np.array([f"{'my sister' if i % 3 else 'the sea'} {i}" for i in range(N)], dtype=object)
    return Texts(np.arange(N), words, (np.arange(N) % 5 == 0).astype(np.int8))


def scores() -> np.ndarray[Any, np.dtype[np.float32]]:
    return (np.arange(N) / N).astype(np.float32)


def scored(outcomes: int = SCORED) -> Decisions:
    return Decisions(np.arange(N), np.full(N, outcomes, dtype=np.int8), scores())


def stub_service() -> Any:
    name = "ombud_stub_service"
    if name not in sys.modules:
        spec = spec_from_file_location(name, STUB)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name].StubService()


def test_scores_are_measured_and_flags_are_not() -> None:
    """By hand: the median of the acceptable texts' scores, which no threshold enters."""
    data, outputs = Dataset(texts=texts()), scored()
    rows = MedianScore().measure(outputs, data)
    acceptable = scores()[np.arange(N) % 5 != 0]
    assert np.median(rows.columns["value"]) == pytest.approx(np.median(acceptable))
    # A second way to the same number: the same scores beside decisions.
    beside = MedianScore().measure(scored(Outcome.ALLOWED), data)
    assert np.array_equal(rows.columns["value"], beside.columns["value"])
    for metric in (FalsePositiveRate(), Suppression(), FalsePositiveRate(outcome="either")):
        assert metric.measure(outputs, data).why_undefined("") == ("no-decisions", NO_DECISIONS)
    assert FalsePositiveRate(outcome="refused").measure(outputs, data).why_undefined("") is None
    assert Precision().measure(outputs, data).why_undefined("") == ("no-decisions", NO_DECISIONS)
    assert DecisionInstability().measure(outputs, data).why_undefined("") is not None


def test_refusals_of_a_system_without_decisions_are_no_rate_of_flags() -> None:
    """Only refusals would count as answers, so that the rate would be 100%."""
    outcomes = np.full(N, SCORED, dtype=np.int8)
    outcomes[:30] = Outcome.REFUSED
    some = Decisions(np.arange(N), outcomes, np.where(outcomes == SCORED, scores(), np.nan))
    data = Dataset(texts=texts())
    either = FalsePositiveRate(outcome="either").measure(some, data)
    assert either.why_undefined("") == ("no-decisions", NO_DECISIONS)
    refused = FalsePositiveRate(outcome="refused").measure(some, data)
    assert refused.columns["value"].mean() == pytest.approx(0.5)


def write(
    folder: Path,
    *,
    threshold: float | None = None,
    engine: str = "memory",
    name: str = "scores only",
) -> Plan:
    words = texts()
    truth = {"id": words.ids, "text": words.texts.astype(str), "label": words.truth}
    pl.DataFrame(truth).write_parquet(folder / "texts.parquet")
    pl.DataFrame({"id": words.ids, "score": scores()}).write_parquet(folder / "scores.parquet")
    system: dict[str, Any] = {"type": "recorded", "path": str(folder / "scores.parquet")}
    system |= {} if threshold is None else {"threshold": threshold}
    metrics = ["suppression", "worst-suppression", "pooled-suppression", "false-positive-rate"]
    more: dict[str, Any] = {"engine": {"type": engine, "blocks": 2}} if engine != "memory" else {}
    metrics = metrics[:2] + metrics[3:] if engine != "memory" else metrics
    return Plan.from_dict(
        {
            "preset": "suppression",
            "options": {"scores": True} if engine == "memory" else {},
            "data": {"texts": str(folder / "texts.parquet")},
            "systems": {name: system},
            "metrics": [{"name": name} for name in metrics],
            "analyses": [],
            "statistics": {"replicates": 100},
            "expect": {"few flags": {"limit": "value <= 0.5", "where": RATE, "reason": "agreed"}},
            **more,
        }
    )


RATE = 'metric == "false-positive rate" and group == ""'


@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_an_audit_says_why_and_its_gate_is_not_met(engine: str, tmp_path: Path) -> None:
    notices: list[str] = []
    plan = write(tmp_path, engine=engine)
    result = Audit.from_plan(plan).run(tmp_path / "result", notice=notices.append)
    estimates = list(result.estimates)
    assert estimates
    assert {(e.value, e.reason_code, e.reason) for e in estimates} == {
        (None, "no-decisions", NO_DECISIONS)
    }
    (limit,) = Gate.of(plan).judge(estimates)
    assert limit.state == "undecided" and limit.why == f"undefined: {NO_DECISIONS}"
    if engine == "memory":
        assert any("60 are scores without decisions; to measure flags" in n for n in notices)
        assert any(e.key == "warning/no-decisions" for e in result.exclusions)
        # Beside a system that decides, the reason is the same, and the other system's numbers too.
        both = plan.model_copy(
            update={
                "systems": {**plan.systems, **write(tmp_path, threshold=0.75, name="b").systems}
            }
        )
        mixed = list(Audit.from_plan(both).run(tmp_path / "both").estimates)
        alone = [e for e in mixed if e.system == "scores only" and "b" not in (e.system, e.against)]
        assert len(alone) > len(estimates)
        assert {(e.value, e.reason_code, e.reason) for e in alone} == {
            (None, "no-decisions", NO_DECISIONS)
        }
        assert any(e.value is not None for e in mixed if e.system == "b")
    plan = write(tmp_path, engine=engine, threshold=0.75)
    flagged = Audit.from_plan(plan).run(tmp_path / "flagged")
    (rate,) = flagged.select(key="false-positive-rate", kind="level", group="")
    # 12 of 60 texts deserve a flag; of the 15 scores from 45/60 on, 12 are of acceptable texts.
    assert rate.value == pytest.approx(12 / 48)
    (limit,) = Gate.of(plan).judge(list(flagged.estimates))
    assert limit.state == "met"


def test_a_plan_of_perspective_that_relied_on_the_old_default_runs(tmp_path: Path) -> None:
    """It runs with a notice and the line to add; with that line its flags are those of before."""
    (tmp_path / "texts.csv").write_text(
        "text,label\n" + "".join(f"{w} {i},0\n" for i in range(6) for w in ("fine", "zzz"))
    )

    def run(more: str, name: str) -> tuple[Result, list[str]]:
        (tmp_path / "plan.toml").write_text(
            '[data]\ntexts = "texts.csv"\n[systems.toxic]\ntype = "perspective"\n'
            f'base_url = "{stub.url}"\nkey_env = ""\ncache = "a.sqlite"\n{more}'
            "run = { per_second = 1000 }\n"
            '[[metrics]]\nname = "false-positive-rate"\n[[metrics]]\nname = "median-score"\n'
        )
        notices: list[str] = []
        audit = Audit.from_plan(Plan.load(tmp_path / "plan.toml"))
        return audit.run(tmp_path / name, notice=notices.append), notices

    with stub_service() as stub:
        result, notices = run("", "bare")
        again, _ = run("threshold = 0.7\n", "with")
        assert sum(stub.asked.values()) == 12  # the threshold is applied to the stored replies
    line = "add threshold = 0.7 under [systems.toxic] to flag as earlier versions of ombud did"
    assert any(line in n for n in notices)
    (rate,) = result.select(key="false-positive-rate", kind="level", group="")
    assert rate.value is None and rate.reason_code == "no-decisions"
    (median,) = result.select(key="median-score", kind="level", group="")
    assert median.value is not None
    (rate,) = again.select(key="false-positive-rate", kind="level", group="")
    assert rate.value == pytest.approx(0.5)
    stored = Result.load(tmp_path / "bare")
    gate = Gate({"few": ExpectPlan(limit="value <= 0.5", where=RATE, reason="agreed")})
    assert [one.state for one in gate.judge(list(stored.estimates))] == ["undecided"]


def test_a_moderator_decides_all_texts_or_none() -> None:
    outcomes = np.full(N, SCORED, dtype=np.int8)
    outcomes[0] = Outcome.FLAGGED
    with pytest.raises(AuditedSystemError, match="decided some texts and only scored others"):
        read_decisions("odd", Decisions(np.arange(N), outcomes, scores()), texts())


def test_changes_need_decisions_of_the_old_moderator_and_scores_of_the_new_one() -> None:
    from ombud.audits.analysis import Context
    from ombud.metrics.engine.estimator import Settings

    old = Decisions(np.arange(N), (np.arange(N) % 4 == 0).astype(np.int8), scores())
    context = Context(
        Dataset(texts=texts()), {"old": old, "new": scored()}, Settings(replicates=50)
    )
    found = Migration(old="old", new="new").analyze(context)
    (fact,) = found.tables["migration"].to_dicts()
    assert fact["old_false_positive_rate"] == pytest.approx(fact["new_false_positive_rate"])
    with pytest.raises(PlanError, match="new: the system states scores and no decisions"):
        Migration(old="old", new="new", match="none").analyze(context)
    with pytest.raises(PlanError, match="new: the system states scores and no decisions"):
        Migration(old="new", new="old").analyze(context)
    drift = Drift(before="old", after="new").analyze(context).estimates
    assert [(e.value, e.reason_code) for e in drift] == [(None, "no-decisions")]


class _Scores(Moderator):
    name = "own scores"
    former_threshold = 0.5

    def moderate(self, texts: Texts, *, progress: Any = None) -> Decisions:
        return scored()


def test_a_recorded_file_of_outcomes_keeps_scores_without_decisions(tmp_path: Path) -> None:
    """Outputs are stored as a table and read again: a score does not become a decision."""
    path = tmp_path / "again.parquet"
    _Scores().moderate(texts()).to_frame().write_parquet(path)
    past = RecordedDecisions(path).moderate(texts())
    assert past.lacks_decisions and not past.decided.any()
    assert np.allclose(past.scores, scores())
