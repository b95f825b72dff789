"""Regulator of a market: a third party that taxes rewards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.games import Move, Seat, Turn
from components.contracts.opponents import Opponent
from components.contracts.roles import ZeroToOne
from components.contracts.streams import Rng
from components.games.agents.policies import draw_action
from components.maths.exponential.standard_draws import normal_like
from components.registry import register

HIGHEST = 0.5  # maximum of a tax rate with a Gaussian logit


@dataclass(frozen=True)
class RegulatorState:
    """Parameters of the regulator, draws since its last update, and their results."""

    theta: Tensor  # logits [R, rates], or the mean of the Gaussian [R, 1]
    score: Tensor  # ∇ log π of the last draw [R, ·]
    products: Tensor  # Σ SU ∇ log π since the last step [R, ·]
    scores: Tensor  # Σ ∇ log π
    welfare: Tensor  # Σ SU [R]
    baseline: Tensor  # mean SU of the steps before [R]
    rate: Tensor  # τ of the last draw [R]
    earlier: Tensor  # ∇ log π of the previous draw, if draws are kept [R, ·]
    longer_ago: Tensor  # mean SU of the ``every`` turns before the turns of ``baseline`` [R]
    turns: int = 0


@register("attacker", "regulator")
class Regulator(Opponent[RegulatorState]):
    """Third party that taxes all rewards at a rate τ and distributes the tax evenly.  Its objective
    is the players' mean reward SU.

        discrete:  τ ~ Categorical(softmax(θ)) over ``rates``;
        gaussian:  τ = ½ sigmoid(d), d ~ N(θ, ``sd``²)
        constant:  τ = ``rate``;   none:  τ = 0
        every ``every`` turns:  θ ← θ + lr · n⁻¹ Σ_t (SU_t − c) ∇_θ log π(d_t),
            c the mean SU of the ``every`` turns before

    c is 0 if ``baseline`` is off.  Players act before they know the tax of a turn: a rate affects
    welfare only through later learning of the players, which this update ignores. With ``credit``
    change, each draw d_k is kept for ``every`` turns, of mean welfare W_k, and weighted by the
    difference between the welfare after and before:

        θ ← θ + lr (W_{k+1} − W_{k−1}) ∇_θ log π(d_k)

    ``regulates`` is the other opponent; it is not used among the members of
    ``together``.  The released code uses a negative ``lr``, draws with sd 0.1, omits the ½ in log π
    and uses only the last draw of each ``every``: Figure 4.14.  State: θ [R, ·] and sums over the
    turns since the last step.

    Source: Gallego (2021), section 4.5.4; Williams (1992) for the gradient.
    """

    knowledge = "black box"
    third_party = True

    regulates: Opponent | None
    policy: Literal["discrete", "gaussian", "constant", "none"]
    rate: ZeroToOne
    rates: list[ZeroToOne] = Field(min_length=2)
    sd: PositiveFloat
    start: float
    every: PositiveInt
    lr: Annotated[float, Field(ge=-1e3, le=1e3)]
    baseline: bool
    credit: Literal["turn", "change"]

    def assign_seats(self, seats: int) -> list[Opponent[Any]]:
        """Return the regulator, preceded by its opponent ``regulates``, if any."""
        return [self] if self.regulates is None else [*self.regulates.assign_seats(seats), self]

    def reset(self, seat: Seat, rng: Rng) -> RegulatorState:
        n = len(self.rates) if self.policy == "discrete" else 1
        nothing = seat.full((seat.replicates, n), 0.0)
        theta = torch.full_like(nothing, 0.0 if self.policy == "discrete" else self.start)
        zeros = nothing[:, 0].clone()
        sums = (nothing.clone(), nothing.clone(), zeros.clone(), zeros.clone())
        return RegulatorState(theta, nothing, *sums, zeros.clone(), nothing.clone(), zeros.clone())

    def _draw(self, theta: Tensor, rng: Rng) -> tuple[Tensor, Tensor]:
        """Draw τ [R] and ∇_θ log π [R, ·]."""
        if self.policy == "discrete":
            p = theta.softmax(-1)
            d = draw_action(p, rng.attack)
            return theta.new_tensor(self.rates)[d], torch.nn.functional.one_hot(d, p.shape[-1]) - p
        if self.policy == "gaussian":
            noise = normal_like(theta, rng.attack)
            return HIGHEST * (theta + self.sd * noise).sigmoid().squeeze(1), noise / self.sd
        rate = self.rate if self.policy == "constant" else 0.0
        return torch.full_like(theta[:, 0], rate), torch.zeros_like(theta)

    def act(self, state: RegulatorState, turn: Turn, rng: Rng) -> Tensor:
        """Return τ [R]; ∇ log π is stored until the end of the move, or as long as the draw is
        kept."""
        if self.credit == "turn" or state.turns % self.every == 0:
            rate, score = self._draw(state.theta, rng)
            state.score.copy_(score)
            state.rate.copy_(rate)
        return state.rate.clone()

    def observe(self, state: RegulatorState, move: Move) -> RegulatorState:
        """Add a move to the sums, and update θ if due; ``move.r`` is SU."""
        state = replace(
            state,
            products=state.products + move.r.unsqueeze(1) * state.score,
            scores=state.scores + state.score,
            welfare=state.welfare + move.r,
            turns=state.turns + 1,
        )
        if state.turns % self.every or self.policy in ("constant", "none"):
            return state
        mean = state.welfare / self.every
        zero = torch.zeros_like(state.theta)
        if self.credit == "change":
            # Gradient of the previous draw, weighted by the difference in welfare between the turns
            # after and before it.
            change = (mean - state.longer_ago).unsqueeze(1) * state.earlier
            gradient = zero if state.turns < 3 * self.every else change
        else:
            # Each draw is weighted by the welfare of its turn. Before the first step there is no
            # baseline, and the current mean replaces it.
            baseline = mean if state.turns == self.every else state.baseline
            excess = baseline.unsqueeze(1) * state.scores if self.baseline else 0.0
            gradient = (state.products - excess) / self.every
        return replace(
            state,
            theta=state.theta + self.lr * gradient,
            products=zero,
            scores=zero.clone(),
            welfare=torch.zeros_like(mean),
            longer_ago=state.baseline,
            baseline=mean,
            earlier=state.score.clone(),
        )
