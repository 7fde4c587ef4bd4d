"""The report in a real browser: nothing hostile runs, nothing is loaded, figures are drawn."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
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


FIRST_SCREEN = """
setTimeout(function () {
  var verdict = document.querySelector(".verdict");
  var answer = verdict.querySelector(".answer").getBoundingClientRect();
  var whole = verdict.getBoundingClientRect();
  var words = verdict.querySelector(".answer").textContent.trim().split(/\\s+/).length;
  var height = document.documentElement.scrollHeight;
  var told = [answer.bottom + window.scrollY, whole.bottom + window.scrollY, words, height];
  document.title = told.map(Math.round).join(" ");
}, 5000);
"""


@pytest.mark.parametrize("name", ["ordinary", "moderator"])
def test_the_verdict_fits_into_the_first_screen(
    chromium: str, name: str, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    seen = look(chromium, with_probe(html_of(name), FIRST_SCREEN), tmp_path, width=1280)
    answer, whole, words, height = map(int, seen.title.split())
    assert 100 < answer <= 400
    assert whole <= 900
    assert 3 < words <= 80
    assert height <= 14 * 900


def test_large_reports_stay_small(html_of: Callable[[str], str]) -> None:
    assert len(html_of("ordinary").encode()) < 420_000
    assert len(html_of("large").encode()) < 3_500_000


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
    ("name", "dark", "width"),
    [
        ("ordinary", False, 1280),
        ("moderator", True, 500),
        pytest.param("ordinary", True, 1280, marks=pytest.mark.slow),
        pytest.param("moderator", False, 500, marks=pytest.mark.slow),
        pytest.param("hostile", False, 1280, marks=pytest.mark.slow),
        pytest.param("hostile", True, 500, marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_violation(
    chromium: str, name: str, dark: bool, width: int, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    seen = look(chromium, with_probe(html_of(name), axe() + AXE), tmp_path, width=width, dark=dark)
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


def test_tables_sort_filter_and_save(chromium: str, ordinary: Result, tmp_path: Path) -> None:
    script = """
    // Reading a blob takes real time, which a browser on virtual time does not wait for.
    var saved = [];
    window.Blob = function (parts) { saved.push(parts.join("")); };
    URL.createObjectURL = function () { return "#"; };
    setTimeout(function () {
      var table = document.querySelector("table[data-name]");
      var head = table.querySelectorAll("thead button")[1];
      function column() {
        return Array.from(table.tBodies[0].rows).map(function (row) {
          return row.cells[1].dataset.v;
        }).filter(function (v) { return v !== undefined; }).map(Number);
      }
      head.click();
      var down = column().every(function (v, i, all) { return !i || all[i - 1] >= v; });
      head.click();
      var up = column().every(function (v, i, all) { return !i || all[i - 1] <= v; });
      var all = document.getElementById("all-numbers");
      var choice = Array.from(all.querySelectorAll("select")).find(function (one) {
        return one.ariaLabel === "Content";
      });
      choice.value = "spiders";
      choice.dispatchEvent(new Event("change"));
      all.querySelector("button").click();
      var lines = saved[0].trim().split("\\n");
      var only = lines.slice(1).every(function (line) { return line.indexOf("spiders") >= 0; });
      document.title = [down, up, lines.length - 1, only].join("|");
    }, 2000);
    """
    seen = look(chromium, with_probe(Report(ordinary).html(), script), tmp_path)
    assert seen.console == ()
    rows = sum(e.label == "spiders" for e in ordinary.estimates)
    assert seen.title == f"true|true|{rows}|true"


def test_the_report_is_printed_on_few_pages(
    chromium: str, ordinary: Result, tmp_path: Path
) -> None:
    (path,) = Report(ordinary).save(tmp_path / "report.pdf")
    content = path.read_bytes()
    assert content.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", content)) <= 6


@pytest.mark.parametrize("name", ["ordinary", "hostile"])
def test_a_narrow_screen_does_not_scroll_sideways(
    chromium: str, name: str, html_of: Callable[[str], str], tmp_path: Path
) -> None:
    script = """
    setTimeout(function () {
      var page = document.documentElement;
      document.title = page.scrollWidth + " of " + page.clientWidth;
    }, 5000);
    """
    html = with_probe(html_of(name), script)
    seen = look(chromium, html, tmp_path, width=500)
    wide, _, room = seen.title.partition(" of ")
    assert 0 < int(wide) <= int(room) <= 500
