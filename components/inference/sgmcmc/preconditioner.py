"""Running averages of squared gradients, as RMSprop and Adam keep them, by which samplers scale
their coordinates."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, NonNegativeInt, PositiveFloat, model_validator
from torch import Tensor


class Preconditioning(BaseModel):
    """v_t = β v_{t−1} + (1 − β) g_t², v̂_t = v_t / (1 − βᵗ), and the scale √v̂_t + λ of each
    coordinate of each chain.

    ``adapt`` always, as published: the scales follow the chain for ever.  They then depend on θ
    through the chain's past, so that π is not invariant, however small the steps.  ``adapt``
    burn_in: the scales stay as burn-in left them, and π is invariant but for the step size."""

    damping: PositiveFloat  # λ
    adapt: Literal["always", "burn_in"]
    burn_in: NonNegativeInt  # steps before any state is kept; Gallego (2021) section 2.3.3

    @model_validator(mode="after")
    def _check_adaptation_steps(self) -> Preconditioning:
        if self.adapt == "burn_in" and self.burn_in == 0:
            raise ValueError(
                "adapt: burn_in=0 leaves no step to adapt in; use adapt=always, or a burn_in"
            )
        return self

    def adapts(self, t: int) -> bool:
        """True if the step that follows t steps changes v."""
        return self.adapt == "always" or t < self.burn_in

    def update_squares(
        self, v: Tensor, gradient: Tensor, rate: float, t: int
    ) -> tuple[Tensor, Tensor]:
        """v_{t+1} and v̂_{t+1} from v_t, all [K, P]; 1 − βᵗ counts the steps that have changed
        v."""
        if self.adapts(t):
            v = rate * v + (1 - rate) * gradient.square()
        return v, self.bias_corrected_squares(v, rate, t + 1)

    def bias_corrected_squares(self, v: Tensor, rate: float, t: int) -> Tensor:
        """v̂_t of v_t [K, P] after t ≥ 1 steps."""
        return v / (1 - rate ** (t if self.adapt == "always" else min(t, self.burn_in)))
