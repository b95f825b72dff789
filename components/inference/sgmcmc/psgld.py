"""Langevin dynamics preconditioned by running means of squared gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import LogJoint
from components.contracts.roles import Info, ZeroToBelowOne
from components.contracts.streams import Rng
from components.inference.chains import Chains, ModelBatch, mean_over_chains
from components.inference.log_joint import log_joint
from components.inference.sgmcmc.control_variates import ControlledChains, ControlledSteps
from components.inference.sgmcmc.preconditioner import Preconditioning
from components.inference.step_response import Response
from components.inference.superchains import Superchains
from components.maths.exponential.standard_draws import normal_like
from components.registry import register


def curvature(
    model: LogJoint, theta: Tensor, batch: ModelBatch, generator: torch.Generator
) -> Tensor:
    """Unbiased estimate v ∘ (∇² log p) v of the diagonal of the Hessian of the log joint, v = ±1;
    [K, P].

    Exact if the Hessian is diagonal."""
    probe = 2.0 * (torch.rand(theta.shape, generator=generator, device=theta.device) < 0.5) - 1
    theta = theta.detach().requires_grad_()
    with torch.enable_grad():
        (slope,) = torch.autograd.grad(
            log_joint(model, theta, batch).sum(), theta, create_graph=True
        )
        if not slope.requires_grad:  # a log joint that is linear in θ
            return torch.zeros_like(theta)
        (along,) = torch.autograd.grad((slope * probe).sum(), theta)
    return probe * along


@dataclass(kw_only=True)
class PSGLDState(ControlledChains):
    v: Tensor  # mean squared gradients [K, P]


@register("inference", "psgld")
class PSGLD(Superchains, ControlledSteps[PSGLDState], Preconditioning):
    """Preconditioned stochastic gradient Langevin dynamics (RMSprop), parallel chains.

        v_t = α v_{t−1} + (1 − α) ĝ(θ_t)²,   v̂_t = v_t / (1 − αᵗ),   G_t = 1/(λ + √v̂_t)
        θ_{t+1} = θ_t + ε_t (G_t ĝ(θ_t) + Γ_t) + N(0, 2 ε_t G_t)
        Γ_t = ∂G_t/∂θ_t = −G_t² ĝ(θ_t) ∂²log p(θ_t, y) (1 − α) / ((1 − αᵗ) √v̂_t)

    These hold for each coordinate, θ [K, P]: the recipe of Ma et al. with D = diag G and
    Q = 0.  Γ needs the diagonal of the Hessian, estimated by one random probe, and is
    omitted unless ``correction``, as Li et al. do in their experiments.  It is the
    derivative through g_t only, and π is invariant (whole data, ε → 0) if nothing else in G
    depends on θ: for α = 0, the case in which Γ matters most, and once ``adapt``: burn_in has fixed
    G, when Γ = 0.  With ``adapt``: always and α > 0 the past of v depends on θ as well; that bias
    shrinks as 1/(1 − α) exceeds the chain's memory of about 1/ε steps, so a smaller ε makes it
    larger (on Gamma(3, 2) with α = 0.99, E[x²] is 9 % too large at ε = 0.02 and 20 % at 0.005).
    Minibatches also bias G ĝ while G adapts, because they enter both factors.

    Conventions: v is computed from the gradient of the log joint of all N rows; Li et al.
    use the mean log-likelihood, so their ε is 2/N times ours and their λ is 1/N times ours.  v̂ is
    used instead of v, because otherwise the first steps are (1 − α)^−½ times too long.

    Raises:
        NumericalError: a chain becomes non-finite.

    Source: Li et al. (2016), Algorithm 1; Ma et al. (2015), eq. (5).
    """

    averaging: ZeroToBelowOne
    correction: bool

    def begin(self, chains: Chains, rng: Rng) -> PSGLDState:
        return PSGLDState(**vars(chains), v=torch.zeros_like(chains.theta))

    def move(
        self, state: PSGLDState, gradient: Tensor, eps: float, batch: ModelBatch, rng: Rng
    ) -> tuple[PSGLDState, Info]:
        theta = state.theta
        t = state.t
        alpha = self.averaging
        v, v_hat = self.update_squares(state.v, gradient, alpha, t)
        root = v_hat.sqrt()
        G = 1 / (root + self.damping)
        drift = G * gradient
        if self.correction and self.adapts(t):
            share = (1 - alpha) / (1 - alpha ** (t + 1))
            hessian = curvature(state.model, theta, batch, rng.noise)
            # 0 where the gradient is 0
            ratio = gradient / root.clamp_min(torch.finfo(root.dtype).tiny)
            drift = drift - G.square() * ratio * hessian * share
        noise = normal_like(theta, rng.noise)
        theta = theta + eps * drift + (2 * eps * G).sqrt() * noise
        return self.advance(state, theta, v=v), {
            "preconditioner": mean_over_chains(G, state.replicates)
        }

    def response(self, state: PSGLDState) -> Response:
        eps = self.largest_step(state.t)
        root = self.bias_corrected_squares(state.v, self.averaging, state.t).sqrt()
        return Response(lambda gradient: eps * gradient / (root + self.damping), limit=2.0)
