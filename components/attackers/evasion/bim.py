"""The basic iterative method."""

from __future__ import annotations

from components.attackers.evasion.ascent import GradientAscent, Steps
from components.registry import register


@register("attacker", "bim")
class BIM(Steps, GradientAscent):
    """Basic iterative method: steps of the fast gradient method from the input itself, projected to
    the ball.

    x_0 = x,  x_{t+1} = clip(Π_{‖x'−x‖≤ε}(x_t − α u(∇_x log p(y|x_t)))),  α = step_size · ε;  x [B, D], y [B, T].
    Another ``criterion`` replaces log p(y|x).

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Kurakin et al. (2017), section 2.2."""
