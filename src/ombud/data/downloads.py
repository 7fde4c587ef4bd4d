"""Which data sets can be fetched, from where, and on whose terms."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from ombud.errors import RegistryError
from ombud.http.download import RemoteFile


@dataclass(frozen=True)
class Download:
    """A data set that can be fetched."""

    name: str  # What to ask for
    title: str  # What it is
    files: tuple[RemoteFile, ...]  # Its files
    # The licence in a sentence, and where to read it.
    licence: str
    terms: str
    use: str = ""  # What to do with it next


_DOWNLOADS = tuple(
    Download(name, **{**facts, "files": tuple(RemoteFile(**file) for file in facts["files"])})
    for name, facts in tomllib.loads(
        Path(__file__).with_name("downloads.toml").read_text(encoding="utf-8")
    ).items()
)


def download_names() -> tuple[str, ...]:
    """Return what can be fetched.

    Examples
    --------
    >>> download_names()
    ('ao3', 'ddd-votes', 'movielens-100k', 'movielens-1m', 'movielens-25m', 'movielens-small')
    """
    return tuple(sorted(one.name for one in _DOWNLOADS))


def get_download(name: str) -> Download:
    """Return a download by name."""
    for one in _DOWNLOADS:
        if one.name == name:
            return one
    raise RegistryError(
        f"nothing to fetch is called {name!r}; known: {', '.join(download_names())}"
    )
