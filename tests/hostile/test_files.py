"""Hostile data files: one line of the table each -> what is said, and the exit code."""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

Content = str | bytes | Callable[[Path], object]

INTERACTIONS, LABELS, RECOMMENDATIONS = "interactions", "labels", "recommendations"
TEXTS, DECISIONS, USERS, ITEMS, GROUPS = "texts", "decisions", "users", "items", "text-groups"


def parquet(**columns: Any) -> Callable[[Path], object]:
    """A Parquet file of these columns."""
    return lambda path: pl.DataFrame(columns, strict=False).write_parquet(path)


def series(dtype: Any, *values: Any) -> pl.Series:
    return pl.Series(values, dtype=dtype)


def cut_parquet(path: Path) -> None:
    pl.DataFrame({"user": range(100), "item": range(100)}).write_parquet(path)
    path.write_bytes(path.read_bytes()[:-40])


def flipped_parquet(path: Path) -> None:
    pl.DataFrame({"user": list(map(str, range(500))), "item": range(500)}).write_parquet(path)
    content = bytearray(path.read_bytes())
    content[60:400] = bytes(b ^ 0xA5 for b in content[60:400])
    path.write_bytes(content)


def zip_bytes() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("a.csv", "user,item\n1,2\n")
    return made.getvalue()


