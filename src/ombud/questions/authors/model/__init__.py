"""The propagation model: how the balance of profiles shows in lists.

Needs numpy and scipy alone; draws can be handed to ArviZ (extra ``bayes``).
"""

from ombud.questions.authors.model.fits import PropagationFit, fit_profiles, fit_propagation
from ombud.questions.authors.model.posterior import Posterior
from ombud.questions.authors.model.priors import Priors

__all__ = ["Posterior", "Priors", "PropagationFit", "fit_profiles", "fit_propagation"]
