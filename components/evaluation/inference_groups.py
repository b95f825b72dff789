"""A posterior and its problem as ArviZ's InferenceData, for ``az.loo`` and ``az.compare``.

Groups in addition to the groups of ``posteriors.inference_data``, for the same C chains
and N draws:

    log_likelihood        log p(y_i | θ_s) of every training label [C, N, …]
    observed_data         y [rows], or [rows, tasks]; if several tasks have missing
                          labels, a list of the observed labels
    posterior_predictive  ỹ_i ~ p(y | x_i, θ_s) [C, N, …]

In a structural series i is a time and p(y_t | y_<t, θ) is the one-step predictive density, with the
states marginalised (given the precisions in models with Student's t).  For functions (Gaussian
processes) f ~ q(f_i) is drawn by row, and i is a label given f_i.  For states see
``inference_states``.  Weighted draws are resampled by their weights, as one chain.  Labels are in
the problem's units.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from components.contracts.capabilities import GivenFunction, LogJoint
from components.contracts.posteriors import (
    HoldsDraws,
    HoldsModule,
    Redraws,
    SeriesDraws,
    SmoothedStates,
)
from components.contracts.predictive import Predictive, components_of
from components.contracts.problems import Rows
from components.contracts.roles import Problem
from components.contracts.streams import Rng
from components.errors import ConfigMismatchError, IncompleteResultWarning
from components.evaluation.inference_states import observation_groups, smoothed_state_groups
from components.evaluation.pointwise import (
    Pointwise,
    PredictiveFn,
    of_rows,
    of_series,
    pointwise_of_labels,
)
from components.inference.linear.conjugate_posterior import ConjugatePosterior
from components.posteriors.draws import Draws
from components.posteriors.inference_data import MOST_NUMBERS, Groups, parameter_groups, to_numpy
from components.problems.supervised import Supervised
from components.problems.unlabelled import Unlabelled
from components.series.sequence import Sequence
from components.series.structural.structural_posterior import StructuralDraws

if TYPE_CHECKING:
    from xarray import DataTree

DRAWS = 1000  # number of draws from a posterior that redraws for each prediction
# minimum draws: ``az.loo`` fits a Pareto distribution to a fifth of them, at least five
FEWEST = 25
# index of an evaluation generator; ``pointwise`` and ``inference_states`` use 9,001 and 9,003
STREAM = 9_000


def inference_groups(problem: Problem, posterior: object, rng: Rng) -> DataTree:
    """All available groups, for the first replicate if several are computed jointly.

    Raises:
        ConfigMismatchError: the posterior holds no draws of parameters, functions or states.
    """
    if isinstance(posterior, ConjugatePosterior):
        posterior = posterior.draws
    if isinstance(posterior, HoldsDraws):
        draws = posterior.select_replicate(0)
        if not isinstance(draws, Draws) or not draws.n_draws:
            raise ConfigMismatchError(
                "no draws are stored yet; take more steps, or lower inference.burn_in"
            )
        return _draw_groups(problem, draws, rng).tree()
    if isinstance(problem, Supervised) and isinstance(posterior, HoldsModule):
        if isinstance(posterior.module, GivenFunction):
            return _predictive_groups(problem, posterior.module, rng)
    elif isinstance(problem, Supervised) and isinstance(posterior, Redraws):
        return _predictive_groups(problem, posterior, rng)
    if isinstance(problem, Sequence) and isinstance(posterior, SeriesDraws):
        groups = inference_groups(problem, posterior.parameters, rng)
        groups["observed_data"] = observation_groups(problem).tree()["observed_data"]
        return groups
    if isinstance(problem, Sequence) and isinstance(posterior, SmoothedStates):
        return smoothed_state_groups(problem, posterior, rng).tree()
    raise ConfigMismatchError(
        f"a {type(posterior).__name__} has no draws of parameters; use a sampler "
        f"(inference=nuts, sgld, …)"
    )


def _draw_groups(problem: Problem, draws: Draws, rng: Rng) -> Groups:
    """Draws of parameters, with pointwise quantities if there are single observations."""
    n = _observations(problem, draws)
    if draws.log_weights is not None:
        generator = rng.at("evaluation", STREAM)
        rows = torch.multinomial(draws.weights, len(draws.flat), True, generator=generator)
        resampled = draws.flat[rows][None]
        draws = replace(draws, draws=resampled, start=draws.start[:1], stats={}, log_weights=None)
    draws = _thin(draws, n or draws.draws.shape[2])
    groups = parameter_groups(draws)
    if n is not None:
        _count(draws.n_chains * draws.n_draws, "keep more draws")
        _add(groups, _pointwise(problem, draws, rng), (draws.n_chains, draws.n_draws))
    elif problem.kind != "density":  # a density has no data
        message = (
            f"no log_likelihood: this {problem.kind} problem has no single observations "
            "with a known likelihood"
        )
        warnings.warn(f"{message} given the parameters", IncompleteResultWarning, stacklevel=3)
    return groups


def _observations(problem: Problem, draws: Draws) -> int | None:
    """Number of training labels; None if they are not independent given the parameters."""
    if isinstance(draws, StructuralDraws):
        return draws.series.y.shape[1]
    if isinstance(problem, Supervised):
        return int(problem.train.mask.sum())
    has_log_joint = isinstance(draws.model, LogJoint)
    if (
        has_log_joint
        and isinstance(problem, Unlabelled)
        and isinstance(problem.train, Rows)
        and not problem.redrawn
    ):
        return problem.train.n_rows
    return None


def _thin(draws: Draws, n: int) -> Draws:
    """Thin draws evenly until their values at n observations fit in memory.

    Raises:
        ConfigMismatchError: no draws would be left."""
    every = max(1, -(-draws.n_chains * draws.n_draws * n // MOST_NUMBERS))
    index = np.arange(draws.n_draws)[every - 1 :: every]
    if len(index) == 0:
        raise ConfigMismatchError(
            f"{draws.n_draws} draws need more than 80 MB and would be thinned to none; store more "
            f"draws"
        )
    if every == 1:
        return draws
    message = (
        f"only every {every}th draw, {len(index)} of {draws.n_draws}, because all need more than "
        f"80 MB"
    )
    warnings.warn(message, IncompleteResultWarning, stacklevel=2)
    part: dict[str, Any] = {"draws": draws.draws[:, index]}
    part["stats"] = {name: value[:, index] for name, value in draws.stats.items()}
    if isinstance(draws, StructuralDraws) and draws.precisions is not None:
        part["precisions"] = draws.precisions[:, index]
    return replace(draws, **part)


def _pointwise(problem: Problem, draws: Draws, rng: Rng) -> Pointwise:
    if isinstance(draws, StructuralDraws):
        return of_series(draws, rng)
    if isinstance(problem, Supervised):
        return pointwise_of_labels(
            problem, lambda x: draws.predictive(draws.flat, x), len(draws.flat), rng
        )[0]
    assert isinstance(problem, Unlabelled), "``_observations`` excludes all other problems"
    return of_rows(problem, draws)


def _predictive_groups(
    problem: Supervised, posterior: Redraws | GivenFunction, rng: Rng
) -> DataTree:
    """Groups of functions, represented by their values f at the training rows.

    The functions are those of networks, or a few other functions, or functions that are redrawn for
    each prediction.  For a Gaussian process, f_i ~ q(f_i) is drawn separately for each row, with
    p(y_i | f_i), so that weights 1/p remove a label from q.
    """
    n_draws = MOST_NUMBERS // (problem.train.y.numel() * problem.n_classes)
    n_draws = max(FEWEST, min(DRAWS, n_draws))
    if isinstance(posterior, GivenFunction):
        generator = rng.at("evaluation", STREAM + 2)
        predictive: PredictiveFn = partial(posterior.predict_f, n=n_draws, generator=generator)
    else:
        networks = posterior.some(n_draws, None)

        def ask(x: Tensor) -> Predictive:
            return networks.predict(x, rng.at("evaluation", STREAM + 2))

        predictive = ask
        with torch.no_grad():
            n_draws = len(components_of(predictive(problem.train.x[:1])))
        _count(n_draws, "take more networks")
    pointwise, f = pointwise_of_labels(problem, predictive, n_draws, rng)
    f = f.squeeze(2) if problem.n_tasks == 1 else f
    names = [
        "input",
        *(["of_task"] if problem.n_tasks > 1 else []),
        *(["class"] if problem.target != "real" else []),
    ]
    groups = Groups({"posterior": {"f": to_numpy(f)[None]}}, {"f": names})
    _add(groups, pointwise, (1, n_draws))
    return groups.tree()


def _count(n_draws: int, mend: str) -> None:
    """Warn if there are few draws.

    Raises:
        ConfigMismatchError: there is only one draw, or none."""
    if n_draws < 2:
        raise ConfigMismatchError(
            f"there is {n_draws} draw, but at least 2 are required and {FEWEST} recommended; {mend}"
        )
    if n_draws < FEWEST:
        warnings.warn(
            f"{n_draws} draws: az.loo requires {FEWEST} or more; {mend}",
            IncompleteResultWarning,
            stacklevel=3,
        )


def _add(groups: Groups, said: Pointwise, shape: tuple[int, int]) -> None:
    """The three groups of data."""
    lengths = [len(axis) for axis in said.axes.values()]
    groups.dims[said.name] = list(said.axes)
    groups.coords |= said.axes
    groups.values["log_likelihood"] = {
        said.name: to_numpy(said.log_likelihood.double()).reshape(*shape, *lengths)
    }
    if said.drawn is not None:
        groups.values["posterior_predictive"] = {
            said.name: to_numpy(said.drawn).reshape(*shape, *lengths)
        }
    if said.observed is not None:
        groups.values["observed_data"] = {said.name: to_numpy(said.observed).reshape(lengths)}
