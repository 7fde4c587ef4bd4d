"""What the documentation says is executed here, or was generated."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ombud.audits import Plan
from ombud.cli import app
from ombud.worlds import small_world

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GENERATED = {
    "plan.md",
    "metrics.md",
    "cli.md",
    "taxonomies.md",
    "systems.md",
    "glossary.md",
    "references.md",
}


def pages() -> list[Path]:
    docs = [p for p in sorted((ROOT / "docs").glob("*.md")) if p.name not in GENERATED]
    return [ROOT / "README.md", *docs]


def run_console(text: str) -> None:
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[0] != "ombud":
            assert words[0] == "make" and re.search(
                rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE
            ), f"{line} is not a target of the Makefile"
            continue
        result = CliRunner().invoke(app, words[1:])
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_a_page_runs_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        small_world(seed=2).write(tmp_path, 10, ".csv")
    names: dict[str, object] = {"__name__": "page"}
    for language, text in BLOCK.findall(page.read_text()):
        if language == "python":
            exec(compile(text, page.name, "exec"), names)
        elif language == "console":
            run_console(text)
        elif language == "toml":
            Plan.from_dict(tomllib.loads(text))
            (tmp_path / "plan.toml").write_text(text)


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "generate.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
