"""The data files that come with the package, found by ``name@version``."""

from __future__ import annotations

import csv
import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from ombud.errors import DataError, RegistryError

_KEY = re.compile(r"^(?P<name>[a-z0-9-]+)@(?P<version>[1-9][0-9]*)$")


def data_folder() -> Traversable:
    """Return the folder of data files inside the installed package."""
    return files("ombud.taxonomy").joinpath("files")


def versioned_keys(suffix: str, folder: str = "") -> tuple[str, ...]:
    """Return every ``name@version`` that has a data file with `suffix`, sorted by name and version.

    Parameters
    ----------
    suffix
        How the file's name ends, such as ``.toml``.
    folder
        The subfolder to look in; empty for the folder of taxonomies itself.

    Examples
    --------
    >>> "delicate@1" in versioned_keys(".toml")
    True
    """
    keys = [
        match
        for entry in data_folder().joinpath(folder).iterdir()
        if entry.name.endswith(suffix) and (match := _KEY.match(entry.name.removesuffix(suffix)))
    ]
    ordered = sorted(keys, key=lambda match: (match["name"], int(match["version"])))
    return tuple(match[0] for match in ordered)


def find_versioned(key: str, suffix: str, what: str, folder: str = "") -> tuple[str, Traversable]:
    """Return the full key and the file of `key`; a bare name means its newest version."""
    known = versioned_keys(suffix, folder)
    if key not in known:
        newest = [full for full in known if full.rpartition("@")[0] == key]
        if not newest:
            raise RegistryError(
                f"no {what} is named {key!r}. There are: {', '.join(known)}. "
                f"A file of your own is read with the matching read_ function."
            )
        key = newest[-1]
    return key, data_folder().joinpath(folder, key + suffix)


def parse_commented_csv(
    text: str, source: str, required: Iterable[str]
) -> tuple[dict[str, str], list[tuple[int, dict[str, str]]]]:
    """Split a CSV file into the ``# key: value`` lines on top and its numbered rows.

    Parameters
    ----------
    text
        The whole file. Lines that start with ``#`` before the header are metadata.
    source
        The file, as the reader would name it.
    required
        Columns that must be there.

    Returns
    -------
    tuple
        The metadata, and ``(line number, row)`` for every row.
    """
    lines = text.removeprefix("\ufeff").splitlines(keepends=True)
    comments = 0
    meta: dict[str, str] = {}
    for line in lines:
        if not line.startswith("#"):
            break
        comments += 1
        key, colon, value = line[1:].partition(":")
        if colon:
            meta[key.strip()] = value.strip()
    reader = csv.DictReader(lines[comments:], strict=True)
    missing = [column for column in required if column not in (reader.fieldnames or ())]
    if missing:
        result = ", ".join(reader.fieldnames or ()) or "no header"
        raise DataError(
            source, [f"found columns {result}; expected also {', '.join(missing)}: add them"]
        )
    rows: list[tuple[int, dict[str, str]]] = []
    ragged: list[int] = []
    try:
        for row in reader:
            number = comments + reader.line_num
            if None in row or None in row.values():
                ragged.append(number)
            else:
                rows.append((number, row))
    except csv.Error as error:
        raise DataError(source, [f"line {comments + reader.line_num}: not CSV ({error})"]) from None
    if ragged:
        raise DataError(
            source, [f"{rows_in_words(ragged)}: not as many fields as the header has columns"]
        )
    return meta, rows


def rows_in_words(numbers: list[int], shown: int = 10) -> str:
    """Name rows by number, the first few of many.

    Examples
    --------
    >>> rows_in_words([3, 8])
    'rows 3, 8'
    >>> rows_in_words([4])
    'row 4'
    >>> rows_in_words(list(range(100)), shown=3)
    'rows 0, 1, 2 and 97 more'
    """
    listed = ", ".join(str(number) for number in numbers[:shown])
    more = f" and {len(numbers) - shown} more" if len(numbers) > shown else ""
    return f"row{'s' if len(numbers) != 1 else ''} {listed}{more}"


# Labels that are never stored or shown: sexual content involving minors.


_NOT_WORD = re.compile(r"[\W_]+")


def spelling_key(name: str) -> str:
    """Reduce a label's spelling to what two spellings of one label share.

    Case, punctuation and spacing go; words stay.

    Examples
    --------
    >>> spelling_key("Is there blood/gore?") == spelling_key("is-there-blood-gore")
    True
    """
    folded = unicodedata.normalize("NFKC", name).casefold().replace("'", "").replace("\u2019", "")
    return _NOT_WORD.sub(" ", folded).strip()


@cache
def _refused_spellings() -> frozenset[str]:
    text = data_folder().joinpath("refused", "refused@1.toml").read_text(encoding="utf-8")
    return frozenset(spelling_key(name) for name in tomllib.loads(text)["spellings"])


def is_refused(name: str) -> bool:
    """Say whether a label, in any taxonomy, stands for sexual content involving minors.

    Loaders drop rows with such a label, count them, and name neither row nor label.

    Examples
    --------
    >>> is_refused("blood-gore")
    False
    """
    return spelling_key(name) in _refused_spellings()
