"""What a reader sees of a delicate-text audit: the verdict, its words, charts and warnings."""

from __future__ import annotations

import polars as pl
import pytest

from ombud.audits import MetricInfo, Plan, Result
from ombud.audits.audit import in_families
from ombud.report import Report
from ombud.report.model import Chart, Prose, Table, plain
from ombud.report.page import build_page
from ombud.report.verdict import declared_families, verdicts_of
from ombud.stats.estimate import Estimate
from ombud.stats.proportions import clustered_proportion, proportion

SYSTEMS = {
    "model": {"type": "detector", "path": "own"},
    "terms": {"type": "keyword", "dictionary": "delicate@1"},
}
RECALL = MetricInfo({"name": "detection-recall"}, "recall", key="detection-recall")


def gap(system: str, group: str, value: float, p: float, misses: int = 40) -> Estimate:
    return Estimate(
        metric="recall", key="detection-recall", kind="gap", system=system, group=group,
        against="texts outside the group", value=value, interval=(value - 0.05, value + 0.05),
        method="BCa", n=60, unit="text", null=0.0, p_value=p, events=misses,
        details={"level": 0.8 + value, "other_level": 0.8},
    )  # fmt: skip


def result(*estimates: Estimate, tables: dict[str, pl.DataFrame] | None = None) -> Result:
    plan = Plan(preset="delicate", systems=SYSTEMS)
    found = Result(plan, estimates, (RECALL,), tables=tables or {})
    return in_families(found, declared_families(found))


def blocks(found: Result, kind: type) -> list:
    made = build_page(found).sections
    return [b for s in made for b in s.blocks if isinstance(b, kind)]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("topic=addictions", "delicate texts about addictions"),
        ("length=up to 50 words", "delicate texts of up to 50 words"),
        ("source=forum", "delicate texts from forum"),
        ("source=generative-ai", "delicate generative-AI texts"),
        ("topic=class-status-occupation", "class, social status, legal status and occupation"),
        ("risk=5", "delicate texts of risk 5"),
        ("severity=offensive", "delicate texts with terms rated offensive"),
        ("language=de", "delicate texts in de"),
    ],
)
def test_a_group_is_named_by_what_its_texts_are(group: str, words: str) -> None:
    (verdict,) = verdicts_of(result(gap("model", group, -0.3, 0.0001)))
    assert verdict.answer == "yes"
    (finding,) = verdict.findings
    assert words in plain(finding.sentence)
    assert "50.0%" in plain(finding.sentence) and "80.0%" in plain(finding.sentence)


def test_more_recall_is_no_harm() -> None:
    (verdict,) = verdicts_of(result(gap("model", "topic=addictions", 0.15, 0.0001)))
    assert verdict.answer == "no clear evidence"


def test_pairs_that_are_true_by_definition_are_in_no_family() -> None:
    groups = ("topic=addictions", "topic=no term", "explicit=a term", "length=up to 50 words")
    found = result(*(gap(s, g, -0.3, 0.001) for s in SYSTEMS for g in groups))
    (verdict,) = verdicts_of(found)
    assert {(e.system, e.group) for e in verdict.family.estimates} == {
        ("model", "topic=addictions"),
        ("model", "length=up to 50 words"),
        ("terms", "length=up to 50 words"),
    }
    assert {e.correction for e in verdict.family.estimates} == {"benjamini-hochberg over 3"}
    assert sum(e.family == "delicate" for e in found.estimates) == 3
    # Nor are they shaded where findings are looked up.
    (table,) = (t for t in blocks(found, Table) if t.name == "detection-recall-contrast")
    shown = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert shown["addictions"][1] == "not measured" and set(shown) == {
        "addictions", "up to 50 words",
    }  # fmt: skip


def test_a_coarse_topic_and_the_topic_that_nearly_is_it_are_one_finding() -> None:
    def level(group: str, n: int) -> Estimate:
        return Estimate(
            metric="recall", key="detection-recall", system="model", group=group, value=0.5,
            interval=(0.4, 0.6), method="BCa", n=n, unit="text",
        )  # fmt: skip

    groups = ("coarse-topic=socioeconomic-politics", "topic=politics",
              "topic=class-status-occupation")  # fmt: skip
    gaps = [gap("model", g, -0.3, 0.0001).replace(kind="gap") for g in groups]
    for texts, findings in ((97, 2), (60, 3)):
        sizes = (100, texts, 100 - texts)
        levels = [level(g, n) for g, n in zip(groups, sizes, strict=True)]
        (verdict,) = verdicts_of(result(*gaps, *levels))
        assert len(verdict.findings) == findings
        told = [f for f in verdict.findings if f.estimate.group == groups[0]]
        assert [len(f.related) for f in told] == [3 - findings]
        assert plain(verdict.headline).count("politics") == (1 if findings == 2 else 2)


