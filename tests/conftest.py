"""What every test may ask for."""

from __future__ import annotations

import fcntl
import gc
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

os.environ["OMBUD_PLUGINS"] = "none"

# Runs that are killed are forked from a process that has their imports behind it.
PRELOADED = ["audits", "metrics", "worlds", "tuning.tuning", "link", "probes", "text.sourcing",
             "systems.detectors", "systems.moderators", "systems.recommenders.adapters",
             "http.download", "report.report"]  # fmt: skip
multiprocessing.get_context("forkserver").set_forkserver_preload(
    ["pytest", *(f"ombud.{name}" for name in PRELOADED)]
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261115)


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real data sets, or a skip that says where it was looked for."""
    named = os.environ.get("OMBUD_REALDATA")
    folder = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}; set OMBUD_REALDATA to the folder that holds it")
    return folder


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of ``ombud demo``, which is run once for all workers, and what it printed."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = base / "demo"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "printed").exists():
            plain = {"COLUMNS": "96", "TERM": "dumb", "OMBUD_PLUGINS": "none"}
            done = subprocess.run(
                [sys.executable, "-m", "ombud", "demo"],
                capture_output=True, text=True, check=True, cwd=folder, env=os.environ | plain,
            )  # fmt: skip
            (folder / "printed").write_text(done.stdout)
    return folder / "ombud-demo", (folder / "printed").read_text()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, started once for a file: an event loop of the session would stop other tests."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        why = "no chromium on this machine: nothing was opened in a browser"
        if os.environ.get("OMBUD_REQUIRE_BROWSER") == "1":
            pytest.fail(why)
        pytest.skip(why)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=300_000)  # the machine may be busy

    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        made = playwright.chromium.launch(executable_path=found, args=arguments)
        context = made.new_context

        def patient(**options: Any) -> Any:
            opened = context(**options)
            opened.set_default_timeout(300_000)
            return opened

        made.new_context = patient
        yield made
        made.close()


RAW = re.compile(r"\b[a-z_]+=[\w-]+|\w\([a-z_]+=|\bHere with \w+ =|\b[a-z]+_[a-z_]+\b")
"""A key of a group (``age=18-24``) or of a metric (``suppression(by=flags)``), or an option."""


@pytest.fixture(scope="session")
def reads_well() -> Callable[[Any], None]:
    """What holds for the report of every preset."""
    from ombud.report import Report
    from ombud.report.model import Chart, Prose, Table, plain
    from ombud.report.names import Names

    def words(block: Any) -> Iterator[str]:
        if isinstance(block, Table):
            yield from (block.caption, *(column.title for column in block.columns))
            yield from (
                text for row in block.rows for cell in row for text in (cell.text, cell.small)
            )
        elif isinstance(block, Prose):
            yield from (block.title, *map(plain, block.paragraphs))
        elif isinstance(block, Chart):
            yield from (block.title, block.caption, *block.panels)
        else:
            yield block.title

    def check(result: Any) -> None:
        report = Report(result)
        page = report.page
        # Every estimate is on the page, with its number.
        assert page.numbers is not None
        titles = [column.title for column in page.numbers.columns]
        shown = Counter((row[titles.index("Key")].text, row[titles.index("Value")].value)
                        for row in page.numbers.rows)  # fmt: skip
        assert shown == Counter((e.key, e.value) for e in result.estimates)
        # Keys are for files and the appendix.
        said = [text for one in page.verdicts for text in (
            plain(one.headline), plain(one.sure), plain(one.following), *map(plain, one.changes),
            *(plain((*f.sentence, *f.evidence)) for f in (*one.findings, *one.early)))]  # fmt: skip
        body = [s for s in page.sections if not s.appendix]
        tables = [b for s in body for b in s.blocks if isinstance(b, Table) and not b.folded]
        assert sum(any(c.small for row in t.rows for c in row) for t in tables) <= 5
        said += [text for s in body for block in s.blocks for text in words(block)]
        raw = {re.sub(r"\s+", " ", found[0]) for text in said if not text.startswith("<svg")
               and (found := RAW.search(text))}  # fmt: skip
        assert not raw
        names = Names.of(result)
        keys = {
            key
            for e in result.estimates
            for key, shown in ((e.system, names.system(e.system)), (e.label, names.label(e.label)),
                               (e.group.partition("=")[2], names.group(e.group)))
            if re.search(r"\w[-_]\w", key) and str(shown) != key
        }  # fmt: skip
        prose = " ".join(text for text in said if not text.startswith("<svg"))
        assert not {k for k in keys if re.search(rf"(?<![\w-]){re.escape(k)}(?![\w-])", prose)}
        # With the path of the report, 25 lines; a verdict is never cut off.
        for most in (16, 24):
            lines = report.lines(most=most)
            assert len(lines) <= most
            assert any(line.startswith("Next: ") for line in lines) or most < 24
        assert len(report.html()) < 1_000_000

    return check


@pytest.fixture(scope="session")
def numbers_meet() -> Callable[[str, str, str], bool]:
    """Whether a reader who subtracts or divides two printed levels gets the printed size."""

    def number(text: str) -> Decimal:
        found = re.search(r"[+\u2212-]?[\d,]+(?:\.\d+)?", text)
        assert found is not None, text
        return Decimal(found[0].replace("\u2212", "-").replace(",", ""))

    def check(level: str, other: str, size: str) -> bool:
        one, two = (number(t) * (not t.startswith("under")) for t in (level, other))
        shown = number(size)
        if not re.search("times|%", size) or "points" in size:
            same = {n.as_tuple().exponent for n in map(number, (level, other, size))}
            return len(same) == 1 and one - two == shown
        ratio = one / two if "times" in size else 100 * (one / two - 1)
        # "+170%" has two digits: it may be rounded to tens.
        digits = f"{abs(shown):f}"
        zeros = 0 if "." in digits else len(digits) - len(digits.rstrip("0"))
        units = [shown.as_tuple().exponent, *range(1, 1 + min(zeros, len(digits) - 2))]
        return any(abs(ratio - shown) <= Decimal(10) ** u / 2 for u in units)

    return check


WHOLE = os.environ.get("OMBUD_SLOW", "") not in {"", "0"}

# A shared machine may be slow at any moment; no test is about time.
# The same examples every time in CI, others each time in `make test-all`.
settings.register_profile(
    "ombud", deadline=None, max_examples=300 if WHOLE else 50, derandomize=not WHOLE
)
settings.load_profile("ombud")
# Hypothesis mixes constants of all loaded modules of the project into its examples: they then
# depend on what a worker has loaded by chance, and reading them takes 13 CPU s a worker.
if hasattr(providers, "is_local_module_file"):
    providers.is_local_module_file = lambda path: False

# Files whose tests are few and long, the longest first: begun first, so that both workers end at
# the same time.
LONG = (
    "docs/test_docs",
    "docs/test_site",
    "_browser",
    "_kills",
    "_cluster.py",
    "propagation/",
    "questions/authors/",
    "questions/counterfactual/",
    "_realdata",
    "_simulation",
    "test_load",
    "docs/",
)

# Folders whose files share the result of a long run: one worker takes all of them.
TOGETHER = ("tests/questions/authors/", "tests/questions/counterfactual/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute files as ``--dist loadfile`` does, and some folders as if they were one file."""
    if config.getoption("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            folder = next((name for name in TOGETHER if nodeid.startswith(name)), None)
            return folder or super()._split_scope(nodeid)

    return Together(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what takes minutes, unless ``OMBUD_SLOW=1`` (`make test-all`) asks for it."""
    items.sort(
        key=lambda item: next((n for n, part in enumerate(LONG) if part in item.nodeid), len(LONG))
    )
    if WHOLE:
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; OMBUD_SLOW=1 runs it"))


def pytest_collection_finish() -> None:
    """Leave modules and thousands of tests out of every later collection of garbage."""
    gc.collect()
    gc.freeze()
