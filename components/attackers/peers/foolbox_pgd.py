"""Projected gradient descent of foolbox."""

from __future__ import annotations

import math

from torch import Tensor

from components.attackers.peers.library_pgd import LibraryPGD, VictimNetwork
from components.registry import register


@register("attacker", "foolbox_pgd")
class FoolboxPGD(LibraryPGD):
    """Projected gradient descent by foolbox.

        x_{t+1} = clip(x + Π_{‖δ‖≤ε}(x_t + α u(g_t) − x)),  g_t = −∇_x log p(y|x_t),  α = step_size · ε

    u = sign for L∞ and g/‖g‖_p for L1 and L2; x_0 is x or a uniformly random point of the ball.
    The package predicts all rows once more at the end.

    Source: Rauber, Brendel and Bethge (2017); Madry et al. (2018), section 2.1."""

    package = "foolbox"

    def run(self, network: VictimNetwork, x: Tensor, y: Tensor, eps: float) -> Tensor:
        from foolbox import PyTorchModel
        from foolbox.attacks import L1PGD, L2PGD, LinfPGD

        bounds = network.victim.bounds or (-math.inf, math.inf)
        model = PyTorchModel(network, bounds, x.device)
        attack = {"linf": LinfPGD, "l2": L2PGD, "l1": L1PGD}[self.norm](
            rel_stepsize=self.step_size, steps=self.steps, random_start=self.random_start
        )
        return attack(model, x, y, epsilons=eps)[1]
