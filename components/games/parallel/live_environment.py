"""Games in external programs that can be started from a seed, but not reset to an earlier state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.games import OpponentStatus, Outcome, Shown
from components.errors import ConfigMismatchError
from components.games.parallel.parallel_game import EpisodeStart, MoveResult, ParallelGame

# upper bound of seeds: fits in all integer types, and exactly in a double
SEEDS = 2**31 - 1
# columns of a state before the observation: seed, number of moves, episode over or not
FACTS = 3


@dataclass
class LiveEnvironment:
    """``Environment`` of R live games, one per replicate; episodes may be over before the first
    move.

    A state is (seed, number of moves, over or not, the agent's observation) [R, 3 + F]. The seed
    determines the start of an episode, so that a checkpoint between two episodes is exact: a game
    that is not in the given state is restarted from the seed. In the middle of an episode this is
    impossible and raises an error. A game truncated by its program, or after ``horizon`` moves,
    stops in a state that is not terminal. Opponents observe the agent's action.
    """

    open: Callable[[], ParallelGame]  # creates a new game
    n_actions: int
    n_threats: tuple[int, ...]
    horizon: int
    device: torch.device
    dtype: torch.dtype
    continuing: bool = False  # a new episode never begins in the final state of the last one
    _games: list[ParallelGame] = field(default_factory=list, repr=False)
    # seed and number of moves of each
    _standing: list[tuple[float, float]] = field(default_factory=list, repr=False)

    def _begin(self, i: int, seed: float) -> EpisodeStart:
        while len(self._games) <= i:
            self._games.append(self.open())
            self._standing.append((-1.0, 0.0))
        self._standing[i] = (seed, 0.0)
        return self._games[i].begin(int(seed))

    def _restore_game(self, i: int, seed: float, moves: float, observed: list[float]) -> None:
        """Restore the game of a replicate to a given state.

        Raises:
            ConfigMismatchError: this is impossible, or the first observation differs."""
        if i < len(self._games) and self._standing[i] == (seed, moves):
            return
        if moves:
            raise ConfigMismatchError(
                f"dataset.env: a state after {moves:.0f} moves cannot be restored; episodes begin with reset(seed=…)"
            )
        if self._begin(i, seed).observed != observed:
            raise ConfigMismatchError(
                f"dataset.env: reset(seed={seed:.0f}) returns a different first observation "
                f"than before; check whether the environment has changed"
            )

    def _store(self, rows: list[list[float]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.float64, device=self.device)

    def reset(self, replicates: int, generator: torch.Generator) -> Tensor:
        """Start episodes from seeds drawn from the generator."""
        seeds = torch.randint(
            SEEDS, (replicates,), generator=generator, device=generator.device
        ).tolist()
        positions = [self._begin(i, float(seed)) for i, seed in enumerate(seeds)]
        return self._store(
            [
                [seed, 0, position.over, *position.observed]
                for seed, position in zip(seeds, positions, strict=True)
            ]
        )

    def is_over(self, s: Tensor) -> Tensor:
        """Return the replicates with a finished episode, [R] bool."""
        return s[:, 2] > 0

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        """Play one move; the generator is not used, because the seed determines all randomness of a
        game.

        A finished game keeps its state and pays 0.

        Raises:
            ConfigMismatchError: a game is not in s and cannot be restored to it.
        """
        opponents = len(self.n_threats)
        gone = [True] * opponents
        ended = MoveResult([], [0.0] * (1 + opponents), True, False, gone, gone)
        rows = []
        moves = []
        for i, (row, *actions) in enumerate(zip(s.tolist(), a.tolist(), b.tolist(), strict=True)):
            seed, n_moves, over = row[:FACTS]
            result = ended
            if not over:
                self._restore_game(i, seed, n_moves, row[FACTS:])
                result = self._games[i].move([actions[0], *actions[1]])
                self._standing[i] = (seed, n_moves + 1)
                stops = result.terminated or result.truncated
                row = [seed, n_moves + 1, float(stops), *result.observed]
                cut = not stops and n_moves + 1 >= self.horizon
                result = result._replace(truncated=result.truncated or cut)
            rows.append(row)
            moves.append(result)
        # [R, 1 + M]
        paid = torch.tensor(
            [result.rewards for result in moves], dtype=self.dtype, device=self.device
        )
        return Outcome(
            r_a=paid[:, 0],
            r_b=paid[:, 1:],
            s_next=self._store(rows),
            done=self._flags([result.terminated for result in moves]),
            truncated=self._flags([result.truncated for result in moves]),
            opponents=self._opponent_ends(moves),
        )

    def _opponent_ends(self, moves: list[MoveResult]) -> OpponentStatus | None:
        """Status of the opponents; None if all play as long as the decision maker."""
        if all(all(result.present) and set(result.done) == {result.terminated} for result in moves):
            return None
        present = [result.present for result in moves]
        done = [result.done for result in moves]
        return OpponentStatus(self._flags(present), self._flags(done))

    def _flags(self, flags: list[bool] | list[list[bool]]) -> Tensor:
        return torch.tensor(flags, dtype=torch.bool, device=self.device)

    def observe(self, s: Tensor, a: Tensor) -> Shown:
        return Shown(one_hot(a, self.n_actions).to(self.dtype), None)

    def features(self, s: Tensor) -> Tensor:
        """Return the observation of the agent [R, F]."""
        return s[:, FACTS:].to(self.dtype)
