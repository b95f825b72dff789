"""Attacks computed on a surrogate and carried over."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, PositiveInt, PrivateAttr
from torch import Tensor

from components.attackers.victim import Victim
from components.contracts.problems import Domain
from components.contracts.roles import Attacker, Evasion, Inference, Knowledge, Model
from components.contracts.streams import STREAMS, Rng
from components.evaluation.threat import Sizes
from components.problems.supervised import Supervised
from components.registry import register
from components.trouble import Misfit

APART = 10**9  # indices of the attack stream that each of the surrogate's own streams may take


@register("attacker", "transfer")
class Transfer(Evasion):
    """Grey box: an attack computed on a surrogate that the attacker has trained himself, carried over to the victim.

    x' = attack(x; p_S), p_S the posterior of ``surrogate`` after ``training_steps`` steps of ``inference`` on a random
    ``share`` of the training rows: the attacker knows the task, the inputs' units and some data, of the victim neither
    parameters nor answers.  The attack goes on after it has broken the surrogate, which is not its aim.  All that is
    random in the surrogate comes from the attack stream.  x [B, D], y [B, T].

    Raises:
        Misfit: the share holds no row, or the attack has not been given the problem to learn from.

    Source: Papernot et al. (2017), section 4; Biggio and Roli (2018), section 3.2."""

    knowledge: ClassVar[Knowledge] = "grey box"
    shares: ClassVar[frozenset[str]] = frozenset({"eps"})  # keys that the attack takes over from here

    eps: Sizes
    attack: Attacker
    surrogate: Model
    inference: Inference
    share: Annotated[float, Field(gt=0, le=1)]
    training_steps: PositiveInt
    _posterior = PrivateAttr(default=None)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        return self.attack.domain

    @property
    def norm(self) -> str:
        return getattr(self.attack, "norm", "linf")

    def informed(self, problem: Supervised, rng: Rng) -> Transfer:
        if self._posterior is not None:
            return self
        own = Apart(rng)
        n, train = round(self.share * problem.n), problem.train
        if n == 0:
            raise Misfit(f"attacker.share: {self.share:g} of the {problem.n} rows of {problem.name} is none; use more")
        rows = torch.randperm(problem.n, generator=own.data)[:n].to(train.x.device)
        known = replace(problem, train=train.part(rows, 1.0), attacker=None)
        with torch.enable_grad():
            state = self.inference.init(self.surrogate.build(known, own), known, own)
            for _, batch in known.batches(self.inference.sees, own, 0, self.training_steps):
                state, _ = self.inference.step(state, batch, own)
        out = self.model_copy()
        out._posterior = self.inference.posterior(state)
        return out

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if self._posterior is None:
            raise Misfit("attacker=transfer: it has no surrogate yet; informed(problem, rng) trains it")
        attack = self.attack.relentless()
        surrogate = replace(victim, posterior=self._posterior).facing(attack)
        return attack.perturb(surrogate, x, y, rng, eps)

    def random(self, x: Tensor, y: Tensor, eps: float, generator: torch.Generator) -> Tensor:
        """The control of the attack: as many words chosen at random."""
        attack: Any = self.attack
        return attack.random(x, y, eps, generator)


class Apart:
    """Streams for the surrogate, all of them derived from the attack stream: they leave those of the run alone."""

    def __init__(self, rng: Rng):
        self.replicate, self._rng = rng.replicate, rng
        for name in STREAMS:
            setattr(self, name, self.at(name, -1))

    def at(self, stream: str, index: int) -> torch.Generator:
        """A fresh generator for (stream, index), on the device where a run's own is."""
        generator = self._rng.at("attack", (1 + STREAMS.index(stream)) * APART + 1 + index)
        return torch.Generator().manual_seed(generator.initial_seed()) if stream in ("data", "init") else generator
