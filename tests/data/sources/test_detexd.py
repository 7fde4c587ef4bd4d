"""The released benchmark of delicate texts, and its ratings in columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ombud.audits import Audit, Plan
from ombud.data.sources.detexd import detexd
from ombud.data.sources.toxic_tweets import founta
from ombud.data.texts import Texts
from ombud.errors import DataError
from ombud.questions.delicate.ratings import read_ratings

ROWS = """index,text,annotator_1,annotator_2,annotator_3,label
7,first words,3,5,1,1
8,second words,0,,2,0
9,third words,4,4,0,0
"""


def released(folder: Path, n: int = 1023, delicate: int = 336) -> Path:
    """A file of the released shape, with words of our own."""
    ratings = [(4, 3, 0) if k < delicate else (0, 2, 5) for k in range(n)]
    frame = pl.DataFrame({
        "": range(n), "text": [f"words of row {k}" for k in range(n)],
        **{f"annotator_{r + 1}": [row[r] for row in ratings] for r in range(3)},
        "label": [int(k < delicate) for k in range(n)],
    })  # fmt: skip
    frame.write_csv(folder / "test.csv")
    return folder / "test.csv"


def test_votes_and_labels(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(ROWS)
    data = detexd(tmp_path / "d.csv")
    texts = data.need("texts", "a test").texts, data.texts
    found = texts[1]
    assert found is not None and found.truth.tolist() == [1, 0, 0]
    assert found.yes is not None and found.yes.tolist() == [2, 0, 2]
    assert found.no is not None and found.no.tolist() == [1, 2, 1]
    reasons = " ".join(e.reason for e in found.exclusions)
    assert "not that of most annotators" in reasons and "336 of 1,023 are" in reasons
    (tmp_path / "d.csv").write_text(ROWS.replace("5,1,1", "9,1,1"))
    with pytest.raises(DataError, match="annotator_2"):
        detexd(tmp_path / "d.csv")


def test_the_released_sizes_pass_without_a_notice(tmp_path: Path) -> None:
    found = detexd(released(tmp_path)).texts
    assert found is not None and len(found) == 1023 and int(found.truth.sum()) == 336
    assert not found.exclusions


def test_annotators_in_columns_are_ratings(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(ROWS)
    texts = detexd(tmp_path / "d.csv").texts
    assert texts is not None
    found = read_ratings(tmp_path / "d.csv", texts)
    wanted = [[3, 5, 1], [0, np.nan, 2], [4, 4, 0]]
    assert np.array_equal(found.matrix, wanted, equal_nan=True)
    assert found.raters == ("annotator_1", "annotator_2", "annotator_3")
    assert [e.count for e in found.exclusions] == [1]
    # The same ratings in rows give the same matrix.
    rows = [{"id": k + 1, "rater": r, "risk": v} for k, row in enumerate(wanted)
            for r, v in zip(found.raters, row, strict=True) if v == v]  # fmt: skip
    pl.DataFrame(rows).write_csv(tmp_path / "long.csv")
    assert np.array_equal(
        read_ratings(tmp_path / "long.csv", texts).matrix, found.matrix, equal_nan=True
    )


def test_the_benchmark_is_audited_by_its_name(tmp_path: Path) -> None:
    file = released(tmp_path, 120, 40)
    pl.DataFrame({"id": range(1, 121), "flagged": [k < 50 for k in range(120)]}).write_csv(
        tmp_path / "said.csv"
    )
    plan = Plan.model_validate({
        "preset": "delicate", "data": {"source": "detexd", "options": {"path": str(file)}},
        "systems": {"recorded": {"type": "recorded", "path": str(tmp_path / "said.csv")}},
        "options": {"ratings": str(file), "bias": "none"},
    })  # fmt: skip
    result = Audit.from_plan(plan).run()
    recall = [e for e in result.estimates if e.key == "detection-recall" and not e.group]
    assert recall[0].value == 1.0
    assert any(e.key == "ratings/alpha" for e in result.estimates)


def test_founta_with_texts_and_with_ids(tmp_path: Path) -> None:
    rows = ["a &amp; b\tabusive\t4", "c\tnormal\t3", "buy\tspam\t5", "d\thateful\t2"]
    (tmp_path / "all.csv").write_text("\n".join(rows))
    found = founta(tmp_path / "all.csv").texts
    assert found is not None and found.texts.tolist() == ["a & b", "c", "d"]
    assert found.truth.tolist() == [1, 0, 1] and found.exclusions[0].count == 1
    (tmp_path / "ids.csv").write_text("tweet_id,maj_label\n1,abusive\n2,normal\n3,normal\n")
    (tmp_path / "texts.csv").write_text("tweet_id,text\n2,hello\n1,oh\n")
    joined = founta(tmp_path / "ids.csv", texts=tmp_path / "texts.csv").texts
    assert joined is not None and joined.texts.tolist() == ["oh", "hello"]
    assert joined.exclusions[0].count == 1
    with pytest.raises(DataError, match="ids alone"):
        founta(tmp_path / "ids.csv")
    (tmp_path / "one.csv").write_text("only\n")
    with pytest.raises(DataError, match="a text and a label"):
        founta(tmp_path / "one.csv")


@pytest.mark.realdata
def test_the_published_excerpts(realdata: Path) -> None:
    texts = detexd(realdata / "delicate-excerpts").texts
    assert isinstance(texts, Texts) and len(texts) == 50
    assert any("of its 50 texts" in e.reason for e in texts.exclusions)
