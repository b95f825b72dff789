"""Stochastic gradient Hamiltonian Monte Carlo: momentum, friction, and matching noise."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from pydantic import PositiveFloat, model_validator
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.chains import ModelBatch, SampleableProblem
from components.inference.sgmcmc.control_variates import ControlledChains, GradientNoise
from components.inference.sgmcmc.dynamics import GradientDynamics
from components.inference.step_response import Response
from components.inference.superchains import Superchains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


@dataclass(kw_only=True)
class SGHMCState(ControlledChains):
    r: Tensor  # momenta [K, P]
    V: Tensor  # variances of the gradients [K, P]


@register("inference", "sghmc")
class SGHMC(Superchains, GradientDynamics[SGHMCState], GradientNoise):
    """Stochastic gradient Hamiltonian Monte Carlo with friction, parallel chains.

        θ_{t+1} = θ_t + ε_t r_t
        r_{t+1} = r_t + ε_t ĝ(θ_{t+1}) − ε_t C r_t + N(0, ε_t (2C − ε_t V̂))
        r_0 ~ N(0, I)

    The recipe of Ma et al. with z = (θ, r), H = −log p(θ, y) + ½ rᵀr, D = [0 0; 0 C I],
    Q = [0 −I; I 0] and Γ = 0, with r updated at the new θ as in Chen's Algorithm 2.  θ, r
    [K, P]; C is ``friction``.  As ε → 0 with the whole data π is invariant, with a bias of
    order ε (ε² on a Gaussian).  Gradient noise with covariance V increases the temperature of the
    chain by a relative ε V / 2C, approximately; with ``noise_estimate`` its variances V̂ are
    subtracted from the added noise (``GradientNoise``), at most 2C/ε.

    Info: ``uncovered``, share of coordinates in which gradient noise exceeds what friction
    can absorb; a larger share needs more friction, smaller steps or larger batches.

    Raises:
        ConfigMismatchError: ``noise_estimate`` has no batch to split.
        NumericalError: a chain becomes non-finite.

    Source: Chen et al. (2014), Algorithm 2; Ma et al. (2015), eq. (12).
    """

    friction: PositiveFloat

    @model_validator(mode="after")
    def _check_stable_friction(self) -> SGHMC:
        if self.step_size * self.friction > 1:
            raise ValueError(
                f"friction: step_size × friction = {self.step_size * self.friction:g} reverses the "
                f"momentum at each step; use at most 1"
            )
        return self

    def init(self, model: LogJoint, problem: SampleableProblem, rng: Rng) -> SGHMCState:
        self.check_noise_estimate(problem)
        state = self.start_chains(model, problem, rng)
        theta = state.theta
        r = normal_like(theta, rng.init)
        control = self.init_reference(model, theta, problem)
        return SGHMCState(**vars(state), r=r, V=torch.zeros_like(theta), control=control)

    def step(self, state: SGHMCState, batch: ModelBatch, rng: Rng) -> tuple[SGHMCState, Info]:
        model = state.model
        t = state.t
        r = state.r
        C = self.friction
        eps = self.step_size_at(t)
        control = self.refresh_reference(state.control, model, state.theta, t)
        theta = state.theta + eps * r
        value, gradient, V = self.estimate_with_noise(control, model, theta, batch, state.V, t)
        noise = normal_like(theta, rng.noise)
        spread = (eps * (2 * C - eps * V)).clamp_min(0).sqrt()  # [K, P]
        r = r + eps * gradient - eps * C * r + spread * noise  # Ma et al. (2015), eq. (12)
        state = self.advance(state, theta, r=r, V=V, control=control)
        info = self.describe_step(state, value, gradient, eps)
        if self.noise_estimate:
            info["uncovered"] = (eps * V > 2 * C).to(V.dtype).mean()
        return state, info

    def response(self, state: SGHMCState) -> Response:
        eps = self.largest_step(state.t)
        return Response(lambda gradient: eps**2 * gradient, limit=2 * (2 - eps * self.friction))
