"""Common keys of gradient attacks within a ball, and their ``loop`` ascents."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.target import TargetedAttack
from components.contracts.attackers import Evasion
from components.contracts.streams import Rng
from components.contracts.victim import Criterion, Expectation, NormName, Precision, Victim


class InBall(BaseModel):
    """An attack within a ball."""

    norm: NormName  # ball of the perturbation: linf, l2 or l1

    def measure(self) -> NormName:
        return self.norm


class InputGradientAttack(Evasion):
    """An attack by the input gradient of the victim."""

    follows_gradient = True
    knowledge = "white box"

    # draws of a Bayesian victim that the gradient uses: predictive (all), fresh_draws (a few new
    # ones a step), single_draw
    expectation: Expectation

    def gradient_source(self) -> Expectation:
        return self.expectation


class MarginAttack(InputGradientAttack):
    """An attack that lowers the margin of the true class in several steps."""

    steps: PositiveInt

    def minimised_criterion(self) -> Criterion:
        return "margin"

    def is_iterative(self) -> bool:
        return self.steps > 1


class GradientAscent(InBall, TargetedAttack, InputGradientAttack):
    """A gradient attack configured by its keys; by default one step to the boundary of the ball."""

    # Quantity lowered for the true class, and raised for a target: cross_entropy (log p(y|x)) |
    # margin (between logits) | dlr (the margin over the spread of the three largest logits, Croce
    # and Hein 2020, with a gradient that does not vanish for very confident networks).
    criterion: Criterion
    # precision of gradients, computed on a copy of the victim: full (unchanged) | bfloat16 (8
    # binary digits, twice as fast on CPUs with native support).  Steps and success use full
    # precision.
    precision: Precision

    def ascent(self) -> Ascent:
        """The ascent configured by this attack's keys."""
        keys: dict[str, Any] = {"steps": 1, "step_size": 1.0, "stop_when_broken": False}
        keys |= {name: value for name, value in self if name in Ascent.__dataclass_fields__}
        return Ascent(**keys | {"target": self.target_class})

    def minimised_criterion(self) -> Criterion:
        return self.criterion

    def is_iterative(self) -> bool:
        return self.target is None and self.ascent().steps > 1

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        return ascend(victim, x, y, rng.attack, eps, self.ascent())


class Steps(BaseModel):
    """Several steps of α = ``step_size`` · ε, with optional early stopping of broken rows."""

    steps: PositiveInt
    step_size: PositiveFloat
    # stop an image at its first misclassification (never for random predictions); false: keep
    # raising its loss
    stop_when_broken: bool

    def without_early_stop(self) -> Self:
        return (
            self.model_copy(update={"stop_when_broken": False}) if self.stop_when_broken else self
        )
