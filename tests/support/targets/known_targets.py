"""Targets with known moments, and z-scores of samplers on them."""

from __future__ import annotations

import math
from typing import Self

import torch
from support.runs.configured import F64, component, double, normal
from torch import Tensor

from runner.execution.rng import Streams


class PriorAlone:
    """Model without data: only a log prior; chains start at N(0, spread² I)."""

    dim = 2
    names = ["a", "b"]
    spread = 1.0

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.spread * normal(generator, n, self.dim)

    def log_likelihood(self, theta: Tensor, batch) -> Tensor:
        return theta.new_zeros(len(theta), 0)


class GaussianTarget(PriorAlone):
    """N(mean, covariance) as a LogJoint; chains start at N(mean, spread² I)."""

    def __init__(self, mean: Tensor, covariance: Tensor, spread: float = 1.0):
        self.mean = mean
        self.covariance = covariance
        self.spread = spread
        self.precision = torch.linalg.inv(covariance)
        self.dim = len(mean)
        self.names = [f"x{j}" for j in range(len(mean))]
        self.first = mean
        self.second = covariance.diagonal() + mean**2

    def to(self, dtype: torch.dtype) -> Self:
        """Target with its tensors in another precision."""
        for name in ("mean", "covariance", "precision"):
            setattr(self, name, getattr(self, name).to(dtype))
        return self

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.mean + self.spread * torch.randn(
            n, self.dim, generator=generator, dtype=self.mean.dtype
        )

    def log_prior(self, theta: Tensor) -> Tensor:
        centred = theta - self.mean
        return -0.5 * (centred @ self.precision * centred).sum(1)


class GammaTarget(PriorAlone):
    """Gamma(shape, rate) of exp(θ): a constrained parameter; its log density needs the
    log-Jacobian θ."""

    dim = 1
    names = ["rate"]
    spread = 0.5

    def __init__(self, shape: float = 3.0, rate: float = 2.0, jacobian: bool = True):
        self.shape = shape
        self.rate = rate
        self.jacobian = jacobian
        self.first = double([shape / rate])
        self.second = double([shape * (shape + 1) / rate**2])

    def constrain(self, theta: Tensor) -> Tensor:
        return theta.exp()

    def log_prior(self, theta: Tensor) -> Tensor:
        power = self.shape if self.jacobian else self.shape - 1
        return (power * theta - self.rate * theta.exp())[:, 0]


class ExactGamma(GammaTarget):
    """The same with chains that start at exact draws: errors in the moments come from the
    kernel."""

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        shape = torch.full((n, 1), self.shape, dtype=F64)
        return (torch._standard_gamma(shape, generator=generator) / self.rate).log()


def correlated_gaussian(correlation: float = 0.8) -> GaussianTarget:
    """A correlated Gaussian in the plane with unequal scales."""
    scale = double([1.0, 0.5])
    unit = double([[1.0, correlation], [correlation, 1.0]])
    return GaussianTarget(double([0.5, -2.0]), scale[:, None] * unit * scale)


class Curved(PriorAlone):
    """Density in the plane with a nonlinear gradient, so that no property holds by linearity and no
    part of an acceptance ratio cancels."""

    def log_prior(self, theta):
        x, y = theta.unbind(1)
        return -0.5 * x**2 - (y - 0.5 * x**2) ** 2 - 0.1 * x**4


class Tailed(PriorAlone):
    """Student's t with ν degrees of freedom in P dimensions; ν = 1 is the Cauchy distribution."""

    def __init__(self, dim: int, dof: float):
        self.dim = dim
        self.names = [f"x{j}" for j in range(dim)]
        self.dof = dof

    def log_prior(self, theta: Tensor) -> Tensor:
        return -0.5 * (self.dof + self.dim) * (theta.square().sum(1) / self.dof).log1p()


def white(dim: int) -> GaussianTarget:
    """N(0, I)."""
    return GaussianTarget(torch.zeros(dim, dtype=F64), torch.eye(dim, dtype=F64))


def walk(inference, model, steps: int, rng: Streams | None = None, problem=None):
    """State and information after each step of chains that use no data."""
    rng = rng or Streams(0)
    state = inference.init(model, problem, rng)
    for _ in range(steps):
        state, info = inference.step(state, None, rng)
        yield state, info


def run_chains(inference, model, steps: int, rng: Streams | None = None, problem=None):
    """State and information after the last of the given steps."""
    last = None
    for last in walk(inference, model, steps, rng, problem):  # noqa: B007  # keeps no state but one
        pass
    return last


def sample_target(name: str, model, steps: int, seed: int = 0, problem=None, **settings):
    """Draws of the inference ``name`` after ``steps`` steps, with the defaults of its YAML
    overridden by ``settings``."""
    inference = component("inference", name, **settings)
    return inference.posterior(run_chains(inference, model, steps, Streams(seed), problem)[0])


def z_score(values: Tensor, expected: Tensor | float) -> Tensor:
    """(mean − expected) in standard errors, over dimension 0."""
    return (values.mean(0) - expected) / (values.std(0) / len(values) ** 0.5)


def moment_z(draws, model) -> float:
    """Largest |z| of the first two moments; standard errors come from the means of independent
    chains, of which many are needed."""
    values = draws.values  # [C, N, P']
    worst = 0.0
    for power, exact in ((1, model.first), (2, model.second)):
        per_chain = (values**power).mean(1)  # [C, P']
        error = per_chain.std(0) / len(per_chain) ** 0.5
        worst = max(worst, float(((per_chain.mean(0) - exact) / error).abs().max()))
    return worst


class Funnel(PriorAlone):
    """v ~ N(0, ½), x | v ~ N(0, e^v): a mild form of Neal's funnel, with moments that a fixed step
    size can still find."""

    names = ["v", "x"]
    first = torch.zeros(2, dtype=F64)
    second = double([0.5, math.exp(0.25)])

    def log_prior(self, theta: Tensor) -> Tensor:
        v, x = theta.unbind(1)
        return -(v**2) - 0.5 * x**2 * (-v).exp() - 0.5 * v
