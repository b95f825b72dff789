"""θ of posteriordb's densities from their parameters: the inverses of ``constrain``."""

from collections.abc import Callable

import torch
from torch import Tensor

from components.datasets.posteriordb_densities.eight_schools import EightSchools
from components.datasets.posteriordb_densities.gaussian_mixture import MEANS, WEIGHT, TwoGaussians
from components.datasets.posteriordb_densities.gaussian_process import GaussianProcess
from components.datasets.posteriordb_densities.gaussian_regressions import GaussianRegression
from components.datasets.posteriordb_densities.time_series import (
    MEANS as STATE_MEANS,
)
from components.datasets.posteriordb_densities.time_series import ROW, UNIT, Garch, HiddenMarkov
from components.maths.bijectors import Interval


def value_and_gradient(log_density, theta):
    """Log density at θ [S, P], and its gradient."""
    theta = theta.clone().requires_grad_()
    value = log_density(theta)
    (gradient,) = torch.autograd.grad(value.sum(), theta)
    return value.detach(), gradient


def _hidden_markov(values: Tensor) -> list[Tensor]:
    rows = ROW.inverse(values[:, :4].unflatten(1, (2, 2))).flatten(1)
    return [rows, STATE_MEANS.inverse(values[:, 4:])]


def _garch(values: Tensor) -> list[Tensor]:
    mu, alpha0, alpha1, beta1 = values.split(1, 1)
    above = Interval(0.0, 1 - alpha1)
    return [mu, alpha0.log(), UNIT.inverse(alpha1), above.inverse(beta1)]


def _eight_schools(values: Tensor) -> list[Tensor]:
    effect, mu, tau = values.split([values.shape[1] - 2, 1, 1], 1)
    return [(effect - mu) / tau, mu, tau.log()]


INVERSES: dict[type, Callable[[Tensor], list[Tensor]]] = {
    GaussianRegression: lambda values: [values[:, :-1], values[:, -1:].log()],
    GaussianProcess: lambda values: [values.log()],
    TwoGaussians: lambda values: [
        MEANS.inverse(values[:, :2]),
        values[:, 2:4].log(),
        WEIGHT.inverse(values[:, 4:]),
    ],
    HiddenMarkov: _hidden_markov,
    Garch: _garch,
    EightSchools: _eight_schools,
}


def unconstrain(density: object, values: Tensor) -> Tensor:
    """θ [K, P] of parameters [K, P']."""
    return torch.cat(INVERSES[type(density)](values), 1)
