"""Policy hill-climbing that learns faster when losing."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from pydantic import model_validator
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.roles import AboveZeroToOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from components.games.agents.decision_maker import MixedStrategyDecisionMaker
from components.games.environments.transition import Transition
from components.maths.spacing import row_numbers
from components.registry import register


@dataclass
class WolfPHCState:
    """Action values, the agent's policy, and its running mean."""

    q: QFunction  # of one action of the others
    pi: Tensor  # π [R, S, A]
    average: Tensor  # π̄ [R, S, A]
    visits: Tensor  # C(s) [R, S]
    seat: Seat = not_checkpointed()


@register("inference", "wolf_phc")
class WolfPHC(MixedStrategyDecisionMaker[WolfPHCState]):
    """WoLF policy hill-climbing: moves towards the best action, in small steps while winning.

    After each move from s, Q(s,a) := (1 − α) Q(s,a) + α (r + γ max_a' Q(s',a')) and
        C(s) := C(s) + 1,   π̄(s,·) := π̄(s,·) + (π(s,·) − π̄(s,·)) / C(s)
        δ = δ_w if Σ_a π(s,a) Q(s,a) > Σ_a π̄(s,a) Q(s,a) (the agent wins), else δ_l
        π(s,a) := π(s,a) − min(π(s,a), δ/(A − 1)) for all but the best action,
            which gains the sum of these reductions.
    The agent's policy is π, except for a fraction ε of random actions; it starts uniform.
    δ_w = δ_l is plain policy hill-climbing, which cycles around mixed equilibria.  Ties between
    values are resolved in favour of the first.  π and π̄ [R, S, A], Q [R, S, A].

    Raises ConfigMismatchError if states are not numbered.

    Source: Bowling and Veloso (2002), WoLF policy hill-climbing.
    """

    delta_win: AboveZeroToOne
    delta_lose: AboveZeroToOne

    @model_validator(mode="after")
    def _check_learning_rates(self) -> WolfPHC:
        if self.delta_win > self.delta_lose:
            raise ValueError(
                f"delta_win: {self.delta_win:g} must not exceed delta_lose, {self.delta_lose:g}"
            )
        return self

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> WolfPHCState:
        if seat.n_states is None:
            raise ConfigMismatchError(
                f"inference={self.name}: requires numbered states, because it keeps a policy for each state"
            )
        if self.delta_win == self.delta_lose:
            message = f"inference.delta_win={self.delta_win:g}: equals delta_lose; this is plain policy hill-climbing"
            warnings.warn(QuestionableConfigWarning(message), stacklevel=1)
        pi = seat.full((seat.replicates, seat.n_states, seat.own), 1 / seat.own)
        return WolfPHCState(
            values.fresh(seat.own, 1), pi, pi.clone(), torch.zeros_like(pi[..., 0]), seat
        )

    def think(self, mind: WolfPHCState, s: Tensor, episode: int) -> Tensor:
        return mind.q.q(s)[..., 0]

    def mixture(self, mind: WolfPHCState, s: Tensor) -> Tensor:
        return mind.pi[row_numbers(s), s]

    def learn(self, mind: WolfPHCState, seen: Transition, episode: int) -> None:
        self.update_own(mind.q, seen)
        replicate = row_numbers(seen.s)
        s = seen.s
        if seen.live is not None:
            replicate = replicate[seen.live]
            s = s[seen.live]
        q = self.think(mind, seen.s, episode)[replicate]
        pi = mind.pi[replicate, s]
        mind.visits[replicate, s] += 1
        average = mind.average[replicate, s]
        average = average + (pi - average) / mind.visits[replicate, s].unsqueeze(1)
        mind.average[replicate, s] = average
        wins = (pi * q).sum(1) > (average * q).sum(1)
        delta = torch.where(wins, self.delta_win, self.delta_lose).to(pi.dtype) / (pi.shape[1] - 1)
        best = q.argmax(1, keepdim=True)
        decrease = torch.minimum(pi, delta.unsqueeze(1)).scatter(1, best, 0.0)
        mind.pi[replicate, s] = (pi - decrease).scatter_add(1, best, decrease.sum(1, keepdim=True))
