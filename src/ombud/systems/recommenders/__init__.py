"""Recommenders that ombud trains itself, and adapters for those that others run.

Importing this package imports no compiler: kernels are compiled, or read from numba's cache, when
a model is first trained or asked.
"""

from __future__ import annotations

from ombud.systems.recommenders.als import ExplicitALS, ImplicitALS
from ombud.systems.recommenders.bpr import BPR
from ombud.systems.recommenders.ease import EASE
from ombud.systems.recommenders.item_knn import ItemKNN
from ombud.systems.recommenders.popular import Popular
from ombud.systems.recommenders.random import Random
from ombud.systems.recommenders.svd import SVD
from ombud.systems.recommenders.user_knn import UserKNN

__all__ = [
    "BPR",
    "EASE",
    "SVD",
    "ExplicitALS",
    "ImplicitALS",
    "ItemKNN",
    "Popular",
    "Random",
    "UserKNN",
]
