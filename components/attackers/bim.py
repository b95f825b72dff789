"""The basic iterative method."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.evasion.norms import NormName
from components.attackers.evasion.sizes import Sizes
from components.attackers.victim import Expectation, Victim
from components.interfaces import Attacker, Rng
from components.registry import register


@register("attacker", "bim")
class BIM(Attacker):
    """Basic iterative method: steps of the fast gradient method from the input itself, held inside the ball.

    x_0 = x,  x_{t+1} = clip(Π_{‖x'−x‖≤ε}(x_t − α u(∇_x log p(y|x_t)))),  α = step_size · ε;  x [B, D], y [B, T].

    Raises:
        Misfit: the victim has no gradient in its input.

    Source: Kurakin et al. (2017), section 2.2."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary", "classes"})
    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: Sizes
    norm: NormName
    steps: PositiveInt
    step_size: PositiveFloat
    target: NonNegativeInt | None
    stop_when_broken: bool
    expectation: Expectation

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        how = Ascent(
            self.norm,
            self.steps,
            self.step_size,
            target=self.target,
            stop_when_broken=self.stop_when_broken,
        )
        return ascend(victim, x, y, rng.attack, eps, how)
