"""Level-k thinking: she models an opponent who models her, and so on down to one who only counts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt
from torch import Tensor

from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info, Probability
from components.contracts.streams import Rng
from components.inference.games.fpq_learning import count, expected_values, mean_forecast, prior_counts
from components.maths.policies import PolicyName, draw_action, probabilities
from components.models.games.q_table import Table
from components.posteriors.play import Play
from components.problems.game import Episode, Game
from components.registry import register


@register("inference", "level_k")
class LevelK(Inference):
    """Level-k Q-learning: she forecasts the adversary as a level-(k − 1) Q-learner whose table she keeps herself.

    For j = 1 … k, with own and other the actions of the player of level j (level k is hers, k − 1 his, and so on):
    Q_j(s,own,other) := (1 − α_j)Q_j(s,own,other) + α_j(r_j + γ max_own' E_{p_j(other'|s')}[Q_j(s',own',other')]), where
    p_1 is the level-1 thinker's Dirichlet forecast (λ = ``forget``) and p_j the ε-greedy or softmax policy of
    E_{p_{j−1}}[Q_{j−1}(s',·,·)].  The printed algorithm takes the modelled policy from Q̂₁(s, ·, ·); it is needed, and
    taken here, at s', where Q₂ is maximised.  k = 1 is FPQ-learning.  Tables [R, S, own, other].

    Source: Gallego (2021), Algorithm 4.1 and section 4.3.2."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    attacks: ClassVar[bool] = True

    level: PositiveInt
    alpha: Annotated[float, Field(gt=0, le=1)]
    alpha_opponent: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    forget: Annotated[float, Field(gt=0, le=1)]
    prior: PositiveFloat
    policy: PolicyName
    epsilon: Probability
    policy_opponent: PolicyName
    epsilon_opponent: Probability
    temperature: PositiveFloat

    def _hers(self, j: int) -> bool:
        return (self.level - j) % 2 == 0

    def _opponent_policy(self, psi: Tensor) -> Tensor:
        return probabilities(psi, self.policy_opponent, self.epsilon_opponent, self.temperature)

    def init(self, model: Table, problem: Game, rng: Rng) -> dict[str, Any]:
        a, b = problem.n_actions, problem.n_threats
        own_other = [(a, b) if self._hers(j) else (b, a) for j in range(1, self.level + 1)]
        return {
            "q": [model.fresh(own, other) for own, other in own_other],  # Q_1 … Q_k
            "counts": prior_counts(problem, own_other[0][1], self.prior),
            **problem.opening(),
        }

    def _think(self, state: dict[str, Any], s: Tensor) -> tuple[Tensor, Tensor]:
        """ψ_k(s, ·) [R, A] of the decision maker and her forecast p_A(·|s) [R, B]."""
        forecast = mean_forecast(state["counts"], s)
        psi = expected_values(state["q"][0].q(s), forecast)
        for q in state["q"][1:]:
            forecast = self._opponent_policy(psi)
            psi = expected_values(q.q(s), forecast)  # eq. (4.3)
        return psi, forecast

    def step(self, state: dict[str, Any], batch: Episode, rng: Rng) -> tuple[dict[str, Any], Info]:
        psi, _ = self._think(state, state["s"])
        p = probabilities(psi, self.policy, self.epsilon, self.temperature)
        seen = batch.game.play(state, draw_action(p, rng.noise), rng)
        count(state["counts"], seen.s, seen.b if self._hers(1) else seen.a, self.forget)
        forecast = mean_forecast(state["counts"], seen.s_next)
        for j, q in enumerate(state["q"], 1):
            hers = self._hers(j)
            own, other, r = (seen.a, seen.b, seen.r_a) if hers else (seen.b, seen.a, seen.r_b)
            alpha = self.alpha if j == self.level else self.alpha_opponent
            psi = expected_values(q.q(seen.s_next), forecast)
            q.learn(seen.s, own, other, r + self.gamma * psi.amax(-1), alpha)  # Algorithm 4.1, lines 2 and 4
            if j < self.level:  # line 3: the policy that the next level up expects, from the table just updated
                forecast = self._opponent_policy(expected_values(q.q(seen.s_next), forecast))
        return state, {"reward": seen.r_a}

    def posterior(self, state: dict[str, Any]) -> Play:
        """Rewards so far, ψ_k(s, ·) [R, A] and p_A(·|s) [R, B]."""
        psi, forecast = self._think(state, state["s"])
        return Play(state["rewards"][:, : state["episodes"]], psi, forecast)
