"""What gradient attacks inside a ball declare in common, and how their declarations become a climb of ``loop``."""

from __future__ import annotations

from dataclasses import fields

from pydantic import BaseModel, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from components.attackers.evasion.loop import Ascent, ascend
from components.attackers.norms import NormName
from components.attackers.victim import Criterion, Expectation, Victim
from components.contracts.streams import Rng
from components.evaluation.threat import Sizes


class GradientAscent(BaseModel):
    """An attack that climbs as its own keys say: each names a field of ``Ascent``, one that it lacks keeps its default."""

    eps: Sizes
    norm: NormName
    criterion: Criterion
    target: NonNegativeInt | None
    expectation: Expectation

    def ascent(self) -> Ascent:
        """How this attack climbs."""
        return Ascent(**{f.name: getattr(self, f.name) for f in fields(Ascent) if hasattr(self, f.name)})

    def perturb(self, victim: Victim, x: Tensor, y: Tensor, rng: Rng, eps: float) -> Tensor:
        return ascend(victim, x, y, rng.attack, eps, self.ascent())


class Steps(BaseModel):
    """Several steps of α = ``step_size`` · ε, which a row may leave as soon as it is broken."""

    steps: PositiveInt
    step_size: PositiveFloat
    stop_when_broken: bool
