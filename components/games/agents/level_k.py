"""Level-k thinking: the agent models an opponent that models the agent, down to one that counts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from pydantic import BaseModel, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.roles import AboveZeroToOne
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.games.agents.exploration import LevelExploration, exploration_rate
from components.games.agents.fictitious_play import (
    Prior,
    count,
    expected_values,
    forecasts,
    marks,
    prior_counts,
    together,
)
from components.games.agents.policies import PolicyName, Ties, draw_action, probabilities
from components.games.environments.transition import Transition
from components.games.fast.engine import CompilableDecisionMaker
from components.games.fast.minds import EPSILON_GREEDY, Levels
from components.registry import register


@dataclass
class Hierarchy:
    """Action values of all modelled players, and the counts of the level-1 players."""

    # Q_1 … Q_(k−1) for each opponent in turn, and the agent's Q_k last
    q: list[QFunction]
    counts: Tensor  # of the level-1 players [R, S, n], for the opponents in turn
    seat: Seat = rebuilt()
    rng: Rng = rebuilt()


class OpponentKeys(BaseModel):
    """Keys of a player that models how its opponents learn."""

    alpha_opponent: AboveZeroToOne
    forget: AboveZeroToOne
    prior: Prior
    policy_opponent: PolicyName
    epsilon_opponent: LevelExploration
    temperature_opponent: PositiveFloat | None
    forecast: Literal["expected", "sampled"]
    forecast_at: Literal["next", "current"]


@register("inference", "level_k")
class LevelK(CompilableDecisionMaker[Hierarchy], OpponentKeys):
    """Level-k Q-learning: forecasts the adversary as a level-(k − 1) Q-learner.

    The agent stores the tables of the modelled Q-learners.  For j = 1 … k, with own and other the
    actions of the player of level j (level k is the agent, k − 1 the adversary, and so on):
    Q_j(s,own,other) := (1 − α_j)Q_j(s,own,other) + α_j(r_j + γ max_own'
    E_{p_j(other'|s')}[Q_j(s',own',other')]), where p_1 is the level-1 thinker's Dirichlet forecast
    (λ = ``forget``) and p_j the ε-greedy or softmax policy of
    E_{p_{j−1}}[Q_{j−1}(s',·,·)].  The printed algorithm takes the modelled policy from Q̂₁(s, ·,
    ·); here it is taken at s', where Q₂ is maximised; ``forecast_at=current`` takes it at s, like
    the released code.

    With ``forecast=sampled``, players of levels j > 1 respond to one draw of the other's action,
    like the released code: their targets are max_own' Q_j(s', own', o), o ~ p_j, and their policies
    Σ_o p_j(o) times the policy of Q_j(s, ·, o).  With ``ties=first`` the first of equally good
    actions is chosen, like in the released code (``last`` if that code numbers them in reverse
    order): in a game with rewards only at the ends (Table 4.1) the agent then walks up instead of
    wandering.  If s' ends the episode, its value is 0.  k = 1 is FPQ-learning.  Tables are [R, S,
    own, other].  Each of several opponents is modelled as if it faced only the agent; the forecasts
    multiply.

    Source: Gallego (2021), Algorithm 4.1 and sections 4.3.2 and 4.3.5.
    """

    level: PositiveInt
    ties: Ties

    def _is_agent_level(self, j: int) -> bool:
        return (self.level - j) % 2 == 0

    def _action_counts(self, seat: Seat) -> tuple[int, ...]:
        """Numbers of actions counted by the level-1 players, one player per opponent."""
        return seat.others if self._is_agent_level(1) else (seat.own,) * len(seat.others)

    def _opponent_q_functions(self, mind: Hierarchy, m: int) -> list[QFunction]:
        """Tables Q_1 … Q_(k−1) in the agent's model of opponent m."""
        below = self.level - 1
        return mind.q[m * below : (m + 1) * below]

    def _is_sampling_level(self, level: int) -> bool:
        """True if a player of this level responds to draws of the other's action.

        Level-1 players have counts and use expectations.
        """
        return level > 1 and self.forecast == "sampled"

    def _answer(self, level: int, q: Tensor, believed: Tensor, episode: int) -> Tensor:
        """The policy of a player of a level, q [R, own, other], believed [R, other] -> [R, own]."""
        name = self.policy_opponent
        epsilon = self.epsilon_opponent
        temperature = self.temperature_opponent or self.temperature
        if level == self.level:
            name = self.policy
            epsilon = self.epsilon
            temperature = self.temperature
        rate = exploration_rate(epsilon, episode, level)
        if not self._is_sampling_level(level):
            psi = expected_values(q, believed)
            return probabilities(psi, name, rate, temperature, self.ties)
        # [R, other, own]
        each = probabilities(q.transpose(1, 2), name, rate, temperature, self.ties)
        return (each * believed.unsqueeze(2)).sum(1)

    def _value(self, level: int, q: Tensor, believed: Tensor, rng: Rng) -> Tensor:
        """max_own E[Q(s', own, other)], or for one draw of the other's action, [R]."""
        if not self._is_sampling_level(level):
            return expected_values(q, believed).amax(-1)
        actions = draw_action(believed, rng.noise)
        return q.amax(1).gather(1, actions.unsqueeze(1)).squeeze(1)

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Hierarchy:
        a = seat.own
        q = []
        for b in seat.others:
            q += [
                values.fresh(a, b) if self._is_agent_level(j) else values.fresh(b, a)
                for j in range(1, self.level)
            ]
        q.append(values.fresh(a, prod(seat.others)))
        return Hierarchy(
            q, prior_counts(seat, tuple(self._action_counts(seat)), self.prior), seat, rng
        )

    def forecast_opponent(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        """p_A(b|s) [R, B]: each opponent's policy, starting from the level-1 player's forecast."""
        parts = forecasts(mind.counts, mind.seat.rows(s), self._action_counts(mind.seat))
        for m in range(len(parts)):
            for j, q in enumerate(self._opponent_q_functions(mind, m), 1):
                parts[m] = self._answer(j, q.q(s), parts[m], episode)
        return together(parts)

    def think(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        return expected_values(
            mind.q[-1].q(s), self.forecast_opponent(mind, s, episode)
        )  # eq. (4.3)

    def policy_at(self, mind: Hierarchy, s: Tensor, episode: int) -> Tensor:
        believed = self.forecast_opponent(mind, s, episode)
        return self._answer(self.level, mind.q[-1].q(s), believed, episode)

    def learn(self, mind: Hierarchy, seen: Transition, episode: int) -> None:
        seat = mind.seat
        counted = self._action_counts(seat)
        acted = seen.each if self._is_agent_level(1) else seen.a.unsqueeze(1).expand_as(seen.each)
        did = marks(acted, counted, mind.counts.dtype)
        count(mind.counts, seat.rows(seen.s), did, self.forget, seen.live)
        s_forecast = seen.s_next if self.forecast_at == "next" else seen.s
        # level 1 counts, and always forecasts at s'
        believed = forecasts(mind.counts, seat.rows(seen.s_next), counted)
        answers = forecasts(mind.counts, seat.rows(s_forecast), counted)
        for m in range(len(believed)):
            b = seen.each[:, m]
            # the players, each with its end of the episode
            agent = (seen, seen.a, b, seen.r_a)
            opponent = (seen.opponent_transition(m), b, seen.a, seen.r_b[:, m])
            for j, q in enumerate(self._opponent_q_functions(mind, m), 1):
                side, own_action, other_action, r = agent if self._is_agent_level(j) else opponent
                value = self._value(j, q.q(seen.s_next), believed[m], mind.rng)
                # Algorithm 4.1, line 2
                target = r + self.ahead(side, value)
                q.learn(seen.s, own_action, other_action, target, side.rate(self.alpha_opponent))
                # Line 3: the policy expected by the next level, from the updated table.
                answers[m] = self._answer(j, q.q(s_forecast), answers[m], episode)
                believed[m] = answers[m]
        top = mind.q[-1]
        value = self._value(self.level, top.q(seen.s_next), together(believed), mind.rng)
        self.update(top, seen, seen.b, value)  # line 4

    # Compiled
    def has_loop(self) -> bool:
        return type(self) is LevelK

    def tables(self, mind: Hierarchy) -> list[QFunction]:
        return mind.q

    def action_counts(self, mind: Hierarchy) -> Tensor:
        return mind.counts

    def levels(self, episode: int) -> Levels:
        below = range(1, self.level)
        temperature = self.temperature_opponent or self.temperature
        modelled = temperature if self.policy_opponent == "softmax" else EPSILON_GREEDY
        epsilons = [exploration_rate(self.epsilon_opponent, episode, j) for j in below]
        keys = self.shared_keys(self.forget)._replace(
            at_next=self.forecast_at == "next",
            samples=self.forecast == "sampled",
            ties=get_args(Ties).index(self.ties),
        )
        return Levels(
            alphas=(*(self.alpha_opponent for _ in below), self.alpha),
            epsilons=(*epsilons, exploration_rate(self.epsilon, episode)),
            temperatures=(*(modelled for _ in below), self.policy_temperature),
            keys=keys,
        )
