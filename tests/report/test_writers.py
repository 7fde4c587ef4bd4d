"""The same content as HTML, Markdown, LaTeX, JSON and in a terminal; hostile text is inert."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud import registry
from ombud.audits.result import Result
from ombud.errors import PlanError, RegistryError
from ombud.report import FORMATS, Report, charts, part
from ombud.report.context import Context
from ombud.report.html import script_json
from ombud.report.latex import escape_latex
from ombud.report.markdown import _escaped
from ombud.report.model import Chart, Table, Text
from ombud.report.show import Alert, Custom, Part, Say

VOID = {"meta", "img", "br", "link", "input"}
DRAWN = {"path", "line", "circle", "rect"}


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
        if tag not in VOID | DRAWN:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in DRAWN:
            return
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
def hostile_html(hostile: Result) -> str:
    return Report(hostile).html()


def test_every_element_is_closed_and_ids_are_unique(page: Page) -> None:
    assert page.open == []
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_headings_never_skip_a_level(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def test_nothing_is_loaded(page: Page) -> None:
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form"}
        assert attributes.get("src", "data:").startswith("data:")
        assert not any(name.startswith("on") for name in attributes)
    style = "".join(page.text)
    assert "@import" not in style
    assert "url(" not in style


@given(st.text())
def test_script_json_cannot_leave_its_element(text: str) -> None:
    made = script_json({"a": text})
    assert not set(made) & set("<>&\u2028\u2029")
    assert json.loads(made) == {"a": text}


@pytest.mark.parametrize("name", ["x.odt", "x.docx"])
def test_unknown_endings_are_refused(moderator: Result, tmp_path: Path, name: str) -> None:
    with pytest.raises(PlanError, match="expected a folder, or one of .html"):
        Report(moderator).save(tmp_path / name)


def test_a_section_of_a_plugin_plugs_in(moderator: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._things, "section", dict(registry._things["section"]))

    def hello(context: Context) -> Text | None:
        return ("Hello.",) if context.result.plan.preset == "mine" else None

    @registry.section("mine")
    def mine() -> Part:
        return part("Of my preset", Say((hello,)), Alert("Read this", lambda _: [("Careful.",)]))

    @registry.section("silent")
    def silent() -> Part:
        return part("Silent", Say((lambda _: None,)))

    plan = moderator.plan.model_copy(update={"preset": "mine"})
    report = Report(replace(moderator, plan=plan))
    titles = [s.title for s in report.sections]
    assert "Of my preset" in titles and "Silent" not in titles
    assert "**Read this**\n\nCareful." in report.markdown()
    assert '<div class="alert"><h3>Read this</h3><p>Careful.</p>' in report.html()


def test_a_section_of_the_old_form_is_refused() -> None:
    with pytest.raises(RegistryError, match=r"a section is declared now\. Return ombud\.report"):

        @registry.section("old")
        def old(result: Result) -> None:
            """A section as it was."""


def test_a_report_is_a_pure_function(moderator: Result) -> None:
    assert Report(moderator).html() == Report(moderator).html()
    assert Report(moderator).json() == Report(moderator).json()


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_links_lead_into_the_page(page: Page) -> None:
    ids = {a["id"] for _, a in page.elements if "id" in a}
    links = [a["href"] for a in page.all("a")]
    assert links and {link[1:] for link in links} <= ids


def test_tables_and_charts_are_described(page: Page) -> None:
    assert all(a.get("scope") in {"col", "row"} for a in page.all("th"))
    assert all(a["aria-label"] for a in page.all("div") if a.get("class") == "scroll")
    hidden = {"strip", "change"}
    assert all(a.get("class") in hidden or a.get("aria-label") for a in page.all("svg"))


def test_the_policy_names_exactly_the_embedded_script(page: Page) -> None:
    policy = next(
        a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';") and "unsafe-eval" not in policy
    script_part = next(p for p in policy.split(";") if "script-src" in p)
    assert "unsafe-inline" not in script_part
    running = [
        text
        for text, attributes in zip(page.scripts, page.all("script"), strict=True)
        if attributes.get("type") != "application/json"
    ]
    hashes = {base64.b64encode(sha256(s.encode()).digest()).decode() for s in running}
    assert len(hashes) == 1
    assert set(re.findall(r"'sha256-([^']+)'", script_part)) == hashes


def texts_of(column: dict[str, Any]) -> list[str]:
    """Return the texts of a column of all numbers, as the page's script reads them."""
    runs, of = column.get("runs"), column["of"]
    of = of.split(" ") if isinstance(of, str) else of
    if runs is not None:
        return [of[at] for at, n in zip(runs[::2], runs[1::2], strict=True) for _ in range(n)]
    return [of[at] for at in column.get("at", range(len(of)))]


