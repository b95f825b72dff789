"""Shared code of the defences: training attacks, minibatches of clean and attacked rows."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from components.attackers.attacked import Attacked
from components.attackers.input_space import input_space
from components.contracts.attackers import Attacker, Evasion
from components.contracts.posteriors import Predicts
from components.contracts.problems import Batch
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError
from components.problems.supervised import Supervised

# rows of a step: half clean and half attacked, or only attacked ones
Mixture = Literal["half", "attacked"]


class TrainingThreat:
    """The problem's evasion attacker, or another training attacker, at one size ``eps``.

    Also holds the bounds of the inputs.  ``rng`` is for attackers that train a surrogate. ``init``
    rebuilds the object from the config, so checkpoints do not store it.

    Raises:
        ConfigMismatchError: the attacker is not an evasion attacker, or ``eps`` is not in the units
            of the inputs.
    """

    def __init__(
        self,
        problem: Supervised,
        eps: float,
        rng: Rng | None = None,
        training_attacker: Attacker | None = None,
    ):
        attacker = training_attacker or problem.attacker
        key = "attacker" if training_attacker is None else "inference.training_attacker"
        if not isinstance(attacker, Evasion):
            name = "none" if attacker is None else attacker.name
            raise ConfigMismatchError(
                f"{key}={name}: a defence requires an evasion attack; use for example fgsm or pgd"
            )
        input_space(problem).check_training_size(eps, attacker.measure(), problem.name)
        attacker.check_target(problem, key)
        if rng is not None:
            attacker = attacker.with_problem(problem, rng)
        # a defence uses the worst input, not the first error
        self.attacker: Evasion = attacker.without_early_stop()
        self.bounds = problem.bounds
        self.eps = eps
        self.image_shape = problem.image_shape

    def victim(self, posterior: Predicts) -> Attacked:
        """The current predictor, as victim of the attacker."""
        return Attacked(posterior, self.bounds, self.attacker.gradient_source(), self.image_shape)

    def attack(self, posterior: Predicts, batch: Batch, rng: Rng) -> Tensor:
        """Attacked rows x' = a(x) of a batch [B, D], against the current predictor.

        Gradients with respect to parameters are not computed.
        """
        with torch.no_grad():
            x = self.attacker.perturb(
                self.victim(posterior), batch.x.clone(), labels(batch), rng, self.eps
            )
        return x.detach()


def labels(batch: Batch) -> Tensor:
    """Class numbers [B, T] for attackers, negative where missing."""
    return torch.where(batch.mask, batch.y, -1)


def mixed(batch: Batch, attacked: Tensor, mixture: Mixture) -> Batch:
    """The attacked rows [..., B, D] with the labels of the clean ones, joined with the clean rows
    if ``mixture`` is half."""
    rows = Batch(attacked, batch.y, batch.mask, batch.scale)
    return rows if mixture == "attacked" else join(batch, rows)


def join(clean: Batch, attacked: Batch) -> Batch:
    """B clean rows and B attacked ones [..., B, D]: x [..., 2B, D], y [2B, T].

    The 2B rows have half the scale, so that clean and attacked data together have the weight of N
    rows.

    Source: Gallego (2021), section 3.5.1 (proportion 1:1)."""
    x = torch.cat([clean.x.expand(attacked.x.shape), attacked.x], -2)
    y = torch.cat([clean.y, attacked.y])
    mask = torch.cat([clean.mask, attacked.mask])
    return Batch(x, y, mask, clean.scale / 2)
