"""The state-space model that knows how its observations are contaminated: the oracle."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from components.contracts.capabilities import NoiseLaw
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.models.state_space.linear_gaussian_ssm import LinearGaussianModule, factor, linear_gaussian_system
from components.problems.sequence import Sequence
from components.registry import register
from components.trouble import Misfit


class ContaminatedModule(nn.Module):
    """``StateSpace`` with the linear Gaussian dynamics and a mixture of Gaussians as observation noise."""

    whiten: Tensor  # [C, dy, dy]
    log_weight: Tensor  # [C]

    def __init__(self, dynamics: LinearGaussianModule, weights: Tensor, covariances: Tensor):
        super().__init__()
        self.dynamics = dynamics
        factors = torch.stack([factor(c, "a mixture covariance") for c in covariances])  # [C, dy, dy]
        self.register_buffer("whiten", torch.linalg.inv(factors))
        log_det = 2 * factors.diagonal(dim1=1, dim2=2).log().sum(1)
        self.register_buffer(
            "log_weight", weights.log() - 0.5 * (log_det + len(covariances[0]) * math.log(2 * math.pi))
        )

    def init(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        return self.dynamics.init(shape, generator)

    def transition(self, x: Tensor, t: int, generator: torch.Generator) -> Tensor:
        return self.dynamics.transition(x, t, generator)

    def observation_mean(self, x: Tensor, t: int) -> Tensor:
        return self.dynamics.observation_mean(x, t)

    def log_observation(self, y: Tensor, x: Tensor, t: int) -> Tensor:
        total = x.new_full((), -math.inf)
        for whiten, log_weight in zip(self.whiten, self.log_weight, strict=True):
            whitened = (y @ whiten.T).unsqueeze(-2) - x @ (whiten @ self.dynamics.H).T  # [R, N, dy]
            total = torch.logaddexp(total, log_weight - 0.5 * whitened.square().sum(-1))
        return total  # log Σ_c w_c N(y | Hx, Σ_c)  # [R, N]


@register("model", "contaminated_ssm")
class ContaminatedSSM(Model[Sequence, ContaminatedModule]):
    """Oracle: the linear Gaussian state-space model with the true, contaminated law of the observation noise.

    y_t | x_t ~ Σ_c w_c N(H x_t, Σ_c), weights and covariances asked of the problem's attacker, here (1 − p_c) N(H x_t, Σ) +
    p_c N(H x_t, Σ + s² I).  Where nothing attacks, it is the linear Gaussian model.  Raises Misfit where the attacker knows of
    no law, and on data of another system.

    Source: Boustati (2021), section 6.5.1 (Oracle BPF)."""

    kinds: ClassVar[frozenset[str]] = frozenset({"sequence"})
    offers: ClassVar[frozenset[str]] = frozenset({"state_space"})
    assumes: ClassVar[frozenset[str]] = frozenset({"linear_gaussian"})
    needs_attacker: ClassVar[frozenset[str]] = frozenset({"noise_law"})

    def build(self, problem: Sequence, rng: Rng) -> ContaminatedModule:
        system = linear_gaussian_system(problem, self.name)
        Sigma = system.Sigma
        if problem.attacker is None:
            weights, covariances = Sigma.new_ones(1), Sigma.unsqueeze(0)
        elif isinstance(problem.attacker, NoiseLaw):
            weights, covariances = problem.attacker.mixture(Sigma)
        else:
            raise Misfit(f"model={self.name}: attacker={problem.attacker.name} does not say by what law it corrupts")
        return ContaminatedModule(LinearGaussianModule(system), weights, covariances)