def test_the_page_holds_every_estimate(ordinary: Result, page: Page) -> None:
    columns = {c["title"]: texts_of(c) for c in json.loads(page.scripts[0])["columns"]}
    for title, field in (("Metric", "metric"), ("Key", "key"), ("Content", "label")):
        if title in columns:
            shown = columns[title]
            assert len(shown) == len(ordinary.estimates)
            wanted = [getattr(e, field)[:20] for e in ordinary.estimates]
            assert [text[:20] for text in shown] == wanted
    for text, e in zip(columns["Value"], ordinary.estimates, strict=True):
        assert (text == "") == (e.value is None)
        assert not text or float(text.replace(",", "")) == pytest.approx(e.value, rel=1e-3)


def test_every_estimate_is_in_some_section(ordinary: Result, moderator: Result) -> None:
    """Each metric and role has a table of its own, beside the table of all numbers."""
    for result in (ordinary, moderator):
        context = Context.of(result)
        cells = {
            cell.value
            for section in Report(result).sections
            for block in section.blocks
            if isinstance(block, Table)
            for row in block.rows
            for cell in row
        }
        assert {e.value for e in result.estimates if e.value is not None} <= cells
        assert context.by_key


def test_exclusions_and_limitations_are_told(page: Page) -> None:
    text = " ".join("".join(page.text).split())
    assert "1,204" in text and "no list was recommended" in text
    assert "why; a gap may come from popularity" in text


def test_without_scripts(ordinary: Result) -> None:
    found = Page(Report(ordinary).html(script=False))
    assert found.all("script") == []
    assert any("script-src 'none'" in a.get("content", "") for a in found.all("meta"))


def test_hostile_text_makes_no_element(hostile_html: str, page: Page) -> None:
    found = Page(hostile_html)
    assert found.open == []
    assert {tag for tag, _ in found.elements} <= {tag for tag, _ in page.elements} | {"title"}
    assert len(found.all("script")) == 2
    assert not any(n.startswith("on") for _, a in found.elements for n in a)
    assert not any("javascript:" in a.get("href", "") for a in found.all("a"))
    assert "</script><script>document.title='ran'</script>" in "".join(found.text)


def test_hidden_characters_are_visible_everywhere(hostile: Result, hostile_html: str) -> None:
    report = Report(hostile)
    lines = "\n".join(report.lines(width=200))
    for text in (hostile_html, report.latex(), report.json(), lines, report.markdown()):
        for character in "\u202e\u2066\u2069\ufeff\x1b\x07\x9b\0\u2028":
            assert character not in text, f"U+{ord(character):04X}"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<b>", r"\<b\>"),
        ("[x](javascript:y)", r"\[x\](javascript\:y)"),
        ("a|b", r"a\|b"),
        ("https://x.org", r"https\://x.org"),
        ("www.x.org", r"www\.x.org"),
        ("a@b.c", r"a\@b.c"),
    ],
)
def test_markdown_escapes(text: str, escaped: str) -> None:
    assert _escaped(text) == escaped


