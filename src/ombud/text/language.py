"""The language of texts, where no column says it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ombud.errors import require

_FEWEST_LETTERS = 20


def detect_languages(texts: Sequence[str], *, least: float = 0.8) -> NDArray[np.object_]:
    """Return the language of each text as an ISO 639-1 code, None where it cannot be told.

    By the package ``py3langid`` (extra ``language``): naive Bayes on byte n-grams, trained on
    formal texts of 97 languages. Texts of fewer than 20 letters are not tried. Mixed, slangy and
    dialectal texts are often taken for another language.

    Parameters
    ----------
    texts
        The texts.
    least
        The least probability, among all languages, for an answer.
    """
    require("py3langid", "language")
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    result = np.full(len(texts), None, dtype=object)
    for index, text in enumerate(texts):
        if sum(map(str.isalpha, text)) >= _FEWEST_LETTERS:
            language, chance = identifier.classify(text)
            if chance >= least:
                result[index] = str(language)
    return result
