"""Q-learning against a forecast opponent: fictitious play with optional forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, Literal, Protocol

from pydantic import Discriminator, Tag
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.roles import AboveZeroToOne
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.games.agents.fictitious_play import Prior, StateCounts, expected_values, together
from components.games.beliefs.bloom_counts import BloomCounts, FilterCounts
from components.games.beliefs.markov_chains import ChainCounts, MarkovChains
from components.games.environments.transition import Transition
from components.games.fast.engine import CompilableDecisionMaker
from components.games.fast.minds import Levels
from components.registry import register


class Counting(Protocol):
    """Counting of opponents' actions."""

    # the counts before the first move
    def open(self, seat: Seat, prior: Prior, rng: Rng) -> Any: ...

    # of each next action [R, B_m]
    def forecasts(self, counts: Any, seat: Seat, s: Tensor) -> list[Tensor]: ...

    # add a move, in place
    def take(self, counts: Any, seat: Seat, seen: Transition, forget: float) -> None: ...


def _form(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("name"))
    return value.name if isinstance(value, MarkovChains | BloomCounts) else str(value)


# Select the type first, so that errors are reported once.
Beliefs = Annotated[
    Annotated[Literal["by_state"], Tag("by_state")]
    | Annotated[MarkovChains, Tag("markov_chains")]
    | Annotated[BloomCounts, Tag("bloom")],
    Discriminator(
        _form,
        custom_error_type="belief",
        custom_error_message="one of by_state, {name: markov_chains, …}, {name: bloom, …}",
    ),
]


@dataclass
class Counted:
    """Action values Q(s, a, b), and counts of each opponent's actions."""

    q: QFunction
    counts: Tensor | ChainCounts | FilterCounts  # by state [R, S, ΣB_m]
    seat: Seat = rebuilt()


@register("inference", "fpq_learning")
class FPQLearning(CompilableDecisionMaker[Counted]):
    """Level-1 Q-learning: forecasts the adversary's next action from its past actions, with more
    weight for recent ones.  p_A(b|s) = E[Dirichlet(α)] with α := λα, α_b := α_b + 1 at each
    observed b (λ = 1: plain FPQ-learning; λ < 1 uses about the last 1/(1 − λ) of them); Q(s,a,b) :=
    (1 − α)Q(s,a,b) + α(r + γ max_a' E_p[Q(s',a',b')]); a is drawn from the ε-greedy or the softmax
    policy of ψ(s,a) = E_p[Q(s,a,b)].  Counts [R, S, B], Q [R, S, A, B]; for several opponents b is
    (b¹, …, b^M) and p_A the product of their forecasts.  States without numbers share one count,
    unless ``belief`` is bloom, which distinguishes them by features; markov_chains models opponents
    that depend on the previous move.

    Source: Gallego (2021), eqs. (4.2) and (4.3), Algorithm 4.4 and sections 4.3.1 and
    4.3.5.
    """

    forget: AboveZeroToOne
    prior: Prior
    belief: Beliefs

    @property
    def _counting(self) -> Counting:
        return StateCounts() if self.belief == "by_state" else self.belief

    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> Counted:
        counts = self._counting.open(seat, self.prior, rng)
        return Counted(values.fresh(seat.own, prod(seat.others)), counts, seat)

    def forecast_opponent(self, mind: Counted, s: Tensor, episode: int) -> Tensor:
        return together(self._counting.forecasts(mind.counts, mind.seat, s))

    def think(self, mind: Counted, s: Tensor, episode: int) -> Tensor:
        return expected_values(mind.q.q(s), self.forecast_opponent(mind, s, episode))  # eq. (4.3)

    def learn(self, mind: Counted, seen: Transition, episode: int) -> None:
        self._counting.take(mind.counts, mind.seat, seen, self.forget)
        value = self.think(mind, seen.s_next, episode).amax(-1)
        self.update(mind.q, seen, seen.b, value)  # eq. (4.2)

    # Compiled: level 1
    def has_loop(self) -> bool:
        return type(self) is FPQLearning and self.belief == "by_state"

    def tables(self, mind: Counted) -> list[QFunction]:
        return [mind.q]

    def action_counts(self, mind: Counted) -> Tensor:
        assert isinstance(mind.counts, Tensor), "``has_loop`` is False for others"
        return mind.counts

    def levels(self, episode: int) -> Levels:
        return super().levels(episode)._replace(keys=self.shared_keys(self.forget))
