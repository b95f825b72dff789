"""Check of the sizes of a state-space model against the data, before any work."""

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
    """Numbers in a state of a model and in an observation of it, dx and dy; None: the model does
    not say."""
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
    """Refuses a state-space model that does not fit a sequence: states are scored coordinate by
    coordinate.

    A model may have more states than the truth has names (derivatives, say): the first are those
    that are scored.

    Raises:
        ConfigMismatchError: it has fewer states, or observes another number of coordinates."""
    if not isinstance(problem, Sequence):
        return
    states, observed = model_dims(model, problem.observations.device)
    n_states = len(problem.state_names)
    n_values = problem.observations.shape[2]
    if observed is not None and observed != n_values:
        raise ConfigMismatchError(
            f"model: observes {observed} numbers at a time, dataset={problem.name} has {n_values}; change the model"
        )
    if states is not None and problem.states is not None and states < n_states:
        raise ConfigMismatchError(
            f"model: has {states} {'state' if states == 1 else 'states'}, and dataset={problem.name} knows the truth of "
            f"{n_states} ({', '.join(problem.state_names)}); change the model"
        )
