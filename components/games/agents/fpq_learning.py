"""Q-learning against a forecast opponent: fictitious play with optional forgetting."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Tag

from components.contracts.roles import AboveZeroToOne
from components.games.agents.fictitious_play import Prior
from components.games.agents.level_thinker import Counting, LevelThinker
from components.games.beliefs.bloom_counts import BloomCounts
from components.games.beliefs.markov_chains import MarkovChains
from components.games.fast.minds import Levels
from components.registry import register


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


@register("inference", "fpq_learning")
class FPQLearning(LevelThinker):
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

    in_loop: ClassVar[bool] = True

    forget: AboveZeroToOne
    prior: Prior
    belief: Beliefs

    @property
    def counting(self) -> Counting:
        return super().counting if self.belief == "by_state" else self.belief

    def levels(self, episode: int) -> Levels:
        return super().levels(episode)._replace(forget=self.forget)

    def has_loop(self) -> bool:
        return super().has_loop() and self.belief == "by_state"
