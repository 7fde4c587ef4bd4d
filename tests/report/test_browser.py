"""The report in a real browser: nothing hostile runs, nothing is loaded, figures are drawn."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ombud.audits.result import Result
from ombud.report import Report
from ombud.report.answer import MOST_WORDS

pytestmark = pytest.mark.browser

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--virtual-time-budget=20000",
)
# Chromium asks these by itself, whatever page is open.
ITS_OWN = ("google.com", "googleapis.com")
SAYS_RAN = "<script>document.title='ran'</script>"


@dataclass(frozen=True)
class Seen:
    """What happened when a page was opened."""

    dom: str
    console: tuple[str, ...]
    asked: frozenset[str]

    @property
    def title(self) -> str:
        found = re.search(r"<title>(.*?)</title>", self.dom, flags=re.DOTALL)
        return unescape(found[1]) if found else ""

    @property
    def drawn(self) -> int:
        return len(re.findall(r'<figure id="[^"]*" class="drawn">', self.dom))


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        why = "no chromium on this machine: the report was not opened in a browser"
        if os.environ.get("OMBUD_REQUIRE_BROWSER") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def html_of(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """The report of a result, written once: a large one takes seconds."""
    return cache(lambda name: Report(request.getfixturevalue(name)).html())


def look(chromium: str, html: str, folder: Path, *, width: int = 1200, dark: bool = False) -> Seen:
    page, log = folder / "page.html", folder / "net.json"
    page.write_text(html, encoding="utf-8")
    done = subprocess.run(
        [
            chromium,
            *ARGUMENTS,
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            f"--window-size={width},900",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        timeout=120,
        check=True,
    )
    console = re.findall(r"CONSOLE[^\]]*\] (.*)", done.stderr.decode("utf-8", "replace"))
    hosts = {
        urlsplit(url).hostname or ""
        for url in re.findall(r'"url":"((?:https?|wss?|ftp):[^"]+)"', log.read_text("utf-8"))
    }
    asked = frozenset(host for host in hosts if not host.endswith(ITS_OWN))
    return Seen(done.stdout.decode("utf-8"), tuple(console), asked)


def handlers(dom: str) -> list[str]:
    """The names of all attributes that would run something."""
    found: list[str] = []

    class Attributes(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(name for name, _ in attrs if name.startswith("on"))

    Attributes().feed(dom)
    return found


def with_probe(html: str, script: str) -> str:
    """Add a script of the test's own, and permit exactly that one."""
    digest = base64.b64encode(sha256(script.encode()).digest()).decode()
    permitted = html.replace("script-src ", f"script-src &#39;sha256-{digest}&#39; ", 1)
    assert permitted != html
    head, end, tail = permitted.rpartition("</body>")
    return f"{head}<script>{script}</script>{end}{tail}"


def test_the_test_would_see_it(chromium: str, tmp_path: Path) -> None:
    """On an open page the same means of looking do see a script, a message and a load."""
    html = (
        "<!DOCTYPE html><html><head><title>Audit</title></head><body>"
        "<img src='http://127.0.0.1:9/a.png'><script>console.error('boom')</script>"
        f"{SAYS_RAN}</body></html>"
    )
    assert handlers("<p onclick=x><img onerror='y'>") == ["onclick", "onerror"]
    seen = look(chromium, html, tmp_path)
    assert seen.title == "ran"
    assert any("boom" in line for line in seen.console)
    assert seen.asked == {"127.0.0.1"}


