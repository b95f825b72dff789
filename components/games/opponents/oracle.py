"""Best response to the agent's true policy, as a measure of its exploitability."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.games import Move, Seat, TabularGame, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import ZeroToBelowOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.policies import in_every_state
from components.maths.spacing import row_numbers
from components.registry import register

VALUE_TOLERANCE = 1e-10  # convergence tolerance for values, as a share of the largest reward


@dataclass(frozen=True)
class OracleState:
    """The rules of the game."""

    game: TabularGame = not_checkpointed()
    replicates: int = not_checkpointed()


def best_response(game: TabularGame, policy: Tensor, gamma: float) -> Tensor:
    """Compute values Q(s, b) [R, S, B] of the best response to the policy [R, S, A].

    They are the fixed point of

    Q(s, b) = Σ_a p(a|s) (r_B(s, a, b) + γ (1 − end(s′)) max_b′ Q(s′, b′)).

    Value iteration starts from 0 and ends when all changes are below ``VALUE_TOLERANCE`` of the
    largest reward.
    """
    gains = game.reward_b[..., 0]  # [S, A, B]
    now = torch.einsum("rsa,sab->rsb", policy, gains)
    if gamma == 0:
        return now
    goes_on = now.new_ones(len(gains)) if game.ends is None else (~game.ends).to(now)
    q = now
    least = VALUE_TOLERANCE * max(float(gains.abs().max()), 1e-300)
    while True:
        ahead = (gamma * goes_on * q.amax(-1))[:, game.transition]  # [R, S, A, B]
        after = now + torch.einsum("rsa,rsab->rsb", policy, ahead)
        if float((after - q).abs().max()) <= least * (1 - gamma):
            return after
        q = after


@register("attacker", "oracle")
class OracleOpponent(Opponent[OracleState]):
    """Opponent that plays the best response to the agent's true policy.

        b = argmax_b Q(s, b),  Q(s, b) = Σ_a p(a|s) (r_B(s, a, b) + γ max_b′ Q(s′, b′))

    The agent's loss to this opponent is its exploitability.  Ties go to the first action.
    The opponent requires a game in tables with one opponent; with γ = 0 it is myopic.

    Raises:
        ConfigMismatchError: the game has no tables or several opponents, or the agent's policy is
            unknown.

    Source: Gallego (2021), section 4.3; exploitability: Johanson, Waugh, Bowling and
    Zinkevich (2011).
    """

    knowledge = "white box"

    gamma: ZeroToBelowOne

    def reset(self, seat: Seat, rng: Rng) -> OracleState:
        game = seat.environment
        if not isinstance(game, TabularGame) or len(game.n_threats) > 1:
            raise ConfigMismatchError(
                f"attacker={self.name}: requires a game in tables with one opponent"
            )
        return OracleState(game, seat.replicates)

    def act(self, state: OracleState, turn: Turn, rng: Rng) -> Tensor:
        if turn.policy is None:
            raise ConfigMismatchError(
                f"attacker={self.name}: requires the agent's policy, which the agent does not reveal"
            )
        game = state.game
        n = game.reward_b.shape[0]
        policy = in_every_state(turn.policy, n, state.replicates, turn.s.device)
        q = best_response(game, policy, self.gamma)
        return q[row_numbers(turn.s), turn.s].argmax(-1)

    def observe(self, state: OracleState, move: Move) -> OracleState:
        return state
