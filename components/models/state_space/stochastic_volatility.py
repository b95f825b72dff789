"""The stochastic volatility model."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor, nn

from components.contracts.capabilities import AutoregressiveVolatility
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.problems.sequence import Sequence
from components.registry import register
from components.trouble import Misfit


class VolatilityModule(nn.Module):
    """``StateSpace``, ``TransitionDensity`` and ``PowerIntegral`` of a log-variance that is an AR(1) process."""

    mu: Tensor

    def __init__(self, mu: float, phi: float, sigma: float, like: Tensor):
        super().__init__()
        self.phi, self.sigma = phi, sigma
        self.register_buffer("mu", like.new_tensor(mu))

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        z = torch.randn(*shape, 1, generator=generator, device=generator.device, dtype=self.mu.dtype)
        return self.mu + self.sigma / math.sqrt(1 - self.phi**2) * z.to(self.mu.device)  # stationary  # [R, N, 1]

    def _expected(self, x: Tensor) -> Tensor:
        return self.mu + self.phi * (x - self.mu)

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        z = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        return self._expected(x) + self.sigma * z  # [R, N, 1]

    def log_transition(self, x: Tensor, x_prev: Tensor, t: int) -> Tensor:
        whitened = ((x - self._expected(x_prev)) / self.sigma).squeeze(-1)
        return -0.5 * whitened.square() - math.log(self.sigma) - 0.5 * math.log(2 * math.pi)  # [R, N]

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        return torch.zeros_like(x)  # [R, N, 1]

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        """log N(y | 0, exp(x)) = −½(y² exp(−x) + x + log 2π); y [R, 1], x [R, N, 1] -> [R, N]."""
        x = x.squeeze(-1)
        return -0.5 * (y.square() * torch.exp(-x) + x + math.log(2 * math.pi))

    def log_power_integral(self, x: Tensor, t: int, power: float) -> Tensor:
        """log ∫ N(y | 0, exp(x))^a dy = ½(1 − a)(log 2π + x) − ½ log a: it depends on x, whose scale varies; [R, N]."""
        return 0.5 * (1 - power) * (math.log(2 * math.pi) + x.squeeze(-1)) - 0.5 * math.log(power)


@register("model", "stochastic_volatility")
class StochasticVolatility(Model[Sequence, VolatilityModule]):
    """Stochastic volatility: returns whose log-variance is a hidden, stationary autoregression.

    x_0 ~ N(μ, σ²/(1 − φ²)), x_t = μ + φ(x_{t−1} − μ) + σ η_t, y_t = exp(x_t/2) ε_t with standard normal η, ε; particles
    [R, N, 1].  A key that is null takes the value that made the data.

    Raises Misfit when a key is null and the data were made by something else, or when an observation has several coordinates.

    Source: Taylor (1982); Kim, Shephard and Chib (1998), eq. (1)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    offers: ClassVar[frozenset[str]] = frozenset({"state_space", "transition_density", "power_integral"})
    assumes: ClassVar[frozenset[str]] = frozenset({"autoregressive_volatility"})

    mu: float | None
    phi: Annotated[float, Field(gt=-1, lt=1)] | None
    sigma: PositiveFloat | None

    def assumed(self) -> frozenset[str]:
        """Nothing, where every parameter is given."""
        return self.assumes if None in (self.mu, self.phi, self.sigma) else frozenset()

    def build(self, problem: Sequence, rng: Rng) -> VolatilityModule:
        if problem.observations.shape[2] != 1:
            raise Misfit(f"model={self.name}: a return is one number, dataset={problem.name} observes several")
        mu, phi, sigma, system = self.mu, self.phi, self.sigma, problem.system
        if mu is None or phi is None or sigma is None:
            if not isinstance(system, AutoregressiveVolatility):
                raise Misfit(f"model={self.name}: give mu, phi and sigma; dataset={problem.name} names none")
            mu = system.mu if mu is None else mu
            phi = system.phi if phi is None else phi
            sigma = system.sigma if sigma is None else sigma
        return VolatilityModule(mu, phi, sigma, problem.observations)
