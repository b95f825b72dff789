"""Level-k thinking: the agent models an opponent that models the agent, down to one that counts."""

from __future__ import annotations

from typing import ClassVar, Literal, get_args

from pydantic import BaseModel, PositiveFloat, PositiveInt

from components.contracts.roles import AboveZeroToOne
from components.games.agents.exploration import LevelExploration, exploration_rate
from components.games.agents.fictitious_play import Prior
from components.games.agents.level_thinker import LevelThinker
from components.games.agents.policies import PolicyName, Ties
from components.games.fast.minds import EPSILON_GREEDY, Levels
from components.registry import register


class OpponentKeys(BaseModel):
    """Keys of a player that models how its opponents learn."""

    alpha_opponent: AboveZeroToOne
    forget: AboveZeroToOne
    prior: Prior
    policy_opponent: PolicyName
    epsilon_opponent: LevelExploration
    temperature_opponent: PositiveFloat | None
    forecast: Literal["expected", "sampled"]
    forecast_at: Literal["next", "current"]


@register("inference", "level_k")
class LevelK(LevelThinker, OpponentKeys):
    """Level-k Q-learning: forecasts the adversary as a level-(k − 1) Q-learner.

    The agent stores the tables of the modelled Q-learners.  For j = 1 … k, with own and other the
    actions of the player of level j (level k is the agent, k − 1 the adversary, and so on):
    Q_j(s,own,other) := (1 − α_j)Q_j(s,own,other) + α_j(r_j + γ max_own'
    E_{p_j(other'|s')}[Q_j(s',own',other')]), where p_1 is the level-1 thinker's Dirichlet forecast
    (λ = ``forget``) and p_j the ε-greedy or softmax policy of
    E_{p_{j−1}}[Q_{j−1}(s',·,·)].  The printed algorithm takes the modelled policy from Q̂₁(s, ·,
    ·); here it is taken at s', where Q₂ is maximised; ``forecast_at=current`` takes it at s, like
    the released code.

    With ``forecast=sampled``, players of levels j > 1 respond to one draw of the other's action,
    like the released code: their targets are max_own' Q_j(s', own', o), o ~ p_j, and their policies
    Σ_o p_j(o) times the policy of Q_j(s, ·, o).  With ``ties=first`` the first of equally good
    actions is chosen, like in the released code (``last`` if that code numbers them in reverse
    order): in a game with rewards only at the ends (Table 4.1) the agent then walks up instead of
    wandering.  If s' ends the episode, its value is 0.  k = 1 is FPQ-learning.  Tables are [R, S,
    own, other].  Each of several opponents is modelled as if it faced only the agent; the forecasts
    multiply.

    Source: Gallego (2021), Algorithm 4.1 and sections 4.3.2 and 4.3.5.
    """

    in_loop: ClassVar[bool] = True

    level: PositiveInt
    ties: Ties

    def levels(self, episode: int) -> Levels:
        below = range(1, self.level)
        temperature = self.temperature_opponent or self.temperature
        modelled = temperature if self.policy_opponent == "softmax" else EPSILON_GREEDY
        epsilons = [exploration_rate(self.epsilon_opponent, episode, j) for j in below]
        above = super().levels(episode)
        return above._replace(
            alphas=(*(self.alpha_opponent for _ in below), *above.alphas),
            epsilons=(*epsilons, *above.epsilons),
            temperatures=(*(modelled for _ in below), *above.temperatures),
            forget=self.forget,
            at_next=self.forecast_at == "next",
            samples=self.forecast == "sampled",
            ties=get_args(Ties).index(self.ties),
        )