def test_a_coarse_topic_of_one_topic_is_not_counted_again() -> None:
    groups = ("topic=crime-violence", "coarse-topic=crime-violence", "topic=politics",
              "topic=class-status-occupation", "coarse-topic=socioeconomic-politics")  # fmt: skip
    found = result(*(gap("model", group, -0.3, 0.0001) for group in groups))
    (verdict,) = verdicts_of(found)
    assert [e.group for e in verdict.family.estimates] == [*groups[:1], *groups[2:]]
    assert verdict.family.tested == 4
    assert {e.correction for e in verdict.family.estimates} == {"benjamini-hochberg over 4"}
    sentences = [plain(f.sentence) for f in verdict.findings]
    sentences += [plain(f.sentence) for one in verdict.findings for f in one.related]
    assert len(sentences) == len(set(sentences)) == 4
    # Neither is a table longer for it: rows that read alike are one.
    (table,) = (t for t in blocks(found, Table) if t.name == "detection-recall-contrast")
    names = [row[0].text for row in table.rows]
    assert names.count("crime and violence") == 1 and len(names) == 4


def test_missed_texts_come_first_in_the_table() -> None:
    some = {"topic=sex": 0.6, "topic=politics": -0.2, "topic=age": -0.01, "topic=religion": -0.3}
    found = result(*(gap("model", g, v, 0.0001 if abs(v) > 0.1 else 0.8) for g, v in some.items()))
    (table,) = (t for t in blocks(found, Table) if t.name == "detection-recall-contrast")
    assert [row[0].text for row in table.rows] == ["religion", "politics", "sex", "age"]


def test_words_without_a_test_are_named_as_a_hint_if_they_are_far_off() -> None:
    row = {"system": "model", "error": "false negative", "p_adjusted": None, "topics": ""}
    missed = gap("model", "topic=addictions", -0.3, 0.0001)
    for words, said in (
        ({"night": 4.3, "86": 2.8}, "these words stand out: night."),
        ({"86": 2.8}, "No word clearly stands out among errors."),
    ):
        stored = pl.DataFrame(
            [row | {"term": term, "z": z} for term, z in words.items()],
            schema_overrides={"p_adjusted": pl.Float64},
        )
        shown = blocks(result(missed, tables={"error-terms": stored}), Prose)
        told = " ".join(plain(text) for block in shown for text in block.paragraphs)
        assert said in told and "this is a hint, not a test" in told


def test_topics_of_words_have_their_titles() -> None:
    row = {"system": "model", "error": "false negative", "term": "gun", "p_adjusted": 0.001}
    words = pl.DataFrame([row | {"topics": "crime-violence, politics"}, row | {"topics": ""}])
    missed = gap("model", "topic=addictions", -0.3, 0.0001)
    (table,) = (
        t for t in blocks(result(missed, tables={"error-terms": words}), Table)
        if t.name == "error-terms-table"
    )  # fmt: skip
    assert [row[-1].text for row in table.rows] == ["Crime and violence, Politics", ""]


def test_few_misses_are_an_early_sign() -> None:
    (verdict,) = verdicts_of(result(gap("model", "topic=addictions", -0.3, 0.0001, misses=7)))
    assert verdict.answer == "no clear evidence"
    assert len(verdict.early) == 1


@pytest.mark.parametrize(("flips", "answer"), [(3, "no clear evidence"), (30, "yes")])
def test_swaps_are_findings_from_ten_flips_on(flips: int, answer: str) -> None:
    swap = proportion(
        flips, 400, metric="decisions flipped", key="swap/flips-changed", system="model",
        label="gender", unit="text", method="exact", details={"flips": flips},
    )  # fmt: skip
    assert swap.events == flips
    (verdict,) = verdicts_of(result(swap))
    assert verdict.answer == answer
    if answer == "yes":
        assert "when only gender is swapped" in plain(verdict.findings[0].sentence)


