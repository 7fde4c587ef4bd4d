"""Names: variants that must meet, names that must not, placeholders."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.errors import DataError
from ombud.link.names import is_placeholder, name_variants, placeholders


def meet(a: str, b: str) -> bool:
    return bool(set(name_variants(a)) & set(name_variants(b)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Orwell, George, 1903-1950", "George Orwell"),
        ("Orwell, George,", "ORWELL, George"),
        ("Rowling, J. K.", "J.K. Rowling"),
        ("Mao, Zedong", "Mao Zedong"),
        ("Mao, Zedong", "Zedong Mao"),
        ("García Márquez, Gabriel, 1927-2014.", "Gabriel Garci\u0301a Ma\u0301rquez"),
        ("King, Martin Luther, Jr., 1929-1968", "Martin Luther King, Jr."),
        ("O'Brien, Flann", "Flann O\u2019Brien"),
        ("Eliot, T. S. (Thomas Stearns), 1888-1965", "T.S. Eliot"),
        ("Seuss, Dr., 1904-1991", "Seuss"),
        ("Smith, John, b. 1950", "John Smith"),
        ("Abudarham, David ben Joseph, active 14th century", "David ben Joseph Abudarham"),
        ("Smith, John, Ph.D.", "John Smith"),
        ("Bridgham, Gladys Ruth. [from old catalog]", "Gladys Ruth Bridgham"),
        ("Jean-Paul Sartre", "Sartre, Jean Paul"),
    ],
)
def test_variants_meet(a: str, b: str) -> None:
    assert meet(a, b), (name_variants(a), name_variants(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Henry Thomas", "Thomas Henry"),
        ("Kurt Vonnegut Jr.", "Kurt Vonnegut"),
        ("Gabriel Garcia Marquez", "Gabriel García Márquez"),
        ("John Smith", "John Smyth"),
    ],
)
def test_others_do_not(a: str, b: str) -> None:
    assert not meet(a, b)


def test_accents_are_taken_off_on_request() -> None:
    assert name_variants("García, José", fold_marks=True)[0] == "jose garcia"


@given(st.text(max_size=40))
def test_a_key_is_its_own_variant(name: str) -> None:
    for key in name_variants(name):
        assert key == " ".join(key.split())
        assert key in name_variants(key)


@pytest.mark.parametrize("name", ["NA", "Anonymous", "VARIOUS", "various,", "A", "1984", "x.", ""])
def test_placeholders(name: str) -> None:
    keys = pl.DataFrame({"key": name_variants(name)}, schema={"key": pl.String})
    assert keys.select(is_placeholder(pl.col("key"), placeholders())).to_series().all()


def test_own_placeholders(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("# house names\nEllery Queen  # two cousins\n")
    assert "ellery queen" in placeholders(file)
    assert "various" in placeholders(file)
    with pytest.raises(DataError, match="cannot be read"):
        placeholders(tmp_path / "none.txt")
