"""The propagation model: how the balance of profiles shows in lists.

Needs numpy and scipy alone; draws can be handed to ArviZ (extra ``bayes``).
"""

from ombud.stats.propagation.export import to_arviz
from ombud.stats.propagation.fits import (
    SPREAD_FLOOR,
    ProfileFit,
    PropagationFit,
    fit_profiles,
    fit_propagation,
)
from ombud.stats.propagation.identities import IdentityFit, Split, fit_identities
from ombud.stats.propagation.placebo import placebo_codes
from ombud.stats.propagation.posterior import Diagnostics, NotConvergedError, Posterior
from ombud.stats.propagation.predictive import Misfit, Predictive
from ombud.stats.propagation.priors import Priors

__all__ = [
    "SPREAD_FLOOR",
    "Diagnostics",
    "IdentityFit",
    "Misfit",
    "NotConvergedError",
    "Posterior",
    "Predictive",
    "Priors",
    "ProfileFit",
    "PropagationFit",
    "Split",
    "fit_identities",
    "fit_profiles",
    "fit_propagation",
    "placebo_codes",
    "to_arviz",
]
