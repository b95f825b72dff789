"""log p(y) of a log joint by sequential Monte Carlo from its Laplace approximation, a reliable
proposal."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.problems import Batch
from components.errors import NumericalError
from components.inference.log_joint import log_joint
from components.inference.variational.global_gaussian import GlobalGaussian
from components.maths.cholesky import LOG_2PI
from components.maths.exponential.standard_draws import standard_normal, standard_uniform
from components.maths.particles.resampling import ancestors

NEWTON = 100
LEVELS = 150
MOVES = 3
CHUNK = 1_000  # draws per likelihood evaluation
TARGET_ACCEPTANCE = 0.3  # target acceptance rate of moves


def laplace(model: LogJoint, train: Batch, start: Tensor) -> tuple[Tensor, Tensor]:
    """The mode m [P] by Newton's method, and L with L Lᵀ = (−∇² log p(y, m))⁻¹ [P, P].

    Raises:
        NumericalError: the mode is not found."""

    def one(theta: Tensor) -> Tensor:
        return log_joint(model, theta[None], train)[0]

    theta = start.detach().clone()
    for _ in range(NEWTON):
        step = torch.linalg.solve(torch.func.hessian(one)(theta), torch.func.grad(one)(theta))
        theta = theta - step
        if float(step.norm()) < 1e-9 * (1 + float(theta.norm())):
            precision = -torch.func.hessian(one)(theta)
            return theta, torch.linalg.cholesky(torch.linalg.inv(precision))
    raise NumericalError(
        "the mode of the log joint was not found by Newton's method",
        "set inference.evidence_particles=null",
    )


def log_evidence(
    model: LogJoint, train: Batch, start: Tensor, particles: int, generator: torch.Generator
) -> Tensor:
    """log p(y) [], unbiased on its natural scale, by sequential Monte Carlo.

    Particles move from N(m, L Lᵀ), the Laplace approximation, to the posterior through
    N^{1−β} p^β, β = 0 … 1, by steps z ← √(1 − ρ²) z + ρ ξ, which leave N invariant (θ = m + L z)
    and are accepted with probability min(1, (w(z')/w(z))^β), w = p(y, θ)/N(θ); particles are
    resampled at each level.

    Source: Neal (2001), Annealed importance sampling; Del Moral, Doucet and Jasra (2006),
    section 3.3.2.3.
    """
    m, L = laplace(model, train, start)
    P = len(m)
    constant = L.diagonal().log().sum() + 0.5 * P * LOG_2PI

    def normal(*shape: int) -> Tensor:
        return standard_normal(shape, generator, m)

    def log_weight(z: Tensor) -> Tensor:
        return log_joint(model, m + z @ L.T, train) + 0.5 * z.square().sum(1) + constant

    z = normal(particles, P)
    rho = 0.5
    w = log_weight(z)
    total = w.new_zeros(())
    for level in range(1, LEVELS + 1):
        step = 1 / LEVELS
        beta = level / LEVELS
        total = total + (step * w).logsumexp(0) - math.log(particles)
        parents = ancestors("systematic", (step * w).softmax(0)[None], generator)
        z = z[parents]
        w = w[parents]
        for _ in range(MOVES):
            new = math.sqrt(1 - rho**2) * z + rho * normal(particles, P)
            w_new = log_weight(new)
            chance = standard_uniform((particles,), generator, m)
            is_accepted = chance.log() < beta * (w_new - w)
            z = torch.where(is_accepted[:, None], new, z)
            w = torch.where(is_accepted, w_new, w)
            rho = min(
                0.99, rho * math.exp(0.3 * (float(is_accepted.double().mean()) - TARGET_ACCEPTANCE))
            )
    return total


def log_importance_weights(
    q: GlobalGaussian, train: Batch, draws: int, generator: torch.Generator
) -> Tensor:
    """log p(y, θ) − log q(θ) for θ ~ q [draws]: their mean is the bound, and log S⁻¹ Σ exp is
    importance sampling from q itself (Boustati 2021, C.3.1), which is wrong by tens of nats if q is
    narrower than the posterior."""
    theta = q.transform(standard_normal((draws, len(q.mean)), generator, q.mean))
    joint = [log_joint(q.target.model, part, train) for part in theta.split(CHUNK)]
    return torch.cat(joint) - q.log_density(theta)
