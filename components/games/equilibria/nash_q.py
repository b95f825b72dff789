"""Nash Q-learning for two players."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.decision_maker import MixedStrategyDecisionMaker
from components.games.agents.fictitious_play import expected_values
from components.games.environments.transition import Transition
from components.games.equilibria.bimatrix import Selection, equilibrium, pairs
from components.games.equilibria.solved import StageGameSolutions
from components.registry import register

MOST = 60_000  # pairs of mixtures of a stage game with 5 × 5 actions


@dataclass
class NashQState:
    """Action values of both players, and the equilibria of their stage games."""

    agent_values: QFunction  # Q_A(s, a, b)
    opponent_values: QFunction  # Q_B(s, b, a)
    solved: StageGameSolutions  # V_A, V_B, x and y [R, S, 2 + A + B]
    seat: Seat = not_checkpointed()


@register("inference", "nash_q")
class NashQ(MixedStrategyDecisionMaker[NashQState]):
    """Nash-Q: the agent estimates both players' values and assumes that both play an equilibrium.

        (x, y) an equilibrium of the bimatrix game Q_A(s, ·, ·), Q_B(s, ·, ·)
        V_i(s) = Σ_{a,b} x(a) y(b) Q_i(s, a, b)
        Q_i(s, a, b) := (1 − α) Q_i(s, a, b) + α (r_i + γ V_i(s′))

    Both Q_i are updated, from the rewards of both.  The agent plays x, except for a
    fraction ε of random actions, and forecasts y.  Among several equilibria ``selection``
    takes the first (pure ones before mixed ones), the best for the agent, or the one of the highest
    welfare; an opponent may select another one, e.g. a second ``nash_q`` in chicken.  All extreme
    equilibria are considered, in degenerate games too.  Q_A [R, S, A, B] and Q_B [R, S, B, A]; the
    game of a state is solved again only after its tables change.

    Raises ConfigMismatchError with several opponents, or with more pairs of mixtures than can be
    enumerated.

    Source: Hu and Wellman (2003), the Nash Q-learning algorithm.
    """

    selection: Selection

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> NashQState:
        if len(seat.others) > 1:
            raise ConfigMismatchError(
                f"inference={self.name}: requires one opponent, but the game has {len(seat.others)}; use minimax_q"
            )
        A = seat.own
        B = seat.agent_actions
        if pairs(A, B) > MOST:
            raise ConfigMismatchError(
                f"inference={self.name}: a game of {A} × {B} actions has {pairs(A, B):,} pairs of "
                f"mixtures, more than {MOST:,}; use minimax_q"
            )
        return NashQState(
            values.fresh(A, B),
            values.fresh(B, A),
            StageGameSolutions.none(seat, 2 * A * B, 2 + A + B),
            seat,
        )

    def _solution(self, mind: NashQState, s: Tensor) -> Tensor:
        """V_A, V_B, x and y [R, 2 + A + B]."""
        seat = mind.seat
        # [R, 2, A, B]
        both = torch.stack([mind.agent_values.q(s), mind.opponent_values.q(s).mT], 1)

        def solve(games: Tensor) -> Tensor:
            r_a, r_b = games.view(-1, *both.shape[1:]).unbind(1)
            x, y = equilibrium(r_a, r_b, self.selection)
            joint = x.unsqueeze(2) * y.unsqueeze(1)
            return torch.cat(
                [torch.stack([(joint * r).sum((1, 2)) for r in (r_a, r_b)], 1), x, y], 1
            )

        return mind.solved.at(seat.rows(s), both.flatten(1), solve)

    def mixture(self, mind: NashQState, s: Tensor) -> Tensor:
        return self._solution(mind, s)[:, 2 : 2 + mind.seat.own]

    def forecast_opponent(self, mind: NashQState, s: Tensor, episode: int) -> Tensor:
        return self._solution(mind, s)[:, 2 + mind.seat.own :]

    def think(self, mind: NashQState, s: Tensor, episode: int) -> Tensor:
        return expected_values(mind.agent_values.q(s), self.forecast_opponent(mind, s, episode))

    def learn(self, mind: NashQState, seen: Transition, episode: int) -> None:
        value, his_value, *_ = self._solution(mind, seen.s_next).unbind(1)
        opponent = seen.opponent_transition(0)
        self.update(mind.agent_values, seen, seen.b, value)
        his_target = seen.r_b.select(1, 0) + self.ahead(opponent, his_value)
        mind.opponent_values.learn(seen.s, seen.b, seen.a, his_target, opponent.rate(self.alpha))
