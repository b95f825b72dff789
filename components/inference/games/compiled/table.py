"""A game whose episodes are played by compiled loops, on the tensors of an ordinary state."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Changing
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.inference.games.compiled import opponents
from components.inference.games.compiled.arithmetic import FEW
from components.inference.games.compiled.rounds import moving, weighing
from components.inference.games.compiled.rules import Rules, rules
from components.inference.games.compiled.thinkers import Levels, behind_each_other
from components.maths.compiled.loops import Array
from components.problems.game import Episode, Game, Standing
from components.problems.table_environment import TableEnvironment
from components.trouble import Misfit


def fitting(game: Game, where: str, few: int = FEW) -> None:
    """Whether a game of at most so many actions a player can be played so.

    Raises:
        Misfit: the game or the opponent has no compiled twin.
    """
    environment, players = game.environment, game.opponents()
    if not isinstance(environment, TableEnvironment) or len(environment.n_threats) > 1:
        raise Misfit(
            f"{where}: plays games in tables with one opponent, dataset={game.name} is none; engine=tensors does"
        )
    if len(players) > 1 or not opponents.known(players[0]):
        told = ", ".join(player.name for player in players)
        raise Misfit(f"{where}: plays against one of {opponents.NAMES}, here attacker={told}; engine=tensors plays all")
    if max(environment.n_actions, *environment.n_threats) > few:
        raise Misfit(f"{where}: plays games of at most {few} actions a player; engine=tensors plays all")
    if environment.ends is not None and environment.continuing:
        raise Misfit(
            f"{where}: an episode that ends must begin anew, in dataset={game.name} it goes on; engine=tensors plays it"
        )


@dataclass
class CompiledTable:
    """What is prepared once: tables behind each other, rules as arrays, room for uniforms, and where an episode stands."""

    game: Game
    tables: list[QFunction]  # Q_1 … Q_k, hers the last

    def __post_init__(self) -> None:
        environment, replicates = self.game.environment, self.game.replicates
        self.opponent = self.game.opponents()[0]
        self.whole, places = behind_each_other(self.tables)
        self.begins, self.own, noticed = places[:, 0].copy(), places[:, 1], int(places[-1, 2])
        self.move = moving(environment.n_actions, environment.n_threats[0], noticed)
        self.weigh = weighing(environment.n_actions, noticed)
        self.q = self.whole.numpy()
        self.dtype: type[np.floating] = self.q.dtype.type
        self.ones = torch.ones(replicates * self.game.n_states, dtype=environment.dtype)
        self.u = torch.empty(replicates, dtype=environment.dtype)
        self.v: Tensor | None = None
        self.policy = torch.zeros(replicates, environment.n_actions, dtype=environment.dtype)
        self.s, self.live = np.empty(replicates, np.int64), np.empty(replicates, np.bool_)
        self.w = torch.zeros(len(self.tables), replicates, dtype=environment.dtype)  # one of level 1 draws nothing
        self.room = [np.empty(FEW, self.dtype) for _ in range(5)]
        self.total, self.tally = np.empty((3, replicates), self.dtype), np.empty((3, replicates), self.dtype)
        self._rules: dict[int, tuple[object, Rules]] = {}
        self._known: tuple[Levels, tuple[Array, Array, Array]] | None = None

    def _rules_of(self, episode: int) -> Rules:
        rules_now = self.game.environment
        environment = rules_now.at(episode) if isinstance(rules_now, Changing) else rules_now
        assert isinstance(environment, TableEnvironment), "so says ``fitting``"
        if id(environment) not in self._rules:
            self._rules[id(environment)] = environment, rules(environment)  # held, so that its number stays its own
        return self._rules[id(environment)][1]

    def _numbers(self, known: Levels) -> tuple[Array, Array, Array]:
        """Chances, steps, and λ with γ, in the type of the tables; most episodes have those of the one before."""
        if self._known is None or self._known[0] != known:
            numbers = known.chances(self.own, self.dtype), known.steps(self.dtype)
            self._known = known, (*numbers, np.array([known.forget, known.gamma]).astype(self.dtype))
        return self._known[1]

    def play(
        self,
        episode: Episode,
        standing: Standing,
        rng: Rng,
        values: list[QFunction],
        counts: Tensor | None,
        known: Levels,
    ) -> Info:
        """The twin of ``Episode.play``; ``values`` are ``tables``."""
        environment, s, live, policy = self.game.environment, self.s, self.live, self.policy.numpy()
        assert isinstance(standing.adversary, Tensor), "so are the memories of all opponents who have a twin"
        he = opponents.adversary(self.opponent, standing.adversary)
        if self.v is None:
            self.v = opponents.uniforms(self.opponent, standing.adversary)
        chances, steps, forget_gamma = self._numbers(known)
        her = self.q, self.begins, (self.ones if counts is None else counts).view(-1).numpy(), chances
        told, u, v, w = self._rules_of(episode.index), self.u.numpy(), self.v.numpy(), self.w.numpy()
        s[:] = standing.s.numpy()
        live.fill(True)
        self.tally.fill(0)
        temperature = known.temperatures[-1]
        given = temperature is not None
        ends_alone = self.game.learns_from == "ends"
        for left in reversed(range(environment.horizon)):
            self.u.uniform_(generator=rng.noise)
            self.v.uniform_(generator=rng.attack)
            for draws in self.w[1:] if known.drawn else ():
                draws.uniform_(generator=rng.noise)
            if temperature is not None:
                self.weigh(*her, len(told.ends), s, live, self.policy.numpy(), known.ties, known.drawn, *self.room[1:])
                policy = torch.softmax(self.policy / temperature, -1).numpy()
            self.move(
                *her, steps, forget_gamma, *he, *told, s, live, self.total, self.tally, u, v, w, policy, *self.room,
                known.ties, known.drawn, given, known.at_next, known.bootstraps_ends,
                known.bootstraps_horizon or left > 0 or environment.continuing, self.game.counts == "last_move", ends_alone,
            )  # fmt: skip
            if left and not live.any():
                break
        return self._close(standing, rng)

    def _close(self, standing: Standing, rng: Rng) -> Info:
        """The twin of the end of ``Episode.play``."""
        environment, total, tally = self.game.environment, torch.from_numpy(self.total), self.tally
        ended = torch.from_numpy(self.s.copy()) if environment.continuing else None
        standing.s = environment.reset(self.game.replicates, rng.batches) if ended is None else ended
        standing.rewards.append(total[0])
        standing.beside.append(total[1:])
        standing.firsts.append(torch.from_numpy(tally[:2] / tally[2]))
        standing.episodes += 1
        hers, his, welfare = total.clone()
        return {"reward": hers, "reward_opponents": his, "social_utility": welfare}
