"""Input spaces: projection of inputs, and size, random draws and limits of perturbations.

A measure defines the size of a perturbation: a norm, or the number of words that were
changed in some way.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from components.attackers.norms import NORMS, TINY
from components.attackers.words.changes import random_changes
from components.contracts.victim import Measure, NormName
from components.errors import ConfigMismatchError, QuestionableConfigWarning
from components.problems.supervised import Supervised

# share of the largest size below which sizes of inputs in grey levels look as if meant for [0, 1]
GREY_LEVEL_SIZE_SHARE = 1e-3


def require_norm(measure: Measure) -> NormName:
    """A measure that is a norm.

    Raises:
        TypeError: it counts words."""
    if measure == "insertion" or measure == "flip":
        raise TypeError(f"{measure} is no norm: it counts words")
    return measure


@dataclass(frozen=True)
class BoxSpace:
    """Real inputs, D of them, between two bounds (None: any)."""

    # a gradient can be followed by small steps, and the simplest black box is noise
    smooth: ClassVar[bool] = True
    bounds: tuple[float, float] | None
    inputs: int  # D

    def clip(self, x: Tensor) -> Tensor:
        """x [B, D] moved to where inputs are."""
        return x if self.bounds is None else x.clamp(*self.bounds)

    def size(self, x: Tensor, moved: Tensor, measure: Measure) -> Tensor:
        """Size of the perturbation from x to x' [B]."""
        return NORMS[require_norm(measure)].size(moved - x)

    def perturb_at_random(
        self, x: Tensor, y: Tensor, size: float, measure: Measure, generator: torch.Generator
    ) -> Tensor:
        """Random signs in L∞, a random point of the sphere in the other norms."""
        return self.clip(x + noise(x, size, require_norm(measure), generator))

    def largest(self, measure: Measure) -> float:
        """The size that leads from any input to any other."""
        if self.bounds is None:
            return math.inf
        diameters = {"linf": 1.0, "l2": math.sqrt(self.inputs), "l1": float(self.inputs)}
        return (self.bounds[1] - self.bounds[0]) * diameters[require_norm(measure)]

    def check_sizes(self, sizes: Sequence[float], measure: Measure, name: str) -> None:
        """Check that sizes of an evaluation are in the units of the inputs of problem ``name``.

        Raises:
            ConfigMismatchError: the largest moves any input to any other, as grey levels do
                where inputs lie in [0, 1].
        """
        largest = max(sizes)
        most = self.largest(measure)
        if self.bounds is not None and largest > most * (1 + 1e-9):
            low, high = self.bounds
            grey = "8/255" if high - low == 1 else f"{(high - low) * 8 / 255:.3g}"
            raise ConfigMismatchError(
                f"attacker.eps: {largest:g} leads from any input of {name} to any other (they lie in [{low:g}, "
                f"{high:g}], {measure} size at most {most:g}); give sizes in those units, e.g. {grey} for 8 of 255 grey "
                "levels"
            )
        if (
            self.bounds is not None
            and 0 < largest < GREY_LEVEL_SIZE_SHARE * most
            and self.bounds[1] - self.bounds[0] > 2
        ):
            low, high = self.bounds
            warnings.warn(
                QuestionableConfigWarning(
                    f"attacker.eps: at most {largest:.3g}, and inputs of {name} lie in [{low:g}, {high:g}]; sizes are in "
                    f"their units, where 8 of 255 grey levels are {(high - low) * 8 / 255:.3g}"
                ),
                stacklevel=1,
            )

    def check_training_size(self, size: float, measure: Measure, name: str) -> None:
        """Check that the size that a defence trains at is in the units of the inputs.  Raises
        ConfigMismatchError."""
        if self.bounds is None or measure != "linf":
            return
        low, high = self.bounds
        if size > high - low:
            raise ConfigMismatchError(
                f"inference.train_eps: {size:g} exceeds the range {list(self.bounds)} of an input of {name}; "
                f"it is in the units of the inputs, below {high - low:g}"
            )


@dataclass(frozen=True)
class WordSpace:
    """D words, each present in a mail (1) or not (0).

    Class 1 is the one that attackers change.
    """

    smooth: ClassVar[bool] = False
    inputs: int  # D

    def clip(self, x: Tensor) -> Tensor:
        return x.round().clamp(0.0, 1.0)

    def size(self, x: Tensor, moved: Tensor, measure: Measure) -> Tensor:
        return (moved != x).sum(1)

    def perturb_at_random(
        self, x: Tensor, y: Tensor, size: float, measure: Measure, generator: torch.Generator
    ) -> Tensor:
        """As many words as the attack may change, of those that it can change."""
        return random_changes(
            x, y, int(size), "insertion" if measure == "insertion" else "flip", generator
        )

    def largest(self, measure: Measure) -> float:
        return float(self.inputs)

    def check_sizes(self, sizes: Sequence[float], measure: Measure, name: str) -> None:
        """Any number of words is one; that it is whole was asked when it was declared."""

    def check_training_size(self, size: float, measure: Measure, name: str) -> None:
        if size != int(size):
            raise ConfigMismatchError(
                f"inference.train_eps: {size:g} is not a number of changed inputs of {name}, which are binary; "
                "use a whole one, such as 2"
            )


def input_space(problem: Supervised) -> BoxSpace | WordSpace:
    """The input space of a problem."""
    if problem.domain == "binary":
        return WordSpace(problem.n_inputs)
    return BoxSpace(problem.bounds, problem.n_inputs)


def noise(x: Tensor, size: float, norm: NormName, generator: torch.Generator) -> Tensor:
    """Noise of one length, like x: random signs in L∞, a random point of the sphere in the other
    norms."""
    if norm == "linf":
        return size * (
            torch.randint(2, x.shape, generator=generator, device=x.device).to(x) * 2 - 1
        )
    delta = NORMS[norm].start(x, 1.0, generator)
    return size * delta / NORMS[norm].size(delta).unsqueeze(1).clamp_min(TINY)
