"""The options of the suppression question: of its preset, and of the analyses it fills in."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from ombud.audits.presets import Options
from ombud.text.identity import TagMode

Errors = Literal["robust", "classical"]
"""How the standard errors of a regression are computed."""

Match = Literal["flag-rate", "false-positive-rate", "none"]
"""What is made equal before the decisions of two moderators are compared."""


class SuppressionOptions(Options):
    """The options of preset *suppression*."""

    registered_name: ClassVar[str] = "preset 'suppression'"

    mode: TagMode = "whole-word"
    """How terms are matched: ``whole-word``, or ``published`` as the code of the paper matches."""
    terms: str = ""
    """The term list, one of those that ombud ships; by default ``terms-identity@2``, and
    ``terms-identity@1`` where terms are matched as in the paper."""
    path: Path | str = ""
    """A file with your own terms, used instead of `terms`."""
    groups: Literal["given", "tagged"] = "given"
    """``given``: groups in the data stay, and texts of data sets without groups are tagged;
    ``tagged``: all texts are tagged."""
    punctuation: dict[str, str] = Field(default_factory=dict)
    """In published mode, the characters that become spaces, by data set, as in
    ``{"openai-1680" = ".,#"}``; those of the paper's code where a data set is not listed."""
    sub_identities: bool = False
    """Whether each sub-identity (``non-christian/muslim``) is audited as a group as well."""
    smallest_intersection: int = Field(default=200, ge=2)
    """The smallest number of texts for which a pair of groups is audited."""
    events: int = Field(default=5, ge=1)
    """The smallest number of flagged texts for which a ratio is computed and a group is ranked."""
    outcome: Literal["flagged", "refused", "either"] = "flagged"
    """What counts: ``flagged``; ``refused``, for language models that decline to answer acceptable
    prompts (over-refusal); or ``either``."""
    instability: bool = False
    """Whether to measure how often repeating a query changes the decision; needs texts that were
    queried repeatedly."""
    scores: bool = True
    """Whether suppression of median scores is measured as well."""
    categories: tuple[str, ...] = ()
    """The score categories that count; all categories where none is named."""
    regressions: bool = False
    """Whether to regress correct flags and scores on groups, slurs, text type and word count; needs
    ``pip install 'ombud[regress]'``."""
    errors: Errors = "robust"
    """The errors of the regressions: ``robust`` to unlike variances and to clusters, or
    ``classical``, as the paper has them."""
    before: str = ""
    """The earlier version of a system, or its recorded outcomes of an earlier date, to test its
    drift; needs `after`."""
    after: str = ""
    """The later version of that system; both stand under ``[systems]``."""
    old: str = ""
    """The moderator in use, to report whose decisions a replacement would change; needs `new`."""
    new: str = ""
    """The moderator that is to replace it."""
    match: Match = "false-positive-rate"
    """How the threshold of the new moderator is set: to flag as many acceptable texts
    (``false-positive-rate``), as many of all texts (``flag-rate``), or unchanged (``none``)."""
    pages: bool = False
    """Whether the report has a page for each group."""

    @model_validator(mode="after")
    def _fit_together(self) -> SuppressionOptions:
        if self.punctuation and self.mode != "published":
            raise ValueError('punctuation needs mode = "published"')
        if bool(self.before) != bool(self.after):
            raise ValueError("drift needs both options, before and after")
        if bool(self.old) != bool(self.new):
            raise ValueError("a migration needs both options, old and new")
        return self
