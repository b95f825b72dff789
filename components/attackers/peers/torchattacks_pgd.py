"""Projected gradient descent of torchattacks."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from components.attackers.peers.library_pgd import LibraryPGD, VictimNetwork
from components.errors import ConfigMismatchError
from components.registry import register


@register("attacker", "torchattacks_pgd")
class TorchattacksPGD(LibraryPGD):
    """Projected gradient descent by torchattacks, for inputs within [0, 1].

        x_{t+1} = clip(x + Π_{‖δ‖≤ε}(x_t + α u(g_t) − x)),  g_t = −∇_x log p(y|x_t),  α = step_size · ε

    u = sign for L∞ and g/‖g‖₂ for L2; x_0 is x or a random point of the ball, uniform for L∞.

    Raises ConfigMismatchError for other bounds of the inputs.

    Source: Kim (2020); Madry et al. (2018), section 2.1."""

    package = "torchattacks"
    install = "--no-deps torchattacks"  # it pins an old version of requests

    norm: Literal["linf", "l2"]

    def run(self, network: VictimNetwork, x: Tensor, y: Tensor, eps: float) -> Tensor:
        from torchattacks import PGD, PGDL2

        if network.victim.bounds != (0.0, 1.0):
            raise ConfigMismatchError(
                f"attacker={self.name}: requires inputs within [0, 1]; use attacker=foolbox_pgd"
            )
        attack = {"linf": PGD, "l2": PGDL2}[self.norm](
            network, eps, self.step_size * eps, self.steps, self.random_start
        )
        return attack(x[:, None, None], y).flatten(1)
