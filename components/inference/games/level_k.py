"""Level-k thinking: she models an opponent who models her, and so on down to one who only counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Annotated

from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.inference.games.decision_maker import DecisionMaker
from components.inference.games.exploration import Exploration, explored
from components.inference.games.fictitious_play import count, expected_values, forecasts, marks, prior_counts, together
from components.maths.policies import PolicyName, probabilities
from components.problems.game import Transition
from components.registry import register


@dataclass
class Hierarchy:
    """Action values of every thinker, and what those of level 1 have counted."""

    q: list[QFunction]  # of the first opponent Q_1 … Q_(k−1), of the next the same, …, and last hers, Q_k
    counts: Tensor  # of the level-1 thinkers [R, S, n], those about one opponent after the other
    seat: Seat = rebuilt()


@register("inference", "level_k")
class LevelK(DecisionMaker[Hierarchy]):
    """Level-k Q-learning: she forecasts the adversary as a level-(k − 1) Q-learner whose table she keeps herself.

    For j = 1 … k, with own and other the actions of the player of level j (level k is hers, k − 1 his, and so on):
    Q_j(s,own,other) := (1 − α_j)Q_j(s,own,other) + α_j(r_j + γ max_own' E_{p_j(other'|s')}[Q_j(s',own',other')]), where
    p_1 is the level-1 thinker's Dirichlet forecast (λ = ``forget``) and p_j the ε-greedy or softmax policy of
    E_{p_{j−1}}[Q_{j−1}(s',·,·)].  The printed algorithm takes the modelled policy from Q̂₁(s, ·, ·); it is needed, and
    taken here, at s', where Q₂ is maximised.  Where s' ends the episode there is nothing to come.  k = 1 is FPQ-learning.
    Tables [R, S, own, other].  Each of several opponents is modelled as if he faced her alone; the forecasts multiply.

    Source: Gallego (2021), Algorithm 4.1 and sections 4.3.2 and 4.3.5."""

    level: PositiveInt
    alpha_opponent: Annotated[float, Field(gt=0, le=1)]
    forget: Annotated[float, Field(gt=0, le=1)]
    prior: PositiveFloat
    policy_opponent: PolicyName
    epsilon_opponent: Exploration

    def _hers(self, j: int) -> bool:
        return (self.level - j) % 2 == 0

    def _counted(self, seat: Seat) -> tuple[int, ...]:
        """Numbers of actions that the level-1 thinkers count, one thinker for each opponent."""
        return seat.others if self._hers(1) else (seat.own,) * len(seat.others)

    def _modelled(self, mind: Hierarchy, m: int) -> list[QFunction]:
        """Q_1 … Q_(k−1) of how she models opponent m."""
        below = self.level - 1
        return mind.q[m * below : (m + 1) * below]

    def _policy(self, psi: Tensor, episode: int) -> Tensor:
        """Of a modelled player."""
        return probabilities(psi, self.policy_opponent, explored(self.epsilon_opponent, episode), self.temperature)

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Hierarchy:
        a, q = seat.own, []
        for b in seat.others:
            q += [values.fresh(a, b) if self._hers(j) else values.fresh(b, a) for j in range(1, self.level)]
        q.append(values.fresh(a, prod(seat.others)))
        return Hierarchy(q, prior_counts(seat, sum(self._counted(seat)), self.prior), seat)

    def forecast(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        """p_A(b|s) [R, B]: each opponent's policy, from the level-1 thinker's forecast upwards."""
        parts = forecasts(mind.counts, mind.seat.rows(s), self._counted(mind.seat))
        for m in range(len(parts)):
            for q in self._modelled(mind, m):
                parts[m] = self._policy(expected_values(q.q(s), parts[m]), episode)
        return together(parts)

    def think(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        return expected_values(mind.q[-1].q(s), self.forecast(mind, s, episode))  # eq. (4.3)

    def learn(self, mind: Hierarchy, seen: Transition, episode: int) -> None:
        seat, top = mind.seat, mind.q[-1]
        counted = self._counted(seat)
        acted = seen.each if self._hers(1) else seen.a.unsqueeze(1).expand_as(seen.each)
        count(mind.counts, seat.rows(seen.s), marks(acted, counted, mind.counts.dtype), self.forget, seen.live)
        parts = forecasts(mind.counts, seat.rows(seen.s_next), counted)
        for m in range(len(parts)):
            for j, q in enumerate(self._modelled(mind, m), 1):
                b = seen.each.select(1, m)
                own, other, r = (seen.a, b, seen.r_a) if self._hers(j) else (b, seen.a, seen.r_b.select(1, m))
                psi = expected_values(q.q(seen.s_next), parts[m])
                target = r + self.ahead(seen, psi.amax(-1))
                q.learn(seen.s, own, other, target, seen.rate(self.alpha_opponent))  # Algorithm 4.1, line 2
                # Line 3: the policy that the next level up expects, from the table just updated.
                parts[m] = self._policy(expected_values(q.q(seen.s_next), parts[m]), episode)
        psi = expected_values(top.q(seen.s_next), together(parts))
        target = seen.r_a + self.ahead(seen, psi.amax(-1))
        top.learn(seen.s, seen.a, seen.b, target, seen.rate(self.alpha))  # line 4
