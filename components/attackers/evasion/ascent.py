"""Common keys of gradient attacks inside a ball, and the ``loop`` ascents they define."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.target import TargetedAttack
from components.contracts.attackers import Evasion
from components.contracts.streams import Rng
from components.contracts.victim import Criterion, Expectation, NormName, Precision, Victim


class InputGradientAttack(Evasion):
    """An attack that follows the gradient of the victim in its input."""

    follows_gradient = True
    knowledge = "white box"

    # draws of a Bayesian victim that the gradient uses: predictive (all), fresh_draws (a few new
    # ones a step), single_draw
    expectation: Expectation

    def expects(self) -> Expectation:
        return self.expectation


class MarginAttack(InputGradientAttack):
    """An attack that lowers the margin of the true class in several steps."""

    steps: PositiveInt

    def follows(self) -> Criterion:
        return "margin"

    def iterates(self) -> bool:
        return self.steps > 1


class GradientAscent(TargetedAttack, InputGradientAttack):
    """An attack that climbs as its own keys say, by one step to the border of the ball."""

    norm: NormName  # ball of the perturbation: linf, l2 or l1
    # Quantity lowered for the true class, and raised for a target: cross_entropy (log p(y|x)) |
    # margin (between logits) | dlr (the margin over the spread of the three largest logits, Croce
    # and Hein 2020: the gradient of a very confident network does not vanish in it).
    criterion: Criterion
    # precision of gradients, computed on a copy of the victim: full, its own; bfloat16, 8 binary
    # digits, twice as fast on CPUs that multiply them.  Steps are added up, and success is judged,
    # in full precision.
    precision: Precision

    def ascent(self) -> Ascent:
        """How this attack climbs, by those of its keys that an ascent has."""
        keys: dict[str, Any] = {"steps": 1, "step_size": 1.0, "stop_when_broken": False}
        keys |= {name: value for name, value in self if name in Ascent.__dataclass_fields__}
        return Ascent(**keys | {"target": self.target_class})

    def measure(self) -> NormName:
        return self.norm

    def follows(self) -> Criterion:
        return self.criterion

    def iterates(self) -> bool:
        return self.target is None and self.ascent().steps > 1

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        return ascend(victim, x, y, rng.attack, eps, self.ascent())


class Steps(BaseModel):
    """Several steps of α = ``step_size`` · ε, which a row may leave as soon as it is broken."""

    steps: PositiveInt
    step_size: PositiveFloat
    # keep an image at its first misclassification (never where predictions are random); false: keep
    # raising its loss
    stop_when_broken: bool

    def relentless(self) -> Self:
        return (
            self.model_copy(update={"stop_when_broken": False}) if self.stop_when_broken else self
        )
