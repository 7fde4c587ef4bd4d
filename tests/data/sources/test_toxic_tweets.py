"""OLID and Davidson's tweets: labels, cuts, entities, bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ombud.data.sources.toxic_tweets import davidson, olid
from ombud.errors import DataError


def test_olid_undoes_entities_and_reads_its_labels(tmp_path: Path) -> None:
    (tmp_path / "olid_data.csv").write_text(
        'id,tweet,subtask_a\n1,"you &amp; me",OFF\n2,fine,NOT\n3,,NOT\n'
    )
    data = olid(tmp_path)
    assert data.texts is not None and data.card.name == "OLID A"
    assert list(data.texts) == ["you & me", "fine"] and data.texts.truth.tolist() == [1, 0]
    assert data.texts.exclusions[0].count == 1


def test_davidson_has_two_cuts(tmp_path: Path) -> None:
    file = tmp_path / "labeled_data.csv"
    file.write_text("n,class,tweet\n0,0,a\n1,1,b\n2,2,c &lt;3\n")
    both = davidson(file)
    assert both.texts is not None and both.texts.truth.tolist() == [1, 1, 0]
    only = davidson(tmp_path, against="hate only")
    assert only.texts is not None and only.texts.truth.tolist() == [1, 0]
    assert list(only.texts) == ["a", "c <3"] and only.texts.exclusions[0].count == 1
    assert {both.card.name, only.card.name} == {"Davidson hate+offensive", "Davidson hate only"}


@pytest.mark.parametrize("rows", ["n,class\n1,2\n", "n,class,tweet\n1,nine,x\n"])
def test_other_files_are_refused(tmp_path: Path, rows: str) -> None:
    (tmp_path / "labeled_data.csv").write_text(rows)
    with pytest.raises(DataError):
        davidson(tmp_path)


@pytest.mark.realdata
def test_the_published_sizes(realdata: Path) -> None:
    sizes = {}
    for data in (
        olid(realdata / "olid"),
        davidson(realdata / "davidson"),
        davidson(realdata / "davidson", against="hate only"),
    ):
        assert data.texts is not None
        sizes[data.card.name] = (len(data.texts), int((data.texts.truth == 1).sum()))
    assert sizes["OLID A"] == (13_240, 4_400)
    assert sizes["Davidson hate+offensive"] == (24_783, 1_430 + 19_190)
    assert sizes["Davidson hate only"] == (5_593, 1_430)
