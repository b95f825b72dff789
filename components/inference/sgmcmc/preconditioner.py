"""Running averages of squared gradients, as in RMSprop and Adam, with which samplers scale their
coordinates."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, NonNegativeInt, PositiveFloat, model_validator
from torch import Tensor


class Preconditioning(BaseModel):
    """v_t = β v_{t−1} + (1 − β) g_t², v̂_t = v_t / (1 − βᵗ), and the scale √v̂_t + λ of each
    coordinate of each chain.

    ``adapt`` always, as published: the scales follow the chain throughout.  They then depend on θ
    through the chain's past, so that π is not invariant even for small steps.  ``adapt`` burn_in:
    the scales are fixed after burn-in, and π is invariant up to the step size."""

    damping: PositiveFloat  # λ
    adapt: Literal["always", "burn_in"]
    burn_in: NonNegativeInt  # steps before states are stored; Gallego (2021) section 2.3.3

    @model_validator(mode="after")
    def _check_adaptation_steps(self) -> Preconditioning:
        if self.adapt == "burn_in" and self.burn_in == 0:
            raise ValueError(
                "adapt: with burn_in=0 there are no steps for adaptation; use adapt=always, or a "
                "burn_in"
            )
        return self

    def adapts(self, t: int) -> bool:
        """True if the step after t steps changes v."""
        return self.adapt == "always" or t < self.burn_in

    def update_squares(
        self, v: Tensor, gradient: Tensor, rate: float, t: int
    ) -> tuple[Tensor, Tensor]:
        """v_{t+1} and v̂_{t+1} from v_t, all [K, P]; t in 1 − βᵗ counts the steps that changed
        v."""
        if self.adapts(t):
            v = rate * v + (1 - rate) * gradient.square()
        return v, self.bias_corrected_squares(v, rate, t + 1)

    def bias_corrected_squares(self, v: Tensor, rate: float, t: int) -> Tensor:
        """v̂_t from v_t [K, P] after t ≥ 1 steps."""
        return v / (1 - rate ** (t if self.adapt == "always" else min(t, self.burn_in)))
