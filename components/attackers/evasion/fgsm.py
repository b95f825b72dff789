"""The fast gradient sign method."""

from __future__ import annotations

from components.attackers.evasion.ascent import GradientAscent
from components.registry import register


@register("attacker", "fgsm")
class FGSM(GradientAscent):
    """Fast gradient sign method: one step of size ε in the direction of steepest descent of log
    p(y|x).

    x' = clip(x − ε u(∇_x log p(y|x))), u = sign for the norm L∞ and the steepest direction of other
    norms; p(y|x) is the posterior predictive, the mean over the victim's draws, with fixed
    parameters.  x [B, D], y [B, T] class numbers (negative: missing), ε in the units of x.  Another
    ``criterion`` replaces log p(y|x).

    Raises:
        ConfigMismatchError: the victim has no gradient with respect to its input (a random forest).

    Source: Goodfellow et al. (2015), section 4; Gallego (2021), section 3.5.1."""
