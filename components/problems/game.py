"""Games between the decision maker (she, actions a) and one adversary (he, threats b): threatened MDPs in tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from components.contracts.problems import Kind, Sees
from components.contracts.roles import Attacker
from components.contracts.streams import Rng
from components.metrics import games
from components.posteriors.play import Play
from components.trouble import Misfit


@dataclass(frozen=True)
class Episode:
    """One round of a game in every replicate: the game itself, and which episode it is (0 is the first)."""

    game: Game
    index: int


@dataclass(frozen=True)
class Transition:
    """What both players have seen after an episode, Algorithm 4.1 line 1: (s, a, b, r_A, r_B, s'), all [R]."""

    s: Tensor
    a: Tensor
    b: Tensor
    r_a: Tensor
    r_b: Tensor
    s_next: Tensor


@dataclass
class Game:
    """A threatened Markov decision process (S, A, B, T, R, p_A) with finite sets and R replicates played at once.

    Source: Gallego (2021), definition 4.1."""

    kind: Kind = field(default="game", init=False)
    name: str
    reward_a: Tensor  # [S, A, B] the decision maker's reward
    reward_b: Tensor  # [S, A, B] the adversary's reward, as the decision maker believes it to be
    transition: Tensor  # [S, A, B] long, the state that follows
    episodes: int  # rounds to be played, one per step
    tail: float  # the last share of the episodes is what is scored
    window: int  # episodes in the moving average of the figure
    figures: list[Callable[..., dict]] = field(default_factory=list)  # each (problem, posterior, rng) -> {name: Figure}
    replicates: int = 1
    attacker: Attacker | None = None

    @property
    def n_states(self) -> int:
        return self.reward_a.shape[0]

    @property
    def n_actions(self) -> int:
        return self.reward_a.shape[1]

    @property
    def n_threats(self) -> int:
        return self.reward_a.shape[2]

    @property
    def device(self) -> torch.device:
        return self.reward_a.device

    @property
    def dtype(self) -> torch.dtype:
        return self.reward_a.dtype

    def adversary(self) -> Any:
        """The opponent.

        Raises:
            ValueError: the game has none.
        """
        if self.attacker is None:
            raise Misfit("attacker: a game needs an adversary; add attacker=exponential_smoother")
        return self.attacker

    def opening(self) -> dict[str, Any]:
        """The part of an inference's state that is the game's: where it stands and what it has paid so far."""
        r, device, dtype = self.replicates, self.device, self.dtype
        return {
            "s": torch.zeros(r, dtype=torch.long, device=device),  # [R]
            "adversary": self.adversary().reset(r, self.n_actions, device, dtype),
            "rewards": torch.zeros(r, self.episodes, device=device, dtype=dtype),  # [R, episodes], filled from the left
            "episodes": 0,
        }

    def play(self, state: dict[str, Any], a: Tensor, rng: Rng) -> Transition:
        """One episode: she has chosen a [R], he chooses b without seeing it; moves ``state`` on in place."""
        adversary, s = self.adversary(), state["s"]
        b = adversary.act(state["adversary"], rng)
        r_a, r_b = self.reward(s, a, b)
        s_next = self.next_state(s, a, b)
        state["s"] = s_next
        state["adversary"] = adversary.observe(state["adversary"], a, b, r_b)
        state["rewards"][:, state["episodes"]] = r_a
        state["episodes"] += 1
        return Transition(s, a, b, r_a, r_b, s_next)

    def _cell(self, s: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return (s * self.n_actions + a) * self.n_threats + b

    def reward(self, s: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """r_A [R] and r_B [R] of actions a and threats b [R] taken in states s [R]."""
        cell = self._cell(s, a, b)
        return self.reward_a.take(cell), self.reward_b.take(cell)

    def next_state(self, s: Tensor, a: Tensor, b: Tensor) -> Tensor:
        """s' [R]."""
        return s if self.n_states == 1 else self.transition.take(self._cell(s, a, b))

    def length(self, sees: Sees) -> int | None:
        return self.episodes

    def batches(self, sees: Sees, rng: Rng, start: int, stop: int) -> Iterator[tuple[int, Episode]]:
        """Steps start+1 … stop, one episode each."""
        for step in range(start + 1, stop + 1):
            yield step, Episode(self, step - 1)

    def score(self, posterior: Play, rng: Rng) -> dict[str, Tensor | float]:
        """Mean reward over the last share of the episodes, and the total, in units of reward: [R] each."""
        scores = games.scores(posterior.rewards, self.tail)
        return {name: value if self.replicates > 1 else float(value) for name, value in scores.items()}

    def draw(self, posterior: Play, rng: Rng) -> dict:
        drawn: dict = {}
        for figure in self.figures:
            drawn.update(figure(self, posterior, rng))
        return drawn

    def describe(self) -> dict[str, str]:
        """Facts for the terminal and the record."""
        return {
            "data": self.name,
            "episodes": f"{self.episodes:,}",
            "states": f"{self.n_states}",
            "actions × threats": f"{self.n_actions} × {self.n_threats}",
            "replicates at once": f"{self.replicates}",
        }
