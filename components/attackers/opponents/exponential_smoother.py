"""The adaptive adversary of the friend-or-foe game."""

from __future__ import annotations

from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from components.contracts.roles import Knowledge, Opponent
from components.contracts.streams import Rng
from components.registry import register


@register("attacker", "exponential_smoother")
class ExponentialSmoother(Opponent):
    """An adversary who smooths her past choices and puts the positive reward where she is least expected.

    p := βp + (1 − β)a with a one-hot, p = (1/A, …, 1/A) at the start; b = argmin_i p_i, ties broken at random.  He
    sees her actions only.  State: p [R, A].

    Source: Gallego (2021), section 4.4.1."""

    knowledge: ClassVar[Knowledge] = "black box"

    beta: Annotated[float, Field(gt=0, lt=1)]

    def reset(self, replicates: int, n_actions: int, device: torch.device, dtype: torch.dtype) -> Tensor:
        """p [R, A] before the first episode."""
        return torch.full((replicates, n_actions), 1 / n_actions, device=device, dtype=dtype)

    def act(self, state: Tensor, rng: Rng) -> Tensor:
        """Target of the positive reward, b [R] long."""
        least = state == state.amin(-1, keepdim=True)
        # Equal estimates get different uniform numbers; all the others are out of the draw.
        u = torch.rand(state.shape, generator=rng.attack, device=state.device, dtype=state.dtype)
        return torch.where(least, u, 2.0).argmin(-1)

    def observe(self, state: Tensor, a: Tensor, b: Tensor, r: Tensor) -> Tensor:
        """p after her action a [R]; what he did himself (b) and what he got (r) do not matter to him."""
        chosen = torch.nn.functional.one_hot(a, state.shape[-1]).to(state.dtype)
        return self.beta * state + (1 - self.beta) * chosen
