"""Policy gradient methods (REINFORCE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.roles import AboveZeroToOne, ZeroToOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.games.agents.player import Player
from components.games.environments.transition import Transition
from components.registry import register


@dataclass
class Preferences:
    """Weights of the logits, and gradients of the current episode."""

    theta: Tensor  # θ [R, F, A]
    scores: Tensor  # Σ_i ∇ log π(a_i|s_i) of the moves so far [R, F, A]
    gradient: Tensor  # of the episode so far [R, F, A]
    moves: Tensor  # in the episode so far [R] long
    earned: Tensor  # reward of the episode so far [R]
    mean: Tensor  # r̄, mean reward of a move in previous episodes [R]
    values: QFunction  # v(s), as values of a single action
    seat: Seat = not_checkpointed()


@register("inference", "policy_gradient")
class PolicyGradient(Player[Preferences]):
    """REINFORCE: ascends the discounted reward of an episode by the scores of its actions.

        π(a|s) ∝ exp(θ_aᵀ φ(s)),   z_t = Σ_{i ≤ t} ∇ log π(a_i|s_i)
        θ ← θ + lr Σ_t γ^t [(r_t − r̄) z_t − v(s_t) ∇ log π(a_t|s_t)]

    The sum is an unbiased estimate of ∇ E[Σ_t γ^t r_t].  φ are one-hot if states are numbered,
    otherwise the features of a state; θ [R, F, A] is initialised at 0.  ``baseline`` subtracts from
    each reward r̄, the mean reward of a move in the previous episodes (mean), or from the return
    after a state its value v(s), learned by v(s) := v(s) + rate (r + γ v(s') − v(s)) with the value
    type of ``model`` (by_state); none sets both to 0.  In a game without an end, ``rounds`` moves are
    an episode.  The released code of the data sharing games uses rounds = 1 and no baseline: r ∇
    log π.

    An external game (dataset=pettingzoo) may truncate an episode in a non-terminal s_T: γ^T v(s_T)
    z_{T−1} then replaces the later rewards, for any baseline, with v the value of r − r̄, learned
    as above.

    Source: Williams (1992), section 6; Sutton and Barto (2018), sections 13.3 to 13.5;
    Gallego (2021), section 4.5.4.
    """

    lr: PositiveFloat
    gamma: ZeroToOne
    rounds: PositiveInt
    baseline: Literal["none", "mean", "by_state"]
    baseline_rate: AboveZeroToOne

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Preferences:
        features = seat.n_states
        if features is None:
            features = seat.environment.features(
                seat.environment.reset(seat.replicates, rng.init)
            ).shape[1]
        theta = seat.full((seat.replicates, features, seat.own), 0.0)
        zeros = theta[:, 0, 0].clone()
        moves = torch.zeros_like(zeros, dtype=torch.long)
        traces = (torch.zeros_like(theta), torch.zeros_like(theta))
        return Preferences(theta, *traces, moves, zeros, zeros.clone(), values.fresh(1, 1), seat)

    @staticmethod
    def _features(mind: Preferences, s: Tensor) -> Tensor:
        """φ(s) [R, F]."""
        states = mind.seat.n_states
        return (
            mind.seat.environment.features(s)
            if states is None
            else one_hot(s, states).to(mind.theta.dtype)
        )

    def think(self, mind: Preferences, s: Tensor, episode: int) -> Tensor:
        """Logits in place of values [R, A]."""
        return (self._features(mind, s).unsqueeze(1) @ mind.theta).squeeze(1)

    def policy_at(self, mind: Preferences, s: Tensor, episode: int) -> Tensor:
        return self.think(mind, s, episode).softmax(-1)

    def learn(self, mind: Preferences, seen: Transition, episode: int) -> None:
        live = seen.live
        playing = torch.ones_like(mind.mean) if live is None else live.to(mind.mean.dtype)
        excess = one_hot(seen.a, mind.seat.own) - self.policy_at(mind, seen.s, episode)
        # ∇ log π(a|s)
        score = (playing[:, None] * self._features(mind, seen.s)).unsqueeze(2) * excess.unsqueeze(1)
        mind.scores += score
        discount = playing * self.gamma ** mind.moves.to(playing.dtype)
        mind.gradient += (discount * (seen.r_a - mind.mean))[:, None, None] * mind.scores
        if self.baseline == "by_state":
            mind.gradient -= (discount * self._value(mind, seen.s))[:, None, None] * score
        if seen.truncated is not None:
            stopped = torch.where(
                seen.truncated, discount * self.gamma * self._value(mind, seen.s_next), 0.0
            )
            mind.gradient += stopped[:, None, None] * mind.scores
        if self.baseline == "by_state" or seen.truncated is not None:
            self._learn_value(mind, seen)
        mind.moves += 1 if live is None else live.long()
        mind.earned += playing * seen.r_a
        self._step(mind, self._over(mind, seen))

    def _learn_value(self, mind: Preferences, seen: Transition) -> None:
        """v(s) := v(s) + rate (r − r̄ + γ v(s') − v(s)), with v(s') = 0 if s' is terminal."""
        ahead = self.gamma * self._value(mind, seen.s_next)
        target = (
            seen.r_a
            - mind.mean
            + (ahead if seen.done is None else torch.where(seen.done, 0.0, ahead))
        )
        nought = torch.zeros_like(seen.a)
        mind.values.learn(seen.s, nought, nought, target, seen.rate(self.baseline_rate))

    @staticmethod
    def _value(mind: Preferences, s: Tensor) -> Tensor:
        return mind.values.q(s)[:, 0, 0]

    def _over(self, mind: Preferences, seen: Transition) -> Tensor:
        """True if an episode of the agent ends here [R] bool."""
        if mind.seat.environment.continuing:
            over = mind.moves >= self.rounds
        else:
            over = torch.full_like(seen.a, seen.cut, dtype=torch.bool)
        if seen.over is not None:
            over = over | seen.over
        return over if seen.live is None else over & seen.live

    def _step(self, mind: Preferences, over: Tensor) -> None:
        """Update θ at the end of an episode and begin the next one."""
        if not over.any():
            return
        mask = over[:, None, None]
        mind.theta += torch.where(mask, self.lr * mind.gradient, 0.0)
        if self.baseline == "mean":
            reward = mind.earned / mind.moves.clamp_min(1)
            mind.mean = torch.where(
                over, torch.lerp(mind.mean, reward, self.baseline_rate), mind.mean
            )
        mind.scores = torch.where(mask, 0.0, mind.scores)
        mind.gradient = torch.where(mask, 0.0, mind.gradient)
        mind.moves = torch.where(over, 0, mind.moves)
        mind.earned = torch.where(over, 0.0, mind.earned)
