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
from components.inference.games.compiled.arithmetic import FEW
from components.inference.games.compiled.table import CompiledTable, fitting
from components.inference.games.compiled.thinkers import Levels
from components.inference.games.decision_maker import Chooser
from components.inference.games.player import Playing
from components.problems.game import Episode, Game
from components.trouble import Misfit

K = TypeVar("K")


@dataclass
class PlayingCompiled(Playing[K]):
    """The same state, and what the loops have prepared."""

    table: CompiledTable = rebuilt()


class Compilable(Chooser[K], Generic[K]):
    """A decision maker whose episodes may be played by compiled loops, ``engine=compiled``.

    The loops draw the same uniforms from the same streams and give the same numbers bit by bit, on the tensors of the same
    state: a checkpoint of one engine is one of the other.  They play games in tables, of at most five actions a player,
    against one opponent of few; her policy may be either, those that she models ε-greedy.

    Raises Misfit where they do not, or numba is not installed."""

    before: ClassVar[dict[str, object]] = Chooser.before | {"engine": "tensors"}

    engine: Literal["tensors", "compiled"]

    @abstractmethod
    def tables(self, mind: K) -> list[QFunction]:
        """Q_1 … Q_k, her own the last."""

    @abstractmethod
    def counted(self, mind: K) -> Tensor | None:
        """Counts of the level-1 thinker [R, S, n]; None: of one action there is nothing to count."""

    @abstractmethod
    def levels(self, episode: int) -> Levels:
        """What is fixed while an episode lasts."""

    def few(self) -> int:
        """Actions of a player that the loops take at most."""
        return FEW

    def without_loop(self) -> str | None:
        """The key, as it is set, that the loops do not serve."""
        return None

    def init(self, model: QFunction, problem: Game, rng: Rng) -> Playing[K]:
        playing = super().init(model, problem, rng)
        if self.engine == "tensors":
            return playing
        if key := self.without_loop():
            raise Misfit(f"inference.engine=compiled ({self.name}): has no loop with {key}; use engine=tensors")
        fitting(problem, self.name, self.few())
        return PlayingCompiled(playing.mind, playing.standing, CompiledTable(problem, self.tables(playing.mind)))

    def step(self, state: Playing[K], batch: Episode, rng: Rng) -> tuple[Playing[K], Info]:
        if not isinstance(state, PlayingCompiled):
            return super().step(state, batch, rng)
        counts, known = self.counted(state.mind), self.levels(batch.index)
        temperature = self.temperature if self.policy == "softmax" else None
        info = state.table.play(batch, state.standing, rng, counts, known, temperature, self.bootstrap_at_horizon)
        return state, info
