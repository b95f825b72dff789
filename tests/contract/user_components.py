"""A user's components for each role, with results and actions set by a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from components.contracts.attackers import Contamination, Evasion
from components.contracts.capabilities import Elbo, LogJoint
from components.contracts.opponents import Opponent
from components.contracts.posteriors import HoldsDraws
from components.contracts.requirements import Requirements
from components.contracts.roles import Block, Dataset, Gradient, Inference, Model


@dataclass
class State:
    x: Tensor


class Method(Inference):
    requires = Requirements(kinds={"density"}, capabilities={LogJoint})
    provides: ClassVar[set[type]] = {HoldsDraws}
    returns: object = None
    action: object = None

    def init(self, model, problem, rng):
        return self.returns

    def step(self, state, batch, rng):
        if callable(self.action):
            self.action()
        return self.returns

    def posterior(self, state):
        return self.returns


class Data(Dataset):
    kind: ClassVar[str] = "density"
    returns: object = None

    def load(self, rng, setting):
        return self.returns


class Net(Model):
    requires = Requirements(kinds={"density"})
    offers: ClassVar[set[type]] = {LogJoint}

    def build(self, problem, rng):
        return object()


class Attack(Evasion):
    returns: object = None

    def perturb(self, victim, x, y, rng, eps):
        return self.returns


class Dirt(Contamination):
    returns: object = None

    def corrupt(self, clean, rng):
        return self.returns


class Player(Opponent):
    returns: object = None

    def reset(self, seat, rng):
        return None

    def act(self, state, turn, rng):
        return self.returns

    def observe(self, state, move):
        return state


class Slope(Gradient):
    requires = Requirements(capabilities={Elbo})
    unbiased: ClassVar[bool] = True
    returns: object = None

    def init(self, module, rng):
        return None

    def estimate(self, module, batch, rng, state):
        return self.returns


class Part(Block):
    def terms(self, facts):
        return []
