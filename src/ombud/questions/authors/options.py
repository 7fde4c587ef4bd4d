"""The options of the authors question: of its analyses, and of the preset that joins them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from ombud.audits.presets import Options
from ombud.questions.authors.model.identities import Splits

Trained = Literal["user-kNN", "item-kNN", "ALS", "BPR"]
"""The recommenders that the preset can train."""

STRATEGIES = ("SingleEQ", "GreedyEQ", "GreedyReflect", "Calibrated", "FA*IR")
"""The reranking strategies: three of the paper, Steck's calibration to the user's own profile, and
FA*IR, which gives one identity a minimum in every prefix of the list."""


class AttributeOptions(Options):
    """Which identity of the creators is audited."""

    attribute: str = ""
    """The attribute of the items; may be omitted where items have only one, or where `by_item`
    names only one."""


class ListOptions(AttributeOptions):
    """Which profiles and recommendations count."""

    k: int = Field(default=50, ge=1)
    """The number of recommendations per user that count for the balance."""
    least: int = Field(default=5, ge=0)
    """The smallest number of items of known identity in a user's profile; users with fewer are
    excluded and counted."""


class CreatorTableOptions(AttributeOptions):
    """Further tables of creators."""

    creators: Path | str = ""
    """A table of all creators of items (`item`, the attribute and `weight`), such as
    ``item_creators.parquet`` of a link folder built with ``--creators all`` or ``any``: shares are
    then also reported with all creators of an item counted. By default the first creator counts."""


class CatalogOptions(CreatorTableOptions):
    """Which items are cataloged."""

    catalogue: Path | str = ""
    """A table of all cataloged items, `item` with the attribute, such as ``items.parquet`` of a
    link folder."""


class PropagationOptions(ListOptions):
    """How the propagation model is fitted."""

    splits: Splits = "rest"
    """With more than two identities: ``rest`` sets each against all others; ``nested`` splits off
    one after the other, in one joint model."""
    residual_rate: float = Field(default=0.1, gt=0)
    """The rate of the exponential prior of the residual spread; 2 is that of the published code."""
    placebo: bool = False
    """Whether to fit a placebo as well, the parity of a hash of the item id, to show what the model
    reports where there is nothing to find."""
    points: bool = False
    """Whether the share of each user's profile and lists is stored and drawn, as in Figures 11 and
    12 of the paper. Without names, but who knows a profile can find its dot: do not publish it."""
    genres: tuple[str, ...] = ()
    """Labels of items. Slopes are also fitted among the items of each label alone, and with the mix
    of genres held fixed: the model then explains only what goes beyond the identities that the
    genres of the items lead one to expect."""


class RerankingOptions(ListOptions):
    """How lists are reranked."""

    accuracy_at: int = Field(default=100, ge=1)
    """The list length at which accuracy is measured."""
    candidates: Annotated[int, Field(ge=1)] | Literal["all"] = 1000
    """The number of items at the top of each ranking that a strategy can choose from; ``all`` for
    the whole ranking, as in the paper, which takes memory for every user and item."""
    strategies: tuple[str, ...] = STRATEGIES[:3]
    """The strategies to audit: ``SingleEQ``, ``GreedyEQ``, ``GreedyReflect``, ``Calibrated``,
    ``FA*IR``; an empty list for none."""
    target: dict[str, float] | None = None
    """The share of each identity that strategies aim at; equal shares by default."""
    minimum_for: str = ""
    """The identity for which FA*IR guarantees a minimum; of two, the less frequent by default."""
    exposure: bool = False
    """Whether strategies balance exposure, 1 / log2(rank + 1) per position, instead of counts."""
    fewest_items: int = Field(default=50, ge=1)
    """The smallest number of items for which an identity takes part in the mix; the items of other
    identities count as unknown."""

    @field_validator("strategies")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = sorted(set(value) - set(STRATEGIES))
        if wrong:
            raise ValueError(
                f"no strategy is called {', '.join(wrong)}; choose from {', '.join(STRATEGIES)}"
            )
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> RerankingOptions:
        if self.exposure and "FA*IR" in self.strategies:
            raise ValueError(
                "FA*IR counts positions; remove it from strategies or set exposure = false"
            )
        mix = () if self.target is None else tuple(self.target.values())
        if mix and (min(mix) < 0 or abs(sum(mix) - 1) > 1e-6):
            raise ValueError(f"the shares of target add up to {sum(mix):g}; they must add up to 1")
        return self


class AuthorsOptions(RerankingOptions, PropagationOptions, CatalogOptions):
    """The options of preset *authors*."""

    registered_name: ClassVar[str] = "preset 'authors'"

    inferred: bool = False
    """Must be true where identities were inferred, such as from first names; every figure then says
    so."""
    noun: str = Field(default="", max_length=40)
    """What items are called in sentences, such as ``books``; default, ``books`` for sources of
    books and ``works`` for other data."""
    feedback: Literal["auto", "explicit", "implicit", "both"] = "auto"
    """``explicit`` (ratings), ``implicit`` (ratings are ignored), ``auto`` (as the data is), or
    ``both``: each model with and without ratings, on the same profiles and in one joint fit. The
    parameters in `tuned` then count for both."""
    trained: tuple[Trained, ...] | None = None
    """The recommenders to train, beside those of the plan: ``user-kNN``, ``item-kNN``, ``ALS``,
    ``BPR``. If the plan names no system, the default is all of them, without BPR for ratings."""
    tuned: Path | str = ""
    """A folder of ``ombud tune``, or a folder of such folders, one for each model."""
    users: int = Field(default=5000, ge=1)
    """The number of users whose profiles and lists are audited."""
    accuracy_users: int = Field(default=5000, ge=0)
    """The number of further users with one interaction held out, to measure accuracy."""
    train_apart: bool = False
    """Whether the audited lists come from systems trained on all interactions, as in the paper, and
    accuracy from systems trained again without what is held out."""
