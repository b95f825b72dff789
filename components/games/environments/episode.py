"""One episode of a game, played in all replicates in parallel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from components.contracts.costs.counts import count
from components.contracts.games import Turn
from components.contracts.roles import Info
from components.contracts.streams import Rng
from components.games.agents.policies import draw_action
from components.games.environments.moves import play_move
from components.games.environments.standing import EpisodeGame, GameState
from components.games.environments.transition import Transition, both


@dataclass(frozen=True)
class Episode:
    """One episode of a game in every replicate, with at most ``horizon`` moves."""

    game: EpisodeGame
    index: int  # from 0

    def play(
        self,
        standing: GameState,
        rng: Rng,
        choose: Callable[[Tensor], Tensor],
        learn: Callable[[Transition], None],
    ) -> Info:
        """Play the episode and advance ``standing`` in place.

        Args:
            choose: probabilities of the agent's actions [R, A] in s.
            learn: receives each move.

        Returns:
            The agent's reward, the mean of the opponents' rewards, and welfare, [R] each.
        """
        environment = self.game.environment
        s = standing.s
        total: Tensor | None = None
        firsts: Tensor | None = None
        moves: float | Tensor = 0.0
        live = self.game.is_unfinished(s)
        for remaining in reversed(range(environment.horizon)):
            if live is not None and not live.any():
                break
            a = draw_action(choose(s), rng.noise)
            cut = not remaining and not environment.continuing
            count(environment_steps=self.game.replicates if live is None else int(live.sum()))
            turn = Turn(s, self.index, choose)
            transition = play_move(self.game, standing, turn, a, live, rng, cut=cut)
            learn(transition if self.game.learns_from == "every_move" else transition.ending())
            acts = transition.acts()
            actions = torch.cat([transition.a.unsqueeze(0), transition.each.T])
            first = (actions == 0).to(transition.r_a.dtype)
            if acts is not None:
                first = torch.where(acts, first, 0.0)
            firsts = first if firsts is None else firsts + first
            moves = moves + (1.0 if acts is None else acts.to(first.dtype))
            total = self._add_rewards(total, transition, live)
            s = transition.s_next
            if (over := transition.over) is not None:
                live = both(~over, live)
        if total is None or firsts is None:  # no replicate moved: shares of actions are undefined
            players = 1 + len(environment.n_threats)
            total = torch.zeros(
                players + 1,
                self.game.replicates,
                device=environment.device,
                dtype=environment.dtype,
            )
            firsts = torch.full_like(total[1:], torch.nan)
            moves = 1.0
        after = (
            s if environment.continuing else environment.reset(self.game.replicates, rng.batches)
        )
        return standing.close(after, total, firsts / moves)

    def _add_rewards(
        self, total: Tensor | None, transition: Transition, live: Tensor | None
    ) -> Tensor:
        """Rewards of the agent and of each opponent, and welfare, after a move [M + 2, R]."""
        gain = torch.stack([transition.r_a, *transition.r_b.unbind(1), transition.welfare])
        if live is not None:
            gain = torch.where(live, gain, 0.0)
        if total is None:
            return gain
        if self.game.counts == "total":
            return total + gain
        # finished players keep their rewards
        return gain if live is None else torch.where(live, gain, total)
