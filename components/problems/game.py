"""Games between the decision maker (she, actions a) and her opponents (he, threats b): threatened Markov decision processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from components.contracts.attackers import Opponent
from components.contracts.games import Environment, Move, NumberedStates, Seat
from components.contracts.posteriors import Played
from components.contracts.problems import Kind, Sees
from components.contracts.states import rebuilt
from components.contracts.streams import Rng
from components.contracts.traces import Trace
from components.maths.policies import draw_action
from components.metrics import games
from components.trouble import Misfit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(slots=True)
class Transition:
    """What she has seen after a move, Algorithm 4.1 line 1: (s, a, b, r_A, r_B, s'), with the number of the joint action."""

    s: Tensor  # [R, …]
    a: Tensor  # [R]
    b: Tensor  # [R], the number of the opponents' joint action, the last opponent's running fastest
    each: Tensor  # [R, M], the action of each opponent
    r_a: Tensor  # [R]
    r_b: Tensor  # [R, M]
    s_next: Tensor  # [R, …]
    done: Tensor | None  # [R] bool: s' ends the episode; None: no state of this game does
    live: Tensor | None  # [R] bool: replicates whose episode was going on before the move; None: all

    def ahead(self, value: Tensor, gamma: float) -> Tensor:
        """γ V(s'), nothing where s' ends the episode; value [R]."""
        return gamma * value if self.done is None else torch.where(self.done, 0.0, gamma * value)

    def rate(self, alpha: float) -> float | Tensor:
        """A learning rate, 0 in replicates that no longer play."""
        return alpha if self.live is None else alpha * self.live.to(self.r_a.dtype)


@dataclass(kw_only=True)
class Standing:
    """Where a game stands: the part of an inference's state that is the game's."""

    game: Game = rebuilt()
    s: Tensor  # where the next episode begins [R, …]
    adversary: object  # what the first opponent remembers
    rewards: Trace = field(default_factory=Trace)  # hers, rows [R], one an episode
    episodes: int = 0  # played so far
    others: list[object] = field(default_factory=list)  # what each further opponent remembers

    def __post_init__(self) -> None:
        self.rewards.cut(self.episodes)

    @property
    def earned(self) -> Tensor:
        """Rewards of the episodes played so far [R, t]."""
        environment = self.game.environment
        if not self.episodes:
            return torch.empty(self.game.replicates, 0, device=environment.device, dtype=environment.dtype)
        return self.rewards.stacked(1).to(environment.device)


@dataclass(frozen=True)
class Episode:
    """One episode of a game in every replicate, at most ``horizon`` moves: the game itself, and which episode it is."""

    game: Game
    index: int  # 0 is the first

    def play(
        self, standing: Standing, rng: Rng, choose: Callable[[Tensor], Tensor], learn: Callable[[Transition], None]
    ) -> Tensor:
        """Plays it through and moves ``standing`` on in place; her reward [R].

        ``choose`` gives the probabilities of her actions [R, A] in s; ``learn`` is told of each move."""
        environment, s = self.game.environment, standing.s
        total: Tensor | None = None
        live: Tensor | None = None
        for _ in range(environment.horizon):
            seen = self.game.move(standing, s, draw_action(choose(s), rng.noise), live, rng)
            learn(seen)
            gain = seen.r_a if live is None else torch.where(live, seen.r_a, 0.0)
            total = gain if total is None else total + gain
            s = seen.s_next
            if seen.done is not None:
                live = ~seen.done if live is None else live & ~seen.done
                if not live.any():
                    break
        assert total is not None
        standing.s = s if environment.continuing else environment.reset(self.game.replicates, rng.batches)
        standing.rewards.append(total)
        standing.episodes += 1
        return total


Drawing = Callable[["Game", Played], "dict[str, Figure]"]


@dataclass
class Game:
    """A threatened Markov decision process (S, A, B, T, R, p_A) with M opponents and R replicates, all played at once.

    Source: Gallego (2021), definition 4.1 and section 4.3.5."""

    kind: Kind = field(default="game", init=False)
    name: str
    environment: Environment
    episodes: int  # to be played, one per step
    tail: float  # the last share of the episodes is what is scored
    window: int  # episodes in the moving average of the figure
    figures: list[Drawing] = field(default_factory=list)
    replicates: int = 1
    attacker: Opponent | None = None
    n_states: int = field(
        init=False
    )  # of states that have numbers; 1 where they have none: only approximators tell them apart
    numbered: bool = field(init=False)

    def __post_init__(self) -> None:
        # Asked once: looking whether an object has what a protocol asks takes as long as half a move.
        self.numbered = isinstance(self.environment, NumberedStates)
        self.n_states = self.environment.n_states if isinstance(self.environment, NumberedStates) else 1

    @property
    def n_actions(self) -> int:
        return self.environment.n_actions

    @property
    def n_threats(self) -> int:
        """Number of joint actions of the opponents."""
        return prod(self.environment.n_threats)

    def rows(self, s: Tensor) -> Tensor:
        """Numbers of states s [R, …], 0 where they have none: [R] long."""
        if self.numbered:
            return s
        return torch.zeros(len(s), dtype=torch.long, device=s.device)

    def opponents(self) -> list[Opponent]:
        """Who plays each seat.

        Raises:
            Misfit: nobody does.
        """
        if self.attacker is None:
            raise Misfit("attacker: a game needs an adversary; add attacker=exponential_smoother")
        seats = len(self.environment.n_threats)
        players = self.attacker.seated(seats)
        if len(players) != seats:
            raise Misfit(f"attacker={self.attacker.name}: {len(players)} players for the {seats} seats of {self.name}")
        return players

    def opening(self, rng: Rng) -> Standing:
        """Where the game stands before the first episode."""
        environment, r = self.environment, self.replicates
        s = environment.reset(r, rng.batches)
        targets = environment.shown(s, torch.zeros(r, dtype=torch.long, device=environment.device)).targets.shape[1]
        numbered = self.n_states if self.numbered else None
        first, *others = [
            player.reset(Seat(r, own, self.n_actions, targets, numbered, environment.device, environment.dtype), rng)
            for player, own in zip(self.opponents(), environment.n_threats, strict=True)
        ]
        return Standing(game=self, s=s, adversary=first, others=others)

    def move(self, standing: Standing, s: Tensor, a: Tensor, live: Tensor | None, rng: Rng) -> Transition:
        """One move from s: she has chosen a [R], each opponent chooses without seeing it, and remembers what he saw."""
        environment, players = self.environment, self.opponents()
        memories = [standing.adversary, *standing.others]
        chosen = [player.act(memory, s, rng) for player, memory in zip(players, memories, strict=True)]
        each = chosen[0].unsqueeze(1) if len(chosen) == 1 else torch.stack(chosen, 1)  # [R, M]
        r_a, r_b, s_next, done = environment.step(s, a, each, rng.batches)
        shown, seen = environment.shown(s, a)
        if live is not None:
            seen = live if seen is None else seen & live
        standing.adversary, *standing.others = [
            player.observe(memory, Move(s, a, shown, seen, b, r_b.select(1, m), s_next, done, live))
            for m, (player, memory, b) in enumerate(zip(players, memories, chosen, strict=True))
        ]
        joint = chosen[0]
        for m in range(1, len(chosen)):
            joint = joint * environment.n_threats[m] + chosen[m]
        return Transition(s, a, joint, each, r_a, r_b, s_next, done, live)

    def length(self, sees: Sees) -> int | None:
        return self.episodes

    def batches(self, sees: Sees, rng: Rng, start: int, stop: int) -> Iterator[tuple[int, Episode]]:
        """Steps start+1 … stop, one episode each."""
        for step in range(start + 1, stop + 1):
            yield step, Episode(self, step - 1)

    def score(self, posterior: Played, rng: Rng) -> dict[str, Tensor | float]:
        """Mean reward over the last share of the episodes, and the total, in units of reward: [R] each."""
        scores = games.scores(posterior.rewards, self.tail)
        return {name: value if self.replicates > 1 else float(value) for name, value in scores.items()}

    def draw(self, posterior: Played, rng: Rng) -> dict[str, Figure]:
        drawn: dict[str, Figure] = {}
        for figure in self.figures:
            drawn.update(figure(self, posterior))
        return drawn

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        environment = self.environment
        facts = {
            "data": self.name,
            "episodes": f"{self.episodes:,}",
            "states": f"{self.n_states}" if self.numbered else "not numbered",
            "actions × threats": " × ".join(str(n) for n in (self.n_actions, *environment.n_threats)),
            "replicates at once": f"{self.replicates}",
        }
        if environment.horizon > 1:
            facts["moves in an episode"] = f"at most {environment.horizon}"
        return facts
