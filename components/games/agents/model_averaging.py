"""An agent that learns the reasoning level of its opponent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.exploration import exploration_rate
from components.games.agents.fictitious_play import Prior, pseudo_counts, together
from components.games.agents.level_k import LevelK, OpponentKeys
from components.games.agents.policies import draw_action, probabilities
from components.games.environments.transition import Transition
from components.games.fast.engine import CompilablePlayer
from components.games.fast.seats import Hierarchy
from components.registry import register


@dataclass
class ModelAveragingState:
    """The agent's state against each opponent type, and the number of correct predictions of each
    type."""

    types: list[Hierarchy]
    right: Tensor  # n_i [R, m], including pseudo-counts of the prior


@register("inference", "model_averaging")
class ModelAveraging(CompilablePlayer[ModelAveragingState], OpponentKeys):
    """Opponent averaging: models an opponent of each of several levels and learns its level.

        p(M_i | b_0 … b_t) ∝ n_i
        n_i := n_i + 1 if only M_i predicted b_t, b^i ~ p_{M_i}(b|s)
        ψ(s, a) = Σ_i p(M_i) Σ_b Q_i(s, a, b) p_{M_i}(b|s)

    The models are learned in parallel.  ``levels`` are the levels of the opponent; against level k
    the agent keeps the tables of a player of level k + 1 (``level_k``).  If several models or none
    were correct, nothing is counted, because the cause of b_t is unknown; counting each of them
    would leave p(M_1) at 0.65 in Figure 4.6 (e), where a guessing model gets two thirds.
    ``counted: right`` does so, as in the printed Algorithm 4.2, and ``right_or_all`` also counts
    all models if none was correct.  With ``forecast=sampled`` the agent responds to one draw b^i of
    each model by the policy of Σ_i p(M_i) Q_i(s, ·, b^i), like the released code; its policy is the
    expectation over the draws.  Counts are [R, m], tables as in ``level_k``.  Scores
    ``belief/level_k``: final p(M_i).

    Raises ConfigMismatchError against several opponents.

    Source: Gallego (2021), Algorithm 4.2 and section 4.3.3; Camerer, Ho and Chong (2004).
    """

    in_loop: ClassVar[bool] = True

    levels: Annotated[list[PositiveInt], Field(min_length=2)]
    prior_of_models: Prior
    counted: Literal["sole", "right", "right_or_all"]

    @model_validator(mode="after")
    def _check_priors(self) -> ModelAveraging:
        if isinstance(self.prior_of_models, list) and len(self.prior_of_models) != len(self.levels):
            raise ValueError(
                f"prior_of_models: has {len(self.prior_of_models)} values for {len(self.levels)} "
                "levels; give a single number, or one per level"
            )
        return self

    def _build_thinkers(self) -> list[LevelK]:
        """The agent for a known opponent level, for each level."""
        shared = {
            name: value for name, value in self if name in LevelK.model_fields and name != "name"
        }
        return [
            LevelK(name="level_k", level=level + 1, ties="shared", **shared)
            for level in self.levels
        ]

    def thinkers(self, mind: ModelAveragingState) -> list[tuple[LevelK, Hierarchy]]:
        """The agent for each level of the opponent, with its state."""
        return list(zip(self._build_thinkers(), mind.types, strict=True))

    def _forecasts(self, mind: ModelAveragingState, s: Tensor, episode: int) -> list[Tensor]:
        """Forecasts of each model, m of [R, B]."""
        return [
            thinker.forecast_opponent(type_mind, s, episode)
            for thinker, type_mind in self.thinkers(mind)
        ]

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> ModelAveragingState:
        if len(seat.others) > 1:
            raise ConfigMismatchError(
                f"inference={self.name}: learns the level of a single opponent, but the game has {len(seat.others)}"
            )
        models = (len(self.levels),)
        right = pseudo_counts(seat, (seat.replicates,), models, self.prior_of_models)
        return ModelAveragingState(
            [thinker.sit(values, seat, rng) for thinker in self._build_thinkers()], right
        )

    @staticmethod
    def belief(mind: ModelAveragingState) -> Tensor:
        """p(M_i) [R, m]."""
        return mind.right / mind.right.sum(-1, keepdim=True)

    def forecast_opponent(self, mind: ModelAveragingState, s: Tensor, episode: int) -> Tensor:
        each = torch.stack(self._forecasts(mind, s, episode), 1)  # [R, m, B]
        return (self.belief(mind).unsqueeze(2) * each).sum(1)

    def think(self, mind: ModelAveragingState, s: Tensor, episode: int) -> Tensor:
        thoughts = [
            thinker.think(type_mind, s, episode) for thinker, type_mind in self.thinkers(mind)
        ]
        each = torch.stack(thoughts, 1)  # [R, m, A]
        return (self.belief(mind).unsqueeze(2) * each).sum(1)

    def policy_at(self, mind: ModelAveragingState, s: Tensor, episode: int) -> Tensor:
        if self.forecast == "expected":
            return super().policy_at(mind, s, episode)
        each = self._forecasts(mind, s, episode)
        # [Bᵐ, m]
        joint_actions = torch.cartesian_prod(
            *[torch.arange(p.shape[1], device=s.device) for p in each]
        )
        belief = self.belief(mind)[:, :, None, None]
        values = torch.stack(
            [
                type_mind.q[-1].q(s)[:, :, b]
                for type_mind, b in zip(mind.types, joint_actions.unbind(1), strict=True)
            ],
            1,
        )
        psi = (belief * values).sum(1).transpose(1, 2)  # [R, Bᵐ, A]
        answers = probabilities(
            psi, self.policy, exploration_rate(self.epsilon, episode), self.temperature
        )
        return (together(each).unsqueeze(2) * answers).sum(1)

    def predict_actions(self, mind: ModelAveragingState, s: Tensor, episode: int) -> Tensor:
        """Draws b^i [R, m] from each model's forecast of the opponent's action."""
        forecasts = self._forecasts(mind, s, episode)
        return torch.stack([draw_action(p, mind.types[0].rng.noise) for p in forecasts], 1)

    def learn(self, mind: ModelAveragingState, seen: Transition, episode: int) -> None:
        # before learning from the opponent's action
        right = self.predict_actions(mind, seen.s, episode) == seen.b.unsqueeze(1)
        if self.counted == "sole":
            right &= right.sum(1, keepdim=True) == 1
        elif self.counted == "right_or_all":
            right |= ~right.any(1, keepdim=True)
        if seen.live is not None:
            right &= seen.live.unsqueeze(1)
        mind.right += right
        for thinker, type_mind in self.thinkers(mind):
            thinker.learn(type_mind, seen, episode)

    def beliefs(self, mind: ModelAveragingState) -> dict[str, Tensor]:
        return {
            f"belief/level_{level}": self.belief(mind)[:, i] for i, level in enumerate(self.levels)
        }

    # Compiled
    def times_right(self, mind: ModelAveragingState) -> Tensor:
        return mind.right

    def has_loop(self) -> bool:
        return super().has_loop() and (self.forecast, self.counted) == ("expected", "sole")
