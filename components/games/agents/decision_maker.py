"""Base classes of decision makers that learn action values."""

from __future__ import annotations

from abc import abstractmethod
from typing import Generic, TypeVar

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.roles import AboveZeroToOne, ZeroToBelowOne
from components.games.agents.exploration import Exploration, exploration_rate
from components.games.agents.player import Player
from components.games.environments.transition import Transition

K = TypeVar("K")  # memory of a decision maker


class DecisionMaker(Player[K], Generic[K]):
    """A player that learns action values from every move.

    The value of s' is 0 if s' is terminal, but not if the horizon or a truncation stops the
    episode,
    unless ``bootstrap_at_horizon`` is off.

    Source: Pardo, Tavakoli, Levdik and Kormushev (2018), section 3 (partial-episode
    bootstrapping)."""

    alpha: AboveZeroToOne
    gamma: ZeroToBelowOne
    epsilon: Exploration
    bootstrap_at_end: bool
    bootstrap_at_horizon: bool

    def ahead(self, seen: Transition, value: Tensor) -> Tensor:
        """γ V(s') [R], or 0 if the episode ends after this move; value [R]."""
        if seen.cut and not self.bootstrap_at_horizon:
            return torch.zeros_like(value)
        ahead = self.gamma * value
        if seen.truncated is not None and not self.bootstrap_at_horizon:
            ahead = torch.where(seen.truncated, 0.0, ahead)
        if seen.done is None or self.bootstrap_at_end:
            return ahead
        return torch.where(seen.done, 0.0, ahead)

    def update(self, q: QFunction, seen: Transition, b: Tensor, value: Tensor) -> None:
        """Q(s, a, b) := (1 − α) Q(s, a, b) + α (r + γ V(s')), b and the value of s' [R]."""
        target = seen.r_a + self.ahead(seen, value)
        q.learn(seen.s, seen.a, b, target, seen.rate(self.alpha))

    def update_own(self, q: QFunction, seen: Transition) -> None:
        """Q-learning, Q(s, a) := (1 − α) Q(s, a) + α (r + γ max_a' Q(s', a')), with one action of
        the others."""
        value = q.q(seen.s_next)[..., 0].amax(-1)
        self.update(q, seen, torch.zeros_like(seen.b), value)


class MixedStrategyDecisionMaker(DecisionMaker[K], Generic[K]):
    """A decision maker with a mixed strategy and ε-exploration: (1 − ε) π(s, ·) + ε/A."""

    @abstractmethod
    def mixture(self, mind: K, s: Tensor) -> Tensor:
        """π(s, ·) [R, A]."""

    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        pi = self.mixture(mind, s)
        epsilon = exploration_rate(self.epsilon, episode)
        return (1 - epsilon) * pi + epsilon / pi.shape[-1]
