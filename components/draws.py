"""What a sampler hands back: draws [chain, draw, dim]."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Draws:
    """Draws of C chains after burn-in and thinning; N may still be 0 while the chains burn in."""

    draws: Tensor  # [C, N, P]
    start: Tensor  # [C, P] where the chains began
    names: list[str] = field(default_factory=list)  # of the P coordinates; empty where they have none

    @property
    def n_draws(self) -> int:
        return self.draws.shape[1]

    @property
    def flat(self) -> Tensor:
        """All draws of all chains, [C·N, P]."""
        return self.draws.flatten(0, 1)

    @property
    def mean(self) -> Tensor:
        """Estimate of E[θ], [P]."""
        return self.flat.mean(0)

    @property
    def second_moment(self) -> Tensor:
        """Estimate of E[θ²], coordinate by coordinate, [P]."""
        return self.flat.square().mean(0)
