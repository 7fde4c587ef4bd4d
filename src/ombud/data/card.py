"""What everyone should know about a data set before using it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Card(BaseModel):
    """A data set's card: where it comes from, what may be done with it, what it leaves open."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    """Short name, as used in plans."""
    title: str = ""
    """One line for a report."""
    source: str = ""
    """Who made it, and where it is found."""
    licence: str = ""
    """The terms the source states."""
    citation: str = ""
    """How to cite it."""
    known_harms: str = ""
    """What the content may do to its readers, and to the people it is about."""
    unknowns: str = ""
    """How missing labels and missing values are treated."""
    hashes: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each file that was read."""
    facts: dict[str, int | float | str] = Field(default_factory=dict)
    """Counts and densities, by name."""
    dropped: tuple[str, ...] = ()
    """What was left out, one sentence each."""
