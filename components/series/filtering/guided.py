"""Proposals that depend on y_t: locally optimal or linearised.

The locally optimal proposal must be implemented by the model; the linearised one is computed at a
particle's expected next state.  Both follow the likelihood: at an outlier they are narrower than
the posterior of a robust loss and located elsewhere, so the weights G f / q of such a loss have a
large variance.

Source: Doucet, Godsill & Andrieu (2000), sections II.D.1 and II.D.2; Boustati (2021),
Algorithm 6.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from components.contracts.capabilities import (
    AdditiveGaussian,
    OptimalProposal,
    StateSpace,
    TransitionDensity,
)
from components.contracts.sequences import Observation
from components.contracts.streams import Rng
from components.maths.cholesky import half_log_det
from components.maths.particles.draws import standard_normal_like
from components.series.filtering.generalised_particle_filter import (
    FilterState,
    FilterStep,
    M,
    Potential,
    PropagatedParticles,
    Resampling,
    expectation,
    settle,
    stand_in,
    zero_where_missing,
)

Guide = Literal["optimal", "linearised"]
GUIDE_REQUIREMENTS: dict[Guide, tuple[type, ...]] = {
    "optimal": (OptimalProposal, TransitionDensity),
    "linearised": (AdditiveGaussian,),
}


class Guided(NamedTuple):
    """Draws from a proposal q(· | x_{t−1}, y_t), with the log f/q of each."""

    x: Tensor  # [R, N, dx]
    log_ratio: Tensor  # [R, N]


def advance_guided(
    state: FilterState[M],
    batch: Observation,
    rng: Rng,
    potential: Potential[M] | None,
    guide: Guide,
    resampling: Resampling,
) -> FilterStep[M]:
    """One step with x̄_t ~ q_t(· | x_{t−1}, y_t), w_t ∝ w_{t−1} G_t f_t / q_t.

    ``None`` as potential means the likelihood under the optimal proposal, for which g f / q
    is the predictive likelihood, equal for all draws.  Predictions are Σ_n w_{t−1}^n h over
    draws from f, which do not depend on y_t; these draws also replace the proposals if y_t
    is missing.  Raises NumericalError if all weights of a replicate are zero or one is
    NaN.
    """
    model = state.model
    previous = state.particles
    t = batch.t
    ahead = model.transition(previous, t, rng.noise)
    predicted = expectation(state.log_w, model.observation_mean(ahead, t))  # [R, dy]
    observation = stand_in(batch, predicted)
    if potential is None:
        assert isinstance(model, OptimalProposal)
        x = model.propose(observation.y, previous, t, rng.noise)
        log_g = model.log_predictive(observation.y, previous, t)
    else:
        x, log_ratio = propose(model, observation, previous, rng, guide)
        log_g = potential(model, observation, x) + log_ratio
    if batch.missing is not None:
        x = torch.where(batch.missing.view(-1, 1, 1), ahead, x)
    log_w = state.log_w + zero_where_missing(batch, log_g)
    return settle(state, batch, rng, PropagatedParticles(x, log_w, predicted), resampling)


def propose(model: StateSpace, seen: Observation, before: Tensor, rng: Rng, guide: Guide) -> Guided:
    """Draws from one proposal for each particle of time t − 1, ``before`` [R, N, dx]."""
    if guide == "linearised":
        assert isinstance(model, AdditiveGaussian)
        return linearise(model, seen, before, rng.noise)
    assert isinstance(model, OptimalProposal)
    assert isinstance(model, TransitionDensity)
    x = model.propose(seen.y, before, seen.t, rng.noise)
    log_q = model.log_proposal(x, seen.y, before, seen.t)
    return Guided(x, model.log_transition(x, before, seen.t) - log_q)


def linearise(
    model: AdditiveGaussian, seen: Observation, before: Tensor, generator: torch.Generator
) -> Guided:
    """q = N(m + K(y − h(m)), (I − K J) Q (I − K J)ᵀ + K Σ Kᵀ), m = f(x_{t−1}), J = ∂h/∂x at m, K =
    Q Jᵀ (J Q Jᵀ + Σ)⁻¹.

    For a linear h it is exact, and is then the optimal proposal."""
    m = model.transition_mean(before, seen.t)  # [R, N, dx]
    h, J = _value_and_jacobian(model, m, seen.t)  # [R, N, dy], [R, N, dy, dx]
    # Shared by all particles of a replicate.
    Q, Sigma = (
        matrix if matrix.dim() == 2 else matrix.unsqueeze(1) for matrix in (model.Q, model.Sigma)
    )
    S = J @ Q @ J.mT + Sigma  # [R, N, dy, dy]
    K = torch.linalg.solve(S, J @ Q).mT  # [R, N, dx, dy]
    keep = torch.eye(m.shape[-1]).to(m) - K @ J
    L = torch.linalg.cholesky(keep @ Q @ keep.mT + K @ Sigma @ K.mT)  # [R, N, dx, dx]
    z = standard_normal_like(m, generator)
    x = m + (K @ (seen.y.unsqueeze(-2) - h).unsqueeze(-1) + L @ z.unsqueeze(-1)).squeeze(-1)
    log_q = -0.5 * z.square().sum(-1) - half_log_det(L)
    L_Q = torch.linalg.cholesky(model.Q)
    whitened = torch.linalg.solve_triangular(L_Q, (x - m).mT, upper=False)  # [R, dx, N]
    log_f = -0.5 * whitened.square().sum(-2) - torch.linalg.diagonal(L_Q).log().sum(
        -1, keepdim=True
    )
    return Guided(x, log_f - log_q)  # both without ½ dx log 2π


def _value_and_jacobian(model: AdditiveGaussian, m: Tensor, t: int) -> tuple[Tensor, Tensor]:
    """h(m) [R, N, dy] and ∂h/∂x there [R, N, dy, dx]: h of a particle does not depend on other
    particles."""
    with torch.enable_grad():
        x = m.detach().requires_grad_()
        h = model.observation_mean(x, t)
        rows = [
            torch.autograd.grad(h[..., j].sum(), x, retain_graph=True, materialize_grads=True)[0]
            for j in range(h.shape[-1])
        ]
    return h.detach(), torch.stack(rows, -2)
