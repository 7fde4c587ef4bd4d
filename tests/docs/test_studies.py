"""The pages of published studies have one form."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "studies"
PAGES = [p for p in sorted(FOLDER.glob("*.md")) if p.stem not in {"index", "template"}]


def parts(page: Path) -> list[str]:
    return re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE)


def heads(page: Path) -> list[str]:
    return re.findall(r"^(\|.+\|)\n\|[-|: ]+\|$", page.read_text(), re.MULTILINE)


def test_the_template_has_what_every_page_must_have() -> None:
    assert len(parts(FOLDER / "template.md")) == 4
    assert len(heads(FOLDER / "template.md")) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_follows_the_template(page: Path) -> None:
    template = FOLDER / "template.md"
    assert parts(page) == parts(template)
    assert set(heads(template)) <= set(heads(page))
