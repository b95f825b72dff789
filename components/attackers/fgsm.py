"""The fast gradient sign method."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import NonNegativeFloat, model_validator
from torch import Tensor

from components.attackers.victim import Victim
from components.interfaces import Attacker, Rng
from components.registry import register


@register("attacker", "fgsm")
class FGSM(Attacker):
    """Fast gradient sign method: the one step of size ε in L∞ that lowers log p(y|x) fastest to first order.

    x' = clip(x − ε sign ∇_x log p(y|x)); p(y|x) is the posterior predictive, the mean over the victim's own draws, and
    its parameters are held fixed.  x [B, D], y [B, T] class numbers (negative: missing), ε in the units of x.

    Raises:
        ValueError: the victim has no gradient in its input (a random forest).

    Source: Goodfellow et al. (2015), section 4; Gallego (2021), section 3.5.1."""

    kinds: ClassVar[frozenset[str]] = frozenset({"supervised"})
    action: ClassVar[Literal["evasion"]] = "evasion"
    targets: ClassVar[frozenset[str]] = frozenset({"binary", "classes"})
    follows_gradient: ClassVar[bool] = True
    knowledge: ClassVar[Literal["white box"]] = "white box"

    eps: list[NonNegativeFloat]

    @model_validator(mode="after")
    def _increasing(self) -> FGSM:
        if not self.eps or any(b <= a for a, b in zip(self.eps, self.eps[1:], strict=False)):
            raise ValueError(f"eps: must be a list of increasing sizes, e.g. [0.0, 0.1, 0.2], not {self.eps}")
        return self

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        gradient = victim.input_gradient(x, y, rng.attack)
        return victim.clip(x - eps * gradient.sign())
