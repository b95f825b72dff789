"""Q-learning against a forecast opponent: fictitious play with a Dirichlet belief that may forget."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info, Probability
from components.contracts.streams import Rng
from components.maths.policies import PolicyName, draw_action, probabilities
from components.models.games.q_table import Table
from components.posteriors.play import Play
from components.problems.game import Episode, Game
from components.registry import register


def prior_counts(game: Game, n: int, prior: float) -> Tensor:
    """Pseudo-counts α⁰ [R, S, n] of a symmetric Dirichlet over the n actions of an opponent, one for each state."""
    return torch.full((game.replicates, game.n_states, n), prior, device=game.device, dtype=game.dtype)


def mean_forecast(counts: Tensor, s: Tensor) -> Tensor:
    """E[p_A(·|s)] = α / Σα: counts [R, S, n], s [R] -> [R, n]."""
    alpha = counts[:, 0] if counts.shape[1] == 1 else counts[torch.arange(len(s), device=s.device), s]
    return alpha / alpha.sum(-1, keepdim=True)


def count(counts: Tensor, s: Tensor, b: Tensor, forget: float) -> None:
    """Algorithm 4.4 in place: α(s) := λα(s), then α_b(s) := α_b(s) + 1; other states are left alone."""
    replicates, states, n = counts.shape
    rows = torch.arange(replicates, device=s.device) * states + s
    flat = counts.view(-1, n)
    seen = torch.nn.functional.one_hot(b, n).to(counts.dtype)
    flat.index_copy_(0, rows, torch.add(seen, flat.index_select(0, rows), alpha=forget))


def expected_values(q: Tensor, forecast: Tensor) -> Tensor:
    """ψ(s, a) = Σ_b Q(s, a, b) p(b|s), eq. (4.3): q [R, A, B], forecast [R, B] -> [R, A]."""
    return (q * forecast[:, None, :]).sum(-1)


@register("inference", "fpq_learning")
class FPQLearning(Inference):
    """Level-1 Q-learning: the adversary's next action is forecast from the past ones, the recent weighing more.

    p_A(b|s) = E[Dirichlet(α)] with α := λα, α_b := α_b + 1 at each observed b (λ = 1: plain FPQ-learning; λ < 1 heeds
    about the last 1/(1 − λ) of them); Q(s,a,b) := (1 − α)Q(s,a,b) + α(r + γ max_a' E_p[Q(s',a',b')]); a is drawn from
    the ε-greedy or the softmax policy of ψ(s,a) = E_p[Q(s,a,b)].  Counts [R, S, B], Q [R, S, A, B].

    Source: Gallego (2021), eqs. (4.2) and (4.3) and Algorithm 4.4."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    attacks: ClassVar[bool] = True

    alpha: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    forget: Annotated[float, Field(gt=0, le=1)]
    prior: PositiveFloat
    policy: PolicyName
    epsilon: Probability
    temperature: PositiveFloat

    def init(self, model: Table, problem: Game, rng: Rng) -> dict[str, Any]:
        return {
            "q": model.fresh(problem.n_actions, problem.n_threats),
            "counts": prior_counts(problem, problem.n_threats, self.prior),
            **problem.opening(),
        }

    def step(self, state: dict[str, Any], batch: Episode, rng: Rng) -> tuple[dict[str, Any], Info]:
        q, counts, s = state["q"], state["counts"], state["s"]
        psi = expected_values(q.q(s), mean_forecast(counts, s))
        p = probabilities(psi, self.policy, self.epsilon, self.temperature)
        seen = batch.game.play(state, draw_action(p, rng.noise), rng)
        count(counts, seen.s, seen.b, self.forget)
        psi = expected_values(q.q(seen.s_next), mean_forecast(counts, seen.s_next))
        q.learn(seen.s, seen.a, seen.b, seen.r_a + self.gamma * psi.amax(-1), self.alpha)  # eq. (4.2)
        return state, {"reward": seen.r_a}

    def posterior(self, state: dict[str, Any]) -> Play:
        """Rewards so far, ψ(s, ·) [R, A] and p_A(·|s) [R, B]."""
        forecast = mean_forecast(state["counts"], state["s"])
        psi = expected_values(state["q"].q(state["s"]), forecast)
        return Play(state["rewards"][:, : state["episodes"]], psi, forecast)
