"""Pickles that do harm are refused before anything of them runs."""

from __future__ import annotations

import io
import pickle
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ombud.data.restricted_pickle import _PROPORTION, _memory, load_dictionary
from ombud.errors import DataError

VOTES = {
    "Is there blood/gore": {1: {"yesSum": 3, "noSum": 1}, 70_000: {"yesSum": 0, "noSum": 300}},
    "Does the dog die": {2**40: {"yesSum": -5, "noSum": 65_536}},
}


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "votes.pkl"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_dictionary_comes_back(tmp_path: Path, protocol: int) -> None:
    path = write(tmp_path, pickle.dumps(VOTES, protocol=protocol))
    assert load_dictionary(path) == VOTES


@pytest.mark.parametrize("protocol", [2, 4])
def test_many_memo_slots_are_read(tmp_path: Path, protocol: int) -> None:
    votes = {"w": {n: {"yesSum": n, "noSum": 1} for n in range(3000)}}
    assert load_dictionary(write(tmp_path, pickle.dumps(votes, protocol=protocol))) == votes


class Calls:
    """Pickles as a call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


class Persistent(pickle.Pickler):
    def persistent_id(self, thing: Any) -> Any:
        return "outside" if thing == "mark" else None


def persistent(protocol: int) -> bytes:
    file = io.BytesIO()
    Persistent(file, protocol).dump({"a": "mark"})
    return file.getvalue()


def touching(path: Path, protocol: int, nested: bool) -> bytes:
    harm: Any = Calls(Path.touch, path)
    return pickle.dumps({"a": {1: {"yesSum": harm}}} if nested else harm, protocol=protocol)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_call_is_refused_and_not_made(tmp_path: Path, protocol: int, nested: bool) -> None:
    trace = tmp_path / "harm"
    data = touching(trace, protocol, nested)
    pickle.loads(data)
    assert trace.exists(), "the pickle must be harmful for the test to mean anything"
    trace.unlink()
    with pytest.raises(DataError, match="refused"):
        load_dictionary(write(tmp_path, data))
    assert not trace.exists()


HARMFUL = {
    "global": b"\x80\x02cos\nsystem\n.",
    "system": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.",
    "inst": b"(S'true'\nios\nsystem\n.",
    "obj": b"\x80\x02(cos\nsystem\nX\x04\x00\x00\x00trueo.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "build": b"\x80\x02}}b.",
    "extension": b"\x80\x02\x82\x01.",
    "persistent, text": b"Poutside\n.",
    "persistent": persistent(2),
    "tuple": pickle.dumps({"a": (1, 2)}),
    "list": pickle.dumps({"a": [1]}),
    "float": pickle.dumps({"a": 0.5}),
    "bytes": pickle.dumps({"a": b"x"}),
    "buffer": b"\x80\x05\x97.",
    "dup": b"\x80\x02}2.",
    "unknown": b"\x80\x02\xff.",
    "huge text": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"x.",
    "huge number": b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".",
    "huge memo": b"\x80\x02}r" + struct.pack("<I", 2**31) + b".",
    "memo above the size": b"\x80\x02}r" + struct.pack("<I", 60_000) + b".",
    "huge frame": b"\x80\x04\x95" + struct.pack("<Q", 2**62) + b"}.",
    "cut": pickle.dumps(VOTES)[:-9],
    "no stop": b"\x80\x02}",
    "empty": b"",
    "after the end": b"\x80\x02}.cos\nsystem\n.",
    "two programs": b"\x80\x02}.\x80\x02}.",
    "not a dictionary": pickle.dumps(7),
    "underflow": b"\x80\x02u.",
    "missing memo": b"\x80\x02h\x07.",
    "unhashable key": b"\x80\x02}}K\x01s.",
    "odd items": b"\x80\x02}(K\x01u.",
    "not utf-8": b"\x80\x02}X\x01\x00\x00\x00\xff K\x01s.".replace(b" ", b""),
    "future protocol": b"\x80\xff}.",
    "not a pickle": b"<html>not found</html>",
}


@pytest.mark.parametrize("name", sorted(HARMFUL))
def test_anything_else_is_refused_in_little_memory(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, HARMFUL[name])
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"votes\.pkl.*\n.*refused"):
            load_dictionary(path)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("unit", [b"}", b"}}}K\x01s", b"}(", b"(}K\x01}s"])
def test_memory_stays_in_proportion_to_the_file(tmp_path: Path, unit: bytes) -> None:
    # Twenty million bytes of these took 1.5 GB.
    data = b"\x80\x04" + unit * ((3 << 20) // len(unit)) + b"."
    path = write(tmp_path, data)
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            load_dictionary(path)
        assert tracemalloc.get_traced_memory()[1] < _PROPORTION * len(data)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_votes_of_the_usual_form_are_in_proportion(tmp_path: Path, protocol: int) -> None:
    votes = {
        f"Does it happen {topic}": {
            movie * 17: {"yesSum": movie % 300, "noSum": (movie * 7) % 70_000}
            for movie in range(9_000)
        }
        for topic in range(8)
    }
    data = pickle.dumps(votes, protocol=protocol)
    assert len(data) > 1_000_000
    tracemalloc.start()
    try:
        assert load_dictionary(write(tmp_path, data), most_memory=_memory(data)) == votes
        assert tracemalloc.get_traced_memory()[1] < _memory(data) + 2 * len(data)
    finally:
        tracemalloc.stop()
    assert _memory(data) < 0.8 * _PROPORTION * len(data)


def test_the_memory_may_be_bounded(tmp_path: Path) -> None:
    path = write(tmp_path, pickle.dumps(VOTES))
    with pytest.raises(DataError, match="bytes of memory, and 1,000 at most"):
        load_dictionary(path, most_memory=1000)


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = write(tmp_path, pickle.dumps(VOTES))
    with pytest.raises(DataError, match="at most 10 are read"):
        load_dictionary(path, largest=10)


@given(st.binary(max_size=60), st.integers(0, 200))
def test_damaged_pickles_give_an_error_or_a_dictionary(noise: bytes, place: int) -> None:
    import tempfile

    good = pickle.dumps(VOTES, protocol=2)
    with tempfile.TemporaryDirectory() as folder:
        for data in (noise, good[:place] + noise + good[place + len(noise) :]):
            try:
                found = load_dictionary(write(Path(folder), data))
            except DataError:
                continue
            assert only_plain(found)


def only_plain(thing: Any) -> bool:
    if isinstance(thing, dict):
        return all(only_plain(key) and only_plain(value) for key, value in thing.items())
    return type(thing) in {int, str}
