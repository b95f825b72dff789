"""Q-learning against a forecast opponent: fictitious play with a Dirichlet belief that may forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.games.exploration import Exploration, explored
from components.inference.games.fictitious_play import count, expected_values, forecasts, marks, prior_counts, together
from components.maths.policies import PolicyName, probabilities
from components.posteriors.play import Play
from components.problems.game import Episode, Game, Standing, Transition
from components.registry import register


@dataclass
class Counted:
    """Action values Q(s, a, b), how often each opponent did what, and where the game stands."""

    q: QFunction
    counts: Tensor  # [R, S, ΣB_m]
    standing: Standing


@register("inference", "fpq_learning")
class FPQLearning(Inference[QFunction, Game, Episode, Counted]):
    """Level-1 Q-learning: the adversary's next action is forecast from the past ones, the recent weighing more.

    p_A(b|s) = E[Dirichlet(α)] with α := λα, α_b := α_b + 1 at each observed b (λ = 1: plain FPQ-learning; λ < 1 heeds
    about the last 1/(1 − λ) of them); Q(s,a,b) := (1 − α)Q(s,a,b) + α(r + γ max_a' E_p[Q(s',a',b')]); a is drawn from
    the ε-greedy or the softmax policy of ψ(s,a) = E_p[Q(s,a,b)].  Counts [R, S, B], Q [R, S, A, B]; of several opponents
    b stands for (b¹, …, b^M) and p_A for the product of their forecasts.  States without numbers share one count.

    Source: Gallego (2021), eqs. (4.2) and (4.3), Algorithm 4.4 and section 4.3.5."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    gives: ClassVar[frozenset[str]] = frozenset({"played"})
    attacks: ClassVar[bool] = True

    alpha: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    forget: Annotated[float, Field(gt=0, le=1)]
    prior: PositiveFloat
    policy: PolicyName
    epsilon: Exploration
    temperature: PositiveFloat

    def init(self, model: QFunction, problem: Game, rng: Rng) -> Counted:
        counts = prior_counts(problem, sum(problem.environment.n_threats), self.prior)
        return Counted(model.fresh(problem.n_actions, problem.n_threats), counts, problem.opening(rng))

    def _forecast(self, state: Counted, s: Tensor) -> Tensor:
        game = state.standing.game
        return together(forecasts(state.counts, game.rows(s), game.environment.n_threats))

    def step(self, state: Counted, batch: Episode, rng: Rng) -> tuple[Counted, Info]:
        game, q, counts = batch.game, state.q, state.counts
        epsilon, sizes = explored(self.epsilon, batch.index), game.environment.n_threats

        def choose(s: Tensor) -> Tensor:
            psi = expected_values(q.q(s), self._forecast(state, s))
            return probabilities(psi, self.policy, epsilon, self.temperature)

        def learn(seen: Transition) -> None:
            count(counts, game.rows(seen.s), marks(seen.each, sizes, counts.dtype), self.forget, seen.live)
            psi = expected_values(q.q(seen.s_next), self._forecast(state, seen.s_next))
            target = seen.r_a + seen.ahead(psi.amax(-1), self.gamma)  # eq. (4.2)
            q.learn(seen.s, seen.a, seen.b, target, seen.rate(self.alpha))

        return state, {"reward": batch.play(state.standing, rng, choose, learn)}

    def posterior(self, state: Counted) -> Play:
        """Rewards so far, ψ(s, ·) [R, A] and p_A(·|s) [R, B]."""

        def think(s: Tensor) -> Tensor:
            return expected_values(state.q.q(s), self._forecast(state, s))

        s = state.standing.s
        return Play(state.standing.earned, think(s), self._forecast(state, s), think)
