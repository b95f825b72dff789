"""Restricted Nash response: safe exploitation of a forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import field_validator
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.roles import Inference, ZeroToOne
from components.contracts.streams import Rng
from components.games.agents.fictitious_play import expected_values
from components.games.agents.player import Player
from components.games.environments.transition import Transition
from components.games.equilibria.stage_games import StageGames, StageGameState
from components.registry import register


@dataclass
class RestrictedNashState(StageGameState):
    """Action values, solved games, and the state of the forecasting player."""

    forecasts: Any = None
    episode: int = 0  # episode of the last move, for forecasts that depend on it


@register("inference", "restricted_nash")
class RestrictedNash(StageGames[RestrictedNashState]):
    """Restricted Nash response: a forecast with probability p, the worst case otherwise.

        G(s, a, b) = p Σ_b′ p_A(b′|s) Q(s, a, b′) + (1 − p) Q(s, a, b)
        V(s) = max_π min_b Σ_a π(a) G(s, a, b)
        Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′))

    At each move the opponent independently follows the forecast p_A(b|s) with probability p and is
    adversarial otherwise; the agent plays a π(s, ·) that attains V(s), except for a fraction ε of
    random actions.  In a matrix game, π has the highest value against the forecast among all
    strategies with at most the same exploitability: from p = 0 to 1 it traces the Pareto frontier
    of the two, from ``minimax_q`` to the forecaster's own best response (``level_k`` or
    ``fpq_learning``, equal to this agent at p = 1).  ``forecaster`` is a game method with a
    forecast; it is updated before Q at each move.  Several opponents are treated as one with joint
    actions.  Q [R, S, A, B].

    Raises ConfigMismatchError if the forecaster does.

    Source: Johanson, Zinkevich and Bowling (2008), restricted Nash response; between
    Gallego (2021), Algorithm 4.1, and Littman (1994).
    """

    trust: ZeroToOne
    forecaster: Inference

    @field_validator("forecaster")
    @classmethod
    def _check_forecasts(cls, forecaster: Inference) -> Inference:
        if (
            not isinstance(forecaster, Player)
            or type(forecaster).forecast_opponent is Player.forecast_opponent
        ):
            raise ValueError(
                f"{forecaster.name} does not forecast opponents; use one of level_k, fpq_learning, model_averaging"
            )
        return forecaster

    @property
    def _forecaster(self) -> Player[Any]:
        assert isinstance(self.forecaster, Player), "checked by the validator"
        return self.forecaster

    def stage_game(self, mind: RestrictedNashState, s: Tensor) -> Tensor:
        """G(s, ·, ·) [R, A, B]."""
        q = super().stage_game(mind, s)
        expected = expected_values(q, self.forecast_opponent(mind, s, mind.episode))
        return self.trust * expected.unsqueeze(2) + (1 - self.trust) * q

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> RestrictedNashState:
        forecasts = self._forecaster.sit(values, seat, rng)
        return RestrictedNashState(*self.first_tables(values, seat), forecasts)

    def forecast_opponent(self, mind: RestrictedNashState, s: Tensor, episode: int) -> Tensor:
        """p_A(b|s) [R, B]."""
        forecast = self._forecaster.forecast_opponent(mind.forecasts, s, episode)
        assert forecast is not None, "checked by the validator"
        return forecast

    def policy_at(self, mind: RestrictedNashState, s: Tensor, episode: int) -> Tensor:
        mind.episode = episode
        return super().policy_at(mind, s, episode)

    def think(self, mind: RestrictedNashState, s: Tensor, episode: int) -> Tensor:
        """Values Σ_b y(b) G(s, a, b) [R, A] for the mixture y that minimises the agent's value."""
        mind.episode = episode
        return super().think(mind, s, episode)

    def learn(self, mind: RestrictedNashState, seen: Transition, episode: int) -> None:
        """Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s′)), with the updated forecast."""
        mind.episode = episode
        self._forecaster.learn(mind.forecasts, seen, episode)
        super().learn(mind, seen, episode)

    def beliefs(self, mind: RestrictedNashState) -> dict[str, Tensor]:
        return self._forecaster.beliefs(mind.forecasts)
