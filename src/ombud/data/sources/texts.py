"""All sources of labelled texts, registered by being imported."""

from ombud.data.sources.jigsaw_bias import jigsaw_bias
from ombud.data.sources.jigsaw_kaggle import jigsaw_kaggle
from ombud.data.sources.openai_1680 import openai_1680
from ombud.data.sources.stormfront import stormfront
from ombud.data.sources.synopses import synopses
from ombud.data.sources.together import together
from ombud.data.sources.tweeteval import tweeteval
from ombud.data.sources.two_column import two_column

__all__ = [
    "jigsaw_bias",
    "jigsaw_kaggle",
    "openai_1680",
    "stormfront",
    "synopses",
    "together",
    "tweeteval",
    "two_column",
]
