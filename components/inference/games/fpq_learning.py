"""Q-learning against a forecast opponent: fictitious play with a Dirichlet belief that may forget."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Annotated

from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.games.decision_maker import DecisionMaker
from components.inference.games.fictitious_play import count, expected_values, forecasts, marks, prior_counts, together
from components.problems.game import Transition
from components.registry import register


@dataclass
class Counted:
    """Action values Q(s, a, b), and how often each opponent did what."""

    q: QFunction
    counts: Tensor  # [R, S, ΣB_m]
    seat: Seat = rebuilt()


@register("inference", "fpq_learning")
class FPQLearning(DecisionMaker[Counted]):
    """Level-1 Q-learning: the adversary's next action is forecast from the past ones, the recent weighing more.

    p_A(b|s) = E[Dirichlet(α)] with α := λα, α_b := α_b + 1 at each observed b (λ = 1: plain FPQ-learning; λ < 1 heeds
    about the last 1/(1 − λ) of them); Q(s,a,b) := (1 − α)Q(s,a,b) + α(r + γ max_a' E_p[Q(s',a',b')]); a is drawn from
    the ε-greedy or the softmax policy of ψ(s,a) = E_p[Q(s,a,b)].  Counts [R, S, B], Q [R, S, A, B]; of several opponents
    b stands for (b¹, …, b^M) and p_A for the product of their forecasts.  States without numbers share one count.

    Source: Gallego (2021), eqs. (4.2) and (4.3), Algorithm 4.4 and section 4.3.5."""

    forget: Annotated[float, Field(gt=0, le=1)]
    prior: PositiveFloat

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Counted:
        return Counted(
            values.fresh(seat.own, prod(seat.others)), prior_counts(seat, sum(seat.others), self.prior), seat
        )

    def forecast(self, mind: Counted, s: Tensor, episode: int) -> Tensor:
        return together(forecasts(mind.counts, mind.seat.rows(s), mind.seat.others))

    def think(self, mind: Counted, s: Tensor, episode: int) -> Tensor:
        return expected_values(mind.q.q(s), self.forecast(mind, s, episode))  # eq. (4.3)

    def learn(self, mind: Counted, seen: Transition, episode: int) -> None:
        counts, seat = mind.counts, mind.seat
        count(counts, seat.rows(seen.s), marks(seen.each, seat.others, counts.dtype), self.forget, seen.live)
        target = seen.r_a + self.ahead(seen, self.think(mind, seen.s_next, episode).amax(-1))  # eq. (4.2)
        mind.q.learn(seen.s, seen.a, seen.b, target, seen.rate(self.alpha))
