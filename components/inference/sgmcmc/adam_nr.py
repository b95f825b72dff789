"""Adam plus noise and repulsion, as a sampler."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from components.draws import Draws
from components.inference.chains import State, collected, moved, started
from components.inference.log_joint import value_and_gradient
from components.inference.sgmcmc.repulsion import Bandwidth, Particles, apart, interaction
from components.inference.sgmcmc.step_sizes import StepSizes
from components.interfaces import Inference, Info, LogJoint, Rng
from components.registry import register

Rate = Annotated[float, Field(ge=0, lt=1)]


@register("inference", "adam_nr")
class AdamNR(StepSizes, Inference):
    """Adam plus noise and repulsion (Adam+NR): momentum with repulsion, and a mass matrix for each particle as Adam has it.

    H(z, m) = Σ_l [−log π(z_l) + ½ m_lᵀ M_l⁻¹ m_l],  M_l = diag(√v̂_l) + δ I,  v_l ← β₂ v_l + (1 − β₂) (∇log π(z_l))²,
    v̂_l = v_l / (1 − β₂ᵗ) at step t = 1, 2, …,  Q = (1/L) [[0, −K], [K, 0]],  D = ((1 − β₁)/ε_t) [[0, 0], [0, M]];
    z, m, v [L, P],

        m_i ← β₁ m_i + (ε_t/L) Σ_l [k(z_l, z_i) ∇log π(z_l) + ∇_{z_l} k(z_l, z_i)] + N(0, 2 (1 − β₁) M_i)
        z_i ← z_i + (ε_t/L) Σ_l k(z_l, z_i) M_l⁻¹ m_l   with the new m and the old K.

    The paper writes H as a product over particles and leaves friction out; β₁ < 1 is Adam's, and its noise keeps the
    temperature at 1.  Where M stands still exp(−H) is invariant; it follows the gradients with rate 1 − β₂, and what that
    adds is neglected.  One particle alone takes Adam's steps of size ε²/(1 − β₁).

    Raises NumericalTrouble when a particle leaves the finite numbers, or when most particles start at one place.

    Source: Gallego (2021), section 2.3.2; Kingma & Ba (2014), Algorithm 1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"density", "supervised"})
    needs: ClassVar[frozenset[str]] = frozenset({"log_joint"})
    chains: Particles
    beta1: Rate
    beta2: Rate
    stability: PositiveFloat
    bandwidth: Bandwidth
    repulsion_until: NonNegativeInt | None
    burn_in: NonNegativeInt
    thinning: PositiveInt

    def init(self, model: LogJoint, problem: Any, rng: Rng) -> State:
        state = started(model, problem, self.chains, rng)
        apart(state["theta"], self.bandwidth)
        zero = torch.zeros_like(state["theta"])
        return state | {"momentum": zero, "squares": zero}  # as Adam starts

    def step(self, state: State, batch: Any, rng: Rng) -> tuple[State, Info]:
        theta, t = state["theta"], state["t"]
        eps = self.step_size_at(t)
        value, gradient = value_and_gradient(state["model"], theta, batch)  # [L], [L, P]
        squares = self.beta2 * state["squares"] + (1 - self.beta2) * gradient.square()  # v [L, P]
        mass = (squares / (1 - self.beta2 ** (t + 1))).sqrt() + self.stability  # diagonals of M_l, [L, P]
        repelled = self.repulsion_until is None or t < self.repulsion_until
        particles = interaction(theta, self.bandwidth, repelled)
        noise = torch.randn(theta.shape, generator=rng.noise, device=theta.device, dtype=theta.dtype)
        force = particles.averaged(gradient) + particles.correction()  # [L, P]
        momentum = self.beta1 * state["momentum"] + eps * force + (2 * (1 - self.beta1) * mass).sqrt() * noise
        velocity = momentum / mass
        theta = theta + eps * particles.averaged(velocity)
        state = moved(state, theta, self.burn_in, self.thinning) | {"momentum": momentum, "squares": squares}
        info = {
            "log_joint": value.mean(),
            "grad_norm": gradient.norm(dim=1).mean(),
            "temperature": (momentum * velocity).mean(),  # 1 where the momenta have their stationary law
            "step_size": eps,
            "draws": len(state["kept"]),
        }
        return state, info | particles.facts()

    def posterior(self, state: State) -> Draws:
        return collected(state)  # [L, N, P]
