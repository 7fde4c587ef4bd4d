"""ISBNs: hand-worked examples, an independent check, and round trips."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.link.isbn import extract_isbns, isbn_key, isbn_text, isbn_texts


def found(text: str) -> list[str]:
    return [isbn_text(key) for key in extract_isbns(pl.Series([text]))["isbn"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("080442957X", ["9780804429573"]),
        ("080442957x", ["9780804429573"]),
        ("0-8044-2957-X (pbk.) : $12.95", ["9780804429573"]),
        ("978 0 8044 2957 3", ["9780804429573"]),
        ("978\u20110\u20108044\u20132957\u20133", ["9780804429573"]),
        # The check digit is wrong, so there is no 13-digit form; the page number is none of it.
        ("0415123456 129", ["0415123456"]),
        ("0525230106 (v. 1) 052523011X (v. 2)", ["9780525230106", "052523011X"]),
        ("9790000000001", ["9790000000001"]),
        ("$12.95", []),
        ("no number", []),
        ("12345678901234567890", []),
        ("9780804429573 0804429570 99999", ["9780804429573", "0804429570"]),
        ("ISBN0525230106pbk", ["9780525230106"]),
        ("", []),
    ],
)
def test_texts(text: str, expected: list[str]) -> None:
    assert found(text) == expected


def ten(core: int) -> str:
    """The textbook definition: the weighted sum from 10 down to 1 is divisible by 11."""
    digits = [int(d) for d in f"{core:09d}"]
    for last in range(11):
        if (sum(w * d for w, d in zip(range(10, 1, -1), digits, strict=True)) + last) % 11 == 0:
            return f"{core:09d}{'X' if last == 10 else last}"
    raise AssertionError


def thirteen(core: int) -> str:
    digits = [int(d) for d in f"978{core:09d}"]
    for last in range(10):
        if (sum(d * (1, 3)[p % 2] for p, d in enumerate(digits)) + last) % 10 == 0:
            return f"978{core:09d}{last}"
    raise AssertionError


@given(st.integers(0, 10**9 - 1))
def test_both_forms_are_one_book(core: int) -> None:
    rows = extract_isbns(pl.Series([ten(core), thirteen(core)]))
    assert rows["isbn"].n_unique() == 1
    assert rows["valid"].all()
    assert isbn_text(rows["isbn"][0]) == thirteen(core)


@given(st.integers(0, 10**9 - 1), st.integers(0, 10))
def test_any_ten_digits_come_back(core: int, last: int) -> None:
    text = f"{core:09d}{'X' if last == 10 else last}"
    key = isbn_key(text)
    assert key is not None
    back = isbn_text(key)
    assert back == (thirteen(core) if text == ten(core) else text)
    assert pl.DataFrame({"k": [key]}).select(isbn_texts(pl.col("k"))).item() == back


@given(st.text(max_size=60))
def test_any_text_is_read(text: str) -> None:
    rows = extract_isbns(pl.Series([text]))
    assert set(rows["form"].to_list()) <= {10, 13}


def test_a_set_is_marked_at_its_own_number() -> None:
    rows = extract_isbns(pl.Series(["0525230106 (set) 0804429570 (v. 1)", None, "9780804429573"]))
    assert rows.select("row", "set").rows() == [(0, True), (0, False), (2, False)]


def test_wrong_check_digits_are_counted_and_kept_apart() -> None:
    rows = extract_isbns(pl.Series(["0525230106", "0525230107", "9780525230106", "9780525230107"]))
    assert rows["valid"].to_list() == [True, False, True, False]
    assert rows["isbn"].n_unique() == 3
