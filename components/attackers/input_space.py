"""Input spaces: projection of inputs, and size, random draws and limits of perturbations.

A measure defines the size of a perturbation: a norm, or a number of changed words.
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

# share of the largest size below which sizes seem meant for inputs in [0, 1]
GREY_LEVEL_SIZE_SHARE = 1e-3


def require_norm(measure: Measure) -> NormName:
    """Return a measure that is a norm.

    Raises:
        TypeError: the measure counts words."""
    if measure == "insertion" or measure == "flip":
        raise TypeError(f"{measure} is not a norm: it counts words")
    return measure


@dataclass(frozen=True)
class BoxSpace:
    """D real inputs between two bounds (unbounded if None)."""

    # small gradient steps are possible, and the simplest black box is noise
    smooth: ClassVar[bool] = True
    bounds: tuple[float, float] | None
    inputs: int  # D

    def clip(self, x: Tensor) -> Tensor:
        """x [B, D] projected to the input space."""
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
        """The size of the largest possible perturbation."""
        if self.bounds is None:
            return math.inf
        diameters = {"linf": 1.0, "l2": math.sqrt(self.inputs), "l1": float(self.inputs)}
        return (self.bounds[1] - self.bounds[0]) * diameters[require_norm(measure)]

    def check_sizes(self, sizes: Sequence[float], measure: Measure, name: str) -> None:
        """Check that sizes of an evaluation are in the units of the inputs of problem ``name``.

        Raises:
            ConfigMismatchError: the largest size reaches any input from any other, e.g. grey levels
                for inputs in [0, 1].
        """
        largest = max(sizes)
        most = self.largest(measure)
        if self.bounds is not None and largest > most * (1 + 1e-9):
            low, high = self.bounds
            grey = "8/255" if high - low == 1 else f"{(high - low) * 8 / 255:.3g}"
            raise ConfigMismatchError(
                f"attacker.eps: {largest:g} exceeds the range of inputs of {name} ([{low:g}, "
                f"{high:g}], {measure} size at most {most:g}); give sizes in these units, e.g. "
                f"{grey} for 8 of 255 grey levels"
            )
        if (
            self.bounds is not None
            and 0 < largest < GREY_LEVEL_SIZE_SHARE * most
            and self.bounds[1] - self.bounds[0] > 2
        ):
            low, high = self.bounds
            warnings.warn(
                QuestionableConfigWarning(
                    f"attacker.eps: at most {largest:.3g}, but inputs of {name} lie in [{low:g}, "
                    f"{high:g}]; give sizes in these units, e.g. {(high - low) * 8 / 255:.3g} for "
                    "8 of 255 grey levels"
                ),
                stacklevel=1,
            )

    def check_training_size(self, size: float, measure: Measure, name: str) -> None:
        """Raise ConfigMismatchError unless the training size of a defence is in the units of the
        inputs."""
        if self.bounds is None or measure != "linf":
            return
        low, high = self.bounds
        if size > high - low:
            raise ConfigMismatchError(
                f"inference.train_eps: {size:g} exceeds the range {list(self.bounds)} of an input "
                f"of {name}; give it in the units of the inputs, below {high - low:g}"
            )


@dataclass(frozen=True)
class WordSpace:
    """D words, each present (1) or absent (0) in an email.

    Attackers change emails of class 1.
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
        """Random changes of the allowed number of words, among the words that the attack can
        change."""
        return random_changes(
            x, y, int(size), "insertion" if measure == "insertion" else "flip", generator
        )

    def largest(self, measure: Measure) -> float:
        return float(self.inputs)

    def check_sizes(self, sizes: Sequence[float], measure: Measure, name: str) -> None:
        """Accept any number of words; integers were checked at declaration."""

    def check_training_size(self, size: float, measure: Measure, name: str) -> None:
        if size != int(size):
            raise ConfigMismatchError(
                f"inference.train_eps: {size:g} is not a number of changed inputs of {name}, which "
                "are binary; use an integer, such as 2"
            )


def input_space(problem: Supervised) -> BoxSpace | WordSpace:
    """The input space of a problem."""
    if problem.domain == "binary":
        return WordSpace(problem.n_inputs)
    return BoxSpace(problem.bounds, problem.n_inputs)


def noise(x: Tensor, size: float, norm: NormName, generator: torch.Generator) -> Tensor:
    """Noise of a given size, like x: random signs in L∞, a random point of the sphere in other
    norms."""
    if norm == "linf":
        return size * (
            torch.randint(2, x.shape, generator=generator, device=x.device).to(x) * 2 - 1
        )
    delta = NORMS[norm].start(x, 1.0, generator)
    return size * delta / NORMS[norm].size(delta).unsqueeze(1).clamp_min(TINY)
