"""Projected gradient descent with momentum."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.evasion.norms import NormName
from components.attackers.evasion.sizes import Sizes
from components.attackers.victim import Expectation, Victim
from components.interfaces import Attacker, Rng
from components.registry import register


@register("attacker", "pgd_momentum")
class PGDMomentum(Attacker):
    """Projected gradient descent along a running sum of normalised gradients (momentum iterative method).

    m_{t+1} = μ m_t + g_t/‖g_t‖₁,  x_{t+1} = clip(Π_{B(x)}(x_t + α u(m_{t+1}))),  g = −∇_x log p(y|x),  α = step_size · ε.

    Raises:
        Misfit: the victim has no gradient in its input.

    Source: Dong et al. (2018), Algorithm 1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary", "classes"})
    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: Sizes
    norm: NormName
    steps: PositiveInt
    step_size: PositiveFloat
    momentum: Annotated[float, Field(gt=0, le=1)]
    random_start: bool
    restarts: PositiveInt
    target: NonNegativeInt | None
    stop_when_broken: bool
    expectation: Expectation

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        how = Ascent(
            self.norm,
            self.steps,
            self.step_size,
            random_start=self.random_start,
            restarts=self.restarts,
            momentum=self.momentum,
            target=self.target,
            stop_when_broken=self.stop_when_broken,
        )
        return ascend(victim, x, y, rng.attack, eps, how)
