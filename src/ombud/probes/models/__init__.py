"""Models whose inside is known: scores after edits, and bounds of what edits can do."""

from __future__ import annotations

from typing import Any

from ombud.errors import AuditedSystemError
from ombud.probes.influence import Influence
from ombud.probes.models.base import ClosedForm, ModelBox, WhiteBox
from ombud.probes.models.ease import EaseInfluence, EaseUpdate, LinearBox
from ombud.probes.models.factors import ExplicitInfluence, FactorBox, ImplicitInfluence
from ombud.probes.models.item_knn import ItemBox, ItemKNNInfluence, ItemUpdate
from ombud.probes.models.popular import PopularInfluence
from ombud.probes.models.user_knn import UserKNNInfluence, UserUpdate
from ombud.systems.recommenders.als import ExplicitALS, ImplicitALS
from ombud.systems.recommenders.bpr import BPR
from ombud.systems.recommenders.ease import EASE
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.model import Model
from ombud.systems.recommenders.popular import Popular
from ombud.systems.recommenders.svd import SVD
from ombud.systems.recommenders.user_knn import UserKNN

__all__ = ["influence_of", "open_box"]


def open_box(model: Model, own: int = -1) -> WhiteBox:
    """Return the white box of a trained model.

    Parameters
    ----------
    model
        A trained model that folds in.
    own
        The person's row among the model's users; -1 for somebody it was not trained on.
    """
    if isinstance(model, SVD | ExplicitALS | ImplicitALS):
        return FactorBox(model)
    if isinstance(model, EASE):
        return LinearBox(model)
    if isinstance(model, ItemKNN):
        return ItemBox(model)
    if isinstance(model, BPR):
        raise AuditedSystemError(
            f"{model.name} cannot take in a new history without training again; its frozen policy "
            "does not exist, ask about policy 'retrained'"
        )
    return ModelBox(model, own)


def closed_form(model: Model) -> ClosedForm | None:
    """Return what tells the scores of a retrained model exactly; None where only training does.

    For `EASE` this inverts a matrix of items x items: make it once for all people. Factor models
    are trained by iterations, whose end no formula gives.
    """
    if isinstance(model, UserKNN):
        return UserUpdate(model)
    if isinstance(model, EASE):
        return EaseUpdate(model)
    if isinstance(model, ItemKNN):
        return ItemUpdate(model)
    return None


def influence_of(model: Any) -> Influence | None:
    """Return the influence of a trained model, or None where there is no formula for it.

    Parameters
    ----------
    model
        An explicit or implicit ALS, SVD, EASE, item-kNN, user-kNN or popularity model of ombud.
    """
    formulas: tuple[tuple[type, type[Any]], ...] = (
        (ExplicitALS, ExplicitInfluence),
        (SVD, ExplicitInfluence),
        (ImplicitALS, ImplicitInfluence),
        (EASE, EaseInfluence),
        (UserKNN, UserKNNInfluence),
        (ItemKNN, ItemKNNInfluence),
        (Popular, PopularInfluence),
    )
    for kind, influence in formulas:
        if type(model) is kind:
            found: Influence = influence(model)
            return found
    return None
