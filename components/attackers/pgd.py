"""Projected gradient descent."""

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


@register("attacker", "pgd")
class PGD(Attacker):
    """Projected gradient descent from random points of the ball, the strongest first-order attack known.

    x_0 = x + U(‖δ‖≤ε),  x_{t+1} = clip(Π_{B(x)}(x_t − α u(∇_x log p(y|x_t)))),  α = step_size · ε; of ``restarts`` the
    one that breaks a row, else the one of its largest loss, is kept.  x [B, D], y [B, T].

    Raises:
        Misfit: the victim has no gradient in its input.

    Source: Madry et al. (2018), section 2.1; Gallego (2021), section 3.3.2."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary", "classes"})
    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: Sizes
    norm: NormName
    steps: PositiveInt
    step_size: PositiveFloat
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
            target=self.target,
            stop_when_broken=self.stop_when_broken,
        )
        return ascend(victim, x, y, rng.attack, eps, how)
