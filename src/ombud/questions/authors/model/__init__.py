"""The propagation model: how the balance of profiles shows in lists.

Needs numpy and scipy alone; draws can be handed to ArviZ (extra ``bayes``).
"""

from ombud.questions.authors.model.fits import (
    SPREAD_FLOOR,
    ProfileFit,
    PropagationFit,
    fit_profiles,
    fit_propagation,
    placebo_codes,
    to_arviz,
)
from ombud.questions.authors.model.identities import IdentityFit, Split, fit_identities
from ombud.questions.authors.model.posterior import Diagnostics, NotConvergedError, Posterior
from ombud.questions.authors.model.predictive import Misfit, Predictive
from ombud.questions.authors.model.priors import Priors

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
