"""The language of texts, where it can be told."""

from __future__ import annotations

import pytest

from ombud.text.folding import detect_languages

pytest.importorskip("py3langid", reason="the extra 'language' is not installed")


def test_long_texts_are_told_apart_and_short_ones_are_not() -> None:
    texts = [
        "The council met in the old town hall and talked about the new school for an hour.",
        "Der Rat tagte im alten Rathaus und sprach eine Stunde lang über die neue Schule.",
        "ok",
        "",
        "12345 67890 !!! ??? 12345 67890",
    ]
    assert detect_languages(texts).tolist() == ["en", "de", None, None, None]
