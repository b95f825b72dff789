"""Learning opponent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from pydantic import field_validator
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import Inference
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.player import Player
from components.games.agents.policies import check_finite, draw_action
from components.games.environments.transition import Transition
from components.registry import register


@dataclass
class Learning:
    """State of the opponent's learning agent."""

    mind: Any


@register("attacker", "learner")
class Learner(Opponent[Learning]):
    """Opponent that is itself a learning agent, on the other side of the game.

    Its own actions are b; those of its opponent are the decision maker's.  ``agent`` is any game
    method, e.g. ``{name: level_k, level: 2}``.  The opponent gets r_B, observes the decision
    maker's action after the move, and uses a ``model`` of action values like the decision maker's.
    Each of several opponents models only the decision maker.

    Raises:
        ConfigMismatchError: ``agent`` is not a game method.

    Source: Gallego (2021), section 4.4.1 (Figures 4.6 and 4.10).
    """

    knowledge = "black box"

    agent: Inference

    @field_validator("agent")
    @classmethod
    def _check_plays_games(cls, agent: Inference) -> Inference:
        if not isinstance(agent, Player):
            raise ValueError(
                f"{agent.name} is not a game method; use one of q_learning, fpq_learning, level_k, …"
            )
        return agent

    @property
    def _agent(self) -> Player[Any]:
        assert isinstance(self.agent, Player), "checked by the validator"
        return self.agent

    def reset(self, seat: Seat, rng: Rng) -> Learning:
        if seat.values is None:
            raise ConfigMismatchError(f"attacker={self.name}: requires a model of action values")
        return Learning(self._agent.sit(seat.values, seat, rng))

    def act(self, state: Learning, turn: Turn, rng: Rng) -> Tensor:
        """Draw b from the opponent's policy, [R] long.

        Raises:
            NumericalError: action values diverged.
        """
        self._agent.look(state.mind, turn.policy)
        policy = self.policy_in(state, turn.s, turn.episode)
        check_finite(policy, "attacker.agent")
        return draw_action(policy, rng.attack)

    def policy_in(self, state: Learning, s: Tensor, episode: int) -> Tensor:
        """Return probabilities of the opponent's actions [R, B]."""
        return self._agent.policy_at(state.mind, s, episode)

    def observe(self, state: Learning, move: Move) -> Learning:
        """Update the opponent's action values in place."""
        agent_actions = move.a.unsqueeze(1)
        transition = Transition(
            s=move.s,
            a=move.b,
            b=move.a,
            each=agent_actions,
            r_a=move.r,
            r_b=move.r_hers.unsqueeze(1),
            s_next=move.s_next,
            done=move.done,
            live=move.live,
            cut=move.cut,
            truncated=move.truncated,
        )
        with torch.no_grad():
            self._agent.learn(state.mind, transition, move.episode)
        return state
