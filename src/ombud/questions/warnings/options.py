"""The options of the warnings question: of its preset, and of the analyses it fills in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, Field

from ombud.audits.presets import Options
from ombud.questions.warnings.amplification.metric import Form
from ombud.questions.warnings.amplification.tally import Smoothing, UnknownLabels

Trained = Literal["Random", "TopPop", "TopPop damped", "SVD", "ALS"]
"""The recommenders that the preset can train."""

Length = Annotated[int, Field(ge=1)]


class WarningsOptions(Options):
    """The options of preset *warnings*."""

    registered_name: ClassVar[str] = "preset 'warnings'"

    k: int = Field(default=100, ge=1)
    """The number of recommendations per user that amplification counts."""
    accuracy_at: tuple[Length, ...] = Field(default=(10, 50, 100), min_length=1)
    """The list lengths at which accuracy is measured."""
    feedback: Literal["auto", "explicit", "implicit"] = "auto"
    """``explicit`` (ratings), ``implicit``, or ``auto``: inspect the data. State it for a large
    source: inspecting means reading the source twice."""
    trained: tuple[Trained, ...] | None = None
    """The recommenders to train, beside those of the plan: ``Random``, ``TopPop``, ``TopPop
    damped`` (a few high ratings do not make an item popular), ``SVD``, ``ALS``. If the plan names
    no system, the default is Random, TopPop and SVD (ratings) or ALS (no ratings)."""
    forms: tuple[Form, ...] = ("mean", "median", "ratio-of-means", "log-ratio")
    """How amplification is averaged over users, as in the metric ``amplification``."""
    smoothing: Smoothing = "imaginary-item"
    """What is done for users whose history lacks a label, as in the metric ``amplification``."""
    unknown: UnknownLabels | None = None
    """The older name of ``unlabeled`` under ``[data]``: ``no``, or ``exclude`` for ``unknown``.
    ``yes`` counts every unknown label as present."""
    bounds: bool = True
    """Whether the bounds for unknown labels are computed."""
    users: int = Field(default=1000, ge=1)
    """The number of users that are sampled, where the plan has no `sample`."""
    accuracy_users: Literal["sample", "all"] = "sample"
    """``all``: report RMSE, precision, recall and F1 for all users beside those of the sample."""
    amplification_on: Literal["training", "everything"] = "training"
    """``everything``, as in the paper: systems are trained on all interactions, and amplification,
    with its spread over users and its figures, is that of their lists and of whole histories. For
    accuracy, systems are trained again without a held-out part. ``training``: both are of systems
    trained without the held-out part."""
    second_training: bool = False
    """Whether systems are trained a second time, on all interactions, to report their amplification
    and RMSE as well (analysis ``second-training``)."""
    item_share: float | None = Field(default=None, gt=0, le=1)
    """The share of items, drawn at random, that accuracy is restricted to, such as 0.1 in the
    paper: systems are trained again on these items alone. Amplification is of all items."""
    roll_up: str = ""
    """A taxonomy (``warnings-ao3@1``) under whose parent categories labels are combined."""
    tuned: Path | str = ""
    """A folder of ``ombud tune``, or a folder of such folders: models take the parameters found
    there, unless the plan states its own."""
    rerankers: tuple[dict[str, Any], ...] = Field(
        default=(), validation_alias=AliasChoices("rerankers", "remedies")
    )
    """Rerankers to audit, each a table with `type` (``avoid-list`` or ``calibrated``), the name of
    the system it reranks (`of`), and its arguments, such as ``labels``. Each adds a system, such as
    ``SVD + avoid list``; its cost is the paired difference from the system itself. An avoid list
    for all users is also checked for items that pass it. A list that a reranker empties has zero
    accuracy."""
