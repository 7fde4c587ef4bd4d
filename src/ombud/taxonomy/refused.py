"""Labels that are never stored or shown: sexual content involving minors."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import cache

from ombud.taxonomy.resources import data_folder

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
