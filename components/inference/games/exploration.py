"""How much a player explores: a constant share of random actions, or one that decays from episode to episode."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Discriminator, Field, PositiveInt, Tag

from components.contracts.roles import Probability


class Decay(BaseModel):
    """ε = start · factor^⌊e / every⌋ in episode e = 0, 1, ….

    Source: Gallego (2021), section 4.4.1 (spatial variant)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    start: Probability
    factor: Annotated[float, Field(gt=0, le=1)]
    every: PositiveInt  # episodes


def _form(value: object) -> str:
    return "a-schedule" if isinstance(value, dict | Decay) else "a-number"


# Which of the two is meant is decided first, so that a mistake is complained about once.
Exploration = Annotated[
    Annotated[Probability, Tag("a-number")] | Annotated[Decay, Tag("a-schedule")], Discriminator(_form)
]


def explored(epsilon: float | Decay, episode: int) -> float:
    """ε in an episode, 0 the first."""
    if isinstance(epsilon, Decay):
        return epsilon.start * epsilon.factor ** (episode // epsilon.every)
    return epsilon
