"""A density problem as a model: the target is its log prior, without a likelihood."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.contracts.problems import Batch
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.problems.density import Density
from components.registry import register


class TargetDensityModule(nn.Module):
    """``LogJoint`` of a density problem."""

    def __init__(self, problem: Density):
        super().__init__()
        self.problem = problem
        self.dim = problem.dim
        self.names = list(problem.names)

    def constrain(self, theta: Tensor) -> Tensor:
        return theta if self.problem.constrain is None else self.problem.constrain(theta)  # [K, P']

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.problem.sample_prior(n, generator)  # [n, P]

    def log_likelihood(self, theta: Tensor, batch: Batch | None) -> Tensor:
        return theta.new_zeros(theta.shape[0], 0)  # [K, 0]: batches of a density are empty

    def log_prior(self, theta: Tensor) -> Tensor:
        return self.problem.log_density(theta)  # [K]


@register("model", "target_density")
class TargetDensity(Model[Density, TargetDensityModule]):
    """The target of a density problem, without parameters.

    log p(θ) = log π(θ) [K]; the log-likelihood of its empty batches is [K, 0].

    Source: Gallego (2021), section 2.2.1."""

    requires = Requirements(kinds={"density"})

    def build(self, problem: Density, rng: Rng) -> TargetDensityModule:
        return TargetDensityModule(problem)
