"""The report in a real browser: nothing hostile runs, nothing is loaded, figures are drawn."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from html import unescape
from html.parser import HTMLParser
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


def test_hostile_text_is_inert(chromium: str, hostile: Result, tmp_path: Path) -> None:
    seen = look(chromium, Report(hostile).html(), tmp_path)
    assert seen.title.startswith("Audit </title><script>")
    assert seen.title != "ran"
    assert seen.drawn == len(Report(hostile).figures()) == 4
    assert seen.console == ()
    assert seen.asked == frozenset()
    assert handlers(seen.dom) == []
    assert "\u202e" not in seen.dom


def test_the_policy_stops_what_an_escape_would_miss(
    chromium: str, moderator: Result, tmp_path: Path
) -> None:
    smuggled = (
        f"{SAYS_RAN}<img src=x onerror=\"document.title='ran'\">"
        "<img src='http://127.0.0.1:9/a.png'><link rel=stylesheet href='http://127.0.0.1:9/b'>"
    )
    head, end, tail = Report(moderator).html().rpartition("</main>")
    html = f"{head}{smuggled}{end}{tail}"
    seen = look(chromium, html, tmp_path)
    assert seen.title == moderator.plan.title
    assert any("Content Security Policy" in line for line in seen.console)
    assert seen.asked == frozenset()
    assert seen.drawn == len(Report(moderator).figures())


@pytest.mark.parametrize(("dark", "ink"), [(False, "#1f2430"), (True, "#e6e9ef")])
def test_figures_are_drawn_in_both_schemes(
    chromium: str, moderator: Result, tmp_path: Path, dark: bool, ink: str
) -> None:
    seen = look(chromium, Report(moderator).html(), tmp_path, dark=dark)
    assert seen.drawn == len(Report(moderator).figures())
    assert len(re.findall(r'<svg [^>]*class="marks"', seen.dom)) == seen.drawn
    assert f'fill="{ink}"' in seen.dom
    assert seen.console == ()


def test_a_reader_can_choose_a_label(chromium: str, ordinary: Result, tmp_path: Path) -> None:
    script = """
    setTimeout(function () {
      var figure = document.getElementById("figure-share-gap-10-groups");
      var choice = figure.querySelector("select");
      var before = figure.querySelector("svg").innerHTML;
      choice.value = "spiders";
      choice.dispatchEvent(new Event("input"));
      choice.dispatchEvent(new Event("change"));
      setTimeout(function () {
        var same = figure.querySelector("svg").innerHTML === before;
        document.title = choice.options.length + (same ? " same" : " changed");
      }, 1000);
    }, 5000);
    """
    seen = look(chromium, with_probe(Report(ordinary).html(), script), tmp_path)
    assert seen.console == ()
    assert seen.title == "12 changed"
    assert seen.drawn == 8


@pytest.mark.parametrize("name", ["ordinary", "hostile"])
def test_a_narrow_screen_scrolls_tables_not_the_page(
    chromium: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    script = """
    setTimeout(function () {
      document.querySelectorAll("details").forEach(function (one) { one.open = true; });
      var page = document.documentElement;
      document.title = page.scrollWidth + " of " + page.clientWidth;
    }, 5000);
    """
    html = with_probe(Report(request.getfixturevalue(name)).html(), script)
    seen = look(chromium, html, tmp_path, width=500)
    assert seen.drawn == len(Report(request.getfixturevalue(name)).figures())
    wide, _, room = seen.title.partition(" of ")
    assert 0 < int(wide) <= int(room) <= 500
