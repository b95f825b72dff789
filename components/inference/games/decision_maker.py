"""What all decision makers share: an episode a step, a policy, and what is learnt of each move."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, TypeVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from components.contracts.capabilities import QFunction
from components.contracts.games import Seat
from components.contracts.problems import Sees
from components.contracts.roles import Inference, Info
from components.contracts.streams import Rng
from components.inference.games.exploration import Exploration, explored
from components.maths.policies import PolicyName, probabilities
from components.posteriors.play import Play
from components.problems.game import Episode, Game, Standing, Transition

K = TypeVar("K")  # what a decision maker keeps in mind


@dataclass
class Playing(Generic[K]):
    """What she keeps in mind, and where the game stands."""

    mind: K
    standing: Standing


class DecisionMaker(Inference[QFunction, Game, Episode, Playing[K]], Generic[K]):
    """A player who draws actions from a policy and learns from every move.

    She herself plays episodes; ``attacker=learner`` seats any of them on the other side, by ``sit``, ``policy_at`` and
    ``learn`` alone.  Where s' ends the episode nothing is to come; where the horizon cuts it short there is, unless
    ``bootstrap_at_horizon`` is off."""

    kinds: ClassVar[frozenset[str]] = frozenset({"game"})
    sees: ClassVar[Sees] = "episode"
    needs: ClassVar[frozenset[str]] = frozenset({"q_function"})
    gives: ClassVar[frozenset[str]] = frozenset({"played"})
    attacks: ClassVar[bool] = True
    before: ClassVar[dict[str, object]] = {"bootstrap_at_end": False, "bootstrap_at_horizon": True}

    alpha: Annotated[float, Field(gt=0, le=1)]
    gamma: Annotated[float, Field(ge=0, lt=1)]
    epsilon: Exploration
    bootstrap_at_end: bool
    bootstrap_at_horizon: bool

    @abstractmethod
    def sit(self, values: QFunction, seat: Seat, rng: Rng) -> K:
        """What is in mind before the first episode; action values are kept as ``values`` are."""

    @abstractmethod
    def think(self, mind: K, s: Tensor, episode: int) -> Tensor:
        """Expected value of each own action, ψ(s, ·) [R, A]."""

    @abstractmethod
    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        """Probabilities of own actions [R, A] in s [R, …]."""

    @abstractmethod
    def learn(self, mind: K, seen: Transition, episode: int) -> None:
        """Takes a move in."""

    def foresee(self, mind: K, s: Tensor, episode: int) -> Tensor | None:
        """p(b|s) [R, B] of the others; None where nothing is forecast."""
        return None

    def beliefs(self, mind: K) -> dict[str, Tensor]:
        """What is believed of the others, by the name of a score [R]; nothing where nothing is."""
        return {}

    def ahead(self, seen: Transition, value: Tensor) -> Tensor:
        """γ V(s') [R] as far as there is anything to come after this move; value [R]."""
        if seen.cut and not self.bootstrap_at_horizon:
            return torch.zeros_like(value)
        if seen.done is None or self.bootstrap_at_end:
            return self.gamma * value
        return torch.where(seen.done, 0.0, self.gamma * value)

    # ---- as the inference of a run ------------------------------------------------------------------------------------
    def init(self, model: QFunction, problem: Game, rng: Rng) -> Playing[K]:
        return Playing(self.sit(model, problem.seat(None, model), rng), problem.opening(rng, model))

    def step(self, state: Playing[K], batch: Episode, rng: Rng) -> tuple[Playing[K], Info]:
        episode = batch.index

        def choose(s: Tensor) -> Tensor:
            return self.policy_at(state.mind, s, episode)

        def learn(seen: Transition) -> None:
            self.learn(state.mind, seen, episode)

        return state, batch.play(state.standing, rng, choose, learn)

    def posterior(self, state: Playing[K]) -> Play:
        """Rewards so far, ψ(s, ·) [R, A] and the forecast [R, B]."""
        episode, s = max(0, state.standing.episodes - 1), state.standing.s

        def think(s: Tensor) -> Tensor:
            return self.think(state.mind, s, episode).clone()  # it may be the table itself

        def policy(s: Tensor) -> Tensor:
            return self.policy_at(state.mind, s, episode).clone()

        standing = state.standing
        forecast = self.foresee(state.mind, s, episode)
        beliefs = {name: value.clone() for name, value in self.beliefs(state.mind).items()}
        beside, firsts = standing.earned_beside, standing.first_actions
        return Play(standing.earned, beside, firsts, think(s), forecast, think, beliefs, policy, s)


class Chooser(DecisionMaker[K], Generic[K]):
    """A decision maker whose policy follows from what each of her actions is worth, ψ(s, ·)."""

    policy: PolicyName
    temperature: PositiveFloat

    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        epsilon = explored(self.epsilon, episode)
        return probabilities(self.think(mind, s, episode), self.policy, epsilon, self.temperature)


class Mixer(DecisionMaker[K], Generic[K]):
    """A decision maker who mixes her actions, and explores with probability ε: (1 − ε) π(s, ·) + ε/A."""

    @abstractmethod
    def mixture(self, mind: K, s: Tensor) -> Tensor:
        """π(s, ·) [R, A]."""

    def policy_at(self, mind: K, s: Tensor, episode: int) -> Tensor:
        pi, epsilon = self.mixture(mind, s), explored(self.epsilon, episode)
        return (1 - epsilon) * pi + epsilon / pi.shape[-1]
