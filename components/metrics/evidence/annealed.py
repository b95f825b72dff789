"""log p(x) by annealed importance sampling from the prior to the posterior of the latent variables
of each row."""

from __future__ import annotations

import itertools
import math
from functools import partial

import torch
from torch import Tensor

from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal
from components.maths.row_hamiltonian import transition
from components.metrics.evidence.proposal import Target

LEAPFROG = 10  # number of leapfrog steps in a transition
FIRST_STEP = 0.1  # step size at the first temperature of the pilot run
PILOT_ACCEPTANCE = 0.65  # target acceptance rate of the pilot run
STEP_SIZE_FACTOR = 1.05  # factor by which the pilot run changes its step size at a temperature
PILOT = 4  # every n-th chain is in the pilot run
STEEPNESS = 4.0  # δ of the schedule


def schedule(temperatures: int) -> list[float]:
    """0 = β_0 < β_1 < … < β_T = 1, close together at both ends: β̃_t = σ(δ(2t/T − 1)), β_t = (β̃_t
    − β̃_0)/(β̃_T − β̃_0).

    Source: Grosse, Ghahramani and Adams (2015), section 6, as in Wu et al. (2017)."""
    raw = [
        1 / (1 + math.exp(-STEEPNESS * (2 * t / temperatures - 1))) for t in range(temperatures + 1)
    ]
    return [(value - raw[0]) / (raw[-1] - raw[0]) for value in raw]


def log_prior(z: Tensor) -> Tensor:
    """log N(z | 0, I) over the last dimension."""
    return -0.5 * (z.square().sum(-1) + z.shape[-1] * LOG_2PI)


def annealed_log_density(target: Target, beta: float, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log p(x, z) [S, B], log f_β(z) = (1 − β) log N(z|0, I) + β log p(x, z) [S, B] and its
    gradient [S, B, D]."""
    with torch.enable_grad():
        z = z.detach().requires_grad_()
        joint = target(z)
        (gradient,) = torch.autograd.grad(joint.sum(), z)
    z = z.detach()
    return (
        joint.detach(),
        (1 - beta) * log_prior(z) + beta * joint.detach(),
        beta * gradient - (1 - beta) * z,
    )


def anneal(
    target: Target,
    like: Tensor,
    chains: int,
    betas: list[float],
    sizes: Tensor | None,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """log w [S, B] of one run of S chains per row of ``like`` [B, D], the step sizes used [T, B],
    and acceptance rates [T, B].

        log w = Σ_{t=1}^T (β_t − β_{t−1}) [log p(x, z_{t−1}) − log N(z_{t−1}|0, I)],   z_0 ~ N(0, I),   z_t ~ K_{β_t}(·|z_{t−1})

    Step sizes are given, or learned during the run.

    Source: Neal (2001), eqs. (3), (11); Wu, Burda, Salakhutdinov and Grosse (2017), Algorithm 1."""
    z = standard_normal((chains, *like.shape), generator, like)
    eps = like.new_full((len(like),), FIRST_STEP)
    with torch.no_grad():
        joint = target(z)
    log_w = torch.zeros_like(joint)
    used: list[Tensor] = []
    rates: list[Tensor] = []
    for previous, beta in itertools.pairwise(betas):
        log_w = log_w + (beta - previous) * (joint - log_prior(z))
        eps = eps if sizes is None else sizes[len(used)]
        z, joint, rate = transition(
            partial(annealed_log_density, target, beta), z, eps[:, None], LEAPFROG, generator
        )
        used.append(eps)
        rates.append(rate.mean(0))
        if sizes is None:
            eps = torch.where(
                rates[-1] > PILOT_ACCEPTANCE, eps * STEP_SIZE_FACTOR, eps / STEP_SIZE_FACTOR
            )
    return log_w, torch.stack(used), torch.stack(rates)


def annealed_log_weights(
    target: Target, like: Tensor, temperatures: int, chains: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Log weights log w [S, B] with E[w] = p(x_b), and the mean acceptance rate [B].

    ``like`` [B, D] has one row for each x_b. A preceding run learns the step sizes, at each
    temperature and for each row, so that the step sizes of the main run do not depend on
    its own draws: the estimate is unbiased for any step sizes.
    """
    betas = schedule(temperatures)
    _, sizes, _ = anneal(target, like, math.ceil(chains / PILOT), betas, None, generator)
    log_w, _, rates = anneal(target, like, chains, betas, sizes, generator)
    return log_w, rates.mean(0)
