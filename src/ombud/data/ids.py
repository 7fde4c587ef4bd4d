"""Original ids on one side, small integers on the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ombud.errors import DataError
from ombud.stats.bootstrap.binned import Keys, mixed

Ids: TypeAlias = "NDArray[Any] | Sequence[Any] | pa.Array | pa.ChunkedArray"
Codes: TypeAlias = NDArray[np.int32]


_THOUSANDS = r"^[1-9][0-9]{0,2}([,.' ][0-9]{3})+$"


def _to_arrow(values: Ids) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, np.ndarray) and values.dtype.kind in "UO":
        return pa.array(values.tolist())
    return pa.array(values)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _alike(own: pa.Array, wanted: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return ids of two tables in one type: 17 and "17" meet, and "017" is neither."""
    if _is_text(own.type) == _is_text(wanted.type):
        return own, wanted.cast(own.type)
    return own.cast(pa.string()), wanted.cast(pa.string())


def _spellings(ids: pa.Array) -> list[tuple[pa.Array, pa.Array]]:
    """Return ids with leading zeros, and with thousands separators; each beside the plain ones."""
    pairs = []
    for odd, cut, made in (("^0+[0-9]+$", "^0+([0-9])", r"\1"), (_THOUSANDS, "[,.' ]", "")):
        some = ids.filter(pc.match_substring_regex(ids, odd))
        pairs += [(some, pc.replace_substring_regex(some, cut, made))] if len(some) else []
    return pairs


def _refuse_spelling(some: pa.Array, bare: pa.Array, others: pa.Array) -> None:
    """Refuse ids that differ from others in their spelling alone: is 017 17? We cannot know."""
    meets = pc.is_in(bare, value_set=others)
    if pc.any(meets).as_py():
        first, other = some.filter(meets)[0].as_py(), bare.filter(meets)[0].as_py()
        fault = (
            f"the id {first!r} of one table may be {other!r} of another, which is written "
            "without leading zeros and thousands separators. Write both the same way, or "
            'set ids = "numbers" where the first is read: [data.reading.TABLE] or [systems.'
            "NAME.reading] of a plan, --read TABLE.ids=numbers of ombud audit"
        )
        raise DataError("ids", [fault])


def _encode_whole_numbers(array: pa.Array) -> tuple[pa.Array, Codes] | None:
    """Encode whole numbers of a small range by counting; None when that does not fit."""
    if not pa.types.is_integer(array.type) or array.null_count or len(array) == 0:
        return None
    numbers = array.to_numpy(zero_copy_only=False)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 4 * len(numbers) + 1024 or high >= 2**62 or low < -(2**62):
        return None
    # Wide enough for a difference of narrow numbers.
    offsets = numbers.astype(np.int64) - low
    present = np.zeros(high - low + 1, dtype=bool)
    present[offsets] = True
    ranks = np.cumsum(present, dtype=np.int32) - np.int32(1)
    ids = (np.flatnonzero(present) + low).astype(numbers.dtype)
    return pa.array(ids, type=array.type), ranks[offsets]


def _codes_of_whole_numbers(own: pa.Array, wanted: pa.Array) -> Codes | None:
    """Look codes up in a table of numbers that lie close together; None if they do not."""
    if not pa.types.is_integer(own.type) or own.null_count or wanted.null_count:
        return None
    numbers = own.to_numpy(zero_copy_only=False)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > 4 * len(numbers) + 1024 or high >= 2**62 or low < -(2**62):
        return None
    table = np.full(high - low + 2, -1, dtype=np.int32)
    table[numbers.astype(np.int64) - low] = np.arange(len(numbers), dtype=np.int32)
    # Numbers outside share the last place, which is nobody's; so do those that 64 bits turn round.
    asked = wanted.to_numpy(zero_copy_only=False).astype(np.int64)
    inside = (asked >= low) & (asked <= high)
    codes: Codes = table[np.where(inside, asked, high + 1) - low]
    return codes


FROM_ZERO = (
    "its ids start with 0 and those of the texts with 1: if both are row numbers, add 1 to its "
    "ids; if not, remove id 0"
)


def counted_from_zero(ids: Ids, known: Ids, whole: bool = False) -> bool:
    """Whether ids start with 0 and the known ones with 1: both may be row numbers.

    They are, if the `whole` range is there on both sides.

    Examples
    --------
    >>> counted_from_zero([0, 1, 2], [1, 2, 3]), counted_from_zero([0, 1, 3], [1, 2, 3])
    (True, False)
    """
    own, others = np.unique(ids), np.unique(known)
    if own.dtype.kind not in "iu" or others.dtype.kind not in "iu" or not own.size * others.size:
        return False
    every = own.size == own[-1] + 1 and others.size == others[-1]
    return bool(own[0] == 0 and others[0] == 1 and own[-1] < others[-1] and (every or not whole))


