"""The fast gradient sign method."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import NonNegativeInt
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.evasion.norms import NormName
from components.attackers.evasion.sizes import Sizes
from components.attackers.victim import Expectation, Victim
from components.interfaces import Attacker, Rng
from components.registry import register


@register("attacker", "fgsm")
class FGSM(Attacker):
    """Fast gradient sign method: the one step of size ε that lowers log p(y|x) fastest to first order.

    x' = clip(x − ε u(∇_x log p(y|x))), u = sign for the norm L∞ and the steepest direction of the others; p(y|x) is the
    posterior predictive, the mean over the victim's own draws, and its parameters are held fixed.  x [B, D], y [B, T]
    class numbers (negative: missing), ε in the units of x.

    Raises:
        Misfit: the victim has no gradient in its input (a random forest).

    Source: Goodfellow et al. (2015), section 4; Gallego (2021), section 3.5.1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary", "classes"})
    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: Sizes
    norm: NormName
    target: NonNegativeInt | None
    expectation: Expectation

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        how = Ascent(self.norm, steps=1, step_size=1.0, target=self.target, stop_when_broken=False)
        return ascend(victim, x, y, rng.attack, eps, how)
