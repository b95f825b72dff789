"""Base class of players that can sit on either side of a game.

A step is one episode; a player has a policy and learns from each move.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.requirements import Requirements
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.games.agents.policies import check_finite
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.environments.standing import GameState
from components.games.environments.transition import Transition


@dataclass(frozen=True)
class Play:
    """Results of an inference method after t episodes."""

    rewards: Tensor  # [R, t] the decision maker's
    # [M + 1, R, t] reward of each opponent, and welfare; empty if not recorded
    opponent_rewards: Tensor
    # [1 + M, R, t] share of moves with action 0, of the agent and of each opponent; empty if not
    # recorded
    firsts: Tensor
    # [R, A] expected value ψ(s, a) of each action of the agent in the current state, eq. (4.3)
    values: Tensor
    forecast: Tensor | None  # [R, B] the agent's p_A(b|s); None without forecasts
    values_at: Callable[[Tensor], Tensor]  # ψ(s, ·) [R, A] in states s [R, …]
    beliefs: dict[str, Tensor]  # scores of the beliefs about the others [R]
    policy_in: Callable[[Tensor], Tensor]  # probabilities of the agent's actions [R, A] in s [R, …]
    s: Tensor  # first state of the next episode [R, …]


K = TypeVar("K")  # memory of a player


@dataclass
class PlayerState(Generic[K]):
    """State of the player's beliefs and values, and position of the game."""

    mind: K
    standing: GameState


class Player(Inference[QFunction, Game, Episode, PlayerState[K]], Generic[K]):
    """A player of episodes for either side of a game.

    As the inference of a run it plays as the agent; ``attacker=learner`` uses any player as
    opponent, by ``sit``, ``policy_at`` and ``learn``, and ``look`` before it acts.
    """

    requires = Requirements(
        kinds={"game"},
        batch_kind="episode",
        capabilities={QFunction},
        attacker=True,
    )

    @abstractmethod
    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> K:
        """State of the player before the first episode; action values have the type of
        ``values``."""

    @abstractmethod
    def think(self, mind: K, s: Tensor, episode: int) -> Tensor:
        """Expected value of each own action, ψ(s, ·) [R, A], or a substitute for it."""

    @abstractmethod
    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        """Probabilities of own actions [R, A] in s [R, …]."""

    @abstractmethod
    def learn(self, mind: K, seen: Transition, episode: int) -> None:
        """Learn from a move."""

    def look(self, mind: K, policy: Callable[[Tensor], Tensor] | None) -> None:
        """Receive the opponent's policy before a move, s [R, …] -> [R, other], if it is known;
        ignored by default.
        """

    def forecast_opponent(self, mind: K, s: Tensor, episode: int) -> Tensor | None:
        """p(b|s) [R, B] of the opponents; None without forecasts."""
        return None

    def beliefs(self, mind: K) -> dict[str, Tensor]:
        """Beliefs about the other players, by score name [R]; empty without beliefs."""
        return {}

    # Inference of a run
    def init(self, model: QFunction, problem: Game, rng: Rng) -> PlayerState[K]:
        return PlayerState(
            self.sit(model, problem.seat(None, model), rng), problem.opening(rng, model)
        )

    def step(self, state: PlayerState[K], batch: Episode, rng: Rng) -> tuple[PlayerState[K], Info]:
        episode = batch.index

        def choose(s: Tensor) -> Tensor:
            return self.policy_at(state.mind, s, episode)

        def learn(seen: Transition) -> None:
            self.learn(state.mind, seen, episode)

        return state, batch.play(state.standing, rng, choose, learn)

    def posterior(self, state: PlayerState[K]) -> Play:
        """Rewards so far, ψ(s, ·) [R, A] and the forecast [R, B].

        Raises:
            NumericalError: action values are not finite."""
        episode = max(0, state.standing.episodes - 1)
        s = state.standing.s

        def think(s: Tensor) -> Tensor:
            return self.think(
                state.mind, s, episode
            ).clone()  # clone, because it may be the table itself

        def policy(s: Tensor) -> Tensor:
            return self.policy_at(state.mind, s, episode).clone()

        standing = state.standing
        check_finite(policy(s), "inference")
        forecast = self.forecast_opponent(state.mind, s, episode)
        beliefs = {name: value.clone() for name, value in self.beliefs(state.mind).items()}
        return Play(
            rewards=standing.rewards_so_far,
            opponent_rewards=standing.opponent_rewards,
            firsts=standing.first_actions,
            values=think(s),
            forecast=forecast,
            values_at=think,
            beliefs=beliefs,
            policy_in=policy,
            s=s,
        )
