"""Action values that are linear in the features of a state."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from components.contracts.games import Environment
from components.contracts.requirements import Requirements
from components.contracts.roles import Model
from components.contracts.streams import Rng
from components.games.environments.coin_game import CoinEnvironment
from components.games.environments.game import Game
from components.maths.spacing import row_numbers
from components.registry import register


class LinearValues(nn.Module):
    """``QFunction`` Q(s, a, b) = w_abᵀ φ(s) of R replicates: own actions a, the others' actions b,
    features φ [R, F].

    For sparse binary features (``CoinEnvironment``) the corresponding weights are summed in
    order."""

    weights: Tensor  # [R, A·B, F]

    def __init__(self, environment: Environment, weights: Tensor, own: int, other: int):
        super().__init__()
        self.environment = environment
        self.own = own
        self.other = other
        self._marked = environment if isinstance(environment, CoinEnvironment) else None
        self.register_buffer("weights", weights)

    def fresh(self, own: int, other: int) -> LinearValues:
        """New values with w = 0, for other numbers of actions."""
        replicates, _, features = self.weights.shape
        return LinearValues(
            self.environment, self.weights.new_zeros(replicates, own * other, features), own, other
        )

    def q(self, s: Tensor) -> Tensor:
        """s [R, …] -> Q(s, ·, ·) [R, A, B]."""
        if self._marked is not None:
            places, mask = self._places(self._marked.marks(s))
            weights = self.weights.gather(
                2, places.unsqueeze(1).expand(-1, self.weights.shape[1], -1)
            )
            return (weights * mask.unsqueeze(1)).sum(-1).unflatten(1, (self.own, self.other))
        values = (self.weights @ self.environment.features(s).unsqueeze(-1)).squeeze(-1)
        return values.unflatten(1, (self.own, self.other))

    def _places(self, marks: Tensor) -> tuple[Tensor, Tensor]:
        """Indices of weights for marks [R, n] (arbitrary for absent marks), and 1 or 0 for present
        or absent marks."""
        features = self.weights.shape[2]
        return marks.clamp(max=features - 1), (marks < features).to(self.weights.dtype)

    def learn(self, s: Tensor, a: Tensor, b: Tensor, target: Tensor, rate: float | Tensor) -> None:
        """w_ab := w_ab + α (target − Q(s, a, b)) φ(s), in place; a, b, target and an α that is a
        tensor are [R]."""
        replicate = row_numbers(a)
        cell = a * self.other + b
        if self._marked is not None:
            places, mask = self._places(self._marked.marks(s))
            index = (replicate * self.weights.shape[1] + cell).unsqueeze(1) * self.weights.shape[
                2
            ] + places
            flat = self.weights.view(-1)
            error = target - (flat.take(index) * mask).sum(1)
            flat.index_add_(0, index.view(-1), ((rate * error).unsqueeze(1) * mask).view(-1))
            return
        phi = self.environment.features(s)
        weights = self.weights[replicate, cell]  # [R, F]
        error = target - (weights * phi).sum(1)
        self.weights[replicate, cell] = weights + (rate * error).unsqueeze(1) * phi


@register("model", "q_linear")
class QLinear(Model[Game, LinearValues]):
    """Action values linear in the features of a state, Q(s, a, b) = w_abᵀ φ(s), initialised at 0.

    They learn by w_ab := w_ab + α (target − Q(s, a, b)) φ(s), half the semi-gradient of the squared
    error.  Shape [R, A·B, F] for R replicates and F features, 4 N² of the coin game; with one-hot
    features it is ``q_table``.

    Source: Gallego (2021), Algorithm 4.3 and section 4.4.3."""

    requires = Requirements(kinds={"game"})

    def build(self, problem: Game, rng: Rng) -> LinearValues:
        environment = problem.environment
        features = environment.features(environment.reset(problem.replicates, rng.init)).shape[1]
        weights = torch.zeros(
            problem.replicates,
            problem.n_actions * problem.n_threats,
            features,
            device=environment.device,
            dtype=environment.dtype,
        )
        return LinearValues(environment, weights, problem.n_actions, problem.n_threats)
