"""Unbiased implicit variational inference."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import LatentVariable, LogJoint
from components.contracts.problems import RowBatch
from components.contracts.roles import BetweenZeroAndOne, Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch, SampleableProblem
from components.inference.log_joint import value_and_gradient
from components.inference.semi_implicit.family import MixedGaussian, SemiImplicit
from components.inference.semi_implicit.fitting import (
    AnyState,
    SemiImplicitRowsVI,
    joint_at,
    q_and_weight,
)
from components.inference.semi_implicit.rows import GivenRows, SemiImplicitEncoder
from components.inference.semi_implicit.transitions import adapt_step_size, iterate
from components.inference.variational.ascent import ascend_value
from components.inference.variational.guide_fit import GuideState
from components.registry import register


class ReverseConditional:
    """The log joint q(z|ε) q(ε) of S draws z [S, P] for S chains ε [S, E], one per draw, without
    rows."""

    def __init__(self, q: MixedGaussian, z: Tensor):
        self.q = q
        self.z = z
        self.dim = q.noise_dim
        self.names: list[str] = []

    def constrain(self, theta: Tensor) -> Tensor:
        return theta

    def sample_prior(self, n: int, generator: torch.Generator) -> Tensor:
        return self.q.mixing(n, generator)

    def log_likelihood(self, theta: Tensor, batch: ModelBatch) -> Tensor:
        return theta.new_zeros(len(theta), 0)

    def log_prior(self, theta: Tensor) -> Tensor:
        """log q(z|ε) + log q(ε) up to a constant, [S, E] -> [S]."""
        return self.q.log_conditional(self.z, self.q.mean(theta)) - 0.5 * theta.square().sum(1)


@dataclass(kw_only=True)
class ReverseState(GuideState[SemiImplicit | SemiImplicitEncoder]):
    """q in training, and the step size of the chains of ε."""

    step_size: float


@register("inference", "uivi")
class UIVI(SemiImplicitRowsVI):
    """Unbiased implicit variational inference (UIVI): ELBO gradients by HMC on q(ε′|z).

        ∇_φ L = E_{ε, u}[∇_z(log p(x, z) − log q(z)) ∇_φ h(u; ε)]
        z = h(u; ε) = m(ε) + s u
        ∇_z log q(z) = E_{q(ε′|z)}[∇_z log q(z|ε′)],   q(ε′|z) ∝ q(z|ε′) q(ε′)

    The HMC target is the reverse conditional.  ε′ are ``reverse_samples`` states of an HMC
    chain that starts at the ε with which z was drawn, after ``reverse_burn_in`` others.
    That ε is an exact draw of q(ε|z), and so is every state; but the gradient is unbiased only if
    ε′ and (ε, u) are independent given z, which does not hold for the first states (without a
    transition, q(z|ε) replaces q(z)).  Step sizes are adapted to ``target_acceptance`` at every
    step.  z [S, P], ε [S, E].  Posterior and ``nelbo`` are as in ``sivi``, and so is q(z|x_b) for
    rows without labels, where every (s, b) has its own chain and the decoder maximises N/B Σ_b log
    p(x_b, z).
    Info: ``elbo``, the lower bound of SIVI with the S − 1 other draws of the step, in nats;
    acceptance and step size of the chains.

    Raises:
        NumericalError: the log joint is not finite at the initial q, or q becomes non-finite.
        ConfigMismatchError: the log joint cannot be differentiated.

    Source: Titsias and Ruiz (2019), section 2 and Algorithm 1.
    """

    reverse_burn_in: NonNegativeInt
    reverse_samples: PositiveInt
    leapfrog_steps: PositiveInt
    step_size: PositiveFloat
    target_acceptance: BetweenZeroAndOne

    def init(
        self, model: LogJoint | LatentVariable[RowBatch], problem: SampleableProblem, rng: Rng
    ) -> ReverseState:
        return ReverseState(**vars(super().init(model, problem, rng)), step_size=self.step_size)

    def step(self, state: AnyState, batch: ModelBatch, rng: Rng) -> tuple[AnyState, Info]:
        assert isinstance(state, ReverseState)
        q, weight = q_and_weight(state, batch)
        epsilon, mean, z = q.sample(self.n_samples, rng.noise)
        z_fixed = z.detach()
        if isinstance(q, GivenRows):
            joint = joint_at(state, z, batch)  # [S, B], with the gradient of the decoder
            # every row of every draw has its own chain, S·B in all
            flat = q.flatten_draws(len(z)), z_fixed.flatten(0, 1), epsilon.flatten(0, 1)
            q_slope, rate = self.estimate_score_function(*flat, state.step_size, rng.noise)
            q_slope = q_slope.unflatten(0, z.shape[:2])
            value = weight * (joint - (z * q_slope).sum(-1)).mean()
            joint = joint.detach()
        else:
            joint, slope = value_and_gradient(state.model, z_fixed, batch)  # [S], [S, P]
            q_slope, rate = self.estimate_score_function(
                q, z_fixed, epsilon, state.step_size, rng.noise
            )
            value = (z * (slope - q_slope)).sum(1).mean()
        norm = ascend_value(state.q, value, batch, state.optimizer)
        with torch.no_grad():
            bound = (
                weight
                * (joint - q.log_pairs(z_fixed, mean).logsumexp(1) + math.log(len(z_fixed))).mean()
            )
        info = {
            "elbo": bound,
            "log_joint": weight * joint.mean(),
            "acceptance_rate": rate,
            "step_size": state.step_size,
        }
        eps = adapt_step_size(state.step_size, rate, self.target_acceptance)
        return replace(state, step_size=eps), info | {"grad_norm": norm}

    def estimate_score_function(
        self, q: MixedGaussian, z: Tensor, epsilon: Tensor, eps: float, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """An estimate of ∇_z log q(z) [S, P] at z [S, P], drawn with ε [S, E], and the acceptance
        rate []."""
        iterations = self.reverse_burn_in + self.reverse_samples
        states, rate = iterate(
            ReverseConditional(q, z), None, epsilon, iterations, self.leapfrog_steps, eps, generator
        )
        with torch.no_grad():
            means = q.mean(states[self.reverse_burn_in :])  # [reverse_samples, S, P]
            return -((z - means) / q.std.square()).mean(0), rate
