"""Opponent-learning awareness: ascent of the value after the opponent's learning step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat, TabularGame
from components.contracts.roles import AboveZeroToOne, Info, ZeroToBelowOne
from components.contracts.states import not_checkpointed
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.agents.fictitious_play import Prior, StateCounts, expected_values
from components.games.agents.player import Player, PlayerState
from components.games.agents.policies import in_every_state
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.environments.transition import Transition
from components.maths.spacing import row_numbers
from components.registry import register


@dataclass(frozen=True)
class Repeated:
    """A tabular game from the perspective of one of its two players: the player's actions a, the
    opponent's actions b.
    """

    own: Tensor  # own reward [S, A, B]
    other: Tensor  # the other's reward [S, A, B]
    onward: Tensor  # s' [S, A, B] long
    start: int

    def transitions(self, pair: Tensor) -> Tensor:
        """P(s'|s) = Σ_ab p(a, b|s) 1[s' follows]: pair [..., S, A, B] -> [..., S, S]."""
        states = self.own.shape[0]
        flat = pair.flatten(-2)
        onward = self.onward.flatten(1).expand(flat.shape)
        return flat.new_zeros(*flat.shape[:-1], states).scatter_add(-1, onward, flat)

    def values(self, mine: Tensor, theirs: Tensor, gamma: float) -> tuple[Tensor, Tensor]:
        """Values V(s) = Σ_t γ^t E[r_t | s_0 = s] of both players, which solve (I − γP) V = r.

        Policies mine [..., S, A] and theirs [..., S, B] -> [..., S] each.
        """
        pair = mine.unsqueeze(-1) * theirs.unsqueeze(-2)
        gains = torch.stack(
            [(pair * self.own).sum((-2, -1)), (pair * self.other).sum((-2, -1))], -1
        )
        system = torch.eye(
            self.own.shape[0], dtype=pair.dtype, device=pair.device
        ) - gamma * self.transitions(pair)
        own_value, other = torch.linalg.solve(system, gains).unbind(-1)
        return own_value, other


LEAST = 1e-12  # smallest probability with a finite logit


@dataclass
class OpponentShapingState:
    """The agent's logits, and its estimate of the opponent's policy."""

    theta: Tensor  # θ_A [R, S, A]
    theirs: Tensor  # π_B [R, S, B]
    counts: Tensor  # of the opponent's moves [R, S, B]
    rounds: int  # number since the agent's last step
    game: Repeated = not_checkpointed()
    seat: Seat = not_checkpointed()


@register("inference", "opponent_shaping")
class OpponentShaping(Player[OpponentShapingState]):
    """LOLA on exact values of a repeated game: ascent after the opponent's expected step.

        θ_A ← θ_A + lr ∇_{θ_A} V_A(θ_A, θ_B + η ∇_{θ_B} V_B(θ_A, θ_B))
        V = p₀ᵀ (I − γP)⁻¹ r

    after every ``every`` rounds.  η is ``lookahead``; with 0 the agent is a naive learner.
    The gradient passes through the whole opponent's step (``form=full``), or is the first-order
    expansion in the paper (``form=taylor``): ∇_{θ_A} V_A + η (∇_{θ_A} ∇_{θ_B} V_B)ᵀ ∇_{θ_B} V_A.  A policy is
    softmax(θ(s)), with S logits for each action, S = A·B + 1 for a memory of one round; V is the
    discounted value from the first state of the first episode.  The opponent's policy is known
    before each round (``opponent=known``, for opponents that reveal it: learner, fixed_policy), or
    estimated by counts of its moves in each state, p_B = α/Σα with α := λα, α_b := α_b + 1
    (estimated).  θ_A ~ N(0, ``init_sd``²), [R, S, A].  The displayed values are Q_A(s, a) = E_b[r +
    γ V_A(s')]; the score ``belief/value`` is (1 − γ) V_A.

    Raises ConfigMismatchError unless the game is tabular, infinitely repeated, with one move per
    episode and one opponent, or if ``opponent=known`` but the policy is not revealed.

    Source: Foerster et al. (2018), sections 4.1 and 4.2; Letcher, Foerster, Balduzzi, Rocktäschel
    and Whiteson (2019) for the full form.
    """

    lr: PositiveFloat
    lookahead: NonNegativeFloat
    every: PositiveInt
    form: Literal["full", "taylor"]
    gamma: ZeroToBelowOne
    init_sd: NonNegativeFloat
    opponent: Literal["known", "estimated"]
    forget: AboveZeroToOne
    prior: Prior

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> OpponentShapingState:
        rules = seat.environment
        single = rules.horizon == 1 and rules.continuing and len(rules.n_threats) == 1
        if not (single and isinstance(rules, TabularGame)):
            raise ConfigMismatchError(
                f"inference={self.name}: requires a tabular game of two players, infinitely "
                "repeated, with one move per episode, such as dataset=iterated_matrix"
            )
        game = Repeated(rules.reward_a, rules.reward_b[..., 0], rules.transition, rules.start)
        if seat.number is not None:  # the opponent has the other view
            game = Repeated(game.other.mT, game.own.mT, game.onward.mT, game.start)
        shape = (seat.replicates, *game.own.shape[:2])
        draws = torch.randn(shape, generator=rng.init, dtype=seat.dtype).to(seat.device)
        counts = StateCounts().open(seat, self.prior, rng)
        return OpponentShapingState(
            self.init_sd * draws, counts / counts.sum(-1, keepdim=True), counts, 0, game, seat
        )

    # The opponent's policy
    def init(self, model: QFunction, problem: Game, rng: Rng) -> PlayerState[OpponentShapingState]:
        playing = super().init(model, problem, rng)
        self.look(playing.mind, problem.announced_policy(playing.standing, 0))
        return playing

    def step(
        self, state: PlayerState[OpponentShapingState], batch: Episode, rng: Rng
    ) -> tuple[PlayerState[OpponentShapingState], Info]:
        self.look(state.mind, batch.game.announced_policy(state.standing, batch.index))
        return super().step(state, batch, rng)

    def look(self, mind: OpponentShapingState, policy: Callable[[Tensor], Tensor] | None) -> None:
        if self.opponent == "estimated":
            return
        if policy is None:
            raise ConfigMismatchError(
                f"inference.opponent=known ({self.name}): the opponent does not reveal its policy; use estimated"
            )
        seat = mind.seat
        mind.theirs = in_every_state(policy, seat.n_states or 1, seat.replicates, seat.device)

    # The agent's policy
    def _policy_values(self, game: Repeated, mine: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
        """V_A and V_B for logits [R, S, ·], summed over independent replicates []."""
        own_value, other = game.values(mine.softmax(-1), theirs.softmax(-1), self.gamma)
        return own_value[:, game.start].sum(), other[:, game.start].sum()

    def gradient(self, game: Repeated, mine: Tensor, theirs: Tensor) -> Tensor:
        """The agent's gradient [R, S, A] at logits ``mine`` [R, S, A] and ``theirs`` [R, S, B]."""
        with torch.enable_grad():
            mine = mine.detach().requires_grad_()
            theirs = theirs.detach().requires_grad_()
            own_value, other = self._policy_values(game, mine, theirs)
            if self.lookahead > 0:
                # ∇_{θ_B} V_B, a function of θ_A
                (step,) = torch.autograd.grad(other, theirs, create_graph=True)
                if self.form == "full":
                    own_value, _ = self._policy_values(game, mine, theirs + self.lookahead * step)
                else:
                    (turned,) = torch.autograd.grad(own_value, theirs, retain_graph=True)
                    own_value = own_value + self.lookahead * (turned * step).sum()
            (gradient,) = torch.autograd.grad(own_value, mine)
        return gradient

    def learn(self, mind: OpponentShapingState, seen: Transition, episode: int) -> None:
        if self.opponent == "estimated":
            StateCounts().take(mind.counts, mind.seat, seen, self.forget)
            mind.theirs = mind.counts / mind.counts.sum(-1, keepdim=True)
        mind.rounds += 1
        if mind.rounds < self.every:
            return
        mind.rounds = 0
        mind.theta += self.lr * self.gradient(
            mind.game, mind.theta, mind.theirs.clamp_min(LEAST).log()
        )

    @staticmethod
    def _at(mind: OpponentShapingState, table: Tensor, s: Tensor) -> Tensor:
        """Rows of a table [R, S, …] in states s."""
        return table[row_numbers(s), mind.seat.rows(s)]

    def policy_at(self, mind: OpponentShapingState, s: Tensor, episode: int) -> Tensor:
        return self._at(mind, mind.theta, s).softmax(-1)

    def forecast_opponent(self, mind: OpponentShapingState, s: Tensor, episode: int) -> Tensor:
        return self._at(mind, mind.theirs, s)

    def beliefs(self, mind: OpponentShapingState) -> dict[str, Tensor]:
        own_value, _ = mind.game.values(mind.theta.softmax(-1), mind.theirs, self.gamma)
        return {"belief/value": (1 - self.gamma) * own_value[:, mind.game.start]}

    def think(self, mind: OpponentShapingState, s: Tensor, episode: int) -> Tensor:
        game = mind.game
        ahead, _ = game.values(mind.theta.softmax(-1), mind.theirs, self.gamma)
        q = game.own + self.gamma * ahead[:, game.onward]  # [R, S, A, B]
        return expected_values(self._at(mind, q, s), self.forecast_opponent(mind, s, episode))
