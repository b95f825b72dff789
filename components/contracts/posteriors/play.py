"""Rewards, beliefs and policy of a decision maker."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Played(Protocol):
    """Rewards of a decision maker in t episodes, and its current policy."""

    @property
    def rewards(self) -> Tensor: ...  # [R, t]

    @property
    # reward of each of M opponents, and welfare [M + 1, R, t]; empty if not recorded
    def opponent_rewards(self) -> Tensor: ...

    @property
    # share of action 0, for the agent and each opponent [1 + M, R, t]; empty if not recorded
    def firsts(self) -> Tensor: ...

    @property
    # [R, A] expected value of each action of the agent in the current state
    def values(self) -> Tensor: ...

    @property
    # [R, B] the agent's belief about the opponents' next actions; None if it has none
    def forecast(self) -> Tensor | None: ...

    @property
    def beliefs(self) -> dict[str, Tensor]: ...  # scores of beliefs about the opponents [R]

    @property
    def s(self) -> Tensor: ...  # initial states of the next episode [R, …]

    def values_at(self, s: Tensor) -> Tensor: ...  # ``values`` in states s [R, …]

    def policy_in(self, s: Tensor) -> Tensor: ...  # probabilities of actions in states s [R, A]
