"""Base of projected gradient descent by other packages."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from components.attackers.evasion.ascent import InBall
from components.contracts.attackers import Evasion
from components.contracts.costs.queries import count_queries
from components.contracts.requirements import Requirements
from components.contracts.streams import Rng, seed_from
from components.contracts.victim import Victim
from components.errors import require_package
from components.maths.exponential.global_stream import keep_global_streams


class VictimNetwork(nn.Module):
    """The victim as a network of log p(y|x): x [B, …] -> [B, C]; the victim counts its queries."""

    def __init__(self, victim: Victim, x: Tensor, generator: torch.Generator):
        super().__init__()
        self.place = nn.Parameter(x[:0])  # packages read the device from a parameter
        self.victim = victim
        self._generator = generator

    def forward(self, x: Tensor) -> Tensor:
        count_queries(0, gradients=len(x) * x.requires_grad)
        return self.victim.answers(x.flatten(1), self._generator).log_probs[:, 0]


class LibraryPGD(InBall, Evasion):
    """Projected gradient descent by another package, which follows log p(y|x) of the victim.

    All rows take all steps.  Random starts are seeded from the stream of the attack.

    Raises ConfigMismatchError if the package is not installed."""

    requires = Requirements(refused_traits={"several_tasks": "attacks one label per row"})
    follows_gradient = True
    package: ClassVar[str]
    install: ClassVar[str] = ""  # arguments of pip, if it is not in the extra

    steps: PositiveInt
    step_size: PositiveFloat
    random_start: bool

    @abstractmethod
    def run(self, network: VictimNetwork, x: Tensor, y: Tensor, eps: float) -> Tensor:
        """x' [B, D] of the package, for x [B, D] and classes y [B]."""

    def is_iterative(self) -> bool:
        return self.steps > 1

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        require_package(self.package, f"attacker={self.name}", "peers", install=self.install)
        if eps == 0 or len(x) == 0:
            return x.clone()
        network = VictimNetwork(victim, x, rng.attack).eval()
        with keep_global_streams(x.device), torch.enable_grad():
            torch.manual_seed(seed_from(rng.attack))
            # attacks on rows without a label are not judged
            return self.run(network, x, y.squeeze(1).clamp_min(0), eps).detach()
