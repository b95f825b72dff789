"""Exploration of a player: a constant, decaying or level-dependent share of random actions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, PositiveInt, Tag

from components.contracts.roles import AboveZeroToOne, StrictKeys, ZeroToOne


class Decay(StrictKeys):
    """ε = start · factor^⌊e / every⌋ in episode e = 0, 1, ….

    Source: Gallego (2021), section 4.4.1 (spatial variant)."""

    start: ZeroToOne
    factor: AboveZeroToOne
    every: PositiveInt  # episodes


class ModelledPlayerExploration(StrictKeys):
    """Uncertain ε of modelled players, with mean min(1, mean + (j − 1) rise) at level j.

    The distribution is p_k(ε) of the source.  An ε-greedy policy is linear in ε, so
    expectations depend only on the mean of p_k(ε).

    Source: Gallego (2021), section 4.3.2.
    """

    mean: ZeroToOne
    rise: ZeroToOne


def _form(value: object) -> str:
    if isinstance(value, ModelledPlayerExploration) or (
        isinstance(value, dict) and value.keys() & {"mean", "rise"}
    ):
        return "by-level"
    return "a-schedule" if isinstance(value, dict | Decay) else "a-number"


# Select the type first, so that errors are reported once.
Rate = Annotated[ZeroToOne, Tag("a-number")] | Annotated[Decay, Tag("a-schedule")]
Exploration = Annotated[Rate, Discriminator(_form)]
LevelExploration = Annotated[
    Rate | Annotated[ModelledPlayerExploration, Tag("by-level")], Discriminator(_form)
]


def exploration_rate(
    epsilon: float | Decay | ModelledPlayerExploration, episode: int, level: int = 1
) -> float:
    """ε in an episode (starting at 0) for a player of a level."""
    if isinstance(epsilon, Decay):
        return epsilon.start * epsilon.factor ** (episode // epsilon.every)
    if isinstance(epsilon, ModelledPlayerExploration):
        return min(1.0, epsilon.mean + (level - 1) * epsilon.rise)
    return epsilon
