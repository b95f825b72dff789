"""Projected gradient descent with momentum."""

from __future__ import annotations

from pydantic import PositiveInt

from components.attackers.evasion.ascent import GradientAscent, Steps
from components.contracts.roles import AboveZeroToOne
from components.registry import register


@register("attacker", "pgd_momentum")
class PGDMomentum(Steps, GradientAscent):
    """Projected gradient descent along a running sum of normalised gradients (momentum iterative
    method).

    m_{t+1} = μ m_t + g_t/‖g_t‖₁,  x_{t+1} = clip(Π_{B(x)}(x_t + α u(m_{t+1}))),  g = −∇_x log p(y|x),  α = step_size · ε.
    Another ``criterion`` replaces log p(y|x).

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input.

    Source: Dong et al. (2018), Algorithm 1."""

    momentum: AboveZeroToOne
    random_start: bool
    restarts: PositiveInt
