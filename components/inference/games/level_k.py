"""Level-k thinking: she models an opponent who models her, and so on down to one who only counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field, PositiveFloat, PositiveInt
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
class Hierarchy:
    """Action values of every thinker, what those of level 1 have counted, and where the game stands."""

    q: list[QFunction]  # of the first opponent Q_1 … Q_(k−1), of the next the same, …, and last hers, Q_k
    counts: Tensor  # of the level-1 thinkers [R, S, n], those about one opponent after the other
    standing: Standing


@register("inference", "level_k")
class LevelK(Inference[QFunction, Game, Episode, Hierarchy]):
    """Level-k Q-learning: she forecasts the adversary as a level-(k − 1) Q-learner whose table she keeps herself.

    For j = 1 … k, with own and other the actions of the player of level j (level k is hers, k − 1 his, and so on):
    Q_j(s,own,other) := (1 − α_j)Q_j(s,own,other) + α_j(r_j + γ max_own' E_{p_j(other'|s')}[Q_j(s',own',other')]), where
    p_1 is the level-1 thinker's Dirichlet forecast (λ = ``forget``) and p_j the ε-greedy or softmax policy of
    E_{p_{j−1}}[Q_{j−1}(s',·,·)].  The printed algorithm takes the modelled policy from Q̂₁(s, ·, ·); it is needed, and
    taken here, at s', where Q₂ is maximised.  Where s' ends the episode there is nothing to come.  k = 1 is FPQ-learning.
    Tables [R, S, own, other].  Each of several opponents is modelled as if he faced her alone; the forecasts multiply.

    Source: Gallego (2021), Algorithm 4.1 and sections 4.3.2 and 4.3.5."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    gives: ClassVar[frozenset[str]] = frozenset({"played"})
    attacks: ClassVar[bool] = True

    level: PositiveInt
    alpha: Annotated[float, Field(gt=0, le=1)]
    alpha_opponent: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    forget: Annotated[float, Field(gt=0, le=1)]
    prior: PositiveFloat
    policy: PolicyName
    epsilon: Exploration
    policy_opponent: PolicyName
    epsilon_opponent: Exploration
    temperature: PositiveFloat

    def _hers(self, j: int) -> bool:
        return (self.level - j) % 2 == 0

    def _counted(self, game: Game) -> tuple[int, ...]:
        """Numbers of actions that the level-1 thinkers count, one thinker for each opponent."""
        threats = game.environment.n_threats
        return threats if self._hers(1) else (game.n_actions,) * len(threats)

    def _modelled(self, state: Hierarchy, m: int) -> list[QFunction]:
        """Q_1 … Q_(k−1) of how she models opponent m."""
        below = self.level - 1
        return state.q[m * below : (m + 1) * below]

    def _policy(self, psi: Tensor, episode: int) -> Tensor:
        """Of a modelled player."""
        return probabilities(psi, self.policy_opponent, explored(self.epsilon_opponent, episode), self.temperature)

    def init(self, model: QFunction, problem: Game, rng: Rng) -> Hierarchy:
        a, q = problem.n_actions, []
        for b in problem.environment.n_threats:
            q += [model.fresh(a, b) if self._hers(j) else model.fresh(b, a) for j in range(1, self.level)]
        q.append(model.fresh(a, problem.n_threats))
        return Hierarchy(q, prior_counts(problem, sum(self._counted(problem)), self.prior), problem.opening(rng))

    def _forecast(self, state: Hierarchy, s: Tensor, episode: int) -> Tensor:
        """p_A(b|s) [R, B]: each opponent's policy, from the level-1 thinker's forecast upwards."""
        game = state.standing.game
        parts = forecasts(state.counts, game.rows(s), self._counted(game))
        for m in range(len(parts)):
            for q in self._modelled(state, m):
                parts[m] = self._policy(expected_values(q.q(s), parts[m]), episode)
        return together(parts)

    def step(self, state: Hierarchy, batch: Episode, rng: Rng) -> tuple[Hierarchy, Info]:
        game, episode, top = batch.game, batch.index, state.q[-1]
        epsilon, counted = explored(self.epsilon, episode), self._counted(game)

        def choose(s: Tensor) -> Tensor:
            psi = expected_values(top.q(s), self._forecast(state, s, episode))  # eq. (4.3)
            return probabilities(psi, self.policy, epsilon, self.temperature)

        def learn(seen: Transition) -> None:
            acted = seen.each if self._hers(1) else seen.a.unsqueeze(1).expand_as(seen.each)
            count(state.counts, game.rows(seen.s), marks(acted, counted, state.counts.dtype), self.forget, seen.live)
            parts = forecasts(state.counts, game.rows(seen.s_next), counted)
            for m in range(len(parts)):
                for j, q in enumerate(self._modelled(state, m), 1):
                    b = seen.each.select(1, m)
                    own, other, r = (seen.a, b, seen.r_a) if self._hers(j) else (b, seen.a, seen.r_b.select(1, m))
                    psi = expected_values(q.q(seen.s_next), parts[m])
                    target = r + seen.ahead(psi.amax(-1), self.gamma)
                    q.learn(seen.s, own, other, target, seen.rate(self.alpha_opponent))  # Algorithm 4.1, line 2
                    # Line 3: the policy that the next level up expects, from the table just updated.
                    parts[m] = self._policy(expected_values(q.q(seen.s_next), parts[m]), episode)
            psi = expected_values(top.q(seen.s_next), together(parts))
            target = seen.r_a + seen.ahead(psi.amax(-1), self.gamma)
            top.learn(seen.s, seen.a, seen.b, target, seen.rate(self.alpha))  # line 4

        return state, {"reward": batch.play(state.standing, rng, choose, learn)}

    def posterior(self, state: Hierarchy) -> Play:
        """Rewards so far, ψ_k(s, ·) [R, A] and p_A(·|s) [R, B]."""
        episode, s = max(0, state.standing.episodes - 1), state.standing.s

        def think(s: Tensor) -> Tensor:
            return expected_values(state.q[-1].q(s), self._forecast(state, s, episode))

        return Play(state.standing.earned, think(s), self._forecast(state, s, episode), think)