def test_hostile_text_is_inert(
    chromium: str, hostile: Result, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    seen = look(chromium, html_of("hostile"), tmp_path)
    assert seen.title.startswith("Audit </title><script>")
    assert seen.title != "ran"
    assert seen.drawn == len(Report(hostile).figures()) == 4
    assert seen.console == ()
    assert seen.asked == frozenset()
    assert handlers(seen.dom) == []
    assert "\u202e" not in seen.dom


def test_the_policy_stops_what_an_escape_would_miss(
    chromium: str, moderator: Result, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    smuggled = (
        f"{SAYS_RAN}<img src=x onerror=\"document.title='ran'\">"
        "<img src='http://127.0.0.1:9/a.png'><link rel=stylesheet href='http://127.0.0.1:9/b'>"
    )
    head, end, tail = html_of("moderator").rpartition("</main>")
    html = f"{head}{smuggled}{end}{tail}"
    seen = look(chromium, html, tmp_path)
    assert seen.title == moderator.plan.title
    assert any("Content Security Policy" in line for line in seen.console)
    assert seen.asked == frozenset()
    assert seen.drawn == len(Report(moderator).figures())


@pytest.mark.parametrize(("dark", "ink"), [(False, "#1f2430"), (True, "#e6e9ef")])
def test_figures_are_drawn_in_both_schemes(
    chromium: str,
    moderator: Result,
    html_of: Callable[[str], str],
    tmp_path: Path,
    dark: bool,
    ink: str,
) -> None:
    seen = look(chromium, html_of("moderator"), tmp_path, dark=dark)
    assert seen.drawn == len(Report(moderator).figures())
    assert len(re.findall(r'<svg [^>]*class="marks"', seen.dom)) == seen.drawn
    assert len(
        re.findall(r'<div class="live[^"]*" [^>]*role="img"[^>]* aria-label="[^"]{40}', seen.dom)
    ) == (seen.drawn)
    assert f'fill="{ink}"' in seen.dom
    assert seen.console == ()


def test_a_reader_can_choose_a_label(chromium: str, ordinary: Result, tmp_path: Path) -> None:
    # Levels of groups are drawn where groups are not compared.
    alone = tuple(e for e in ordinary.estimates if not (e.group and e.kind != "level"))
    script = """
    setTimeout(function () {
      var figure = document.querySelector("figure[id$=-groups]");
      var choice = figure.querySelector(".choice select");
      var before = figure.querySelector("svg").innerHTML;
      choice.value = choice.options[1].value;
      choice.dispatchEvent(new Event("input"));
      choice.dispatchEvent(new Event("change"));
      setTimeout(function () {
        var same = figure.querySelector("svg").innerHTML === before;
        document.title = choice.options.length + (same ? " same" : " changed");
      }, 1000);
    }, 5000);
    """
    report = Report(replace(ordinary, estimates=alone))
    seen = look(chromium, with_probe(report.html(), script), tmp_path)
    assert seen.console == ()
    assert seen.title == "8 changed"
    assert seen.drawn == len(report.figures())


FIRST_SCREEN = """
setTimeout(function () {
  var answer = document.querySelector(".answer.first");
  var copy = answer.cloneNode(true);
  copy.querySelectorAll(".live, .choice").forEach(function (one) { one.remove(); });
  var words = document.querySelector("header").innerText + " " + copy.textContent;
  var figures = answer.querySelectorAll("figure").length;
  var bottom = Math.round(answer.getBoundingClientRect().bottom + window.scrollY);
  var height = document.documentElement.scrollHeight;
  document.title = [bottom, words.trim().split(/\\s+/).length, figures, height].join(" ");
}, 5000);
"""


@pytest.mark.parametrize("name", ["ordinary", "large", "moderator"])
def test_the_answer_fits_into_the_first_screen(
    chromium: str, name: str, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    html = with_probe(html_of(name), FIRST_SCREEN)
    seen = look(chromium, html, tmp_path, width=1280)
    bottom, words, figures, height = map(int, seen.title.split())
    assert 200 < bottom <= 900
    assert 20 < words <= MOST_WORDS
    assert figures <= 1
    assert height <= 10 * 900


def test_large_reports_stay_small(html_of: Callable[[str], str], large: Result) -> None:
    assert len(html_of("large").encode()) < 1_500_000
    assert len(Report(large).appendix_html().encode()) < 3_000_000


AXE = """
setTimeout(function () {
  axe.run().then(function (found) {
    document.title = "axe " + JSON.stringify(found.violations.map(function (one) {
      return [one.id, one.nodes.length, one.nodes[0].html.slice(0, 120)];
    })) + " of " + (found.passes.length > 10);
  });
}, 5000);
"""


@pytest.mark.parametrize(
    ("name", "dark"),
    [
        ("ordinary", False),
        ("moderator", True),
        pytest.param("ordinary", True, marks=pytest.mark.slow),
        pytest.param("moderator", False, marks=pytest.mark.slow),
        pytest.param("hostile", False, marks=pytest.mark.slow),
        pytest.param("hostile", True, marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_violation(
    chromium: str,
    name: str,
    dark: bool,
    html_of: Callable[[str], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    pages = [html_of(name)]
    if not dark:
        pages.append(Report(request.getfixturevalue(name)).appendix_html())
    for html in pages:
        seen = look(chromium, with_probe(html, axe() + AXE), tmp_path, width=1280, dark=dark)
        assert seen.title == "axe [] of true"


def test_axe_would_find_one(chromium: str, html_of: Callable[[str], str], tmp_path: Path) -> None:
    head, end, tail = html_of("moderator").rpartition("</main>")
    html = f"{head}<img src='data:,'><table><tr><th></th></tr></table>{end}{tail}"
    seen = look(chromium, with_probe(html, axe() + AXE), tmp_path)
    assert "image-alt" in seen.title


def axe() -> str:
    try:
        return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
    except ModuleNotFoundError:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")


OVERLAP = """
setTimeout(function () {
  var bad = [], seen = 0;
  document.querySelectorAll("svg.marks .role-axis-label").forEach(function (axis) {
    var boxes = Array.from(axis.querySelectorAll("text")).filter(function (text) {
      return text.textContent && text.getAttribute("opacity") !== "0" && text.style.opacity !== "0";
    }).map(function (text) { seen += 1; return text.getBoundingClientRect(); });
    boxes.forEach(function (a, i) {
      boxes.slice(i + 1).forEach(function (b) {
        var across = a.left < b.right - 1 && b.left < a.right - 1;
        if (across && a.top < b.bottom - 3 && b.top < a.bottom - 3) {
          bad.push(axis.closest("figure").id);
        }
      });
    });
  });
  var page = document.documentElement;
  var told = [window.innerWidth, page.scrollWidth, seen > 10, bad.join("+")];
  parent.postMessage(told.join(" "), "*");
}, 6000);
"""


@pytest.mark.parametrize("name", ["ordinary", "large"])
def test_ticks_do_not_overlap_on_a_phone(
    chromium: str, name: str, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    # A window is at least 500 pixels wide; a frame can be as narrow as a phone.
    inner = tmp_path / "inner.html"
    inner.write_text(with_probe(html_of(name), OVERLAP), "utf-8")
    outer = (
        "<!DOCTYPE html><title>waiting</title><iframe src='inner.html' width=390 height=844 "
        "frameborder=0></iframe><script>onmessage = function (m) { document.title = m.data; }"
        "</script>"
    )
    seen = look(chromium, outer, tmp_path)
    width, wide, many, bad = (
        seen.title.split(" ", 3) if seen.title.count(" ") > 2 else (*seen.title.split(" "), "")
    )
    assert (width, many, bad) == ("390", "true", "")
    assert int(wide) <= 390


def test_the_appendix_sorts_filters_and_saves(
    chromium: str, ordinary: Result, tmp_path: Path
) -> None:
    script = """
    // Reading a blob takes real time, which a browser on virtual time does not wait for.
    var saved = [];
    window.Blob = function (parts) { saved.push(parts.join("")); };
    URL.createObjectURL = function () { return "#"; };
    setTimeout(function () {
      var table = document.getElementById("every-number");
      var heads = Array.from(table.querySelectorAll("thead button"));
      var at = heads.findIndex(function (one) { return one.textContent === "Value"; });
      function column() {
        return Array.from(table.querySelectorAll("tbody tr")).slice(0, 5).map(function (row) {
          return row.cells[at].textContent.replace("\u2212", "-");
        });
      }
      heads[at].click();
      var down = column().map(Number);
      var sorted = down.every(function (v, i) { return !i || down[i - 1] >= v; });
      heads[at].click();
      var up = column().map(Number);
      var rising = up.every(function (v, i) { return !i || up[i - 1] <= v; });
      sorted = sorted && rising && up[0] < down[0];
      var choice = Array.from(table.querySelectorAll("select")).find(function (one) {
        return one.parentNode.textContent.startsWith("Label");
      });
      choice.value = Array.from(choice.options).find(function (one) {
        return one.textContent === "spiders";
      }).value;
      choice.dispatchEvent(new Event("change"));
      Array.from(table.querySelectorAll("button")).find(function (one) {
        return one.textContent.indexOf("CSV") > 0;
      }).click();
      var lines = saved[0].trim().split("\\r\\n");
      var all = lines.slice(1).every(function (line) { return line.indexOf("spiders") >= 0; });
      var count = table.querySelector(".count").textContent;
      document.title = [sorted, lines.length - 1, all, count].join("|");
    }, 2000);
    """
    seen = look(chromium, with_probe(Report(ordinary).appendix_html(), script), tmp_path)
    assert seen.console == ()
    rows = sum(e.label == "spiders" for e in ordinary.estimates)
    total = f"{len(ordinary.estimates):,}"
    text = f"{min(rows, 100)} of the {rows} rows chosen (of {total}) are shown."
    assert seen.title == f"true|{rows}|true|{text}"


def test_a_hostile_appendix_is_inert(chromium: str, hostile: Result, tmp_path: Path) -> None:
    script = """
    document.querySelectorAll("details").forEach(function (one) { one.open = true; });
    """
    seen = look(chromium, with_probe(Report(hostile).appendix_html(), script), tmp_path)
    assert seen.title != "ran"
    assert seen.console == ()
    assert seen.asked == frozenset()
    assert handlers(seen.dom) == []
    assert seen.dom.count("<tbody>") > 5
    assert "\u202e" not in seen.dom


def test_the_report_is_printed_on_few_pages(
    chromium: str, ordinary: Result, tmp_path: Path
) -> None:
    (path,) = Report(ordinary).save(tmp_path / "report.pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", content)) <= 6


@pytest.mark.parametrize("name", ["ordinary", "hostile"])
def test_a_narrow_screen_scrolls_tables_not_the_page(
    chromium: str,
    name: str,
    html_of: Callable[[str], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    script = """
    setTimeout(function () {
      var page = document.documentElement;
      document.title = page.scrollWidth + " of " + page.clientWidth;
    }, 5000);
    """
    html = with_probe(html_of(name), script)
    seen = look(chromium, html, tmp_path, width=500)
    assert seen.drawn == len(Report(request.getfixturevalue(name)).figures())
    wide, _, room = seen.title.partition(" of ")
    assert 0 < int(wide) <= int(room) <= 500
