"""Action values that are linear in the features of a state."""

from __future__ import annotations

import torch
from torch import Tensor

from components.contracts.games import Environment
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.games.action_values.q_table import ActionWeights
from components.games.environments.game import Game
from components.maths.spacing import row_numbers
from components.registry import register


class LinearValues(ActionWeights):
    """``QFunction`` Q(s, a, b) = w_abᵀ φ(s), features φ [R, F]."""

    def __init__(self, values: Tensor, environment: Environment):
        super().__init__(values)
        self.environment = environment

    def fresh(self, own: int, other: int) -> LinearValues:
        """New values with w = 0, for other numbers of actions."""
        return LinearValues(self.initial_weights(own, other), self.environment)

    def q(self, s: Tensor) -> Tensor:
        """s [R, …] -> Q(s, ·, ·) [R, A, B]."""
        phi = self.environment.features(s).unsqueeze(1)
        return (phi @ self.values.flatten(2)).view(-1, *self.values.shape[2:])

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        """w_ab := w_ab + α (target − Q(s, a, b)) φ(s), in place; a, b, target and an α that is a
        tensor are [R]."""
        phi = self.environment.features(s)
        replicate = row_numbers(a)
        weights = self.values[replicate, :, a, b]  # [R, F]
        error = target - (weights * phi).sum(1)
        self.values[replicate, :, a, b] = weights + (rate * error).unsqueeze(1) * phi


@register("model", "q_linear")
class QLinear(Model[Game, LinearValues]):
    """Action values linear in the features of a state, Q(s, a, b) = w_abᵀ φ(s), initialised at 0.

    They learn by w_ab := w_ab + α (target − Q(s, a, b)) φ(s), half the semi-gradient of the squared
    error.  Shape [R, F, A, B] for R replicates and F features, 4 N² of the coin game; with one-hot
    features it is ``q_table``.

    Source: Gallego (2021), Algorithm 4.3 and section 4.4.3."""

    requires = Requirements(kinds={"game"})

    def build(self, problem: Game, rng: Rng) -> LinearValues:
        environment = problem.environment
        features = environment.features(environment.reset(problem.replicates, rng.init)).shape[1]
        weights = torch.zeros(
            problem.replicates,
            features,
            problem.n_actions,
            problem.n_threats,
            device=environment.device,
            dtype=environment.dtype,
        )
        return LinearValues(weights, environment)
