"""Decision makers who can play by compiled loops."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.roles import Info
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.action_values.q_linear import LinearValues
from components.games.agents.decision_maker import ValueDecisionMaker
from components.games.agents.player import PlayerState
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.fast import linear, table
from components.games.fast.arithmetic import FEW, is_rounding_identical
from components.games.fast.linear import CompiledLinearGame
from components.games.fast.table import CompiledTable
from components.games.fast.thinkers import SHARED, Levels
from components.maths.compiled import loops

K = TypeVar("K")
INSTALL_HINT = 'pip install "bayes-runner[fast]"'


@dataclass
class CompiledPlayerState(PlayerState[K]):
    """The same state, and what the loops have prepared."""

    plays: CompiledTable | CompiledLinearGame = rebuilt()


class CompilableDecisionMaker(ValueDecisionMaker[K], Generic[K]):
    """A decision maker with episodes that compiled loops may play, ``engine=compiled``.

    The loops draw the same uniforms from the same streams and give bitwise identical
    numbers, on the tensors of the same state: a checkpoint of one engine is a checkpoint of
    the other.  They play games in tables, with at most five actions per player, against one
    opponent of a few kinds; the agent's policy may be ε-greedy or softmax, and the modelled
    players are ε-greedy.  With linear action values they play the coin game, against an
    opponent that learns in the same way, with either policy for all players.

    Raises Misfit if the loops cannot play the game or numba is not installed.
    """

    legacy_defaults: ClassVar[dict[str, object]] = ValueDecisionMaker.legacy_defaults | {
        "engine": "tensors"
    }

    engine: Literal["tensors", "compiled"]

    @abstractmethod
    def tables(self, mind: K) -> list[QFunction]:
        """Action values Q_1 … Q_k, with the agent's own last."""

    @abstractmethod
    def action_counts(self, mind: K) -> Tensor | None:
        """Counts of the level-1 thinker [R, S, n]; None: of one action there is nothing to
        count."""

    @abstractmethod
    def levels(self, episode: int) -> Levels:
        """Settings that are fixed during an episode."""

    def few(self) -> int:
        """Actions of a player that the loops take at most."""
        return FEW

    def unsupported_option(self, linear: bool) -> str | None:
        """The key, as it is set, that the loops of tables, or of linear action values, do not
        serve."""
        return None

    @property
    def policy_temperature(self) -> float | None:
        """Temperature of the agent's own policy; None if it is ε-greedy."""
        return self.temperature if self.policy == "softmax" else None

    def describe(
        self,
        alphas: tuple[float, ...],
        epsilons: tuple[float, ...],
        temperatures: tuple[float | None, ...],
        forget: float,
        at_next: bool = True,
        ties: int = SHARED,
        drawn: bool = False,
    ) -> Levels:
        """``Levels`` with what every decision maker has."""
        bootstraps_ends = self.bootstrap_at_end
        horizon = self.bootstrap_at_horizon
        return Levels(
            alphas,
            epsilons,
            temperatures,
            forget,
            self.gamma,
            at_next,
            bootstraps_ends,
            horizon,
            ties,
            drawn,
        )

    def init(self, model: QFunction, problem: Game, rng: Rng) -> PlayerState[K]:
        playing = super().init(model, problem, rng)
        if self.engine == "tensors":
            return playing
        where = f"inference.engine=compiled ({self.name})"
        values = self.tables(playing.mind)
        if not loops.available():
            raise ConfigMismatchError(
                f"{where}: needs numba; {INSTALL_HINT}, or inference.engine=tensors"
            )
        by_marks = all(isinstance(q, LinearValues) for q in values)
        if key := self.unsupported_option(by_marks):
            raise ConfigMismatchError(f"{where}: has no loop with {key}; use engine=tensors")
        if by_marks:
            linear.fitting(problem, where)
        else:
            table.fitting(problem, where, self.few())
        environment = problem.environment
        if environment.device.type != "cpu" or not is_rounding_identical(environment.dtype):
            raise ConfigMismatchError(
                f"{where}: PyTorch rounds otherwise on this device than the compiled loops; use engine=tensors"
            )
        plays = CompiledLinearGame(problem) if by_marks else CompiledTable(problem, values)
        return CompiledPlayerState(playing.mind, playing.standing, plays)

    def step(self, state: PlayerState[K], batch: Episode, rng: Rng) -> tuple[PlayerState[K], Info]:
        if not isinstance(state, CompiledPlayerState):
            return super().step(state, batch, rng)
        values = self.tables(state.mind)
        counts = self.action_counts(state.mind)
        levels = self.levels(batch.index)
        return state, state.plays.play(batch, state.standing, rng, values, counts, levels)
