"""Action values given by a network."""

from __future__ import annotations

import itertools
import math

import torch
from pydantic import PositiveInt
from torch import Tensor, nn
from torch.nn.functional import relu

from components.contracts.games import Environment
from components.contracts.requirements import Requirements
from components.contracts.roles import Model, NonEmptyList
from components.contracts.streams import Rng
from components.games.environments.game import Game
from components.registry import register


class NetworkValues(nn.Module):
    """``QFunction``: Q(s, ·, ·) = W_L relu(… relu(W_1 φ(s) + c_1) …) + c_L of R replicates with
    separate weights."""

    def __init__(
        self,
        environment: Environment,
        sizes: list[int],
        own: int,
        other: int,
        replicates: int,
        init: torch.Generator,
    ):
        super().__init__()
        self.environment = environment
        self.sizes = sizes
        self.own = own
        self.other = other
        self.replicates = replicates
        self.init = init
        layers = list(itertools.pairwise([*sizes, own * other]))
        weights = [
            self._glorot(out, inside).to(environment.device, environment.dtype)
            for inside, out in layers
        ]
        self.weights = nn.ParameterList(nn.Parameter(w) for w in weights)
        self.biases = nn.ParameterList(nn.Parameter(w.new_zeros(*w.shape[:2], 1)) for w in weights)

    def _glorot(self, out: int, inside: int) -> Tensor:
        u = torch.rand(
            self.replicates,
            out,
            inside,
            generator=self.init,
            dtype=torch.float64,
            device=self.init.device,
        )
        return math.sqrt(6 / (inside + out)) * (2 * u - 1)

    def fresh(self, own: int, other: int) -> NetworkValues:
        """A new network for other numbers of actions."""
        return NetworkValues(self.environment, self.sizes, own, other, self.replicates, self.init)

    def _at(self, s: Tensor) -> Tensor:
        h = self.environment.features(s).unsqueeze(-1)  # [R, F, 1]
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = torch.baddbmm(bias, weight, h)
            h = h if layer == last else relu(h)
        return h.squeeze(-1)  # [R, A·B]

    @torch.no_grad()
    def q(self, s: Tensor) -> Tensor:
        """s [R, …] -> Q(s, ·, ·) [R, A, B]."""
        return self._at(s).unflatten(1, (self.own, self.other))

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        """w := w + α (target − Q(s, a, b)) ∇_w Q(s, a, b), in place; a, b, target and an α that is
        a tensor are [R]."""
        with torch.enable_grad():
            value = self._at(s).gather(1, (a * self.other + b).unsqueeze(1)).squeeze(1)
            gradients = torch.autograd.grad(value.sum(), list(self.parameters()))
        step = (rate * (target - value.detach())).view(-1, 1, 1)
        with torch.no_grad():
            for parameter, gradient in zip(self.parameters(), gradients, strict=True):
                parameter.add_(step * gradient)


@register("model", "q_network")
class QNetwork(Model[Game, NetworkValues]):
    """Action values by a network of rectified linear units on the features of a state.

    It learns by w := w + α (target − Q(s, a, b)) ∇_w Q(s, a, b), half the semi-gradient of the
    squared error, one move at a time and without a replay memory.  Weights have Glorot
    initialisation, biases are 0 initially; the R replicates have separate networks.

    Source: Gallego (2021), Algorithm 4.3; Glorot and Bengio (2010), eq. (16)."""

    requires = Requirements(kinds={"game"})

    widths: NonEmptyList[PositiveInt]

    def build(self, problem: Game, rng: Rng) -> NetworkValues:
        environment = problem.environment
        features = environment.features(environment.reset(problem.replicates, rng.init)).shape[1]
        sizes = [features, *self.widths]
        return NetworkValues(
            environment, sizes, problem.n_actions, problem.n_threats, problem.replicates, rng.init
        )