def hash_ids(ids: Ids) -> Keys:
    """Return 64-bit keys of ids, the same on every machine and with every version.

    Whole numbers have the key of their value whatever their width, strings that of their UTF-8.

    Examples
    --------
    >>> hash_ids([7, 8])[0] == hash_ids(np.array([7], dtype=np.int16))[0]
    np.True_
    >>> len(set(hash_ids(["a", "b", "a longer id", "a longer id!"]).tolist()))
    4
    """
    array = _to_arrow(ids)
    if len(array) == 0:
        return np.empty(0, dtype=np.uint64)
    if pa.types.is_integer(array.type):
        return mixed(array.cast(pa.int64()).to_numpy(zero_copy_only=False))
    binary = array.cast(pa.large_string()).cast(pa.large_binary())
    _, ends, content = binary.buffers()
    starts = np.frombuffer(ends, dtype=np.int64)[binary.offset : binary.offset + len(binary) + 1]
    text = np.frombuffer(content or b"", dtype=np.uint8)
    lengths = np.diff(starts)
    keys = mixed(lengths)
    # Eight bytes of every string that is so long at a time; what is past an end is zero.
    for done in range(0, int(lengths.max()), 8):
        active = np.flatnonzero(lengths > done)
        offsets = np.arange(8)
        place = (starts[active] + done)[:, None] + offsets
        inside = offsets < (lengths[active] - done)[:, None]
        words = np.where(inside, text[np.where(inside, place, 0)], np.uint8(0))
        keys[active] = mixed(keys[active] ^ words.view("<u8")[:, 0])
    return keys


class Vocabulary:
    """The distinct ids of one kind (users, items, texts), sorted, each with a 32-bit code.

    Parameters
    ----------
    ids
        Distinct ids: integers or strings, not both.

    Examples
    --------
    >>> vocabulary, codes = Vocabulary.encode(["b", "a", "b"])
    >>> codes.tolist(), vocabulary.ids.tolist()
    ([1, 0, 1], ['a', 'b'])
    >>> vocabulary.codes(["a", "z"]).tolist()
    [0, -1]
    """

    __slots__ = ("_arrow", "_ids", "_odd")

    def __init__(self, ids: Ids) -> None:
        self._arrow = _to_arrow(ids)
        self._ids: NDArray[Any] | None = None
        self._odd: list[tuple[pa.Array, pa.Array]] | None = None

    @classmethod
    def encode(cls, values: Ids) -> tuple[Self, Codes]:
        """Return the vocabulary of some values and the code of each value."""
        array = _to_arrow(values)
        small = _encode_whole_numbers(array)
        if small is not None:
            return cls(small[0]), small[1]
        encoded = array.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        codes = rank[encoded.indices.to_numpy(zero_copy_only=False)]
        return cls(encoded.dictionary.take(pa.array(order))), codes

    @classmethod
    def union(cls, named: Mapping[str, Vocabulary]) -> Self:
        """Return all ids of several vocabularies, as texts where some are texts."""
        used = [v for v in named.values() if len(v)]
        kinds = [v.arrow.type for v in used]
        kind = next((k for k in kinds if _is_text(k)), kinds[0] if kinds else None)
        every = [v.arrow.cast(kind) for v in used]
        return cls.encode(pa.concat_arrays(every) if every else [])[0]

    @property
    def ids(self) -> NDArray[Any]:
        """The ids in code order."""
        if self._ids is None:
            self._ids = self._arrow.to_numpy(zero_copy_only=False)
            self._ids.flags.writeable = False
        return self._ids

    @property
    def arrow(self) -> pa.Array:
        """The ids in code order, as an Arrow array."""
        return self._arrow

    def __len__(self) -> int:
        return len(self._arrow)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and bool(self._arrow.equals(other._arrow))

    def __hash__(self) -> int:
        return hash((len(self._arrow), str(self._arrow.type)))

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} ids of type {self._arrow.type})"

    def codes(self, values: Ids) -> Codes:
        """Return the code of each value; -1 for a value that is not in the vocabulary."""
        wanted = _to_arrow(values)
        if len(wanted) == 0:
            return np.empty(0, dtype=np.int32)
        if len(self) == 0:
            return np.full(len(wanted), -1, dtype=np.int32)
        own = self._arrow
        if wanted.type != own.type:
            own, wanted = _alike(own, wanted)
        if len(wanted) == len(self) and wanted.equals(own):
            return np.arange(len(self), dtype=np.int32)
        near = _codes_of_whole_numbers(own, wanted)
        if near is not None:
            return near
        result = pc.index_in(wanted, value_set=own)
        if result.null_count and _is_text(own.type):
            lost = wanted.filter(result.is_null())
            if self._odd is None:  # looked for once, since ids are looked up block by block
                self._odd = _spellings(own)
            for some, bare in self._odd:
                _refuse_spelling(some, bare, lost)
            for some, bare in _spellings(lost):
                _refuse_spelling(some, bare, own)
        return np.array(result.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int32)

    def take(self, codes: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """Return the ids of some codes; None where the code is -1."""
        indices = pa.array(codes, mask=np.asarray(codes) < 0)
        return np.asarray(self._arrow.take(indices).to_numpy(zero_copy_only=False))
