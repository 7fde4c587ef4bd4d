"""Rerankers: what could be changed between a recommender and its users, and at what price."""

from ombud.systems.rerankers.avoid import AvoidList, UnknownItems, avoid
from ombud.systems.rerankers.balance import (
    BalancedReranker,
    balance,
    calibrate_identities,
    identity_codes,
    profile_mix,
)
from ombud.systems.rerankers.base import Reranker
from ombud.systems.rerankers.calibrate import CalibratedReranker, calibrate
from ombud.systems.rerankers.creators import CreatorReranker
from ombud.systems.rerankers.prefixes import choose_by_prefix, prefix_minimums, with_minimums
from ombud.systems.rerankers.quota import Chosen, choose_by_quota
from ombud.systems.rerankers.second import NewCreators, second_list

__all__ = [
    "AvoidList",
    "BalancedReranker",
    "CalibratedReranker",
    "Chosen",
    "CreatorReranker",
    "NewCreators",
    "Reranker",
    "UnknownItems",
    "avoid",
    "balance",
    "calibrate",
    "calibrate_identities",
    "choose_by_prefix",
    "choose_by_quota",
    "identity_codes",
    "prefix_minimums",
    "profile_mix",
    "second_list",
    "with_minimums",
]
