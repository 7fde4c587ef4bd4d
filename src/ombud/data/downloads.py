"""Which data sets can be fetched, from where, and on whose terms."""

from __future__ import annotations

from dataclasses import dataclass

from ombud.errors import RegistryError
from ombud.http.download import RemoteFile

_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_SENSITIVITY = "https://huggingface.co/datasets/sdeangroup/NavigatingSensitivity/resolve/main"
_TERMS = "GroupLens terms: research use, acknowledgement, no commercial use without permission"
_PAGE = "https://huggingface.co/datasets/sdeangroup/NavigatingSensitivity"


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


def _movielens(name: str, title: str, file: str, md5: str = "") -> Download:
    remote = RemoteFile(f"{_GROUPLENS}/{file}", file, md5=md5, largest=1 << 30)
    return Download(
        name,
        title,
        (remote,),
        _TERMS,
        f"https://grouplens.org/datasets/movielens/ (README in {file})",
        f"path = {file!r} of the source 'movielens'",
    )


# The MD5 sums are those that GroupLens publishes beside its archives, as many projects quote them.
# Nothing could be fetched where this was written: ombud itself has not seen these files.
_DOWNLOADS = (
    _movielens(
        "movielens-25m",
        "MovieLens 25M: 25,000,095 ratings, with links to IMDb and TMDB",
        "ml-25m.zip",
        "6b51fb2759a8657d3bfcbfc42b592ada",
    ),
    _movielens(
        "movielens-1m",
        "MovieLens 1M: 1,000,209 ratings; users with gender, age, occupation",
        "ml-1m.zip",
        "c4d9eecfca2ab87c1945afe126590906",
    ),
    _movielens(
        "movielens-100k",
        "MovieLens 100K: 100,000 ratings; users with gender, age, occupation",
        "ml-100k.zip",
        "0e33842e24a9c977be4e0107933c0723",
    ),
    _movielens(
        "movielens-small",
        "MovieLens latest small: about 100,000 ratings; changes over time",
        "ml-latest-small.zip",
    ),
    Download(
        "ddd-votes",
        "Votes of Does the Dog Die on movies of MovieLens 25M (137 warnings)",
        (RemoteFile(f"{_SENSITIVITY}/ddd_dict.pkl", "ddd_dict.pkl", largest=1 << 30),),
        "The terms that its publishers and Does the Dog Die state",
        _PAGE,
        "ombud data build ml-ddd --movielens ml-25m.zip --votes ddd_dict.pkl --to ml-ddd",
    ),
    Download(
        "ao3",
        "Kudos on 306,111 works of Archive of Our Own, with 36 warnings",
        tuple(
            RemoteFile(f"{_SENSITIVITY}/{name}", name)
            for name in ("ao3_sensitivity_table.csv", "ao3_interaction_table.csv")
        ),
        "The terms that its publishers state; who likes what is sensitive: do not publish rows",
        _PAGE,
        "ombud data build ao3 --sensitivity ao3_sensitivity_table.csv "
        "--interactions ao3_interaction_table.csv --to ao3",
    ),
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
