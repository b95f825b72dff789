"""Algorithm 4.1 on tensors: a player that models its opponents as level-k Q-learners."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import get_args

from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.streams import Rng
from components.games.agents.fictitious_play import (
    Prior,
    StateCounts,
    expected_values,
    together,
)
from components.games.agents.policies import PolicyName, Ties, draw_action, probabilities
from components.games.beliefs.bloom_counts import BloomCounts
from components.games.beliefs.markov_chains import MarkovChains
from components.games.environments.transition import Transition
from components.games.fast.engine import CompilableThinker
from components.games.fast.minds import Levels, is_own
from components.games.fast.seats import Hierarchy

Counting = StateCounts | MarkovChains | BloomCounts


class LevelThinker(CompilableThinker):
    """Level-k thinker with the constants ``levels``.

    For j = 1 … k, with own and other the actions of the player of level j (level k is the agent,
    k − 1 the adversary, and so on):
    Q_j(s,own,other) := (1 − α_j)Q_j(s,own,other) + α_j(r_j + γ max_own'
    E_{p_j(other'|s')}[Q_j(s',own',other')]), where p_1 is the forecast of the level-1 thinker's
    counts, and p_j the policy of E_{p_{j−1}}[Q_{j−1}(s',·,·)].  Tables are [R, S, own, other].
    """

    forget: float
    prior: Prior

    @property
    def counting(self) -> Counting:
        """Counts of the level-1 thinkers."""
        return StateCounts()

    @staticmethod
    def _answer(levels: Levels, j: int, q: Tensor, believed: Tensor) -> Tensor:
        """The policy of the player of level j + 1, q [R, own, other], believed [R, other] -> [R, own].

        Players above level 1 may respond to draws of the other's action; level 1 has counts and
        uses expectations."""
        name: PolicyName = "softmax" if levels.temperatures[j] > 0 else "epsilon_greedy"
        ties = get_args(Ties)[levels.ties]

        def policy(psi: Tensor) -> Tensor:
            return probabilities(psi, name, levels.epsilons[j], levels.temperatures[j], ties)

        if not levels.samples or j == 0:
            return policy(expected_values(q, believed))
        return (policy(q.transpose(1, 2)) * believed.unsqueeze(2)).sum(1)

    @staticmethod
    def _value(levels: Levels, j: int, q: Tensor, believed: Tensor, rng: Rng) -> Tensor:
        """max_own E[Q(s', own, other)], or for one draw of the other's action, [R]."""
        if not levels.samples or j == 0:
            return expected_values(q, believed).amax(-1)
        actions = draw_action(believed, rng.noise)
        return q.amax(1).gather(1, actions.unsqueeze(1)).squeeze(1)

    @staticmethod
    def _opponent_q_functions(mind: Hierarchy, m: int, levels: Levels) -> list[QFunction]:
        """Tables Q_1 … Q_(k−1) in the agent's model of opponent m."""
        below = len(levels.alphas) - 1
        return mind.q[m * below : (m + 1) * below]

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Hierarchy:
        levels = self.levels(0)
        k = len(levels.alphas)
        q = []
        for b in seat.others:
            q += [
                values.fresh(*((seat.own, b) if is_own(levels, j) else (b, seat.own)))
                for j in range(k - 1)
            ]
        q.append(values.fresh(seat.own, prod(seat.others)))
        counted = seat.others if is_own(levels, 0) else (seat.own,) * len(seat.others)
        counted_seat = replace(seat, others=counted)
        counts = self.counting.open(counted_seat, self.prior, rng)
        return Hierarchy(q, counts, counted_seat, rng)

    def forecast_opponent(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        """p_A(b|s) [R, B]: each opponent's policy, starting from the level-1 player's forecast."""
        levels = self.levels(episode)
        parts = self.counting.forecasts(mind.counts, mind.seat, s)
        for m in range(len(parts)):
            for j, q in enumerate(self._opponent_q_functions(mind, m, levels)):
                parts[m] = self._answer(levels, j, q.q(s), parts[m])
        return together(parts)

    def think(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        believed = self.forecast_opponent(mind, s, episode)
        return expected_values(mind.q[-1].q(s), believed)  # eq. (4.3)

    def policy_at(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        levels = self.levels(episode)
        believed = self.forecast_opponent(mind, s, episode)
        return self._answer(levels, len(levels.alphas) - 1, mind.q[-1].q(s), believed)

    def learn(self, mind: Hierarchy, seen: Transition, episode: int) -> None:
        levels = self.levels(episode)
        counts = mind.counts
        counted = seen
        if not is_own(levels, 0):
            counted = replace(seen, each=seen.a.unsqueeze(1).expand_as(seen.each))
        self.counting.take(counts, mind.seat, counted, levels.forget)
        s_forecast = seen.s_next if levels.at_next else seen.s
        # level 1 counts, and always forecasts at s'
        believed = self.counting.forecasts(counts, mind.seat, seen.s_next)
        answers = self.counting.forecasts(counts, mind.seat, s_forecast)
        for m in range(len(believed)):
            b = seen.each[:, m]
            # the players, each with its end of the episode
            agent = (seen, seen.a, b, seen.r_a)
            opponent = (seen.opponent_transition(m), b, seen.a, seen.r_b[:, m])
            for j, q in enumerate(self._opponent_q_functions(mind, m, levels)):
                side, own_action, other_action, r = agent if is_own(levels, j) else opponent
                value = self._value(levels, j, q.q(seen.s_next), believed[m], mind.rng)
                # Algorithm 4.1, line 2
                target = r + self.ahead(side, value)
                q.learn(seen.s, own_action, other_action, target, side.rate(levels.alphas[j]))
                # Line 3: the policy expected by the next level, from the updated table.
                answers[m] = self._answer(levels, j, q.q(s_forecast), answers[m])
                believed[m] = answers[m]
        top = mind.q[-1]
        k = len(levels.alphas)
        value = self._value(levels, k - 1, top.q(seen.s_next), together(believed), mind.rng)
        self.update(top, seen, seen.b, value)  # line 4
