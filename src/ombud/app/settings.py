"""What a project asks of its raters."""

from __future__ import annotations

from importlib.resources import files
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ombud.taxonomy import load_taxonomy

Answer = Literal["not delicate", "delicate", "cannot be judged"]

ANSWERS: tuple[Answer, ...] = ("not delicate", "delicate", "cannot be judged")
"""Answers of step I."""

TARGETS = ("identity group", "other group", "self", "none")
"""Whom a text is about, where the project asks."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Topic(_Strict):
    """A topic that raters may mark."""

    id: str
    title: str
    description: str = ""


class Support(_Strict):
    """Where a rater finds help, shown when they stop."""

    name: str
    address: str = ""


def delicate_topics() -> tuple[Topic, ...]:
    """Return the 17 topics of delicate text that come with the package.

    Examples
    --------
    >>> len(delicate_topics()), delicate_topics()[0].id
    (17, 'addictions')
    """
    return tuple(
        Topic(id=label.id, title=label.title, description=label.description)
        for label in load_taxonomy("delicate@1").labels
    )


def shipped_guidelines() -> tuple[str, str]:
    """Return the version and the Markdown of the guidelines that come with the package."""
    version = "delicate@2"
    return version, (files("ombud.app") / "guidelines" / f"{version}.md").read_text("utf-8")


class ProjectSettings(_Strict):
    """What a project asks of its raters, and how it looks after them."""

    title: str = "Delicate text"
    """What people see at the top of every page."""

    seed: int = Field(default=0, ge=0)
    """Of the order of texts, of what is reviewed and of what is shown twice."""

    raters_per_text: int = Field(default=3, ge=1, le=20)
    """How many people rate a text of the main round. In the pilot it is one."""

    repeat_share: float = Field(default=0.05, ge=0, le=1)
    """The share of texts that a rater sees twice."""

    repeat_gap: int = Field(default=20, ge=1)
    """How many other texts stand between the two times."""

    ask_topics: bool = False
    """Whether raters may mark topics of delicate texts."""

    ask_target: bool = False
    """Whether raters say whom a delicate text is about."""

    topics: tuple[Topic, ...] = Field(default_factory=delicate_topics)
    """The topics that texts may carry and raters may mark."""

    mask: Literal["terms", "text", "nothing"] = "terms"
    """What is covered until a rater chooses to see it."""

    mask_terms: tuple[str, ...] = ("terms-identity@1",)
    """Term lists whose slurs are covered: names of shipped lists, or files."""

    dictionary: tuple[str, ...] = ("delicate@1",)
    """Dictionaries or term lists: a text is explicit when a term of theirs stands in it.

    Terms of a dictionary's two worst severities are covered as slurs are."""

    review_share: float = Field(default=0.5, ge=0, le=1)
    """The share of pilot labels that reviewers look at."""

    pass_mark: float = Field(default=0.8, ge=0, le=1)
    """The acceptance rate from which a rater takes part in the main round."""

    training_texts: int = Field(default=20, ge=1)
    """How many pilot texts a rater below the pass mark rates again."""

    hours_per_day: float | None = Field(default=None, gt=0, le=24)
    """After how much time with texts a rater is done for the day."""

    hold_hours: float = Field(default=24, gt=0)
    """After how long without a click a text goes to somebody else."""

    support: tuple[Support, ...] = ()
    """Shown to whoever stops, and in the foot of every rater's page."""

    notice: str = (
        "Some of these texts are about violence, abuse, illness, death, sex, drugs or hatred, and "
        "some use words that hurt. Slurs are covered until you choose to see them."
    )
    """What is coming, said before the first text."""
