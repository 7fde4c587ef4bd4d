"""The options of the delicate-text question: of its preset, and of the analyses it fills in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from ombud.audits.presets import Options
from ombud.systems.detectors.training_texts import AgainstBias
from ombud.taxonomy.dictionary import Dictionary, load_dictionary, read_dictionary

GroupKind = Literal[
    "topic", "coarse-topic", "severity", "explicit", "length", "source", "set", "language", "risk"
]
ALL_KINDS: tuple[GroupKind, ...] = get_args(GroupKind)

Model = Literal["ngrams", "wordllama", "minilm", "transformer"]
"""What a trained detector reads."""

Share = Annotated[float, Field(gt=0, lt=1)]


def dictionary_of(name: str = "delicate@1", path: Path | str = "") -> Dictionary:
    """Return a dictionary that ombud ships, with a file of your own terms added."""
    own = load_dictionary(name)
    return own.extended(read_dictionary(path)) if path else own


class DelicateOptions(Options):
    """The options of preset *delicate*."""

    registered_name: ClassVar[str] = "preset 'delicate'"

    ratings: Path | str = ""
    """A file with `id`, `rater` and `risk` (0 to 5), as the annotation app exports it."""
    groups: tuple[GroupKind, ...] = ALL_KINDS
    """How texts are grouped."""
    notions: Path | str = ""
    """A file with `id` and further labels of the texts (true, false or empty), such as `hate` and
    `offensive`, to report how often each pair of labels agrees."""
    language: Literal["", "detect"] = ""
    """``detect``: detect the language of texts that have no column ``language``. Only English has
    a dictionary."""
    train: Path | str = ""
    """A file with `text`, `risk` (0 to 5) and optionally `split` (train or validation), on which
    detectors of each head are trained."""
    model: Model = "ngrams"
    """What the trained detectors read: ``ngrams``, embeddings of ``wordllama`` or ``minilm``, or a
    ``transformer`` that is fine-tuned from `base`."""
    base: Path | str = ""
    """The folder of the checkpoint that a ``transformer`` begins with."""
    updates: int = Field(default=2000, ge=1)
    """How many steps of the paper's recipe a ``transformer`` is trained."""
    against_bias: tuple[AgainstBias, ...] = ()
    """Further detectors to train for comparison, each on changed texts: ``gender-swap`` adds copies
    of the other gender; ``countries`` replaces names of countries, which makes about half of such
    sentences false. Needs `train`."""
    published: Literal["", "detexd"] = ""
    """``detexd``: reconstruct the counts behind the paper's Table 5, with confidence intervals."""
    published_file: Path | str = ""
    """A file of published figures, treated in the same way: `system`, `positives` and `negatives`
    (class sizes), some of `precision`, `recall`, `f1`, `accuracy` and `macro_f1` (percent), and
    optionally `decimals` (1 by default)."""
    dictionary: str = "delicate@1"
    """The dictionary of terms, one of those that ombud ships."""
    path: Path | str = ""
    """A file with your own terms, added to the dictionary."""
    base_rates: tuple[Share, ...] = Field(default=(0.1, 0.01, 0.001), min_length=1)
    """Shares of delicate texts for which precision is projected."""
    bias: Literal["all", "local", "none"] = "local"
    """Which systems the bias tests query: ``local``, moderators on this machine; ``all``, services
    too, which then receive every swapped text; ``none``."""
    sentence: str = ""
    """A sentence for the country test, with the slot ``{country}``. By default ombud uses 20
    sentences; the first, on which the map is drawn, is the paper's."""
    winogender: Path | str = ""
    """The published folder of the Winogender sentences (``all_sentences.tsv``), which adds that
    test."""
    swap: Path | str = ""
    """A file of word pairs to swap (columns `from` and `to`)."""
    templates: tuple[str, ...] = ()
    """Your own test sentences, with the slot ``{value}``."""
    values: tuple[str, ...] = ()
    """What is put into the slot of `templates`."""
    swapped_texts: int = Field(default=5000, ge=1)
    """The largest number of texts that are swapped; a random sample where there are more."""
    show_terms: bool = False
    """Whether offensive words are shown in full in the table of terms that stand out."""
    examples: int = Field(default=0, ge=0)
    """How many texts of each type of error are shown, masked unless `show_terms`: those with the
    most certain scores, else the first. None by default: texts may hurt."""

    @model_validator(mode="after")
    def _fit_together(self) -> DelicateOptions:
        if self.against_bias and not self.train:
            raise ValueError("options.against_bias needs options.train")
        if (self.model == "transformer") != bool(self.base):
            raise ValueError("options.model = 'transformer' and options.base need each other")
        if self.published and self.published_file:
            raise ValueError("give options.published or published_file, not both")
        return self
