"""Pages hold every label and no refused one."""

from __future__ import annotations

import pytest

from ombud.taxonomy import Taxonomy, load_taxonomy, taxonomy_names, taxonomy_page
from ombud.taxonomy.model import TaxonomyLabel
from ombud.taxonomy.resources import spelling_key


@pytest.mark.parametrize("key", taxonomy_names())
def test_every_label_once_and_no_refused_one(key: str) -> None:
    taxonomy = load_taxonomy(key)
    page = taxonomy_page(taxonomy)
    for label in taxonomy.labels:
        assert page.count(f"| `{label.id}` | {label.title} |") == 1
    assert taxonomy.source in page and taxonomy.licence in page
    assert not any(spelling in spelling_key(page) for spelling in taxonomy.refused_spellings)


def test_refused_labels_are_counted() -> None:
    page = taxonomy_page(load_taxonomy("warnings-ddd@1"))
    assert "136 labels under 30 parents, of 137 published (1 refused" in page


def test_a_bar_does_not_break_the_table() -> None:
    label = TaxonomyLabel("a", "A|B", "line\nbreak")
    page = taxonomy_page(Taxonomy("x", 1, "X", "us", "ours", (label,)))
    assert "| `a` | A\\|B | line break |" in page
