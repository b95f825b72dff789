"""The stochastic volatility model."""

from __future__ import annotations

import math
from collections.abc import Set
from typing import Annotated

import torch
from pydantic import Field, PositiveFloat, model_validator
from torch import Tensor, nn

from components.contracts.capabilities import AutoregressiveVolatility
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.maths.cholesky import LOG_2PI
from components.maths.particles.draws import standard_normal
from components.registry import register
from components.series.models.families import UnknownParameterModel
from components.series.models.nonlinear_growth import log_normal
from components.series.models.unknown import (
    Normal,
    PositivePrior,
    Priors,
    StretchedBeta,
    UnknownParameters,
)
from components.series.sequence import Sequence


class VolatilityModule(nn.Module):
    """``StateSpace`` with a log-variance that is an AR(1) process; parameters are [], or [R, 1,
    1]."""

    mu: Tensor
    phi: Tensor
    sigma: Tensor
    intercept: Tensor

    def __init__(
        self, mu: float | Tensor, phi: float | Tensor, sigma: float | Tensor, like: Tensor
    ):
        super().__init__()
        for name, value in (("mu", mu), ("phi", phi), ("sigma", sigma)):
            self.register_buffer(name, torch.as_tensor(value, dtype=like.dtype, device=like.device))
        self.register_buffer("intercept", (1 - self.phi) * self.mu)

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        z = standard_normal((*shape, 1), generator, self.mu)
        # stationary  # [R, N, 1]
        return self.mu + self.sigma / (1 - self.phi**2).sqrt() * z.to(self.mu.device)

    def transition_mean(self, x: Tensor, t: int) -> Tensor:
        return torch.addcmul(self.intercept, self.phi, x)  # μ + φ(x − μ)

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        z = standard_normal(x.shape, generator, x)
        return torch.addcmul(self.transition_mean(x, t), self.sigma, z)  # [R, N, 1]

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        return log_normal(x - self.transition_mean(x_prev, t), self.sigma)  # [R, N]

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        return torch.zeros_like(x)  # [R, N, 1]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        """log N(y | 0, exp(x)) = −½(y² exp(−x) + x + log 2π); y [R, 1], x [R, N, 1] -> [R, N]."""
        x = x.squeeze(-1)
        return torch.addcmul(x, y.square(), x.neg().exp_()).add_(LOG_2PI).mul_(-0.5)

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ N(y | 0, exp(x))^a dy = ½(1 − a)(log 2π + x) − ½ log a; [R, N].

        It depends on x, because the scale varies with x.
        """
        return 0.5 * (1 - power) * (LOG_2PI + x.squeeze(-1)) - 0.5 * math.log(power)


class VolatilityPriors(Priors):
    """Priors of the parameters; None if known."""

    mu: Normal | None
    phi: StretchedBeta | None
    sigma: PositivePrior | None


class UnknownVolatility(UnknownParameters, VolatilityModule):
    """``Parameterised``: parameters with priors.  Used directly, the model takes the centres of the
    priors."""

    def at(self, theta: Tensor) -> VolatilityModule:
        defaults = {"mu": self.mu, "phi": self.phi, "sigma": self.sigma}
        tried = {name: value.view(-1, 1, 1) for name, value in self.by_name(theta).items()}
        return VolatilityModule(**(defaults | tried), like=self.mu)


@register("model", "stochastic_volatility")
class StochasticVolatility(UnknownParameterModel):
    """Stochastic volatility: returns with a hidden, stationary autoregressive log-variance.

    x_0 ~ N(μ, σ²/(1 − φ²)), x_t = μ + φ(x_{t−1} − μ) + σ η_t, y_t = exp(x_t/2) ε_t with
    standard normal η, ε; particles [R, N, 1]. A null key takes the true value of the simulated
    data, unless it has a prior: the parameter is then unknown.

    Raises ConfigMismatchError if a key is null for data that this model did not simulate, or for
    multivariate observations.

    Source: Taylor (1982); Kim, Shephard and Chib (1998), eq. (1).
    """

    requires = Requirements(
        kinds={"sequence"},
        simulated={AutoregressiveVolatility},
        refused_traits={"several_numbers": "supports only univariate series"},
    )

    mu: float | None
    phi: Annotated[float, Field(gt=-1, lt=1)] | None
    sigma: PositiveFloat | None
    unknown: VolatilityPriors

    @model_validator(mode="after")
    def _check_given_or_prior(self) -> StochasticVolatility:
        for name in self.unknown.given_priors:
            if dict(self)[name] is not None:
                raise ValueError(
                    f"{name}: has a value and a prior in unknown.{name}; set one of them to null"
                )
        return self

    def _values(self) -> dict[str, float | None]:
        return {"mu": self.mu, "phi": self.phi, "sigma": self.sigma} | self.unknown.centres

    def assumptions(self) -> Set[type]:
        """Empty if every parameter is given."""
        return self.requires.simulated if None in self._values().values() else frozenset()

    def build(self, problem: Sequence, rng: Rng) -> VolatilityModule:
        problem.check_one_number(f"model={self.name}")
        system = problem.system
        values = {name: v for name, v in self._values().items() if v is not None}
        if len(values) < 3:
            if not isinstance(system, AutoregressiveVolatility):
                raise ConfigMismatchError(
                    f"model={self.name}: set mu, phi and sigma; dataset={problem.name} does not provide them"
                )
            values = {"mu": system.mu, "phi": system.phi, "sigma": system.sigma} | values
        if not self.unknown.given_priors:
            return VolatilityModule(**values, like=problem.observations)
        module = UnknownVolatility(**values, like=problem.observations)
        module.declare(self.unknown.given_priors, problem.observations)
        return module
