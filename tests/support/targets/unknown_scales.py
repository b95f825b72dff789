"""A local level with unknown noise scales: series, models, and exact posteriors by numerical
integration."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from scipy import stats
from support.runs.configured import F64, component, load
from support.series.small_sequences import run
from torch import Tensor

from components.series.models.lgssm import NoiseScales
from components.series.sequence import Sequence
from runner.execution.rng import Streams

# Medians and spreads of the log-normal priors: no scale is so small that a few particles hardly
# ever reach an observation.
PRIORS = {"observation_sd": (0.8, 0.4), "state_sd": (0.6, 0.6)}


def series(replicates: int, n_steps: int = 10, seed: int = 1, **keys) -> Sequence:
    """Series with missing observations that differ between replicates."""
    return load("local_level", seed, replicates, n_steps=n_steps, **({"missing": 0.2} | keys))[0]


def repeat_series(problem: Sequence, times: int) -> Sequence:
    """The first series, repeated."""
    observed = problem.observations[:1].expand(times, -1, -1).contiguous()
    return replace(problem, observations=observed, states=problem.states[:1], means=None)


def build_filter(particles: int, beta: float | None = None):
    """A bootstrap filter, optionally with a generalised likelihood."""
    if beta is None:
        return component("inference", "bootstrap_filter", particles=particles)
    return component("inference", "beta_bootstrap_filter", particles=particles, beta=beta)


def model(problem: Sequence, both: bool = True):
    """The local level with both scales unknown, or only the observations' scale."""
    laws = {
        name: {"law": "log_normal", "median": m, "spread": s} for name, (m, s) in PRIORS.items()
    }
    priors = NoiseScales(
        observation_sd=laws["observation_sd"], state_sd=laws["state_sd"] if both else None
    )
    return component("model", "lgssm", unknown=priors).build(problem, Streams(0))


def prior(name: str, points: int) -> tuple[Tensor, Tensor, float]:
    """Values of a scale at the midpoints of cells, their log prior density, and the size of a
    cell."""
    median, spread = PRIORS[name]
    edges = torch.linspace(0, median * math.exp(4 * spread), points + 1, dtype=F64)
    x = (edges[1:] + edges[:-1]) / 2
    return (
        x,
        torch.from_numpy(stats.lognorm(spread, scale=median).logpdf(x)),
        float(edges[1] - edges[0]),
    )


def exact(problem: Sequence, points: int = 100, rate: float = 1.0) -> tuple[Tensor, Tensor, float]:
    """Means and standard deviations of the two scales given the first series, and log p(y):
    Kalman's evidence, to the power ``rate``, times the priors of the scales, on a grid of the
    scales."""
    first, second = (prior(name, points) for name in PRIORS)
    x = torch.cartesian_prod(first[0], second[0])  # [K, 2]
    log_prior = (first[1].unsqueeze(1) + second[1]).flatten()
    many = repeat_series(problem, len(x))
    log_p = run(
        component("inference", "kalman"), model(problem).at(x.log()), many, Streams(0)
    ).log_normaliser
    log_p = rate * log_p + log_prior + math.log(first[2] * second[2])
    w = log_p.softmax(0)
    mean = w @ x
    return mean, (w @ (x - mean).square()).sqrt(), float(log_p.logsumexp(0))


def generalised_moments(
    problem: Sequence, beta: float, integral: bool = True
) -> tuple[float, float]:
    """Mean of the observations' scale s under p(s) ∫ p(x_0:T) ∏ G^β(y_t | x_t, s) dx, and its
    standard deviation, on grids; G^β = exp(g^β/β − ∫ g^(1+β) dy/(1 + β)), g = N(y | x, s²),
    optionally without the last term.
    """
    system = problem.system
    s, total, _ = prior("observation_sd", 80)
    x = torch.linspace(-14, 14, 561, dtype=F64)
    dx = float(x[1] - x[0])
    normal = torch.distributions.Normal
    move = normal(x[None, :], float(system.Q) ** 0.5).log_prob(x[:, None]).exp() * dx  # [to, from]
    # [S, x]
    density = normal(float(system.m0), float(system.P0) ** 0.5).log_prob(x).exp().expand(len(s), -1)
    for value in problem.observations[0, :, 0]:
        density = density @ move.T
        if not value.isnan():
            log_g = normal(x[None, :], s[:, None]).log_prob(value)
            log_G = (beta * log_g).exp() / beta
            if integral:
                y = torch.linspace(-60, 60, 6001, dtype=F64)
                power = ((1 + beta) * normal(0.0, s[:, None]).log_prob(y)).exp().sum(1) * (
                    y[1] - y[0]
                )
                log_G = log_G - (power / (1 + beta)).unsqueeze(1)
            density = density * log_G.exp()
        mass = density.sum(1) * dx
        density = density / mass.unsqueeze(1)
        total = total + mass.log()
    w = total.softmax(0)
    mean = float(w @ s)
    return mean, float((w @ (s - mean).square()).sqrt())
