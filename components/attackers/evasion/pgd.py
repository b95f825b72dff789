"""Projected gradient descent."""

from __future__ import annotations

from pydantic import PositiveInt

from components.attackers.evasion.ascent import GradientAscent, Steps
from components.registry import register


@register("attacker", "pgd")
class PGD(Steps, GradientAscent):
    """Projected gradient descent from random points of the ball, the strongest known first-order
    attack.

    x_0 = x + U(‖δ‖≤ε),  x_{t+1} = clip(Π_{B(x)}(x_t − α u(∇_x log p(y|x_t)))),  α = step_size · ε;
    among ``restarts``, the first successful one is kept, else the one with the largest loss.
    Another ``criterion`` replaces log p(y|x). x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Madry et al. (2018), section 2.1; Gallego (2021), section 3.3.2."""

    random_start: bool
    restarts: PositiveInt
