"""Files that say which keywords stand for which warnings."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from ombud.data.exclusions import Exclusion
from ombud.errors import DataError
from ombud.files import read_utf8
from ombud.taxonomy import load_taxonomy
from ombud.taxonomy.resources import is_refused, parse_commented_csv


@dataclass(frozen=True)
class KeywordMapping:
    """Which keywords stand for which warnings."""

    name: str  # The name of the mapping, or its file
    taxonomy: str  # The taxonomy of the warnings, ``name@version``
    pairs: tuple[tuple[str, str], ...] = field(repr=False)  # Keyword and id of the warning
    exclusions: tuple[Exclusion, ...] = ()  # What was excluded while reading

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings that some keyword stands for, in the order of the taxonomy."""
        used = {warning for _, warning in self.pairs}
        return tuple(label for label in load_taxonomy(self.taxonomy).ids if label in used)


def mapping_names() -> tuple[str, ...]:
    """Return the mappings that come with the package.

    Examples
    --------
    >>> mapping_names()
    ('tmdb-to-ao3@1', 'tmdb-to-ddd@1')
    """
    folder = files("ombud.data.sources").joinpath("files")
    names = [entry.name for entry in folder.iterdir() if entry.name.startswith("tmdb-to-")]
    return tuple(sorted(name.removesuffix(".csv") for name in names))


def read_mapping(mapping: str | Path = "tmdb-to-ddd@1") -> KeywordMapping:
    """Read a mapping: one that comes with the package, or a CSV file of your own.

    The file has columns `keyword`, `warning` and optionally `note`, and above them a line
    ``# taxonomy: warnings-ddd@1``. All its faults come in one error.

    `mapping` is a name of `mapping_names`, or a path.
    """
    name = str(mapping)
    if name in mapping_names():
        file = files("ombud.data.sources").joinpath("files", f"{name}.csv")
        text = file.read_text(encoding="utf-8")
    else:
        path = Path(mapping)
        if not path.is_file():
            known = ", ".join(mapping_names())
            raise DataError(name, [f"there is no such file, and no such mapping (known: {known})"])
        text = read_utf8(path)
    meta, rows = parse_commented_csv(text, name, ("keyword", "warning"))
    taxonomy = load_taxonomy(meta.get("taxonomy", "warnings-ddd@1"))
    faults: list[str] = []
    pairs: dict[tuple[str, str], int] = {}
    refused = 0
    for line, row in rows:
        keyword, spelling = row["keyword"].strip(), row["warning"].strip()
        if is_refused(keyword) or taxonomy.is_refused(spelling):
            refused += 1
            continue
        warning = taxonomy.resolve(spelling)
        if not keyword:
            faults.append(f"line {line}: the keyword is empty")
        if warning not in taxonomy.ids:
            faults.append(f"line {line}: {spelling!r:.80} is no warning of {taxonomy.key}")
        elif (keyword, warning) in pairs:
            first = pairs[keyword, warning]
            faults.append(f"line {line}: the same keyword and warning as in line {first}")
        elif warning is not None:
            pairs[keyword, warning] = line
    if not pairs and not faults:
        faults.append("it maps no keyword")
    if faults:
        raise DataError(name, faults)
    dropped: tuple[Exclusion, ...] = ()
    if refused:
        reason = "labels that ombud refuses to store"
        dropped = (Exclusion("mapping", "rows", refused, reason, len(rows)),)
    return KeywordMapping(name, taxonomy.key, tuple(pairs), dropped)
