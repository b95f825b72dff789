"""Attacks computed on a surrogate and transferred."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from pydantic import PositiveInt, PrivateAttr, model_validator
from torch import Tensor

from components.contracts.attackers import Evasion
from components.contracts.posteriors import Predicts
from components.contracts.problems import Domain
from components.contracts.roles import AboveZeroToOne, Inference, Model, Problem
from components.contracts.streams import STREAMS, NamedStreams, Rng
from components.contracts.victim import Criterion, Measure, Victim
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised
from components.registry import register

APART = 10**9  # indices of the attack stream reserved for each stream of the surrogate


@register("attacker", "transfer")
class Transfer(Evasion):
    """Grey-box attack: computed on a surrogate trained by the attacker, and transferred to the
    victim.

    x' = attack(x; p_S), p_S the posterior of ``surrogate`` after ``training_steps`` steps of
    ``inference`` on a random ``share`` of the training rows: the attacker has access to the task,
    the units of inputs and some data, but not to the victim's parameters or predictions.  The
    attack continues after breaking the surrogate.  All randomness of the surrogate comes from the
    attack stream.  x [B, D], y [B, T].

    Raises:
        ConfigMismatchError: the share is empty, or the attack has not received the training
            problem.

    Source: Papernot et al. (2017), section 4; Biggio and Roli (2018), section 3.2."""

    domain = None
    knowledge = "grey box"
    # keys that the attack inherits from here
    inherited_keys = {"eps"}

    attack: Evasion
    surrogate: Model
    inference: Inference
    share: AboveZeroToOne
    training_steps: PositiveInt
    _posterior: Predicts | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check_single_surrogate(self) -> Transfer:
        if any(isinstance(part, Transfer) for part in _iterate_attacks(self.attack)):
            raise ValueError(
                "attack: trains a surrogate itself; choose an attack without a surrogate"
            )
        return self

    def inputs(self) -> Domain:
        return self.attack.inputs()

    def minimised_criterion(self) -> Criterion:
        return self.attack.minimised_criterion()

    def target_labels(self) -> frozenset[int | str | None]:
        return self.attack.target_labels()

    def check_target(self, problem: Problem, key: str) -> None:
        self.attack.check_target(problem, f"{key}.attack")

    def measure(self) -> Measure:
        return self.attack.measure()

    def with_problem(self, problem: Problem, rng: Rng) -> Transfer:
        if self._posterior is not None:
            return self
        if not isinstance(problem, Supervised):
            raise ConfigMismatchError(
                f"attacker=transfer: requires training rows, which a {problem.kind} problem lacks"
            )
        streams = SurrogateStreams(rng)
        n = round(self.share * problem.n)
        train = problem.train
        if n == 0:
            raise ConfigMismatchError(
                f"attacker.share: {self.share:g} of the {problem.n} rows of {problem.name} is empty; raise it"
            )
        rows = torch.randperm(problem.n, generator=streams.data)[:n].to(train.x.device)
        subset = replace(problem, train=train.part(rows, 1.0), attacker=None)
        with torch.enable_grad():
            state = self.inference.init(self.surrogate.build(subset, streams), subset, streams)
            for _, batch in subset.batches(
                self.inference.requires.batch_kind, streams, 0, self.training_steps
            ):
                state, _ = self.inference.step(state, batch, streams)
        posterior = self.inference.posterior(state)
        out = self.model_copy(update={"attack": self.attack.with_problem(problem, rng)})
        if not isinstance(posterior, Predicts):
            raise ConfigMismatchError(
                f"attacker.inference={self.inference.name}: does not provide predictions, as required of a surrogate"
            )
        out._posterior = posterior
        return out

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        if self._posterior is None:
            raise ConfigMismatchError(
                "attacker=transfer: the surrogate is not trained; call with_problem(problem, rng)"
            )
        attack = self.attack.without_early_stop()
        surrogate = victim.with_posterior(self._posterior).facing(attack.gradient_source())
        return attack.perturb(surrogate, x, y, rng, eps)


def _iterate_attacks(attack: Evasion) -> Iterator[Evasion]:
    """An attack and its component attacks."""
    yield attack
    for _, value in attack:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, Evasion):
                yield from _iterate_attacks(part)


class SurrogateStreams(NamedStreams):
    """Streams for the surrogate, all derived from the attack stream.

    They leave the streams of the run unchanged.
    """

    def __init__(self, rng: Rng):
        self.replicate = rng.replicate
        self._rng = rng
        for stream in STREAMS:
            setattr(self, stream, self.at(stream, -1))

    def at(self, stream: str, index: int) -> torch.Generator:
        """A fresh generator for (stream, index), on the device of the run's generator."""
        generator = self._rng.at("attack", (1 + STREAMS.index(stream)) * APART + 1 + index)
        return (
            torch.Generator().manual_seed(generator.initial_seed())
            if stream in ("data", "init")
            else generator
        )

    def of(self, replicate: int) -> SurrogateStreams:
        return SurrogateStreams(self._rng.of(replicate))
