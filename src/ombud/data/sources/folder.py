"""Read back the folder that a builder wrote."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from ombud.data.card import Card
from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.interactions import Interactions
from ombud.data.labels import Labels
from ombud.errors import DataError
from ombud.files import hash_file

__all__ = ["read_folder"]


def read_folder(path: str | Path, name: str) -> Dataset:
    """Return the data set in a folder written by `ombud.data.sources._build.write_dataset`.

    Parameters
    ----------
    path
        The folder.
    name
        Which data set it must be, as its card says.
    """
    folder = Path(path)
    file = folder / "card.json"
    if not file.is_file():
        fault = f"there is no {file}; 'ombud data build {name} --to {folder}' makes the folder"
        raise DataError(name, [fault])
    try:
        card = Card.model_validate_json(file.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        raise DataError(str(file), [f"it is not a card: {error}"]) from None
    if card.name != name:
        raise DataError(str(folder), [f"its card says {card.name!r}; {name!r} was expected"])
    here = {p.name: hash_file(p) for p in sorted(folder.glob("*.parquet"))}
    interactions = Interactions.from_frame(
        folder / "interactions.parquet",
        rating_scale=(0.5, 5.0) if name == "ml-ddd" else None,
        source="interactions.parquet",
    )
    rule = str(card.facts.get("rule", "as stored"))
    labels = Labels.from_states(folder / "labels.parquet", rule=rule, source="labels.parquet")
    groups = folder / "users.parquet"
    users = Grouping.from_members(groups) if groups.is_file() else None
    card = card.model_copy(update={"hashes": card.hashes | here})
    return Dataset(interactions=interactions, labels=labels, users=users, card=card)
