"""Combination of several control variates of the reparameterisation gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import Pathwise
from components.contracts.problems import RowBatch
from components.contracts.requirements import Requirements
from components.contracts.roles import Gradient, NonEmptyList, ZeroToBelowOne
from components.contracts.streams import Rng
from components.gradients.by_parameter import Estimate, as_gradients, flat
from components.gradients.pathwise.bound import whole_gradient
from components.registry import register


@dataclass
class CombinedState:
    """States of the members, and moving averages of their control variates' moments."""

    members: list[Any]
    cross: Tensor  # E c_j·ĝ [J]
    products: Tensor  # E c_i·c_j [J, J]


@register("gradient", "combined_cv")
class CombinedCV(Gradient[Pathwise[RowBatch], RowBatch, CombinedState]):
    """Linear combination of control variates, with weights that minimise the variance.

        g̃ = ĝ + Σ_j a_j c_j,   c_j = g̃_j − ĝ,   a = −(E[c_i·c_j] + r tr(E c·c)/J I)⁻¹ E[c_j·ĝ]

    g̃_j is the estimate of member j at the noise and the minibatch of ĝ, so that c_j has mean 0;
    a = e_j selects that member.  E‖g̃‖² is quadratic in a; its moments are moving averages over
    earlier steps, and r shrinks weights estimated from few steps, like the prior of Geffner and
    Domke.  A step computes ĝ and all members.

    Raises:
        ValidationError: a member is biased, or has a different number of samples.

    Source: Geffner and Domke (2018), sections 3 and 4; Boustati (2021), section 4.8.
    """

    requires = Requirements(capabilities={Pathwise})
    inherited_keys = {"n_samples"}
    unbiased = True

    n_samples: PositiveInt
    members: NonEmptyList[Gradient]
    decay: ZeroToBelowOne
    ridge: PositiveFloat

    @model_validator(mode="after")
    def _check_members(self) -> CombinedCV:
        for member in self.members:
            if not member.unbiased or member.bound != "elbo":
                raise ValueError(
                    f"members: {member.name} is not an unbiased estimator of the gradient of the "
                    f"bound; use sticking_the_landing, taylor_cv, quadratic_cv, context_free_cv or "
                    f"svrg"
                )
        return self

    def init(self, module: Pathwise[RowBatch], rng: Rng) -> CombinedState:
        zero = next(iter(module.parameters())).detach().new_zeros(len(self.members))
        members = [member.init(module, rng) for member in self.members]
        return CombinedState(members, zero, zero.new_zeros(len(zero), len(zero)))

    def weights(self, state: CombinedState) -> Tensor:
        """a [J]; 0 before the first step."""
        scale = state.products.trace() / len(state.cross)
        if scale == 0:
            return torch.zeros_like(state.cross)
        damped = state.products + self.ridge * scale * torch.eye(
            len(state.cross), dtype=scale.dtype, device=scale.device
        )
        return -torch.linalg.solve(damped, state.cross)

    def estimate(
        self, module: Pathwise[RowBatch], batch: RowBatch, rng: Rng, state: CombinedState
    ) -> Estimate[CombinedState]:
        noise_state = rng.noise.get_state()
        noise = module.draw_noise(batch, self.n_samples, rng.noise)
        raw, terms = whole_gradient(module, batch, noise)
        gradient = flat(raw, module.parameters())
        estimates = []
        states = []
        for member, member_state in zip(self.members, state.members, strict=True):
            rng.noise.set_state(noise_state)  # every member uses the noise of ĝ
            estimate, _, member_state = member.estimate(module, batch, rng, member_state)
            estimates.append(flat(estimate, module.parameters()).detach())
            states.append(member_state)
        c = torch.stack(estimates) - gradient  # [J, P]
        combined = gradient + self.weights(state) @ c
        # update after use: a must be independent of the noise that it corrects
        cross = torch.lerp(c @ gradient, state.cross, self.decay)
        products = torch.lerp(c @ c.mT, state.products, self.decay)
        return as_gradients(combined, raw, module), terms, CombinedState(states, cross, products)
