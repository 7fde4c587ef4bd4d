"""What a report shows of its plan."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from ombud.audits import Audit, Plan, Result
from ombud.report import Report
from ombud.report.packing import pack
from ombud.report.redaction import MOST_EXAMPLES, masked_texts, shown_plan
from ombud.taxonomy.dictionary import load_dictionary

TERMS = ["quixotry", "zyzzyva"]


def plan_of(terms: list[str]) -> Plan:
    return Plan.from_dict(
        {
            "data": {"texts": "/home/me/texts.csv", "test": "/home/me/held-out.csv"},
            "systems": {
                "list": {"type": "keyword", "terms": terms},
                "service": {"type": "openai-moderation", "cache": "/home/me/answers.sqlite"},
            },
            "metrics": [{"name": "flag-rate"}],
        },
        "plan",
    )


def test_terms_are_counted_and_hashed_wherever_they_stand() -> None:
    shown = shown_plan(plan_of(TERMS))
    words = shown["systems"]["list"]["terms"]
    assert words.startswith("2 terms, SHA-256 ")
    assert not any(term in str(shown) for term in TERMS)
    again = shown_plan(plan_of(TERMS[::-1]))["systems"]["list"]["terms"]
    other = shown_plan(plan_of([*TERMS, "x"]))["systems"]["list"]["terms"]
    assert again == words and other != words
    nested = Plan(systems={"s": {"type": "t", "of": [{"terms": TERMS}]}})
    assert "zyzzyva" not in str(shown_plan(nested))


def test_no_folder_of_the_machine_is_shown() -> None:
    shown = shown_plan(plan_of(TERMS))
    assert "/home" not in str(shown)
    assert shown["data"]["test"] == "held-out.csv"
    assert shown["systems"]["service"]["cache"] == "answers.sqlite"


def test_a_report_does_not_print_terms_but_its_run_keeps_them(tmp_path: Path) -> None:
    texts = pl.DataFrame({"text": ["a zyzzyv", "b", "c"], "label": [0, 0, 1]})
    texts.write_csv(tmp_path / "texts.csv")
    (tmp_path / "plan.toml").write_text(
        f"""
[data]
texts = "texts.csv"
[systems.list]
type = "keyword"
terms = {TERMS}
[[metrics]]
name = "false-positive-rate"
[statistics]
replicates = 100
"""
    )
    result = Audit.from_plan(Plan.load(tmp_path / "plan.toml")).run(tmp_path / "result")
    for ending in ("html", "md", "json"):
        for path in Report(result).save(tmp_path / f"report.{ending}"):
            text = path.read_text(encoding="utf-8")
            assert not any(term in text for term in TERMS), path.name
    assert all(term in (tmp_path / "result" / "plan.toml").read_text() for term in TERMS)


# Examples behind a finding.

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """A moderator that flags every second acceptable text about women; texts are stored."""
    folder = tmp_path_factory.mktemp("flagged")
    terms = load_dictionary("delicate@1")
    harsh = next(t.text for t in terms.terms if t.severity == terms.scale[0] and t.text.isalpha())
    about = ["women" if i % 2 else "the sea" for i in range(400)]
    texts = pl.DataFrame(
        {
            "id": [f"t{i}" for i in range(400)],
            "text": [f"{harsh} {EVIL} {i} regarding {k}" for i, k in enumerate(about)],
            "label": [False] * 400,
        }
    )
    (folder / "result" / "inputs").mkdir(parents=True)
    texts.write_csv(folder / "texts.csv")
    outcome = ["flagged" if i % 4 == 1 or i % 40 == 0 else "allowed" for i in range(400)]
    pl.DataFrame({"id": texts["id"], "outcome": outcome}).write_csv(folder / "now.csv")
    plan = {
        "preset": "suppression",
        "data": {"texts": str(folder / "texts.csv")},
        "systems": {"now": {"type": "recorded", "path": str(folder / "now.csv")}},
        "options": {"scores": False, "terms": "terms-identity@1"},
        "statistics": {"replicates": 100},
    }
    Audit.from_plan(Plan.from_dict(plan)).run(folder / "run")
    (folder / "run" / "inputs").mkdir()
    texts.write_parquet(folder / "run" / "inputs" / "texts.parquet")
    return Result.load(folder / "run")


def test_a_finding_leads_to_a_few_masked_texts(flagged: Result) -> None:
    report = Report(flagged)
    (finding,) = report.verdicts[0].findings
    assert len(finding.examples) == MOST_EXAMPLES
    assert all("regarding women" in text and "**" in text for text in finding.examples)
    assert masked_texts(finding.examples) == list(finding.examples)
    html = report.html()
    assert "5 examples behind this finding" in html
    assert EVIL not in html and "&lt;img src=x" in html
    assert "regarding women" not in report.markdown() and "regarding women" not in report.json()


def test_public_reports_and_packs_show_no_examples(flagged: Result, tmp_path: Path) -> None:
    assert "regarding women" not in Report(flagged, public=True).html()
    import zipfile

    with zipfile.ZipFile(pack(flagged, tmp_path / "a.zip", redact="none")) as archive:
        assert b"regarding women" not in archive.read("report.html")


def test_users_are_numbers(tmp_path: Path) -> None:
    from ombud.metrics import ShareGap
    from ombud.worlds import small_world

    world = small_world(seed=1)
    Audit(world.dataset, world.recommenders(), [ShareGap(k=10)]).run(tmp_path / "run")
    report = Report(Result.load(tmp_path / "run"))
    shown = [text for f in report.verdicts[0].findings for text in f.examples]
    assert shown and all(text.startswith("User ") for text in shown)
    assert not any(str(user) in report.html() for user in world.interactions.users.ids)
