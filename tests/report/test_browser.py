"""The report in a real browser: nothing hostile runs, nothing is loaded, figures are drawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route

from ombud.audits.result import Result
from ombud.report import Report

pytestmark = pytest.mark.browser

SAYS_RAN = "<script>document.title='ran'</script>"


@dataclass
class Seen:
    """A page that is open, and what happened when it was opened."""

    page: Page
    console: list[str]
    asked: set[str]


Look = Callable[..., Seen]


@pytest.fixture(scope="module")
def html_of(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """The report of a result, written once: a large one takes seconds."""
    return cache(lambda name: Report(request.getfixturevalue(name)).html())


@pytest.fixture
def look(browser: Browser, tmp_path: Path) -> Iterator[Look]:
    """Open a page; what it asks of the network is recorded and refused."""
    contexts: list[BrowserContext] = []

    def opened(html: str, *, width: int = 1200, dark: bool = False, media: str = "screen") -> Seen:
        path = tmp_path / f"page{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        scheme: Any = "dark" if dark else "light"
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        seen = Seen(context.new_page(), [], set())

        def refuse(route: Route) -> None:
            seen.asked.add(urlsplit(route.request.url).hostname or "")
            route.abort()

        context.route(re.compile("^(https?|wss?|ftp):"), refuse)
        seen.page.on("console", lambda message: seen.console.append(message.text))
        seen.page.on("pageerror", lambda error: seen.console.append(str(error)))
        kind: Any = media
        seen.page.emulate_media(media=kind)
        seen.page.goto(path.as_uri())
        return seen

    yield opened
    for context in contexts:
        context.close()


def handlers(dom: str) -> list[str]:
    """The names of all attributes that would run something."""
    found: list[str] = []

    class Attributes(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(name for name, _ in attrs if name.startswith("on"))

    Attributes().feed(dom)
    return found


def test_the_test_would_see_it(look: Look) -> None:
    """On an open page the same means of looking do see a script, a message and a load."""
    html = (
        "<!DOCTYPE html><html><head><title>Audit</title></head><body>"
        "<img src='http://127.0.0.1:9/a.png'><script>console.error('boom')</script>"
        f"{SAYS_RAN}</body></html>"
    )
    assert handlers("<p onclick=x><img onerror='y'>") == ["onclick", "onerror"]
    seen = look(html)
    assert seen.page.title() == "ran"
    assert any("boom" in line for line in seen.console)
    assert seen.asked == {"127.0.0.1"}


def test_hostile_text_is_inert(look: Look, html_of: Callable[[str], str]) -> None:
    seen = look(html_of("hostile"))
    assert seen.page.title().startswith("Audit </title><script>")
    assert seen.console == []
    assert seen.asked == set()
    dom = seen.page.content()
    assert handlers(dom) == []
    assert "\u202e" not in dom


def test_the_policy_stops_what_an_escape_would_miss(
    look: Look, moderator: Result, html_of: Callable[[str], str]
) -> None:
    smuggled = (
        f"{SAYS_RAN}<img src=x onerror=\"document.title='ran'\">"
        "<img src='http://127.0.0.1:9/a.png'><link rel=stylesheet href='http://127.0.0.1:9/b'>"
    )
    head, end, tail = html_of("moderator").rpartition("</main>")
    seen = look(f"{head}{smuggled}{end}{tail}")
    assert seen.page.title() == moderator.plan.title
    assert any("Content Security Policy" in line for line in seen.console)
    assert seen.asked == set()


FIRST_SCREEN = """() => {
  const verdict = document.querySelector(".verdict"), answer = verdict.querySelector(".answer");
  return [answer.getBoundingClientRect().bottom + scrollY,
    verdict.getBoundingClientRect().bottom + scrollY,
    answer.textContent.trim().split(/\\s+/).length, document.documentElement.scrollHeight];
}"""


@pytest.mark.parametrize("name", ["moderator", pytest.param("ordinary", marks=pytest.mark.slow)])
def test_the_verdict_fits_into_the_first_screen(
    look: Look, name: str, html_of: Callable[[str], str]
) -> None:
    answer, whole, words, height = look(html_of(name), width=1280).page.evaluate(FIRST_SCREEN)
    assert 100 < answer <= 400
    assert whole <= 900
    assert 3 < words <= 80
    assert height <= 14 * 900


@pytest.mark.parametrize(
    ("name", "most"),
    [("ordinary", 420_000), pytest.param("large", 3_500_000, marks=pytest.mark.slow)],
)
def test_large_reports_stay_small(name: str, most: int, html_of: Callable[[str], str]) -> None:
    assert len(html_of(name).encode()) < most


def violations(page: Page) -> list[str]:
    try:
        script = (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")
    page.evaluate(script)
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 10
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found["violations"]]


@pytest.mark.parametrize(
    ("name", "dark", "width", "media"),
    [
        ("moderator", True, 390, "screen"),
        ("moderator", True, 1280, "print"),
        pytest.param("ordinary", True, 1280, "print", marks=pytest.mark.slow),
        pytest.param("ordinary", True, 1280, "screen", marks=pytest.mark.slow),
        pytest.param("ordinary", False, 1280, "screen", marks=pytest.mark.slow),
        pytest.param("moderator", False, 390, "screen", marks=pytest.mark.slow),
        pytest.param("hostile", False, 1280, "screen", marks=pytest.mark.slow),
        pytest.param("hostile", True, 390, "screen", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_violation(
    look: Look, name: str, dark: bool, width: int, media: str, html_of: Callable[[str], str]
) -> None:
    assert violations(look(html_of(name), width=width, dark=dark, media=media).page) == []


def test_axe_would_find_one(look: Look, html_of: Callable[[str], str]) -> None:
    head, end, tail = html_of("moderator").rpartition("</main>")
    html = f"{head}<img src='data:,'><table><tr><th></th></tr></table>{end}{tail}"
    assert any(one.startswith("image-alt") for one in violations(look(html).page))


def test_tables_sort_filter_and_save(
    look: Look, ordinary: Result, html_of: Callable[[str], str]
) -> None:
    script = """() => {
      const saved = [];
      window.Blob = function (parts) { saved.push(parts.join("")); };
      URL.createObjectURL = () => "#";
      const table = document.querySelector("table[data-name]");
      const head = table.querySelectorAll("thead button")[1];
      const column = () => [...table.tBodies[0].rows].map(row => row.cells[1].dataset.v)
        .filter(v => v !== undefined).map(Number);
      head.click();
      const down = column().every((v, i, all) => !i || all[i - 1] >= v);
      head.click();
      const up = column().every((v, i, all) => !i || all[i - 1] <= v);
      const all = document.getElementById("all-numbers");
      const choice = [...all.querySelectorAll("select")].find(one => one.ariaLabel === "Content");
      choice.value = "spiders";
      choice.dispatchEvent(new Event("change"));
      all.querySelector("button").click();
      const lines = saved[0].trim().split("\\n").slice(1);
      return [down, up, lines.length, lines.every(line => line.includes("spiders"))];
    }"""
    seen = look(html_of("ordinary"))
    rows = sum(e.label == "spiders" for e in ordinary.estimates)
    assert seen.page.evaluate(script) == [True, True, rows, True]
    assert seen.console == []


@pytest.mark.slow
def test_the_report_is_printed_on_few_pages(
    browser: Browser, ordinary: Result, tmp_path: Path
) -> None:
    (path,) = Report(ordinary).save(tmp_path / "report.pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", content)) <= 6


@pytest.mark.parametrize("name", ["hostile", pytest.param("ordinary", marks=pytest.mark.slow)])
def test_a_narrow_screen_does_not_scroll_sideways(
    look: Look, name: str, html_of: Callable[[str], str]
) -> None:
    page = look(html_of(name), width=390).page
    assert 0 < page.evaluate("document.documentElement.scrollWidth") <= 390


A4 = 688
"""The width of an A4 page within its margins, in pixels of the page."""


@pytest.mark.parametrize("name", ["moderator", pytest.param("ordinary", marks=pytest.mark.slow)])
def test_what_is_printed_fits_the_paper(
    look: Look, name: str, html_of: Callable[[str], str]
) -> None:
    """A browser shrinks the whole page for one table that is too wide."""
    page = look(html_of(name), width=A4, media="print").page
    assert page.evaluate("document.documentElement.scrollWidth") <= A4


def test_systems_that_share_a_finding_are_printed(
    look: Look, html_of: Callable[[str], str]
) -> None:
    script = """() => {
      const also = document.createElement("details");
      also.className = "quiet also";
      also.innerHTML = "<summary>Also two</summary><p>more</p>";
      document.querySelector(".finding div").append(also);
      return [also.firstChild.checkVisibility(), also.lastChild.checkVisibility()];
    }"""
    assert look(html_of("ordinary"), media="print").page.evaluate(script) == [True, False]