def test_markdown_tables_are_whole(hostile: Result) -> None:
    lines = Report(hostile).markdown().splitlines()
    assert lines[0].startswith("# Audit \\<")
    widths = set()
    for place, line in enumerate(lines):
        if line.startswith("| ---"):
            columns = line.count("|")
            widths.add(columns)
            for row in lines[place - 1 : place + 3]:
                if row.startswith("|"):
                    assert len(re.findall(r"(?<!\\)\|", row)) == columns
    assert widths


def test_latex_rows_fit_and_commands_are_inert(hostile: Result) -> None:
    text = Report(hostile).latex()
    assert "\\input{" not in text
    assert text.count("\\begin{") == text.count("\\end{")
    assert escape_latex("▲ +0.05 [−0.1, ∞]") == (r"$\blacktriangle$ +0.05 {[}$-$0.1, $\infty${]}")


def test_json_holds_every_estimate_and_the_verdicts(ordinary: Result) -> None:
    content: dict[str, Any] = json.loads(Report(ordinary).json())
    assert len(content["estimates"]) == len(ordinary.estimates)
    assert all(e["reading"] for e in content["estimates"])
    assert content["verdicts"] == json.loads(json.dumps(list(ordinary.verdicts)))


def test_save_by_ending_and_by_folder(moderator: Result, tmp_path: Path) -> None:
    report = Report(moderator)
    assert report.save(tmp_path / "a.json") == (tmp_path / "a.json",)
    assert report.save(tmp_path / "b.html") == (tmp_path / "b.html",)
    paths = report.save(tmp_path / "all", formats=[f for f in FORMATS if f != "pdf"])
    names = ["report.html", "report.md", "report.tex", "report.json", "report.csv"]
    assert [p.name for p in paths] == names
    assert all(p.stat().st_size > 100 for p in paths)
    assert not list(tmp_path.rglob("*.part"))


def test_charts_are_saved_as_files_of_their_own(
    hostile: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry._things, "section", dict(registry._things["section"]))
    names = sorted({e.label for e in hostile.estimates})
    panels = tuple(charts.plane(n, [charts.Dot(n, 1, 1)], x=(n, 0, 2), y=(n, 0, 2)) for n in names)

    @registry.section("drawn")
    def drawn() -> Part:
        return part("Drawn", Custom(lambda _: [Chart("drawn", "Title", "C.", "Alt", panels)]))

    report = Report(hostile)
    paths = report.save_figures(tmp_path)
    assert [p.name for p in paths] == [f"drawn-{i}.svg" for i in range(1, len(names) + 1)]
    for path in paths:
        root = ElementTree.parse(path).getroot()
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and "style" in tags
        assert not tags & {"script", "img", "image", "a"}


def test_unknown_formats_are_refused(moderator: Result, tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no format is called 'odt'; known: html"):
        Report(moderator).save(tmp_path, formats=("odt",))


def test_a_notebook_shows_the_page_in_a_frame(hostile: Result) -> None:
    shown = Page(Report(hostile)._repr_html_())
    assert [tag for tag, _ in shown.elements] == ["iframe"]
    assert shown.all("iframe")[0]["sandbox"] == ""


@pytest.mark.parametrize("scheme", [0, 1])
def test_colors_of_text_contrast_with_the_page(scheme: int) -> None:
    css = (files("ombud.report") / "templates" / "style.css").read_text(encoding="utf-8")
    color = dict(
        re.findall(r"--([a-z-]+):(#[0-9a-f]{3,6})", re.findall(r":root\{(.*?)\}", css)[scheme])
    )
    color = {k: v if len(v) == 7 else "#" + "".join(2 * c for c in v[1:]) for k, v in color.items()}
    for name in ("ink", "mut", "up", "down", "acc", "hm", "ok"):
        for ground in ("bg", "card"):
            assert _contrast(color[name], color[ground]) >= 4.5, (name, ground)
