"""Games that go on somewhere else: programs that can be begun from a seed and moved on, and not be
put back where they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from components.contracts.games import OpponentStatus, Outcome, Shown
from components.errors import ConfigMismatchError
from components.games.parallel.parallel_game import EpisodeStart, MoveResult, ParallelGame

# seeds are below it: programs store them in any integer type, and a double holds them exactly
SEEDS = 2**31 - 1
# columns of a state before the observation: seed, moves made, whether the episode is over
FACTS = 3


@dataclass
class LiveEnvironment:
    """``Environment`` of R live games, one per replicate; each may be over before its first move.

    A state is (seed, moves made, over or not, the agent's observation) [R, 3 + F]. The seed
    determines the start of an episode, so that a checkpoint between two episodes is exact:
    a game that is not in the given state is restarted from the seed. In the middle of an
    episode this is impossible, and is refused. A game that its program truncates, or that
    has made ``horizon`` moves, stops without a true end. Opponents see the agent's action.
    """

    open: Callable[[], ParallelGame]  # creates one more game
    n_actions: int
    n_threats: tuple[int, ...]
    horizon: int
    device: torch.device
    dtype: torch.dtype
    continuing: bool = False  # where one episode ends no other can begin
    _games: list[ParallelGame] = field(default_factory=list, repr=False)
    # seed and moves made of each
    _standing: list[tuple[float, float]] = field(default_factory=list, repr=False)

    def _begin(self, i: int, seed: float) -> EpisodeStart:
        while len(self._games) <= i:
            self._games.append(self.open())
            self._standing.append((-1.0, 0.0))
        self._standing[i] = (seed, 0.0)
        return self._games[i].begin(int(seed))

    def _restore_game(self, i: int, seed: float, moves: float, observed: list[float]) -> None:
        """Has the game of a replicate stand where a state says.

        Raises:
            ConfigMismatchError: it cannot, or begins elsewhere than it did."""
        if i < len(self._games) and self._standing[i] == (seed, moves):
            return
        if moves:
            raise ConfigMismatchError(
                f"dataset.env: a state after {moves:.0f} moves cannot be gone back to; episodes begin by reset(seed=…)"
            )
        if self._begin(i, seed).observed != observed:
            raise ConfigMismatchError(
                f"dataset.env: reset(seed={seed:.0f}) does not begin where it did before; has the environment changed?"
            )

    def _store(self, rows: list[list[float]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.float64, device=self.device)

    def reset(self, replicates: int, generator: torch.Generator) -> Tensor:
        """Episodes from seeds drawn from the generator."""
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
        """[R] bool."""
        return s[:, 2] > 0

    def step(self, s: Tensor, a: Tensor, b: Tensor, generator: torch.Generator) -> Outcome:
        """Play one move without drawing: the randomness of a game comes from its seed.

        A game that is over remains where it is and pays nothing.

        Raises:
            ConfigMismatchError: a game is in another state and cannot be brought to s.
        """
        opponents = len(self.n_threats)
        gone = [True] * opponents
        ended = MoveResult([], [0.0] * (1 + opponents), True, False, gone, gone)
        rows = []
        moves = []
        for i, (row, *actions) in enumerate(zip(s.tolist(), a.tolist(), b.tolist(), strict=True)):
            seed, n_moves, over = row[:FACTS]
            moved = ended
            if not over:
                self._restore_game(i, seed, n_moves, row[FACTS:])
                moved = self._games[i].move([actions[0], *actions[1]])
                self._standing[i] = (seed, n_moves + 1)
                stops = moved.terminated or moved.truncated
                row = [seed, n_moves + 1, float(stops), *moved.observed]
                cut = not stops and n_moves + 1 >= self.horizon
                moved = moved._replace(truncated=moved.truncated or cut)
            rows.append(row)
            moves.append(moved)
        # [R, 1 + M]
        paid = torch.tensor(
            [moved.rewards for moved in moves], dtype=self.dtype, device=self.device
        )
        return Outcome(
            r_a=paid[:, 0],
            r_b=paid[:, 1:],
            s_next=self._store(rows),
            done=self._flags([moved.terminated for moved in moves]),
            truncated=self._flags([moved.truncated for moved in moves]),
            opponents=self._opponent_ends(moves),
        )

    def _opponent_ends(self, moves: list[MoveResult]) -> OpponentStatus | None:
        """None where all opponents play as long as the decision maker does."""
        if all(all(moved.present) and set(moved.done) == {moved.terminated} for moved in moves):
            return None
        present = [moved.present for moved in moves]
        done = [moved.done for moved in moves]
        return OpponentStatus(self._flags(present), self._flags(done))

    def _flags(self, flags: list[bool] | list[list[bool]]) -> Tensor:
        return torch.tensor(flags, dtype=torch.bool, device=self.device)

    def observe(self, s: Tensor, a: Tensor) -> Shown:
        return Shown(one_hot(a, self.n_actions).to(self.dtype), None)

    def features(self, s: Tensor) -> Tensor:
        """Observation of the agent [R, F]."""
        return s[:, FACTS:].to(self.dtype)
