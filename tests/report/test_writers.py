"""The same content as HTML, Markdown, LaTeX, JSON and in a terminal; hostile text is inert."""

from __future__ import annotations

import base64
import io
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.audits.result import Result
from ombud.data.exclusions import Exclusion
from ombud.errors import PlanError
from ombud.report import FORMATS, Report, Section, summary_table
from ombud.report import html as html_page
from ombud.report.blocks import Bullets, Note, paragraph
from ombud.report.html import script_json, to_html
from ombud.report.latex import escape_latex
from ombud.report.markdown import escape_markdown, to_markdown

VOID = {"meta", "img", "br", "link", "input"}


class Page(HTMLParser):
    """What a browser would see: elements, attributes and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {k: v or "" for k, v in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self.open[-1] if self.open else ""
        (self.scripts if where == "script" else self.text).append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page(ordinary: Result) -> Page:
    return Page(Report(ordinary).html())


@pytest.fixture(scope="module")
def appendix(ordinary: Result) -> Page:
    return Page(Report(ordinary).appendix_html())


@pytest.fixture(scope="module")
def hostile_html(hostile: Result) -> str:
    return Report(hostile).html()


def test_sections_stand_in_order(ordinary: Result) -> None:
    assert [section.title for section in Report(ordinary).sections] == [
        "Further comparisons",
        "In pictures",
        "What was asked",
        "How to read this report",
        "What was left out",
        "Limits",
    ]
    assert [section.title for section in Report(ordinary).appendix] == [
        "The numbers",
        "What was measured",
        "Every comparison in words",
        "What could have been found",
        "By group",
        "Systems compared",
        "Limits of each measure",
        "Where the numbers come from",
    ]


def test_every_element_is_closed_and_ids_are_unique(page: Page) -> None:
    assert page.open == []
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_links_lead_into_the_page_or_its_appendix(page: Page, appendix: Page) -> None:
    ids = {a["id"] for _, a in page.elements if "id" in a}
    links = [a["href"] for a in page.all("a")]
    assert links
    assert {link[1:] for link in links if link.startswith("#")} <= ids
    others = [link.partition("#") for link in links if not link.startswith("#")]
    assert {file for file, _, _ in others} == {"appendix.html"}
    there = {a["id"] for _, a in appendix.elements if "id" in a}
    assert {anchor for _, _, anchor in others if anchor} <= there


def test_headings_never_skip_a_level(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def test_tables_and_pictures_are_described(page: Page) -> None:
    tags = [tag for tag, _ in page.elements]
    assert tags.count("caption") == tags.count("table") == 2
    assert all(a.get("scope") in {"col", "row"} for a in page.all("th"))
    assert all(len(a["alt"]) > 40 for a in page.all("img"))
    assert len(page.all("img")) == len(page.all("figure")) == 5
    assert {"header", "nav", "main", "footer"} <= set(tags)
    assert page.all("html") == [{"lang": "en", "dir": "ltr"}]
    assert page.all("a")[0] == {"class": "skip", "href": "#content"}


def test_nothing_is_loaded(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert attributes.get("src", "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attributes)
    style = "".join(page.text)
    assert "@import" not in style
    assert "url(" not in style


def test_policy_names_exactly_the_embedded_scripts(page: Page) -> None:
    policy = next(
        a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    script_part = next(p for p in policy.split(";") if "script-src" in p)
    assert "unsafe-inline" not in script_part
    running = [
        text
        for text, attributes in zip(page.scripts, page.all("script"), strict=True)
        if attributes.get("type") != "application/json"
    ]
    hashes = {base64.b64encode(sha256(s.encode()).digest()).decode() for s in running}
    assert len(hashes) == 2
    assert set(re.findall(r"'sha256-([^']+)'", script_part)) == hashes


def test_values_in_the_pages_are_those_of_the_result(page: Page, appendix: Page) -> None:
    text = " ".join("".join(page.text).split())
    assert "1,204" in text
    assert "no list was recommended" in text
    assert "3 labels of a refused kind" in text
    assert "ab" * 32 in "".join(appendix.scripts)
    assert "why; a gap may come from popularity" in " ".join("".join(appendix.text).split())


def test_the_appendix_holds_every_number(ordinary: Result, appendix: Page) -> None:
    data = json.loads(appendix.scripts[0])
    table = {column["title"]: column for column in data["every-number"]["columns"]}
    assert len(table["Value"]["value"]) == len(ordinary.estimates)
    for title, wanted in (("Value", "value"), ("n", "n")):
        for shown, e in zip(table[title]["value"], ordinary.estimates, strict=True):
            value = getattr(e, wanted)
            assert shown == pytest.approx(value, rel=1e-5) if value is not None else shown is None
    measures = table["Measure"]["text"]
    names = [measures["of"][place] for place in measures["at"]]
    assert names == [e.metric for e in ordinary.estimates]


def test_no_p_is_smaller_than_the_replicates_can_tell(ordinary: Result) -> None:
    tiny = ordinary.estimates[1].replace(p_value=7e-267, p_adjusted=0.0, correction="holm over 9")
    result = replace(ordinary, estimates=(*ordinary.estimates, tiny))
    page = Page(Report(result).appendix_html())
    table = {c["title"]: c for c in json.loads(page.scripts[0])["every-number"]["columns"]}
    for title in ("p, not corrected", "p, corrected"):
        known = [p for p in table[title]["value"] if p is not None]
        assert min(known) == pytest.approx(1 / 2001, rel=1e-4)
        assert table[title]["text"]["of"][table[title]["text"]["at"][-1]] == "<0.0005"


def test_a_table_of_the_report_is_cut_and_whole_in_the_appendix(ordinary: Result) -> None:
    many = tuple(Exclusion(f"step {i}", "rows", i, "why", 100) for i in range(40))
    report = Report(replace(ordinary, exclusions=many))
    found = Page(report.html(interactive=False))
    text = " ".join("".join(found.text).split())
    assert "10 of 40 rows are shown; the appendix has them all." in text
    assert "step 39" in text and "step 0 " not in text  # the largest shares come first
    data = json.loads(Page(report.appendix_html()).scripts[0])
    assert len(data["left-out-table"]["columns"][0]["text"]["at"]) == 40


def test_without_scripts(ordinary: Result) -> None:
    html = Report(ordinary).html(interactive=False)
    found = Page(html)
    assert found.all("script") == []
    assert any("script-src 'none'" in a.get("content", "") for a in found.all("meta"))
    assert len(found.all("img")) == 5


def test_hostile_text_makes_no_element(hostile_html: str, page: Page) -> None:
    found = Page(hostile_html)
    assert found.open == []
    assert {tag for tag, _ in found.elements} <= {tag for tag, _ in page.elements} | {"b"} - {"b"}
    assert len(found.all("script")) == 3
    assert len(found.all("title")) == 1
    assert not any(n.startswith("on") for _, a in found.elements for n in a)
    assert all(a["src"].startswith("data:image/svg+xml;base64,") for a in found.all("img"))
    assert not any("javascript:" in a.get("href", "") for a in found.all("a"))
    assert "</script><script>document.title='ran'</script>" in "".join(found.text)


def test_hostile_text_makes_no_element_of_the_appendix(hostile: Result, appendix: Page) -> None:
    found = Page(Report(hostile).appendix_html())
    assert found.open == []
    assert {tag for tag, _ in found.elements} == {tag for tag, _ in appendix.elements}
    assert len(found.all("script")) == 2
    assert not any(n.startswith("on") for _, a in found.elements for n in a)
    hashes = re.findall(r"'sha256-([^']+)'", found.all("meta")[1]["content"])
    assert hashes == [base64.b64encode(sha256(found.scripts[1].encode()).digest()).decode()]


def test_hidden_characters_are_visible_everywhere(hostile: Result, hostile_html: str) -> None:
    report = Report(hostile)
    pages = (hostile_html, report.appendix_html())
    for text in (*pages, report.markdown(), report.latex(), report.json()):
        for character in "\u202e\u2066\u2069\u200b\ufeff\x1b\x07\x9b\0\u2028":
            assert character not in text, f"U+{ord(character):04X}"
    for figure in report.figures().values():
        assert not re.search(
            "[\u202e\u2066\u200b\ufeff\x1b\0]", json.dumps(figure, ensure_ascii=False)
        )


@given(st.text())
def test_script_json_cannot_leave_its_element(text: str) -> None:
    made = script_json({"a": text})
    assert not set(made) & set("<>&\u2028\u2029")
    assert json.loads(made) == {"a": text}


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<b>", r"\<b\>"),
        ("[x](javascript:y)", r"\[x\](javascript:y)"),
        ("a|b", r"a\|b"),
        ("https://x.org", r"https\://x.org"),
        ("www.x.org", r"www\.x.org"),
        ("a@b.c", r"a\@b.c"),
        ("0.25 [0.20, −0.31]", "0.25 [0.20, −0.31]"),
        ("[1, 2](x)", r"\[1, 2\](x)"),
    ],
)
def test_markdown_escapes(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


def test_markdown_has_sections_and_whole_tables(hostile: Result) -> None:
    lines = Report(hostile).markdown(pictures="figures").splitlines()
    assert lines[0].startswith("# Audit \\<")
    assert sum(line.startswith("## ") for line in lines) == 15
    widths = set()
    for place, line in enumerate(lines):
        if line.startswith("| ---") or line.startswith("| :--"):
            columns = line.count("|")
            widths.add(columns)
            for row in lines[place - 1 : place + 3]:
                if row.startswith("|"):
                    assert len(re.findall(r"(?<!\\)\|", row)) == columns
    assert widths
    assert any(re.match(r"!\[.*\]\(figures/[a-z0-9-]+\.svg\)$", line) for line in lines)


def test_latex_rows_fit_and_commands_are_inert(hostile: Result) -> None:
    text = Report(hostile).latex()
    assert "\\input{" not in text
    assert text.count("\\begin{") == text.count("\\end{")
    bodies = re.findall(
        r"(?:\\midrule|\\endfoot)\n((?!\\endhead).*?)(?:\\bottomrule|\\end\{longtable)",
        text,
        flags=re.DOTALL,
    )
    assert len(bodies) == text.count("\\caption{")
    for body in bodies:
        rows = body.removesuffix(" \\\\\n").split(" \\\\\n")
        assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1
    assert escape_latex("▲ +0.05 [−0.1, ∞]") == (r"$\blacktriangle$ +0.05 {[}$-$0.1, $\infty${]}")


def test_json_holds_every_estimate_with_its_reading(ordinary: Result) -> None:
    content: dict[str, Any] = json.loads(Report(ordinary).json())
    assert len(content["estimates"]) == len(ordinary.estimates)
    assert all(e["reading"] for e in content["estimates"])
    assert content["headline"] == content["questions"][0]["findings"][0]["said"]
    assert len(content["questions"][0]["findings"]) > 3
    assert {a["about"] for a in content["answers"]} == {
        "overall",
        "group contrast",
        "system contrast",
    }


def test_terminal_table_is_plain_text(hostile: Result) -> None:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(summary_table(hostile, rows=3))
    text = out.getvalue()
    assert "[bold red]rich[/] markup" in text
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\x9b\u202e]", text)
    assert "16 labels with smaller values are in the report." in " ".join(text.split())


def test_terminal_table_shows_values(ordinary: Result) -> None:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=200, color_system=None).print(summary_table(ordinary))
    assert "▲ +0.083 [0.060, 0.107]" in out.getvalue()
    assert "not defined: no user has an item whose label is known" in out.getvalue()


def test_save_by_ending_and_by_folder(moderator: Result, tmp_path: Path) -> None:
    report = Report(moderator)
    assert report.save(tmp_path / "a.json") == (tmp_path / "a.json",)
    assert report.save(tmp_path / "b.html") == (tmp_path / "b.html", tmp_path / "b-appendix.html")
    paths = report.save(tmp_path / "all", formats=[f for f in FORMATS if f != "pdf"])
    names = ["report.html", "appendix.html", "report.md", "report.tex", "report.json", "report.csv"]
    assert [p.name for p in paths] == names
    assert all(p.stat().st_size > 100 for p in paths)
    pictures = re.findall(r"\]\((figures/[^)]+)\)", paths[2].read_text(encoding="utf-8"))
    assert pictures
    assert all((tmp_path / "all" / picture).exists() for picture in pictures)
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("name", ["x.odt", "x.docx"])
def test_unknown_endings_are_refused(moderator: Result, tmp_path: Path, name: str) -> None:
    with pytest.raises(PlanError, match="expected a folder, or one of .html"):
        Report(moderator).save(tmp_path / name)


def test_unknown_formats_are_refused(moderator: Result, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no format is called 'odt'; known: html"):
        Report(moderator).save(tmp_path, formats=("odt",))
    with pytest.raises(PlanError, match="no picture format is called 'gif'"):
        Report(moderator).save_figures(tmp_path, formats=("gif",))


def test_save_figures(moderator: Result, tmp_path: Path) -> None:
    paths = Report(moderator).save_figures(tmp_path, formats=("svg", "png", "vl.json"))
    names = Report(moderator).figures()
    assert len(paths) == 3 * len(names)
    assert {p.name.split(".", 1)[1] for p in paths} == {"svg", "png", "vl.json"}


def test_a_section_of_a_preset_plugs_in(moderator: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    known = registry._things["section"]
    monkeypatch.setitem(registry._things, "section", dict(known))

    @registry.section("mine")
    def mine(result: Result) -> Section | None:
        if result.plan.preset != "mine":
            return None
        return Section("Of my preset", (paragraph("Hello."),), order=250)

    assert "Of my preset" not in [s.title for s in Report(moderator).sections]
    plan = moderator.plan.model_copy(update={"preset": "mine"})
    titles = [s.title for s in Report(replace(moderator, plan=plan)).sections]
    assert titles[0] == "Of my preset"


def test_notes_are_written_in_both_forms() -> None:
    note = Note((paragraph("Careful."), Bullets((paragraph("one"),))), "Read this")
    section = Section("S", (note,), name="s")
    assert "> **Read this**\n>\n> Careful.\n>\n> - one" in to_markdown("T", [section])
    html = to_html(html_page.Page("T", [section]))
    assert '<aside class="note"><p><strong>Read this</strong></p>' in html
    assert "<script>" not in html


def test_a_report_is_a_pure_function(moderator: Result) -> None:
    assert Report(moderator).html() == Report(moderator).html()
    assert Report(moderator).json() == Report(moderator).json()


def test_colours_of_text_contrast_with_the_page() -> None:
    from importlib.resources import files

    css = (files("ombud.report") / "templates" / "style.css").read_text(encoding="utf-8")
    schemes = re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)[:2]
    for scheme in schemes:
        colour = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", scheme))
        pairs = [
            (name, ground) for name in ("text", "quiet", "link") for ground in ("page", "soft")
        ]
        pairs += [("above", "above-soft"), ("below", "below-soft")]
        for name, ground in pairs:
            assert _contrast(colour[name], colour[ground]) >= 4.5, (name, ground)


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