def test_curves_and_the_map_are_drawn_from_stored_tables() -> None:
    curve = pl.DataFrame(
        {"system": ["model"] * 6, "threshold": [i / 6 for i in range(6)],
         "precision": [0.5 + i / 20 for i in range(6)], "recall": [1 - i / 6 for i in range(6)]}
    )  # fmt: skip
    countries = pl.DataFrame(
        {"system": ["model"] * 2, "iso3": ["DEU", "FRA"], "numeric": ["276", "250"],
         "name": ["Germany", "France"], "continent": ["Europe"] * 2, "region": ["Western"] * 2,
         "longitude": [10.0, 2.0], "latitude": [51.0, 47.0], "flagged": [1.0, 0.0],
         "score": [0.9, 0.2]}
    )  # fmt: skip
    spread = Estimate(
        metric="range of scores", key="country/score-range", value=0.7, interval=None,
        method="none: nothing is sampled", n=2, system="model", label="country",
    )  # fmt: skip
    tables = {"precision-recall": curve, "bias-country": countries}
    missed = gap("model", "topic=addictions", -0.3, 0.0001)
    charts = {c.name: c for c in blocks(result(missed, spread, tables=tables), Chart)}
    assert set(charts) == {"precision-recall", "country-map"}
    assert "Germany: 0.9" in charts["country-map"].panels[0]
    two = {**tables, "precision-recall": curve.head(3)}
    assert {c.name for c in blocks(result(missed, spread, tables=two), Chart)} == {"country-map"}


def test_texts_seen_in_training_are_warned_of() -> None:
    seen = pl.DataFrame(
        {"system": ["model"], "kind": ["ngrams"], "head": ["binary"], "rule": ["threshold"],
         "threshold": [0.5], "set on": ["valid"], "texts": [90], "trained on": [4],
         "calibrated on": [0]}
    )  # fmt: skip
    found = result(gap("model", "topic=addictions", -0.3, 0.0001), tables={"seen-texts": seen})
    said = [plain(t) for b in blocks(found, Prose) for t in b.paragraphs]
    assert "model was trained on 4 of the 90 audited texts, so its results are too good." in said


def test_published_rows_stand_beside_their_data_set() -> None:
    f1 = Estimate(
        metric="F1", key="detection-f1", value=0.6, interval=(0.5, 0.7), method="BCa", n=50,
        system="model", group="set=OLID A", unit="text",
    )  # fmt: skip
    info = MetricInfo({"name": "detection-f1"}, "F1", key="detection-f1")
    missed = gap("model", "topic=addictions", -0.3, 0.0001)
    found = Result(Plan(preset="delicate", systems=SYSTEMS), (missed, f1), (RECALL, info))
    (table,) = (t for t in blocks(found, Table) if t.name == "published-transfer")
    assert {row[0].text for row in table.rows} == {"OLID A"}


def test_fewer_found_has_the_color_of_findings_and_rare_texts_are_in_percent() -> None:
    rare = [
        proportion(30, 60, metric="precision", key="base-rates/precision", system="model", label=b)
        for b in ("0.1", "0.001")
    ]
    found = result(gap("model", "topic=addictions", -0.3, 0.0001), *rare)
    by_name = {table.name: table for table in blocks(found, Table)}
    assert [t.name for t in by_name.values() if t.less_is_harm] == ["detection-recall-contrast"]
    assert [row[0].text for row in by_name["base-rates"].rows] == ["10%", "0.10%"]
    assert by_name["base-rates"].columns[0].title == "Delicate texts"
    assert '<table data-name="detection-recall-contrast" class="less">' in Report(found).html()


def test_the_verdict_has_two_parts() -> None:
    swap = proportion(40, 60, metric="flips", key="swap/flips-changed", system="model",
                      label="gender", unit="text", events=40)  # fmt: skip
    pairs = clustered_proportion([30, 0, 10], [90, 90, 90], metric="pairs", system="model",
                                 key="country/pairs-changed", label="country")  # fmt: skip
    missed = gap("model", "topic=addictions", -0.3, 0.0001)
    one, two = verdicts_of(result(missed, swap, pairs))
    assert "finds fewer of the delicate texts about addictions" in plain(one.headline)
    assert (one.name, two.name) == ("delicate", "delicate-swaps")
    assert two.question == "Does swapping gender or country change decisions?"
    said = plain(two.headline)
    assert "gender" in said and "country" in said
    assert [e.key for e in two.family.estimates] == ["swap/flips-changed", "country/pairs-changed"]
