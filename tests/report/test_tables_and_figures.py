"""Tables and figures hold every number they claim to hold."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ombud.audits.plan import Plan
from ombud.audits.result import MetricInfo, Result
from ombud.report import Report
from ombud.report.blocks import Table, tables_in
from ombud.report.charts import LEAST_RATIO, NAME_LENGTH
from ombud.report.display import shorten
from ombud.report.figures import MOST_ROWS, forest
from ombud.report.findings import EstimateSet, Kind, families
from ombud.report.format import estimate_text, shared_decimals
from ombud.report.images import to_png, to_svg
from ombud.report.sections.could_see import could_see, smallest_sentence
from ombud.report.tables import detail_table, wide_table
from ombud.report.themes import DARK, LIGHT
from ombud.stats.estimate import Estimate
from ombud.stats.power import smallest_effect


def table(result: Result, name: str) -> Table:
    report = Report(result)
    return next(t for t in tables_in((*report.sections, *report.appendix)) if t.name == name)


def family(result: Result, title: str, kind: Kind) -> EstimateSet | None:
    some = (f for f in families(result) if f.metric.title == title and f.kind == kind)
    return next(some, None)


def test_wide_table_has_each_label_and_system(ordinary: Result) -> None:
    found = family(ordinary, "share gap@10", "overall")
    assert found is not None
    made = wide_table(found, name="x", caption="c")
    assert [c.title for c in made.columns] == ["Label", *ordinary.systems]
    assert [row[0].text for row in made.rows] == list(found.labels)
    texts = [cell.text for row in made.rows for cell in row[1:]]
    assert texts.count("not defined (a)") == 2
    assert made.notes == ("(a) Not defined: no user has an item whose label is known.",)
    assert "400 users" in made.caption
    column = [e for e in found.estimates if e.system == ordinary.systems[2]]
    places = shared_decimals(column)
    for row, e in zip(made.rows, column, strict=True):
        assert row[3].text.endswith(estimate_text(e, places, signed=True))


def test_marks_and_tones_follow_the_reading(ordinary: Result) -> None:
    cells = [c for row in table(ordinary, "share-gap-10-overall-table").rows for c in row]
    assert {c.tone for c in cells if c.text.startswith("▲")} == {"above"}
    assert {c.tone for c in cells if c.text.startswith("▼")} == {"below"}
    assert {c.tone for c in cells if c.text.startswith(("△", "▽"))} == {"maybe"}
    assert {c.tone for c in cells if c.text.startswith("not defined")} == {"undefined"}


def test_group_tables_give_level_gap_and_n(ordinary: Result) -> None:
    made = table(ordinary, "share-gap-10-groups-table-1")
    assert [c.title for c in made.columns] == [
        "Label",
        "Group",
        "share gap@10",
        "against the rest",
        "n",
    ]
    assert len(made.rows) == 12 * 5
    assert "everyone else whose group is known" in made.caption


def test_long_tables_keep_what_stands_and_say_what_is_missing(large: Result) -> None:
    contrasts = family(large, "share gap@10", "group contrast")
    assert contrasts is not None
    made = detail_table(contrasts, name="x", caption="c", most=300)
    assert len(made.rows) == 300
    assert "Shown: 300 of 4,110 rows" in made.caption
    shown = sum(row[3].tone in {"above", "below"} for row in made.rows)
    from ombud.report.findings import reading

    assert shown == sum(reading(e) in {"above", "below"} for e in contrasts.estimates)


def test_a_row_must_fit_its_columns() -> None:
    from ombud.report.blocks import Cell, Column

    with pytest.raises(ValueError, match="a row has 1 cells; 2 expected"):
        Table("x", (Column("a"), Column("b")), ((Cell("1"),),), "c")


@pytest.mark.parametrize("name", ["ordinary", "hostile", "moderator"])
def test_specifications_are_valid_vegalite(name: str, request: pytest.FixtureRequest) -> None:
    import altair

    figures = Report(request.getfixturevalue(name)).figures()
    assert figures
    for spec in figures.values():
        json.dumps(spec, allow_nan=False)
        altair.Root.validate(spec)


def test_forest_draws_what_the_result_holds(ordinary: Result) -> None:
    found = family(ordinary, "share gap@10", "overall")
    assert found is not None
    figure = forest(found, name="x", table="t")
    assert figure is not None
    data: list[dict[str, Any]] = figure.spec["data"]["values"]
    rows = {d["row"] for d in data}
    some = [e for e in found.estimates if shorten(e.label, NAME_LENGTH) in rows]
    assert len(data) == len(some) == 3 * 10
    drawn = {round(d["value"], 4) for d in data if "value" in d}
    assert drawn == {round(e.value, 4) for e in some if e.value is not None}
    undefined = [d for d in data if "why" in d]
    assert len(undefined) == 1
    assert all("value" not in d and "low" not in d for d in undefined)
    assert "1 number is not defined" in figure.caption
    assert "Highest: factor model, flashing lights, 0.083 [0.060, 0.107]." in figure.alt


def test_many_labels_are_cut_and_said(large: Result) -> None:
    found = family(large, "share gap@10", "overall")
    assert found is not None
    figure = forest(found, name="x", table="t")
    assert figure is not None
    rows = {d["row"] for d in figure.spec["data"]["values"]}
    assert len(rows) == 10 <= MOST_ROWS
    said = "Shown: the 10 clearest of 137 labels"
    assert f"{said}; 127 are not shown." in figure.caption


def test_many_systems_are_cut_and_said(ordinary: Result) -> None:
    from dataclasses import replace

    found = next(f for f in families(ordinary) if f.kind == "overall")
    many = tuple(e.replace(system=f"s{i}") for i in range(9) for e in found.estimates[:12])
    figure = forest(replace(found, estimates=many), name="x", table="t")
    assert figure is not None
    assert "Shown: the first 7 of 9 systems; 2 are not shown." in figure.caption


def test_nothing_defined_draws_nothing(ordinary: Result) -> None:
    from dataclasses import replace

    found = next(f for f in families(ordinary) if f.kind == "overall")
    none = tuple(e for e in found.estimates if e.value is None)
    assert forest(replace(found, estimates=none), name="x", table="t") is None


def test_open_ends_are_drawn_to_the_edge(ordinary: Result) -> None:
    from dataclasses import replace

    found = next(f for f in families(ordinary) if f.kind == "overall")
    base = found.estimates[1]
    assert base.value is not None
    open_end = base.replace(interval=(base.value - 1, float("inf")))
    figure = forest(replace(found, estimates=(open_end,)), name="x", table="t")
    assert figure is not None
    (datum,) = figure.spec["data"]["values"]
    assert datum["high"] == datum["value"]
    assert "∞" in datum["text"]


def test_static_pictures(ordinary: Result) -> None:
    spec = Report(ordinary).figures()["share-gap-10-overall"]
    svg = to_svg(spec)
    assert svg.startswith("<svg")
    assert "flashing lights" in svg
    assert svg.count(">not defined<") == 1
    assert to_png(spec, scale=1).startswith(b"\x89PNG")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("theme", "page"), [(LIGHT, "#ffffff"), (DARK, "#14171c")])
def test_marks_contrast_with_the_page(theme: dict[str, Any], page: str) -> None:
    for colour in theme["range"]["category"]:
        assert contrast(colour, page) >= 3, colour
    assert contrast(theme["axis"]["labelColor"], page) >= 7
    assert contrast(theme["text"]["color"], page) >= 4.5


def test_ratios_stand_on_a_logarithmic_axis(ordinary: Result) -> None:
    from dataclasses import replace

    found = next(f for f in families(ordinary) if f.kind == "overall")
    base = found.estimates[1]
    some = [
        base.replace(value=v, interval=(v / 2, v * 2), null=1.0, kind="ratio", label=str(v))
        for v in (0.01, 0.5, 4.0)
    ]
    figure = forest(replace(found, estimates=tuple(some)), name="x", table="t")
    assert figure is not None
    assert '"type": "log"' in json.dumps(figure.spec)
    ends = [d[k] for d in figure.spec["data"]["values"] for k in ("low", "value", "high")]
    assert min(ends) == LEAST_RATIO
    assert "The axis is logarithmic; ratios below 0.1 stand at its edge." in figure.caption
    plain = forest(found, name="x", table="t")
    assert plain is not None and '"log"' not in json.dumps(plain.spec)


def test_tooltips_name_which_p_they_show(ordinary: Result) -> None:
    found = family(ordinary, "share gap@10", "overall")
    assert found is not None
    figure = forest(found, name="x", table="t")
    text = json.dumps(figure.spec if figure is not None else {})
    assert '"title": "p, not corrected"' in text
    assert '"title": "p, corrected"' in text
    assert '"title": "p"' not in text


@pytest.mark.parametrize("about", ["label", "system", "group"])
def test_names_that_every_object_of_javascript_has_are_drawn(about: str) -> None:
    """Vega stumbles over them in an expression, and the report ended there."""
    names = ("constructor", "toString", "valueOf", "__proto__", "hasOwnProperty", "ordinary")
    other = {"kind": "gap", "against": "the rest"} if about == "group" else {}
    estimates = [
        Estimate(
            metric="m", value=0.2, interval=(0.1, 0.3), method="x", n=99, null=0.0, p_value=0.01,
            **({"system": "s", "label": "l"} | other | {about: name}),  # type: ignore[arg-type]
        )
        for name in names
    ]  # fmt: skip
    info = MetricInfo({"name": "share-gap"}, "m", null=0.0)
    figures = Report(Result(Plan(), tuple(estimates), metrics=(info,))).figures()
    pictures = [to_svg(spec) for spec in figures.values()]
    assert any(all(f">{name}<" in picture for name in names) for picture in pictures)
    assert '"sort": ["' not in json.dumps(list(figures.values()))


def test_what_could_have_been_found_is_told_from_the_intervals(ordinary: Result) -> None:
    section = could_see(ordinary)
    assert section is not None and section.place == "appendix"
    (table,) = tables_in((section,))
    row = next(r for r in table.rows if (r[0].text, r[1].text) == ("share gap@10", "everyone"))
    found = family(ordinary, "share gap@10", "overall")
    assert found is not None
    effects = [far for e in found.estimates if (far := smallest_effect(e)) is not None]
    # The standard error of these is 0.012: (1.96 + 0.8416) times it.
    assert row[4].value == pytest.approx(2.8016 * 0.012, rel=1e-3)
    assert row[2].value == len(effects)
    said = smallest_sentence(ordinary)
    assert said is not None and "a difference of 0.034 or more with a chance of 80%" in said.plain
    assert "would have shown a difference of 0.034 or more" in Report(ordinary).markdown()


def test_without_tests_nothing_is_said_of_what_could_be_found(ordinary: Result) -> None:
    levels = tuple(e.replace(null=None, p_value=None) for e in ordinary.estimates[:3])
    bare = replace(ordinary, estimates=levels)
    assert could_see(bare) is None and smallest_sentence(bare) is None
