"""Games with episodes played by compiled loops, on the tensors of an ordinary state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import ChangingEnvironment
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.games.environments.episode import Episode
from components.games.environments.game import Game
from components.games.environments.standing import GameState
from components.games.environments.table_environment import TableEnvironment
from components.games.fast import opponents
from components.games.fast.arithmetic import FEW
from components.games.fast.opponents import CompiledOpponent
from components.games.fast.rounds import moving, walking, weighing
from components.games.fast.rules import Rules, rules
from components.games.fast.thinkers import Levels, pack_tables
from components.games.fast.uniforms import Stream, streams_known
from components.maths.compiled.loops import Array


def fitting(game: Game, where: str, few: int = FEW) -> None:
    """Check that compiled loops can play a game of at most ``few`` actions per player.

    Raises:
        Misfit: the game or the opponent has no compiled twin.
    """
    environment = game.environment
    players = game.opponents()
    if not isinstance(environment, TableEnvironment) or len(environment.n_threats) > 1:
        raise ConfigMismatchError(
            f"{where}: plays games in tables with one opponent, dataset={game.name} is none; engine=tensors does"
        )
    if len(players) > 1 or not opponents.is_compiled(players[0]):
        names = ", ".join(player.name for player in players)
        raise ConfigMismatchError(
            f"{where}: plays against one of {opponents.NAMES}, here attacker={names}; engine=tensors plays all"
        )
    if max(environment.n_actions, *environment.n_threats) > few:
        raise ConfigMismatchError(
            f"{where}: plays games of at most {few} actions a player; engine=tensors plays all"
        )
    if environment.ends is not None and environment.continuing:
        raise ConfigMismatchError(
            f"{where}: an episode that ends must begin anew, in dataset={game.name} it goes on; engine=tensors plays it"
        )


@dataclass
class CompiledTable:
    """Data prepared once: contiguous tables, rules as arrays, buffers, and episode position.

    The buffers hold uniform numbers.
    """

    game: Game
    tables: list[QFunction]  # Q_1 … Q_k, the agent's last

    def __post_init__(self) -> None:
        environment = self.game.environment
        replicates = self.game.replicates
        assert isinstance(environment, TableEnvironment), "so says ``fitting``"
        self.opponent = self.game.opponents()[0]
        self.parts = opponents.n_uniform_rows(self.opponent)
        self.whole, places = pack_tables(self.tables)
        self.begins = places[:, 0].copy()
        self.own = places[:, 1]
        noticed = int(places[-1, 2])
        self.move = moving(environment.n_actions, environment.n_threats[0], noticed)
        self.walk = walking(environment.n_actions, environment.n_threats[0], noticed)
        self.weigh = weighing(environment.n_actions, noticed)
        self.q = self.whole.numpy()
        self.dtype: type[np.floating] = self.q.dtype.type
        self.ones = torch.ones(replicates * self.game.n_states, dtype=environment.dtype).numpy()
        self.u = torch.empty(replicates, dtype=environment.dtype)
        self.policy = torch.zeros(replicates, environment.n_actions, dtype=environment.dtype)
        self.s = np.empty(replicates, np.int64)
        self.left = np.empty(1, np.int64)
        self.order = np.empty(replicates, np.int64)
        self.all = np.arange(replicates)
        self.foreseen = np.empty((replicates, noticed), self.dtype)
        # a player of level 1 draws nothing
        self.w = torch.zeros(len(self.tables), replicates, dtype=environment.dtype)
        self.tally = np.empty((3, replicates), self.dtype)
        self.one = np.empty(replicates, self.dtype)
        self.drawn = self.w.numpy(), self.policy.numpy()
        self.sparse = (
            environment.ends is not None and environment.dtype == torch.float64 and streams_known()
        )
        self.changing = environment if isinstance(environment, ChangingEnvironment) else None
        self._rules: dict[int, tuple[object, Rules]] = {}
        self._known: tuple[Levels, tuple[Array, Array, Array]] | None = None
        self._seen: tuple[Tensor, CompiledOpponent, Tensor] | None = None
        self._stood: GameState | None = None  # the state that ``foreseen`` belongs to

    def _get_rules(self, episode: int) -> Rules:
        environment = self.game.environment if self.changing is None else self.changing.at(episode)
        assert isinstance(environment, TableEnvironment), "so says ``fitting``"
        if id(environment) not in self._rules:
            # kept alive, so that its id stays its own
            self._rules[id(environment)] = environment, rules(environment)
        return self._rules[id(environment)][1]

    def _numbers(self, known: Levels) -> tuple[Array, Array, Array]:
        """Probabilities, steps, and λ with γ, in the dtype of the tables.

        Most episodes reuse the values of the previous episode.
        """
        if self._known is None or self._known[0] != known:
            numbers = known.chances(self.own, self.dtype), known.steps(self.dtype)
            self._known = (
                known,
                (*numbers, np.array([known.forget, known.gamma]).astype(self.dtype)),
            )
            self._stood = None
        return self._known[1]

    def _opponent_and_buffer(self, memory: Tensor) -> tuple[CompiledOpponent, Tensor]:
        """The opponent, and a buffer for its draws; a memory at an unchanged place is read once."""
        if self._seen is None or self._seen[0] is not memory:
            self._seen = (
                memory,
                opponents.adversary(self.opponent, memory),
                opponents.uniforms(self.opponent, memory),
            )
        return self._seen[1:]

    def play(
        self,
        episode: Episode,
        standing: GameState,
        rng: Rng,
        values: list[QFunction],
        counts: Tensor | None,
        known: Levels,
    ) -> Info:
        """The twin of ``Episode.play``; ``values`` are ``tables``."""
        game, environment, s, (w, policy) = self.game, self.game.environment, self.s, self.drawn
        assert isinstance(standing.adversary, Tensor), (
            "so are the memories of all opponents who have a twin"
        )
        opponent_args, draws = self._opponent_and_buffer(standing.adversary)
        chances, steps, forget_gamma = self._numbers(known)
        agent_args = (
            self.q,
            self.begins,
            self.ones if counts is None else counts.view(-1).numpy(),
            chances,
        )
        game_rules = self._get_rules(episode.index)
        temperature = known.temperatures[-1]
        continuing = environment.continuing
        s[:], self.order[:], self.left[0] = standing.s.numpy(), self.all, len(s)
        total = np.empty((3, len(s)), self.dtype)
        self.tally.fill(0)
        has_policy = temperature is not None
        ends_alone = game.learns_from == "ends"
        last_alone = game.counts == "last_move"
        is_reusable = known.at_next or len(self.tables) == 1
        ready = is_reusable and continuing and self._stood is standing
        order = self.order
        remaining = self.left
        few = self.w[1:] if known.drawn else ()
        noise = Stream(rng.noise, self.sparse)
        attack = Stream(rng.attack, self.sparse)
        walks = self.sparse and not has_policy
        if walks:
            self.walk(
                environment.horizon,
                noise.words,
                attack.words,
                self.parts,
                *agent_args,
                steps,
                forget_gamma,
                *opponent_args,
                *game_rules,
                s,
                order,
                remaining,
                self.foreseen,
                total,
                self.tally,
                self.u.numpy(),
                draws.numpy(),
                w,
                self.one,
                policy,
                known.ties,
                known.drawn,
                known.at_next,
                known.bootstraps_ends,
                known.bootstraps_horizon,
                last_alone,
                ends_alone,
                is_reusable,
            )
        for to_come in () if walks else range(environment.horizon - 1, -1, -1):
            u = noise.fill(self.u, 1, order, remaining)
            v = attack.fill(draws, self.parts, order, remaining)
            for level in few:
                noise.fill(level, 1, order, remaining)
            if temperature is not None:
                self.weigh(
                    *agent_args,
                    len(game_rules.ends),
                    s,
                    order,
                    remaining,
                    self.drawn[1],
                    known.ties,
                    known.drawn,
                )
                policy = torch.softmax(self.policy / temperature, -1).numpy()
            self.move(
                *agent_args,
                steps,
                forget_gamma,
                *opponent_args,
                *game_rules,
                s,
                order,
                remaining,
                self.foreseen,
                total,
                self.tally,
                u,
                v,
                w,
                policy,
                known.ties,
                known.drawn,
                has_policy,
                known.at_next,
                known.bootstraps_ends,
                known.bootstraps_horizon or to_come > 0 or continuing,
                last_alone,
                ends_alone,
                ready,
            )
            ready = is_reusable
            if to_come and not remaining[0]:
                break
        noise.close()
        attack.close()
        self._stood = standing
        return self._close(standing, rng, torch.from_numpy(total))

    def _close(self, standing: GameState, rng: Rng, total: Tensor) -> Info:
        """The twin of the end of ``Episode.play``."""
        environment = self.game.environment
        tally = self.tally
        ended = torch.from_numpy(self.s.copy()) if environment.continuing else None
        after = environment.reset(self.game.replicates, rng.batches) if ended is None else ended
        return standing.close(after, total, torch.from_numpy(tally[:2] / tally[2]))
