"""A small filter under attack, as seen by an attacker that shifts its observations."""

from __future__ import annotations

import dataclasses

from support.runs.configured import component, draw_normal
from support.series.small_sequences import sequence, system

from components.evaluation.replayed import (
    PosteriorProvenance,
    ReplayedFilterVictim,
    budget_unit,
    state_error_weights,
)
from components.series.sequence import Sequence
from runner.execution.rng import Streams


def problem(length: int = 12, replicates: int = 3, seed: int = 0) -> Sequence:
    """A linear Gaussian sequence with separate noise in every replicate."""
    p = sequence(system(seed), length, replicates)
    noise = draw_normal(*p.observations.shape, seed=seed + 5)
    return dataclasses.replace(p, observations=p.observations + 0.3 * noise)


def victim(
    p: Sequence,
    inference: str = "kalman",
    window: int = 1000,
    error: str = "rmse",
    index: int = 1,
    **keys,
) -> ReplayedFilterVictim:
    rng = Streams(3)
    made_by = PosteriorProvenance(
        component("model", "linear_gaussian_ssm").build(p, rng),
        component("inference", inference, **keys),
    )
    return ReplayedFilterVictim(
        made_by,
        p,
        rng,
        state_error_weights(p, error, "spoofing"),
        budget_unit(made_by, p, None, "spoofing"),
        window,
        index,
    )


def spoofer(**keys):
    """Attacker with the defaults of its YAML except for some keys."""
    return component("attacker", "spoofing", **({"probability": 0.5} | keys))
