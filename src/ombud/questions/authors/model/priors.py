"""Priors of the propagation model."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ombud.errors import PlanError


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    """Normal priors for mu, b and s, exponential ones for the standard deviations.

    Examples
    --------
    >>> Priors(residual_rate=2)
    Priors(mean_sd=10.0, intercept_sd=10.0, slope_sd=10.0, spread_rate=0.1, residual_rate=2)
    """

    # Standard deviations of the normal priors of mu, b and s; their mean is 0.
    mean_sd: float = 10.0
    intercept_sd: float = 10.0
    slope_sd: float = 10.0
    # Rates of the exponential priors of sigma and of the residual standard deviations. The paper's
    # text names no rate for the latter; the authors' code has 2.
    spread_rate: float = 0.1
    residual_rate: float = 0.1

    def __post_init__(self) -> None:
        wrong = {name: value for name, value in asdict(self).items() if not 0 < value < 1e6}
        if wrong:
            raise PlanError(f"priors are {wrong}; each must be more than 0 and less than a million")