def npy_bytes() -> bytes:
    made = io.BytesIO()
    np.save(made, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return made.getvalue()


# name of the file, what it holds, what it is read as, what is said, exit code
ROWS: list[tuple[str, Content, str, str, int]] = [
    # no table at all
    ("empty.csv", "", INTERACTIONS, "empty (0 bytes)", 2),
    ("empty.parquet", b"", INTERACTIONS, "empty (0 bytes)", 2),
    ("head-only.csv", "user,item\n", INTERACTIONS, "has no rows", 2),
    ("blank-lines.csv", "\n\n\n", INTERACTIONS, "cannot be read as a table: empty CSV", 2),
    ("nul.csv", b"\0" * 50, INTERACTIONS, "column 'user' is missing (found: ␀", 2),
    ("random.parquet", bytes(range(256)) * 4, INTERACTIONS, "cannot be read as a table", 2),
    ("magic-only.parquet", b"PAR1PAR1", INTERACTIONS, "cannot be read as a table", 2),
    ("cut.parquet", cut_parquet, INTERACTIONS, "cannot be read as a table", 2),
    ("flipped.parquet", flipped_parquet, INTERACTIONS, "cannot be read as a table", 2),
    ("zip.csv", zip_bytes(), INTERACTIONS, "1 users", 0),
    ("zip.parquet", zip_bytes(), INTERACTIONS, "cannot be read as a table", 2),
    ("pickle.pkl", b"\x80\x04c", INTERACTIONS, "'.pkl' are not read", 2),
    ("array.npy", npy_bytes(), INTERACTIONS, "'.npy' are not read", 2),
    ("book.xlsx", zip_bytes(), INTERACTIONS, "'.xlsx' are not read", 2),
    ("noending", "user,item\n1,2\n", INTERACTIONS, "1 users", 0),
    ("folder.csv", lambda path: path.mkdir(), INTERACTIONS, "is not a regular file", 2),
    ("loop.csv", lambda path: path.symlink_to(path), INTERACTIONS, "there is no file", 2),
    ("utf16.csv", "user,item\n1,2\n".encode("utf-16"), INTERACTIONS, "1 users", 0),
    ("latin1.csv", "user,item\ncaf\xe9,1\n".encode("latin-1"), INTERACTIONS, "1 users", 0),
    ("html.csv", "<html><body>404</body></html>", INTERACTIONS, "column 'user' is missing", 2),
    # CSV that is broken
    ("open-quote.csv", 'user,item\n"1,' + "x" * 100_000, INTERACTIONS, "cannot be read as a table", 2),
    ("ragged.csv", "user,item\n1,2\n3\n4,5,6\n", INTERACTIONS, "found more fields", 2),
    ("semicolons.csv", "user;item\n1;2\n", INTERACTIONS, "1 users", 0),
    ("tabs.csv", "user\titem\n1\t2\n", INTERACTIONS, "1 users", 0),
    ("no-head.csv", "1,2\n3,4\n", INTERACTIONS, "column 'user' is missing", 2),
    ("two-users.csv", "user,user,item\n1,9,2\n", INTERACTIONS, "'user' is there twice", 2),
    ("typo.csv", "users,item\n1,2\n", INTERACTIONS, "is 'users' meant? rename it", 2),
    ("case.csv", "User,Item\n1,2\n", INTERACTIONS, "1 users", 0),
    ("spaces.csv", " user, item\n1,2\n", INTERACTIONS, "1 users", 0),
    ("bom.csv", "\ufeffuser,item\n1,2\n", INTERACTIONS, "1 users", 0),
    ("wide-head.csv", ",".join(f"c{i}" for i in range(5000)) + "\n1", INTERACTIONS, "and 4,988 more", 2),
    ("escape.csv", "\x1b[31muser\x07,item\u202e\n1,2\n", INTERACTIONS, "column 'user' is missing", 2),
    # interactions
    ("missing-id.csv", "user,item\n,2\n3,4\n", INTERACTIONS, "'user' is missing in row", 2),
    ("fraction-id.parquet", parquet(user=[1.5], item=[1]), INTERACTIONS, "Float64", 2),
    ("null-ids.parquet", parquet(user=[None], item=[1]), INTERACTIONS, "holds Null", 2),
    ("struct-id.parquet", parquet(user=[{"a": 1}], item=[1]), INTERACTIONS, "Struct", 2),
    ("list-id.parquet", parquet(user=[[1]], item=[1]), INTERACTIONS, "List", 2),
    ("binary-id.parquet", parquet(user=[b"x"], item=[1]), INTERACTIONS, "Binary", 2),
    ("date-id.parquet", parquet(user=series(pl.Date, 1), item=[1]), INTERACTIONS, "Date", 2),
    ("bool-id.parquet", parquet(user=[True], item=[1]), INTERACTIONS, "Boolean", 2),
    ("unsigned-id.parquet", parquet(user=series(pl.UInt64, 2**64 - 1), item=[1]), INTERACTIONS, "1 users", 0),
    ("huge-id.csv", f"user,item\n{10**30},1\n", INTERACTIONS, "1 users", 0),
    ("word-rating.csv", "user,item,rating\n1,2,good\n", INTERACTIONS, "'rating': holds 'good'", 2),
    ("nan-rating.csv", "user,item,rating\n1,2,nan\n", INTERACTIONS, "'rating' is missing in row 1", 2),
    ("inf-rating.csv", "user,item,rating\n1,2,inf\n", INTERACTIONS, "infinite", 2),
    ("huge-rating.csv", "user,item,rating\n1,2,1e39\n", INTERACTIONS, "above 3.4", 2),
    ("no-rating.csv", "user,item,rating\n1,2,\n1,3,4\n", INTERACTIONS, "'rating' is missing in row 1", 2),
    ("twice.csv", "user,item\n1,2\n1,2\n", INTERACTIONS, "the same user and item again in row 2", 2),
    ("odd-time.csv", "user,item,time\n1,2,soon\n", INTERACTIONS, "no date", 2),
    ("inf-time.csv", "user,item,time\n1,2,inf\n", INTERACTIONS, "infinite", 2),
    ("feb30.csv", "user,item,time\n1,2,2024-02-30\n", INTERACTIONS, "no date", 2),
    # JSON lines
    ("torn.jsonl", '{"user": 1, "item": 2}\n{"user": 1, "ite', INTERACTIONS, "cannot be read as a table", 2),
    ("array.jsonl", '[{"user": 1, "item": 2}]', INTERACTIONS, "1 users", 0),
    ("number.jsonl", "1\n2\n", INTERACTIONS, "expected to contain JSON object", 2),
    ("mixed-ids.jsonl", '{"user": 1, "item": 2}\n{"user": "a", "item": 3}\n', INTERACTIONS, "2 users", 0),
    ("deep.jsonl", '{"user":' + "[" * 3000 + "]" * 3000 + ',"item":1}', INTERACTIONS, "cannot be read as a table", 2),
    ("surrogate.jsonl", '{"id": 1, "text": "\\ud800 x"}\n', TEXTS, "half a character", 2),
    ("long-number.jsonl", '{"user": ' + "9" * 6000 + ', "item": 1}', INTERACTIONS, "InvalidNumber", 2),
    ("same-key.jsonl", '{"user": 1, "item": 2, "user": 3}\n', INTERACTIONS, "the key 'user' twice", 2),
    ("same-key-2.jsonl", '{"user": 1, "item": 2}\n{"user": 1, "item": 2, "item": 3}\n', INTERACTIONS, "line 2", 2),
    ("pair.jsonl", '{"id": 1, "text": "\\ud83d\\ude00 x"}\n', TEXTS, "1 texts", 0),
    ("nan.jsonl", '{"user": 1, "item": 2, "rating": NaN}\n', INTERACTIONS, "rating", 2),
    ("object.json", '{"data": [{"user": 1, "item": 2}]}', INTERACTIONS, "1 users", 0),
    ("deep.json", "[" * 1_000 + "]" * 1_000, INTERACTIONS, "nested more than", 2),
    # limits
    ("bomb.csv.gz", lambda path: path.write_bytes(gzip.compress(b"user,item\n" + b"1,2\n" * 2_000)), INTERACTIONS, "unpacks to more than", 2),
    ("cut.csv.gz", lambda path: path.write_bytes(gzip.compress(b"user,item\n1,2\n")[:-9]), INTERACTIONS, "cannot be unpacked", 2),
    ("very-wide.csv", ",".join(f"c{i}" for i in range(30_000)) + "\n1", INTERACTIONS, "30,000 columns", 2),
    ("pipe.csv", os.mkfifo, INTERACTIONS, "is not a regular file", 2),
    ("float-ids.parquet", parquet(user=[2.0**60, 1.0], item=[1, 2]), INTERACTIONS, "beyond 2^53", 2),
    ("mixed-units.csv", "user,item,time\n1,1,1700000000\n1,2,1700000000000\n", INTERACTIONS, "s and ms since 1970 are mixed", 2),
    # labels
    ("flag2.csv", "item,label,present\n1,w,2\n", LABELS, "neither 0 nor 1", 2),
    ("flag-word.csv", "item,label,present\n1,w,perhaps\n", LABELS, "true/false or 0/1", 2),
    ("votes-negative.csv", "item,label,yes,no\n1,w,-1,0\n", LABELS, "below 0", 2),
    ("votes-wrap.csv", "item,label,yes,no\n1,w,4294967297,0\n", LABELS, "above 1073741824", 2),
    ("votes-fraction.csv", "item,label,yes,no\n1,w,1.5,0\n", LABELS, "whole numbers", 2),
    ("votes-half.csv", "item,label,yes\n1,w,1\n", LABELS, "column 'no' is missing", 2),
    ("both-forms.csv", "item,label,present,yes,no\n1,w,1,1,0\n", LABELS, "yes and no as well as present", 2),
    ("conflict.csv", "item,label,present\n1,w,1\n1,w,0\n", LABELS, "the same item and label again", 2),
    ("state9.parquet", parquet(item=[1], label=["w"], state=series(pl.Int8, 9)), LABELS, "'state' is above 1", 2),
    ("blank-label.csv", 'item,label\n1,""\n', LABELS, "is an empty word in row 1", 2),
    # recommendations
    ("rank0.csv", "user,item,rank\n1,2,0\n1,3,-1\n", RECOMMENDATIONS, "'rank' is below 0", 2),
    ("rank-twice.csv", "user,item,rank\n1,2,1\n1,3,1\n", RECOMMENDATIONS, "has a rank again", 2),
    ("item-twice.csv", "user,item,rank\n1,2,1\n1,2,2\n", RECOMMENDATIONS, "recommends an item again", 2),
    ("rank-tens.csv", "user,item,rank\n1,2,10\n1,3,20\n", RECOMMENDATIONS, "rank is larger than the length of its list in rows 1, 2", 2),
    ("rank-half.csv", "user,item,rank\n1,2,1.5\n", RECOMMENDATIONS, "whole numbers", 2),
    ("rank-huge.csv", f"user,item,rank\n1,2,{2**63}\n", RECOMMENDATIONS, "rank-huge.csv: 1 fault", 2),
    ("no-order.csv", "user,item\n1,2\n", RECOMMENDATIONS, "users=array([1])", 0),
    ("score-nan.csv", "user,item,score\n1,2,nan\n", RECOMMENDATIONS, "'score' is missing in row 1", 2),
    ("score-huge.csv", "user,item,score\n1,2,1e300\n1,3,1e301\n", RECOMMENDATIONS, "above 3.4", 2),
    ("score-inf.csv", "user,item,score\n1,2,inf\n", RECOMMENDATIONS, "infinite", 2),
    # texts and decisions
    ("text-number.csv", "id,text\n1,2\n", TEXTS, "strings were expected", 2),
    ("text-missing.csv", "id,text\n1,\n", TEXTS, "missing in every row", 2),
    ("id-twice.csv", "id,text\n1,a\n1,b\n", TEXTS, "repeats an id with other values in row 2", 2),
    ("label-2.csv", "text,label\na,1\nb,2\nc,-1\n", TEXTS, "neither 0 nor 1 in rows 2, 3", 2),
    ("label-words.csv", "text,label\na,toxic\n", TEXTS, "true/false or 0/1", 2),
    ("decision-2.csv", "id,flagged\na,2\n", DECISIONS, "neither 0 nor 1", 2),
    ("decision-word.csv", "id,outcome\na,perhaps\n", DECISIONS, "none of allowed, flagged", 2),
    ("decision-none.csv", "id\na\n", DECISIONS, "'flagged' or 'score' is needed", 2),
    ("decision-twice.csv", "id,flagged\na,1\na,0\n", DECISIONS, "decided again in row 2", 2),
    ("decision-score.csv", "id,score\na,1e39\n", DECISIONS, "above 3.4", 2),
    ("decision-nan.csv", "id,score\na,nan\n", DECISIONS, "1 error", 0),
    ("decision-both.csv", "id,outcome,flagged\na,allowed,1\n", DECISIONS, "disagree in row 1", 2),
    # groups and items
    ("user-twice.csv", "user,gender\n1,a\n1,b\n", USERS, "'user' repeats an id", 2),
    ("user-alone.csv", "user\n1\n", USERS, "no attribute beside 'user'", 2),
    ("user-float.parquet", parquet(user=[1], age=[1.5]), USERS, "cut numbers into bands", 2),
    ("group-missing.csv", "id,tone\n,a\n", GROUPS, "is missing in row", 2),
    ("many-groups.csv", "user,g\n" + "".join(f"{i},g{i}\n" for i in range(3000)), USERS, "a group of its own", 2),
    ("item-twice2.csv", "item,genre\n1,a\n1,b\n", ITEMS, "the same item again in row 2", 2),
    # files whose columns are looked at first
    ("broken.parquet", b"PAR1" * 20, USERS, "cannot be read as a table", 2),
    ("torn2.jsonl", '{"item": 1, "lab', LABELS, "cannot be read as a table", 2),
    ("latin1-2.csv", b"user,g\xe9\n1,a\n2,b\n", USERS, "2 groups of 2 units", 0),
    ("latin1-3.csv", b"item,g\xe9\n1,a\n", ITEMS, "1 items", 0),
    ("members.csv", "user,group\n1,\n", USERS, "'group' is missing in row 1", 2),
    ("category-json.csv", 'id,flagged,categories\na,1,"{broken"\n', DECISIONS, "must hold JSON objects", 2),
    ("category-deep.csv", 'id,flagged,categories\na,1,' + "[" * 5000 + "\n", DECISIONS, "must hold JSON objects", 2),
    ("category-list.csv", 'id,flagged,categories\na,1,"[1]"\n', DECISIONS, "must hold JSON objects", 2),
    ("category-huge.csv", 'id,flagged,categories\na,1,"{""x"": 1e999}"\n', DECISIONS, "a score is beyond 3.4e+38", 2),
    ("category-word.csv", 'id,flagged,categories\na,1,"{""x"": ""y""}"\n', DECISIONS, "could not convert", 2),
    ("wide-id.parquet", parquet(user=series(pl.Int128, 2**100), item=[1]), INTERACTIONS, "1 users", 0),
    ("wide-votes.parquet", parquet(item=[1], label=["w"], yes=series(pl.UInt64, 2**64 - 1), no=[0]), LABELS, "above", 2),
    ("zero-width.csv", "user,item\n\u200b1\u202e,2\n", INTERACTIONS, "1 users", 0),
    ("formula.csv", "user,g\n=cmd|' /C calc'!A0,a\n2,b\n", USERS, "2 groups of 2 units", 0),
    ("crlf.csv", "user,item\r\n1,2\r\n", INTERACTIONS, "1 users", 0),
    ("duration.parquet", parquet(user=[1], item=[1], time=series(pl.Duration, 5)), INTERACTIONS, "numbers or dates were expected", 2),
    ("decimal.parquet", parquet(user=[1], item=[1], rating=series(pl.Decimal(10, 2), 4)), INTERACTIONS, "1 users", 0),
    ("object-text.parquet", parquet(id=[1], text=[b"\xff\xfe"]), TEXTS, "strings were expected", 2),
    ("enum-id.parquet", parquet(user=series(pl.Enum(["a"]), "a"), item=[1]), INTERACTIONS, "1 users", 0),
    ("label-list.parquet", parquet(item=[1], label=[["a"]]), LABELS, "strings were expected", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "form", "said", "code"), ROWS, ids=[r[0] for r in ROWS]
)
def test_a_hostile_file(
    name: str,
    content: Content,
    form: str,
    said: str,
    code: int,
    told: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ombud.data.reading.MAX_UNPACKED", 5_000)
    path = tmp_path / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert said in told("data", "check", path, "--as", form, code=code)
