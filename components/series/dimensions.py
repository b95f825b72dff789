"""Check of a state-space model's dimensions against the data."""

from __future__ import annotations

import torch

from components.contracts.capabilities import (
    AdditiveGaussian,
    LinearGaussian,
    Parameterised,
    SeriesConditionals,
    StateSpace,
)
from components.errors import ConfigMismatchError
from components.series.sequence import Sequence


def model_dims(model: object, device: torch.device) -> tuple[int | None, int | None]:
    """Dimensions dx of a model's state and dy of its observations; None if unknown."""
    generator = torch.Generator(device).manual_seed(0)  # a draw used only for its shape
    if isinstance(model, Parameterised):
        model = model.at(model.draw_prior(1, generator))
    if isinstance(model, LinearGaussian | AdditiveGaussian):
        return model.m0.shape[-1], model.Sigma.shape[-1]
    if isinstance(model, StateSpace):
        x = model.init((1, 1), generator)
        return x.shape[-1], model.observation_mean(x, 1).shape[-1]
    return (model.state_dim, None) if isinstance(model, SeriesConditionals) else (None, None)


def check_sizes(problem: object, model: object) -> None:
    """Reject a state-space model whose dimensions do not fit a sequence.

    States are scored coordinate by coordinate.  A model may have more states than the truth (e.g.
    derivatives): the first ones are scored.

    Raises:
        ConfigMismatchError: the model has fewer states than the data, or other observation
            dimensions."""
    if not isinstance(problem, Sequence):
        return
    states, observed = model_dims(model, problem.observations.device)
    n_states = len(problem.state_names)
    n_values = problem.observations.shape[2]
    if observed is not None and observed != n_values:
        raise ConfigMismatchError(
            f"model: observes {observed} values at a time, but dataset={problem.name} has {n_values}; change the model"
        )
    if states is not None and problem.states is not None and states < n_states:
        raise ConfigMismatchError(
            f"model: has {states} {'state' if states == 1 else 'states'}, but "
            f"dataset={problem.name} has {n_states} true states "
            f"({', '.join(problem.state_names)}); change the model"
        )
