"""Gandy & Scott's exact tests that a Markov kernel leaves the posterior of any data set invariant,
for many data sets together.

θ is drawn from the prior and y from the model, so that θ is an exact draw of the posterior of y and
no burn-in is needed.  Each of R data sets has one chain.

``rank_p``        reversible kernels (Algorithm 2): θ is placed at a uniform position M of a chain of length L, which is run
                  from there in both directions; its rank among the L states is uniform.
``two_sample_p``  any kernel (Algorithm 1): f(θ, y) after L steps is distributed as f(θ, y) of fresh draws of the joint.

Both give a p-value for all statistics together (Bonferroni).  Source: Gandy & Scott (2020),
sections 2.1, 2.2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from scipy.stats import chisquare, ks_2samp
from support.runs.configured import F64, component, generator, normal
from torch import Tensor

from components.inference.log_joint import log_joint
from runner.execution.rng import Streams

Statistics = Callable[[Any, Tensor, Any], Tensor]  # (model, θ [R, P], batch) -> [R, S]


@dataclass(frozen=True)
class Rows:
    """One data set y [B] for each chain."""

    y: Tensor  # [R, B]
    scale: float = 1.0

    @property
    def n_rows(self) -> int:
        return self.y.shape[1]


class NormalGamma:
    """y_i ~ N(μ, 1/τ), μ ~ N(m, s²), τ ~ Gamma(a, b), independent a priori; θ = (μ, log τ), one
    data set per chain.

    Both full conditionals are exact: N and Gamma.
    """

    dim = 2
    names = ["mu", "tau"]
    m = 0.5
    s = 1.5
    a = 3.0
    b = 2.0

    def __init__(self, blocks: tuple[str, ...] = ("mu", "tau"), rows: int = 4):
        self.blocks = list(blocks)
        self.rows = rows

    def constrain(self, theta: Tensor) -> Tensor:
        return torch.stack([theta[:, 0], theta[:, 1].exp()], 1)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        mu = self.m + self.s * normal(generator, n)
        tau = (
            torch._standard_gamma(torch.full((n,), self.a, dtype=F64), generator=generator) / self.b
        )
        return torch.stack([mu, tau.log()], 1)

    def sample_data(self, theta: Tensor, generator: torch.Generator) -> Rows:
        z = normal(generator, len(theta), self.rows)
        return Rows(theta[:, :1] + (-0.5 * theta[:, 1:]).exp() * z)

    def log_prior(self, theta: Tensor) -> Tensor:
        mu, log_tau = theta.unbind(1)
        # with the Jacobian τ
        return -0.5 * ((mu - self.m) / self.s) ** 2 + self.a * log_tau - self.b * log_tau.exp()

    def log_likelihood(self, theta: Tensor, batch: Rows) -> Tensor:
        mu = theta[:, :1]
        log_tau = theta[:, 1:]
        return 0.5 * log_tau - 0.5 * log_tau.exp() * (batch.y - mu) ** 2  # [R, B]

    def draw_block(
        self, block: str, theta: Tensor, batch: Rows, generator: torch.Generator
    ) -> Tensor:
        mu, log_tau = theta.unbind(1)
        if block == "mu":
            precision = self.s**-2 + self.rows * log_tau.exp()
            mean = (self.m / self.s**2 + log_tau.exp() * batch.y.sum(1)) / precision
            mu = mean + precision.rsqrt() * normal(generator, len(theta))
        else:
            shape = torch.full_like(mu, self.a + self.rows / 2)
            rate = self.b + 0.5 * ((batch.y - mu[:, None]) ** 2).sum(1)
            log_tau = (torch._standard_gamma(shape, generator=generator) / rate).log()
        return torch.stack([mu, log_tau], 1)


class StartingAt:
    """Model with chains that start at the given θ."""

    def __init__(self, model: Any, theta: Tensor):
        self.model = model
        self.theta = theta

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.theta.clone()


@dataclass
class OneBatch:
    batch: Any
    kind: str = "supervised"
    replicates: int = 1

    def batches(
        self, batch_kind: str, rng: Any, start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        for step in range(start + 1, stop + 1):
            yield step, self.batch


def joint(model: Any, replications: int, seed: int) -> tuple[Tensor, Any]:
    """θ [R, P] from the prior, and a data set for each."""
    g = generator(seed)
    theta = model.sample_prior(replications, g)
    return theta, model.sample_data(theta, g)


def moments_and_density(model: Any, theta: Tensor, batch: Any) -> Tensor:
    """θ_j, θ_j θ_k and the log joint, which a wrong kernel is most likely to change."""
    products = theta[:, :, None] * theta[:, None, :]
    j, k = torch.triu_indices(theta.shape[1], theta.shape[1])
    # [R, S]
    return torch.cat([theta, products[:, j, k], log_joint(model, theta, batch)[:, None]], 1)


def path(
    name: str,
    model: Any,
    theta: Tensor,
    batch: Any,
    steps: int,
    every: int,
    rng: Any,
    settings: dict,
) -> list:
    """States [R, P] of the kernel after ``every``, 2 ``every`` … steps from θ."""
    inference = component("inference", name, chains=len(theta), **settings)
    state = inference.init(StartingAt(model, theta), OneBatch(batch), rng)
    states = []
    for step in range(1, steps * every + 1):
        state, _ = inference.step(state, batch, rng)
        if step % every == 0:
            states.append(state.theta)
    return states


def rank_p(
    name: str,
    model: Any,
    replications: int = 2000,
    length: int = 8,
    every: int = 1,
    seed: int = 0,
    backward: Any = None,
    statistics: Statistics = moments_and_density,
    **settings: Any,
) -> float:
    """p-value of the rank test of inference ``name`` with a fixed kernel (``settings`` without
    warm-up).

    ``backward`` is the model that gives the reverse kernel, for irreversible kernels: the blocks of
    a systematic Gibbs sweep in reverse order.
    """
    theta, batch = joint(model, replications, seed)
    rng = Streams(seed)
    ahead = path(name, model, theta, batch, length - 1, every, rng, settings)
    behind = path(name, backward or model, theta, batch, length - 1, every, rng, settings)
    # [1 + 2(L − 1), R, S]
    values = torch.stack([statistics(model, t, batch) for t in [theta, *ahead, *behind]])
    g = generator(seed + 1)
    M = torch.randint(length, (replications,), generator=g)  # states before θ in the chain
    place = torch.arange(1, length)[:, None]
    used = torch.cat([place <= length - 1 - M, place <= M])  # [2(L − 1), R]
    true_value = values[0]
    others = values[1:]
    # a stuck chain repeats θ
    ties = torch.rand(others.shape, generator=g) < torch.rand(true_value.shape, generator=g)
    # Ranks among ties are uniform: every state has a uniform key, and θ's own key is used in all
    # its
    # comparisons.
    below = (others < true_value) | ((others == true_value) & ties)
    rank = (below & used[..., None]).sum(0)  # [R, S], uniform on 0 … L − 1
    counts = torch.stack([torch.bincount(r, minlength=length) for r in rank.T]).numpy()  # [S, L]
    return min(1.0, float(chisquare(counts, axis=1).pvalue.min()) * len(counts))


def two_sample_p(
    name: str,
    model: Any,
    replications: int = 4000,
    steps: int = 5,
    seed: int = 0,
    statistics: Statistics = moments_and_density,
    **settings: Any,
) -> float:
    """p-value of the two-sample Kolmogorov-Smirnov test of ``steps`` of a kernel that may be
    irreversible."""
    theta, batch = joint(model, replications, seed)
    last = path(name, model, theta, batch, 1, steps, Streams(seed), settings)[-1]
    next_values = statistics(model, last, batch)
    fresh = statistics(model, *joint(model, replications, seed + 1))
    ps = [
        float(ks_2samp(a.numpy(), b.numpy()).pvalue)
        for a, b in zip(next_values.T, fresh.T, strict=True)
    ]
    return min(1.0, min(ps) * len(ps))
